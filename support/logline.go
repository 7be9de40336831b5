package support

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Logged is an order as the log of a game server has it.
type Logged struct {
	UUID      uuid.UUID       `json:"uuid"`
	SessionID string          `json:"session_id"`
	State     ramp.OrderState `json:"state"`   // after the last step that was logged
	TxHash    string          `json:"tx_hash"` // of that step
	// what the steps moved, such as "take -100 item_gold", in their order
	Effects []string `json:"effects"`

	// Missing reports whether the store has no such order. Otherwise it has the order,
	// but not its end.
	Missing bool `json:"missing"`

	// Order is the order as it was stored after that step, for [Orders.Restore], and Product is what it
	// was about. Order is nil if no record has it, and Product is empty if the log lacks its first step.
	Order   *ramp.Order `json:"order,omitempty"`
	Product string      `json:"product,omitempty"`
}

// stepMessages are the messages of the records that name a step of an order.
var stepMessages = []string{"ramp: call", "ramp: order finished", "ramp: order abandoned",
	"ramp: order restored"}

// stepRecord is a record that names a step of an order.
type stepRecord struct {
	Msg, Effect, Conflict string
	Moved                 string // of a repeat: the effect of the step that it repeats
	ProjectID             string `json:"project_id"`
	New                   bool
	Stored                loggedOrder `json:"order"` // which hides that of Logged
	Logged
}

// loggedOrder is an order in a record. It is an object, or a text in a record of slog.TextHandler.
type loggedOrder struct{ order *ramp.Order }

// UnmarshalJSON reads either form. What is no order is none: the record says what else there was.
func (l *loggedOrder) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		b = []byte(text)
	}
	order := new(ramp.Order)
	if order.UnmarshalJSON(b) == nil {
		l.order = order
	}
	return nil
}

// loggedSteps are the steps of an order.
type loggedSteps struct {
	Logged
	entered []ramp.OrderState // of which Effects has the effects
}

// add adds a step. A repeat counts: the answer of the database may have been lost, or the server may have
// been killed before it logged the step that the repeat repeats. An order enters each state once, so
// another record of it is a copy, as of a log that was read while it was rotated, and has moved nothing.
func (l *loggedSteps) add(r *stepRecord) {
	l.SessionID = r.SessionID
	switch {
	case r.New:
		l.enter(r.State, r.Effect)
	case r.Moved != "":
		l.enter(r.State, r.Moved)
	}
	if r.Product != "" {
		l.Product = r.Product
	}
	if r.State != ramp.OrderAccepted || l.State == "" {
		l.State, l.TxHash = r.State, r.TxHash
	}
	o := r.Stored.order
	if o != nil && o.UUID == r.UUID && (o.State != ramp.OrderAccepted || l.Order == nil) {
		l.Order = o
	}
}

// enter adds the effect with which the order entered a state.
func (l *loggedSteps) enter(state ramp.OrderState, effect string) {
	if slices.Contains(l.entered, state) {
		return
	}
	at := len(l.entered)
	if state == ramp.OrderAccepted { // logs that were put together may be out of order
		at = 0
	}
	l.entered, l.Effects = slices.Insert(l.entered, at, state), slices.Insert(l.Effects, at, effect)
}

// logged returns what the records say. If none is of the validate call, the order says what it has moved.
func (l *loggedSteps) logged() Logged {
	if l.Order != nil {
		opened := *l.Order
		opened.State, opened.Settled = ramp.OrderAccepted, ""
		taken, _ := opened.Moved()
		l.enter(opened.State, taken.String())
	}
	return l.Logged
}

// lineStep is a record in a line of a log. form says what is around it: "" is nothing.
type lineStep struct {
	form string
	step *stepRecord
}

// readLine returns the records of steps in a line of a log. It is not ok if the line may hold such a
// record without being one.
func readLine(line []byte) (records []lineStep, ok bool) {
	const layers = 12 // a prefix, objects, lists, and texts in them
	records, read := unwrap(bytes.TrimSpace(line), "", layers)
	return records, read || len(records) > 0
}

// unwrap returns the records in a text. The form is what is around it.
func unwrap(text []byte, form string, layers int) (records []lineStep, ok bool) {
	if layers == 0 {
		return nil, !quotesStep(text)
	}
	var own struct {
		Msg *string `json:"msg"`
	}
	switch err := json.Unmarshal(text, &own); {
	case err == nil && own.Msg != nil:
		return oneRecord(form, *own.Msg, text)
	case err == nil, json.Valid(text) && text[0] == '[':
		return inMembers(text, form, layers-1)
	}
	if attrs, text := textRecord(string(text)); attrs != nil {
		return oneRecord(form+"text", attrs["msg"], text)
	}
	for _, p := range prefixes {
		if prefix := p.form.Find(text); prefix != nil {
			return unwrap(text[len(prefix):], form+p.name+" ", layers-1)
		}
	}
	return nil, !quotesStep(text)
}

