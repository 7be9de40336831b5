// Package verdict says what happened to an order, and to a call. It turns what the books,
// the chain and the calls know into a state, a tone and a sentence. The pages, the
// control API and the commands show its result and add nothing.
//
// It has only plain values: it makes no calls and has no clock.
package verdict

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Verdict is what there is to say about an order or a call.
type Verdict struct {
	State     State `json:"state"`
	Tone      Tone  `json:"tone"`
	Attention bool  `json:"attention"` // whether a person should look; an order that waits can need it too
	Loss      bool  `json:"loss"`      // whether the game lost assets, or moved them twice or wrongly
	// of an order: what happened, in one sentence without figures
	Head string `json:"head,omitempty"`
	Said string `json:"said"` // one or more sentences
	Next Next   `json:"next,omitzero"`
}

// newVerdict returns a verdict. A person should look at what is disputed, unknown or never
// confirmed.
func newVerdict(state State, tone Tone, said ...string) Verdict {
	return Verdict{State: state, Tone: tone, Attention: state == Disputed || state == Unknown ||
		state == Unconfirmed, Said: join(said...)}
}

// Next is the next step that happens by itself. It completes [Verdict.Said].
type Next struct {
	What string    `json:"what,omitempty"` // such as "Next attempt"
	At   time.Time `json:"at,omitzero"`
	Of   string    `json:"of,omitempty"` // such as "2 of 20"
}

// State is the state of an order or a call in one word.
type State string

// The states. A call is Done, Rejected or Failed.
const (
	Waiting     State = "waiting"     // more happens by itself, or a fault keeps it from happening
	Done        State = "done"        // it has ended, and nothing is wrong
	Loss        State = "loss"        // it has ended, and the game moved something wrongly
	Unconfirmed State = "unconfirmed" // the game never confirmed the result, and it is not sent again
	Disputed    State = "disputed"    // results stated two outcomes, or one that is not that of the chain
	Unknown     State = "unknown"     // it has ended, and what the game moved is unknown
	Rejected    State = "rejected"    // the game answered no, as it may or must
	Failed      State = "failed"      // the call failed, or its answer is wrong
)

// Tone tells a reader whether something is good.
type Tone string

// The tones.
const (
	Good    Tone = "good"
	Bad     Tone = "bad"
	Wait    Tone = "wait"
	Warn    Tone = "warn"
	Unclear Tone = "unknown"
	Neutral Tone = "neutral"
)

// Sign returns the mark that precedes a text. Each tone has its own, so that a reader
// does not depend on color.
func (t Tone) Sign() string {
	return map[Tone]string{Good: "✓", Bad: "✗", Wait: "●", Warn: "!", Unclear: "?", Neutral: "–"}[t]
}

// String returns the sentences, with the next step.
func (v Verdict) String() string {
	if v.Next.At.IsZero() {
		return v.Said
	}
	said := v.Said + " " + v.Next.What + " at " + v.Next.At.Format(time.TimeOnly)
	if v.Next.Of != "" {
		said += " (" + v.Next.Of + ")"
	}
	return said + "."
}

// wrongly says what is wrong with an answer to a result that the game has confirmed: it is HTTP
// 200 (6) with the envelope of 4.3, the first time and each time after that.
func wrongly(what string) string {
	return "Confirmed, but its answer breaks the interface: " + what + "."
}

// wronglyLost says what is wrong with an answer that was lost on purpose.
func wronglyLost(what string) string {
	return "The answer was lost on purpose, and it breaks the interface: " + what + "."
}

// maxItems is how many assets a sentence lists.
const maxItems = 3

// amounts lists assets with their absolute amounts.
func amounts(a tally.Assets) string {
	parts := a.Amounts()
	if more := len(parts) - maxItems; more > 1 {
		parts = append(parts[:maxItems], strconv.Itoa(more)+" other assets")
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// join joins sentences.
func join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

// decimal formats the amount of an asset; "" means that it is unknown.
func decimal(a tally.Assets, id string) string {
	if a == nil {
		return ""
	}
	return tally.Grouped(cmp.Or(a[id], new(big.Rat)))
}
