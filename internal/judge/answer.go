package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// answer is the server's answer to a call.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	envelope map[string]json.RawMessage // nil if the body is not a JSON object
	// the errorCode or the text of err, in a form that a verdict may show
	shown     string
	succeeded bool   // what was asked for was given, or confirmed
	step      string // what was asked
	call      *Call  // the call, as a verdict shows it
	err       error  // why there was no answer
}

// success returns the text of the field success, or "".
func (a answer) success() string { return string(a.envelope["success"]) }

// strictly reports whether an answer has the envelope of a success with HTTP 200.
func (a answer) strictly() bool {
	return a.success() == "true" && a.status == http.StatusOK && a.null("errorCode")
}

// look returns what the answers to calls of the same kind have in common: everything but
// numbers and identifiers.
func (a answer) look() string {
	if a.err != nil {
		return ""
	}
	text := string(a.body[:min(len(a.body), 200)])
	if a.envelope != nil {
		text = fmt.Sprint(a.success(), a.code(), kind(a.envelope["data"]))
	}
	return fmt.Sprint(a.status, a.envelope != nil, varying.ReplaceAllString(text, "#"))
}

// varying matches the parts of an answer that differ from order to order.
var varying = regexp.MustCompile(`(0x)?[0-9a-fA-F]{8,}|[0-9]+`)

// isRejection reports whether an answer has the envelope of a failed check.
func (a answer) isRejection() bool {
	return a.success() == "false" && a.code() != "" && a.null("data")
}

// null reports whether a field is null. A missing field counts as null; the cases about
// the envelope are stricter.
func (a answer) null(name string) bool {
	value, ok := a.envelope[name]
	return !ok || string(value) == "null"
}

// code returns the errorCode, or "" if it is not a string.
func (a answer) code() string {
	var code string
	_ = json.Unmarshal(a.envelope["errorCode"], &code)
	return code
}

// kind returns the kind of event that an answer to a result is about.
func (a answer) kind() eventKind {
	kind, _ := strings.CutPrefix(a.step, "result: ")
	return eventKind(kind)
}

// String describes the answer briefly and without its data.
func (a answer) String() string {
	if a.envelope == nil {
		return fmt.Sprintf("HTTP %d with a body that is not a JSON object", a.status)
	}
	success, code := kind(a.envelope["success"]), kind(a.envelope["errorCode"])
	if text := a.success(); text == "true" || text == "false" {
		success = text
	}
	if a.code() != "" {
		code = a.shown
	}
	return fmt.Sprintf("HTTP %d, success %s, errorCode %s, data %s", a.status, success, code,
		kind(a.envelope["data"]))
}

func kind(b json.RawMessage) string {
	switch {
	case len(b) == 0:
		return "missing"
	case string(b) == "null":
		return "null"
	default:
		return "given"
	}
}

// approval is the data of an approval. A field that is missing or no string is empty.
type approval struct{ UserSig, ValidatorSig string }

// approval returns the data of an answer to a validate call.
func (a answer) approval() approval {
	var data object
	_ = json.Unmarshal(a.envelope["data"], &data)
	return approval{literalText(data["userSig"]), literalText(data["validatorSig"])}
}

// decode unmarshals JSON into a value and reports whether it succeeded.
func decode(raw json.RawMessage, into any) bool { return json.Unmarshal(raw, into) == nil }