// quotesStep reports whether a text has the message of a step.
func quotesStep(text []byte) bool {
	return slices.ContainsFunc(stepMessages, func(msg string) bool {
		return bytes.Contains(text, []byte(msg))
	})
}

// oneRecord returns the record that an object with a message is, if it names a step.
func oneRecord(form, msg string, object []byte) (records []lineStep, ok bool) {
	if !slices.Contains(stepMessages, msg) {
		return nil, true
	}
	r := new(stepRecord)
	switch err := json.Unmarshal(object, r); {
	case err != nil:
		return nil, false
	case r.State == "", r.Conflict != "": // nothing was stored, or what was stored contradicts the call
		return nil, true
	}
	return []lineStep{{form, r}}, true
}

// inMembers returns the records in the members of an object, or the elements of a list, that is no
// record itself, as Docker, journald and log services wrap lines. A number of bytes is a text.
func inMembers(text []byte, form string, layers int) (records []lineStep, ok bool) {
	ok = true
	inside := func(name string, value json.RawMessage) {
		form, line := form+name, []byte(value)
		var quoted string
		if json.Unmarshal(value, &quoted) == nil {
			form, line = form+" ", bytes.TrimSpace([]byte(quoted))
		}
		switch {
		case name == ".MESSAGE" && string(value) == "null": // journalctl without -a, of a long line
			ok = false
		case len(line) == 0 || !quotesStep(line) && !isBytes(line):
		default:
			more, read := unwrap(line, form, layers)
			records, ok = append(records, more...), ok && read
		}
	}
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	var raw []uint16
	switch {
	case json.Unmarshal(text, &members) == nil:
		for _, name := range slices.Sorted(maps.Keys(members)) {
			inside("."+name, members[name])
		}
	case isBytes(text) && json.Unmarshal(text, &raw) == nil:
		line := make([]byte, len(raw))
		for n, b := range raw {
			line[n] = byte(b)
		}
		return unwrap(bytes.TrimSpace(line), form+" bytes ", layers)
	case json.Unmarshal(text, &elements) == nil:
		for _, value := range elements {
			inside("[]", value)
		}
	}
	return records, ok
}

// isBytes reports whether a text is a list of numbers, as journald writes what is not plain text.
func isBytes(text []byte) bool { return bytes.HasPrefix(text, []byte("[123,")) }

// prefixes are what containers and log services put before a line. What a game puts there, a player
// may have chosen.
var prefixes = []struct {
	name string
	form *regexp.Regexp
}{
	{"compose", regexp.MustCompile(`^[\w.-]+ +\| `)},
	{"pod", regexp.MustCompile(`^\[pod/\S+\] `)},
	{"cri", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ std(out|err) F `)},
	{"syslog", regexp.MustCompile(`^(<\d+>)?\w{3} [ \d]\d \d\d:\d\d:\d\d(\.\d+)? \S+ [\w./-]+(\[\d+\])?: `)},
	{"syslog", regexp.MustCompile(`^(<\d+>)?\d{4}-\d\d-\d\dT\S+ \S+ [\w./-]+\[\d+\]: `)},
	{"syslog", regexp.MustCompile(`^<\d+>1 \S+ \S+ \S+ \S+ \S+ - `)},
	{"loki", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ \{[^{}]*\} `)},
	{"time", regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) `)},
}

// textRecord reads a record of slog.TextHandler, and returns its attributes, also as JSON, or nil.
func textRecord(line string) (attrs map[string]string, asJSON []byte) {
	if !strings.HasPrefix(line, "time=") && !strings.HasPrefix(line, "level=") {
		return nil, nil
	}
	attrs = map[string]string{}
	object := map[string]any{}
	for rest := line; rest != ""; rest = strings.TrimPrefix(rest, " ") {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || strings.ContainsAny(key, " \"") {
			return nil, nil
		}
		value, end, _ := strings.Cut(after, " ")
		if strings.HasPrefix(after, `"`) {
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return nil, nil
			}
			value, _ = strconv.Unquote(quoted)
			end = after[len(quoted):]
		}
		if _, twice := attrs[key]; twice {
			return nil, nil
		}
		attrs[key], object[key], rest = value, value, end
	}
	object["new"] = attrs["new"] == "true"
	asJSON, _ = json.Marshal(object) // texts and a bool
	return attrs, asJSON
}
