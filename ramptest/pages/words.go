package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// count formats a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return group(n) + " " + what + "s"
}

// number parses a number, and returns 0 if it is none.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// holds says what a list holds.
func holds(orders, calls int) string {
	if calls == 0 {
		return count(orders, "order")
	}
	return count(orders, "order") + ", " + group(calls) + " not placed"
}

// took formats how long a call took.
func took(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// movedBy says what the game moved for an order.
func movedBy(o *control.OrderReport) string {
	const most = 2
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(o.Moved)) {
		amount := o.Moved[id]
		sign := "+"
		if strings.HasPrefix(amount, "-") {
			sign = "−"
		}
		parts = append(parts, sign+strings.TrimLeft(group(amount), "-")+" "+redact.Isolate(id))
	}
	switch {
	case o.Moved == nil:
		return "movement unknown"
	case parts == nil:
		return "nothing moved"
	case len(parts) > most:
		return strings.Join(parts[:most], ", ") + fmt.Sprintf(" and %d more", len(parts)-most)
	default:
		return strings.Join(parts, ", ")
	}
}

// titleOfOrder returns a title for an order, such as "Mint 3 tokens".
func titleOfOrder(o *control.OrderReport) string {
	tokens := group(o.Amount) + " tokens"
	if tokens == "1 tokens" {
		tokens = "1 token"
	}
	return strings.ToUpper(o.Do[:1]) + o.Do[1:] + " " + tokens
}

// shortAddress returns the end of an address, which is most unlike others.
func shortAddress(address string) string {
	return "0x…" + strings.ToLower(address[max(0, len(address)-4):])
}

// nameOf returns the name of an order's player, or else the session.
func nameOf(o *control.OrderReport) string { return cmp.Or(o.Name, o.SessionID) }

// titleOf returns a title for a call.
func titleOf(e *control.Event) string {
	title := string(e.Kind)
	if e.Request != nil {
		title = e.Request.Method + " " + e.Request.Path
	}
	if e.Attempt > 0 {
		title += " #" + strconv.Itoa(e.Attempt)
	}
	return title
}

// claimOf returns what a result tells the game about its transaction; "" for another event.
func claimOf(e *control.Event) string {
	if e.Kind != control.KindResult || e.Status == "" {
		return ""
	}
	return "told the game: " + string(e.Status)
}

// passedWith returns the errorCode with which the game has rejected what it must reject; "" if it has not.
// HTTP 200 would look like an approval.
func passedWith(e *control.Event) string {
	if e.Tone != verdict.Good || e.Fault == "" || e.Outcome == "success" || strings.Contains(e.Outcome, " ") {
		return ""
	}
	return redact.Isolate(e.Outcome)
}

// statusOf returns the HTTP status of the answer; "" if there was none.
func statusOf(e *control.Event) string {
	if e.Answer == nil || e.Answer.Status == 0 {
		return ""
	}
	return strconv.Itoa(e.Answer.Status)
}

// first returns the items of a list that a page shows at once, and rest those that it
// folds. A single item is not worth folding.
func first(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, shown(v.Len())).Interface()
}

func rest(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(shown(v.Len()), v.Len()).Interface()
}

// group separates the thousands of an amount.
func group(amount any) string { return tally.Group(fmt.Sprint(amount)) }

// grouped is group for a template.
func grouped(amount any) template.HTML { return breaks(group(amount)) }

// breaks lets a page break an amount where its thousands are separated, if it may be longer than a line.
func breaks(amount string) template.HTML {
	safe := template.HTMLEscapeString(amount)
	if len(amount) > maxAmount {
		safe = strings.ReplaceAll(safe, ",", ",<wbr>")
	}
	return template.HTML(safe)
}

// maxAmount is how many characters an amount may have to stand beside another on a phone.
const maxAmount = 14

func shown(length int) int {
	if length > maxRows+1 {
		return maxRows
	}
	return length
}

// say formats an error as a sentence.
func say(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// span formats a length of time, such as "1 h 5 min".
func span(d time.Duration) string {
	text := strings.NewReplacer("h", " h ", "m", " min ", "s", " s").Replace(d.String())
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(text, " 0 s"), " 0 min"))
}

func shortUUID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()[:8]
}

// maxRows is how many items of a list are shown at once.
const maxRows = 8

func newIdentifier(id, label string, text any) identifier { return identifier{id, label, text} }

// long reports whether two amounts are too long to stand beside each other.
func long(one, other string) bool { return max(len(one), len(other)) > maxAmount }

// identifier is one of an order. An ID on the page has it.
type identifier struct {
	ID, Label string
	Text      any
}
