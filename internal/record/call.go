package record

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// kind is what a call is about.
type kind string

const (
	initialize kind = "initialize"
	assets     kind = "assets"
	validate   kind = "validate"
	result     kind = "result"
	preflight  kind = "preflight" // of a browser, before it calls assets
	elsewhere  kind = "elsewhere" // with headers of the service, at no endpoint
)

// maxBody is the size of the longest message that is recorded; longer ones pass, too.
const maxBody = 1 << 20

// call is one call that passed, unmasked. It holds secrets, and lives in memory only.
type call struct {
	number int
	kind   kind
	at     time.Time // when it came
	ended  time.Time // when its answer began, or when it was clear that none would come
	method string
	path   string
	query  bool // its address had a query

	header       http.Header
	transfer     []string // Transfer-Encoding
	body         []byte
	size         int64 // of the body, which is empty here if it was longer than maxBody
	status       int   // 0 if nothing answered
	failure      string
	answerHeader http.Header
	answer       []byte
	answerSize   int64

	facts
}

// facts is what the points need to know of a call.
type facts struct {
	reading   string // of the HMAC key, with which the HMAC holds
	signed    bool   // it has an HMAC
	unsigned  bool   // no reading of the key has made one: anybody may have sent it
	session   string
	token     string
	uuid      string // as it was written
	deviation []string
	fresh     []string
	accepted  bool   // the answer has success true, or code 200
	envelope  int    // the code of the answer to an initialize call
	code      string // the errorCode of an answer, or the data of a failed initialize call

	offer    *offer                // of an initialize call
	validate *ramp.ValidateRequest // nil if it cannot be read
	approval *ramp.Approval
	result   *ramp.Result
}

// offer is the intent of an initialize call.
type offer struct {
	Network   ramp.Network `json:"network"`
	Fee       ramp.Amount  `json:"mint_fee_bps"`
	Materials []ramp.Item  `json:"materials"`
	Outputs   []ramp.Item  `json:"outputs"`
}

// Reading is one way to make the HMAC key of the console's text.
type Reading struct {
	Name string // the function of package ramp, as the report names it
	Key  ramp.HMACKey
}

// read fills in the facts.
func (c *call) read(readings []Reading) {
	c.session = c.header.Get(ramp.HeaderSession)
	_, c.token, _ = strings.Cut(c.header.Get(ramp.HeaderAuthorization), " ")
	signature := c.header.Get(ramp.HeaderHMAC)
	c.signed = signature != ""
	for _, r := range readings {
		if c.signed && r.Key.Verify(c.body, signature) == nil {
			c.reading = r.Name
			break
		}
	}
	c.unsigned = len(readings) > 0 && c.reading == "" && c.kind != initialize
	if c.kind == preflight || c.kind == elsewhere {
		return
	}
	c.readHeaders()
	c.readRequest()
	c.readAnswer()
}

// readHeaders compares a call with 4.1 and 4.3.
func (c *call) readHeaders() {
	deviates := func(is bool, text string) {
		if is {
			c.deviation = append(c.deviation, text)
		}
	}
	method := http.MethodPost
	if c.kind == assets {
		method = http.MethodGet
	}
	media, _, _ := strings.Cut(c.header.Get("Content-Type"), ";")
	deviates(c.method != method, "the method is "+c.method+", not "+method)
	deviates(c.kind != result && media != "application/json", "Content-Type is not application/json")
	deviates(c.kind != assets && !c.signed, "X-HMAC-SIGNATURE is missing")
	deviates(c.kind == assets && c.size > 0, "an assets call has a body")
	if c.kind != initialize {
		deviates(c.session == "", "X-Dapp-SessionID is missing")
		scheme, token, _ := strings.Cut(c.header.Get(ramp.HeaderAuthorization), " ")
		deviates(scheme != "Bearer" || token == "", "X-Dapp-Authorization is not Bearer and a token")
	}
	for name, values := range c.header {
		deviates(len(values) > 1, name+" occurs more than once")
	}
	slices.Sort(c.deviation)
}

// readRequest reads the body of a call, and compares it with the interface.
func (c *call) readRequest() {
	var top struct {
		UUID   any   `json:"uuid"`
		Intent offer `json:"intent"`
	}
	of := map[kind]shape{initialize: initializeShape, validate: validateShape, result: resultShape}[c.kind]
	if of == nil || c.size > maxBody {
		return
	}
	fresh, deviations := of.compare(c.body)
	c.fresh, c.deviation = append(c.fresh, fresh...), append(c.deviation, deviations...)
	unread := json.Unmarshal(c.body, &top)
	c.uuid, _ = top.UUID.(string)
	var err error
	switch c.kind {
	case initialize:
		if c.offer = &top.Intent; unread != nil {
			c.offer = nil
		}
	case validate:
		if c.validate, err = ramp.ParseValidate(c.body); err != nil {
			c.validate = nil
		} else {
			c.validate.Raw = nil
		}
	case result:
		if c.result, err = ramp.ParseResult(c.body); err == nil {
			for _, f := range c.result.Unreadable {
				c.deviation = append(c.deviation, f.Path+" "+f.Problem)
			}
			c.result.Raw = nil
		}
	}
	var invalid *ramp.InvalidError
	if errors.As(err, &invalid) {
		for _, f := range invalid.Fields {
			if text := f.Path + " " + f.Problem; !c.tells(f.Path) {
				c.deviation = append(c.deviation, text)
			}
		}
	}
}

// tells reports whether a deviation of a field is known already.
func (c *call) tells(path string) bool {
	return slices.ContainsFunc(c.deviation, func(known string) bool {
		return strings.HasPrefix(known,
			path+" ")
	})
}

// readAnswer reads the answer, and compares it with the interface.
func (c *call) readAnswer() {
	of := map[kind]shape{initialize: initializeAnswerShape, assets: assetsAnswerShape,
		validate: validateAnswerShape, result: resultAnswerShape}[c.kind]
	if c.status == 0 || c.answerSize > maxBody {
		return
	}
	fresh, deviations := of.compare(c.answer)
	for _, f := range fresh {
		c.fresh = append(c.fresh, "answer: "+f)
	}
	for _, d := range deviations {
		c.deviation = append(c.deviation, "answer: "+d)
	}
	var envelope struct {
		Success   bool   `json:"success"`
		ErrorCode string `json:"errorCode"`
		Code      int    `json:"code"`
		Data      any    `json:"data"`
	}
	_ = json.Unmarshal(c.answer, &envelope) // what cannot be read is a deviation, above
	c.accepted, c.code = envelope.Success && c.status == http.StatusOK, envelope.ErrorCode
	if c.kind == initialize {
		c.envelope = envelope.Code
		c.accepted = envelope.Code == http.StatusOK
		c.code, _ = envelope.Data.(string)
		if data, ok := envelope.Data.(map[string]any); ok {
			c.uuid, _ = data["uuid"].(string)
		}
	}
	if c.kind == validate && c.accepted {
		var approved ramp.Response[ramp.Approval]
		if json.Unmarshal(c.answer, &approved) == nil {
			c.approval = approved.Data
		}
	}
}

// forged reports whether a call cannot be the service's, once the key has made the HMAC of another one.
func (c *call) forged() bool {
	return c.unsigned && (c.kind == validate || c.kind == result || c.kind == elsewhere)
}

// believed returns the calls that show what the service does: once the key has made the HMAC of one, those of
// which it has not are not the service's.
func believed(calls []*call) []*call {
	if !slices.ContainsFunc(calls, (*call).proven) {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), (*call).forged)
}

func (c *call) proven() bool { return c.reading != "" && (c.kind == validate || c.kind == result) }
