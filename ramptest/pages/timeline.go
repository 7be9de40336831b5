package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// timelineView is a part of an order's timeline. It has no bodies, because they are
// large and few are read.
type timelineView struct {
	UUID    uuid.UUID
	Events  []eventLine
	Earlier int // the number of the event before which there are more; 0 if there are none
}

// eventLine is an event as a timeline shows it.
type eventLine struct {
	control.Event
	At, What, Status, Cause string
	Whole                   bool // whether the event has a page with more details
}

// maxWhat is the maximum length of a line's description in bytes.
const maxWhat = 240

// maxEvents is the maximum number of events in a part of a timeline.
const maxEvents = 50

// timeline returns the part of an order's timeline that ends before an event.
func (s *site) timeline(id uuid.UUID, before int) timelineView {
	v := timelineView{UUID: id}
	events, more := s.desk.Calls(desk.CallsQuery{UUID: id, Before: before, Limit: maxEvents})
	if more {
		v.Earlier = events[len(events)-1].Number
	}
	for _, e := range slices.Backward(events) {
		line := eventLine{Event: e, At: s.stamp(e.Time), What: e.Sentence(), Whole: e.Request != nil}
		if e.Kind == control.KindBooks && e.Failed || e.Loss != "" {
			line.Tone = verdict.Bad
		}
		if e.Tone == verdict.Good {
			line.Status = statusOf(&e)
		}
		if len(line.What) > maxWhat {
			line.What, line.Whole = strings.ToValidUTF8(line.What[:maxWhat], "")+"…", true
		}
		if e.Request != nil && e.IsWrong() {
			line.Cause = s.cause(&e)
		}
		v.Events = append(v.Events, line)
	}
	return v
}

// earlierView is a page with an earlier part of a timeline.
type earlierView struct {
	frame
	Timeline timelineView
}

// earlierPage shows the part of a timeline before an event.
func (s *visit) earlierPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	if err != nil || id == uuid.Nil { // the events of no order, about all players
		s.noOrder()
		return
	}
	before := number(s.r.URL.Query().Get("before"))
	s.show(http.StatusOK, "earlier.html", &earlierView{frame{Title: "Earlier · " + shortUUID(id)}, s.timeline(id, before)})
}

// eventView is a page with one exchange.
type eventView struct {
	frame
	Order           string // the address of its order; "" if there is none
	About           aboutOrder
	Verdict         verdictView
	Event           control.Event
	At              string
	Operator        bool
	Asked, Answered string
	Curl            curlView
	Cause           string
}

// eventPage shows one exchange, with its bodies.
func (s *visit) eventPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	e, ok := s.event(s.r.PathValue("number"))
	if err != nil || !ok || e.UUID != id || id == uuid.Nil {
		s.failure(http.StatusNotFound, "There is no such exchange. The record keeps the last 10,000.", link{"/orders/" + id.String(), "To the order"}, link{"/", "All orders"})
		return
	}
	s.eventView(&e)
}

// eventView shows one event.
func (s *visit) eventView(e *control.Event) {
	v := &eventView{frame: frame{Title: strings.TrimSpace(titleOf(e) + " · " + shortUUID(e.UUID))}, Event: *e, At: s.stamp(e.Time), Verdict: s.verdictView(e.Verdict()),
		About: readOrder(e), Operator: s.guard.Operates(s.r)}
	if o := s.orderOf(e.UUID.String()); o != nil {
		v.Order = "/orders/" + e.UUID.String()
		if o.Loss && o.TxHash == (common.Hash{}) && s.culprit(o.UUID) == fmt.Sprintf("%s/events/%d", v.Order, e.Number) {
			v.Verdict = s.verdictView(o.Verdict)
		}
	}
	if e.Request != nil {
		v.Asked, v.Curl = pretty(e.Request), s.curl(e)
	}
	if e.Answer != nil {
		v.Answered = pretty(e.Answer)
	}
	if e.Request != nil && e.IsWrong() {
		v.Cause = s.cause(e)
	}
	s.show(http.StatusOK, "event.html", v)
}

// longHex finds what is too long to read, such as a logsBloom.
var longHex = regexp.MustCompile("0x([0-9a-fA-F]{8})[0-9a-fA-F]{192,}")

// pretty formats a message for a reader: its headers and its body. JSON is indented, and long
// hex is cut.
func pretty(m *control.Message) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(m.Header[name], ", "))
	}
	if b.Len() > 0 && m.Body != "" {
		b.WriteByte('\n')
	}
	if json.Indent(&b, []byte(m.Body), "", "  ") != nil {
		b.WriteString(m.Body)
	}
	return longHex.ReplaceAllString(b.String(), "0x$1…")
}

// curlView is a curl command to copy.
type curlView struct {
	Number int // of the event
	Text   string
}

// curl returns a request as a curl command, or none if there is no address. The record does not hold the token and the
// HMAC key, so the command takes them from the environment.
func (s *site) curl(e *control.Event) curlView {
	address := s.guard.URL
	if e.Kind != control.KindInitialize {
		address = s.gameAddress()
	}
	if address == "" || address == desk.MemoryURL || e.Kind == control.KindRPC {
		return curlView{} // curl cannot reach it
	}
	signed := e.Kind != control.KindAssets
	var b strings.Builder
	if signed {
		fmt.Fprintf(&b, "BODY=%s\n", quote(e.Request.Body))
	}
	fmt.Fprintf(&b, "curl -i -X %s %s \\\n", e.Request.Method, quote(address+e.Request.Path))
	for _, name := range slices.Sorted(maps.Keys(e.Request.Header)) {
		switch strings.ToLower(name) {
		case "x-dapp-authorization":
			fmt.Fprintf(&b, "  -H \"%s: Bearer $RAMP_ACCESS_TOKEN\" \\\n", name)
		case "content-type", "x-dapp-sessionid":
			for _, value := range e.Request.Header[name] {
				fmt.Fprintf(&b, "  -H %s \\\n", quote(name+": "+value))
			}
		}
	}
	if !signed {
		return curlView{e.Number, strings.TrimSuffix(b.String(), " \\\n")}
	}
	if e.Fault != "missing HMAC" {
		over := `"$BODY"`
		if e.Fault == "tampered body" || e.Fault == "wrong HMAC" {
			over = "another" // as wrong as that of the forgery
		}
		fmt.Fprintf(&b, "  -H \"X-HMAC-Signature: $(printf %%s %s | ramp sign)\" \\\n", over)
	}
	b.WriteString("  --data-raw \"$BODY\"")
	return curlView{e.Number, b.String()}
}

// quote quotes a text as one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// statusOf returns the HTTP status of the answer; "" if there was none.
func statusOf(e *control.Event) string {
	if e.Answer == nil || e.Answer.Status == 0 {
		return ""
	}
	return strconv.Itoa(e.Answer.Status)
}
