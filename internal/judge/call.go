package judge

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// Call is a call that the judge made, in a form that may be shown: without tokens, keys
// and signatures.
type Call struct {
	Method  string `json:"method"`
	Path    string `json:"path"` // with the query
	URL     string `json:"url"`
	UUID    string `json:"uuid,omitempty"`
	Session string `json:"session,omitempty"`
	Status  int    `json:"status,omitempty"` // 0 if there was no answer
	Header  string `json:"header,omitempty"` // the headers of the answer that matter
	Answer  string `json:"answer"`           // the beginning of its body, or why there was none
}

// String describes the call and its answer on one line.
func (c Call) String() string {
	if c.Status == 0 {
		return fmt.Sprintf("%s %s: no answer: %s", c.Method, c.Path, c.Answer)
	}
	return strings.TrimRight(fmt.Sprintf("%s %s: HTTP %d %s", c.Method, c.Path, c.Status, c.Header), " ")
}

const (
	mostShown = 500     // bytes of an answer
	mostBody  = 4 << 10 // bytes of a body in which a uuid is looked for
	mostCalls = 60      // of a trial; the last ones are kept
)

// calls records the calls of a trial. It is safe for concurrent use.
type calls struct {
	mu  sync.Mutex
	got []Call
}

// add records a call. Of several assets calls of a player in a row, it keeps the last.
func (c *calls) add(made Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.got) - 1
	if last >= 0 && made.Method == http.MethodGet && c.got[last].Method == made.Method &&
		c.got[last].Path == made.Path && c.got[last].Session == made.Session &&
		c.got[last].Status == made.Status {
		c.got = c.got[:last]
	}
	c.got = append(c.got[max(0, len(c.got)+1-mostCalls):], made)
}

func (c *calls) all() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// lastMove returns the last call that may have moved something.
func lastMove(all []Call) *Call {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Method != http.MethodGet || i == 0 {
			return &all[i]
		}
	}
	return nil
}

// call is one HTTP call.
type call struct {
	method, path string
	header       http.Header // its names are sent in the case in which they are written
	body         []byte
	arriving     func() io.Reader // returns what is sent instead of body, if it is not nil
	length       int64            // the length of the body; -1 sends it in chunks
	// use a separate connection, so that what a server leaves unread cannot break another call
	alone bool
	hmac  string // the right HMAC, which no verdict may show
}

// secrets returns what a call sent that its answer may repeat and nobody may see.
func (c call) secrets() []string {
	return []string{c.hmac, first(c.header, gamecall.Signature)}
}

// first returns the first value of a header, or "". Some cases vary the case of its name.
func first(header http.Header, name string) string {
	for got, values := range header {
		if strings.EqualFold(got, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}
