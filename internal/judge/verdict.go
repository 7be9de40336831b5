package judge

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is the outcome of a case, or of one input of a family.
type Outcome string

// The outcomes.
const (
	Passed   Outcome = "passed"
	Failed   Outcome = "failed"
	Noted    Outcome = "noted"    // a SHOULD that failed but does not count
	Unproven Outcome = "unproven" // it proves nothing until a basic ability works; see Verdict.Until
	Waived   Outcome = "waived"   // Config.Waive matches it
	Skipped  Outcome = "skipped"  // it does not apply to the game
	Unasked  Outcome = "unasked"  // a MUST that needs a setting which the target lacks; see InputVerdict.Set
	// the judge could not try it: the login or the restart failed, or the server was unreachable
	Untried Outcome = "untried"
)

// weight orders outcomes: the outcome of a family is the heaviest of its inputs.
var weight = map[Outcome]int{Failed: 7, Noted: 6, Untried: 5, Unproven: 4, Unasked: 3, Passed: 2, Waived: 1,
	Skipped: 0}

// Verdict is the judge's finding about a case. It never shows a token, a key or a
// signature. The verdict of a family is that of its worst input.
type Verdict struct {
	Case         Case
	InputVerdict                // of the worst input, except that Took is the time of all
	Inputs       []InputVerdict // of all inputs of a family
}

// InputVerdict is the judge's finding about one input of a family, or about a case that is
// no family, whose Input has no name.
type InputVerdict struct {
	Input Input `json:"-"`
	// of the input, or Must if the failure of a SHOULD lost, doubled or gave away something
	Level   Level   `json:"level"`
	Outcome Outcome `json:"outcome"`
	Harm    Harm    `json:"-"`              // of a MUST that failed
	Saw     string  `json:"saw,omitempty"`  // what the server did, or why it was not tried
	Want    string  `json:"want,omitempty"` // what was expected instead
	Note    string  `json:"note,omitempty"` // an explanation of what was seen, if there is one
	// the ID of the case that must pass before this one proves anything
	Until string        `json:"until,omitempty"`
	Set   string        `json:"set,omitempty"`   // what to set so that it can be tried, if it is Unasked
	Call  *Call         `json:"call,omitempty"`  // the call that failed
	Calls []Call        `json:"calls,omitempty"` // all calls
	Took  time.Duration `json:"-"`
}

// verdict returns the verdict of a case from those of its inputs.
func (c Case) verdict(all ...InputVerdict) Verdict {
	v := Verdict{Case: c}
	for i, in := range all {
		took := v.Took + in.Took
		if in.Input.Name != "" {
			v.Inputs = append(v.Inputs, in)
		}
		heavier := weight[in.Outcome] > weight[v.Outcome] || in.Outcome == v.Outcome &&
			in.Outcome == Failed && (in.Level == Must && v.Level == Should || in.Harm > v.Harm)
		if i == 0 || heavier {
			v.InputVerdict = in
		}
		v.Took = took
	}
	if v.Outcome != Failed && v.Outcome != Noted {
		v.Level = c.Level
	}
	return v
}

// with returns the names of the inputs with an outcome.
func (v Verdict) with(o Outcome) []string {
	var names []string
	for _, in := range v.Inputs {
		if in.Outcome == o {
			names = append(names, in.Input.Name)
		}
	}
	return names
}

// String describes the verdict in one or more lines.
func (v Verdict) String() string {
	switch v.Outcome {
	case Passed:
		return "passed: " + v.Case.Title
	case Skipped, Untried, Waived:
		return string(v.Outcome) + ": " + v.Saw
	case Unasked:
		return "unasked: " + v.Saw + "; set " + v.Set + ", or waive it (-skip)"
	case Unproven:
		return "not provable until " + v.Until + " passes: " + v.Case.Title
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (interface %s): %s\n", v.Level, v.Case.Section, v.Case.Title)
	if v.Input.Name != "" {
		fmt.Fprintf(&b, "  with: %s (%s)\n", v.Input.Name, v.Input.Title)
	}
	fmt.Fprintf(&b, "  saw:  %s\n  want: %s\n", v.Saw, v.Want)
	if v.Note != "" {
		fmt.Fprintf(&b, "  note: %s\n", v.Note)
	}
	if others := v.with(v.Outcome); len(others) > 1 {
		fmt.Fprintf(&b, "  all:  %d of %d inputs: %s\n", len(others), len(v.Inputs),
			strings.Join(others, ", "))
	}
	fmt.Fprintf(&b, "  fix:  %s", v.Case.Fix)
	return b.String()
}
