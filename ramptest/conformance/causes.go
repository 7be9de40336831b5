package conformance

import (
	"slices"
	"strings"
)

// Cause is one thing to fix, with the cases that failed because of it.
type Cause struct {
	Level   Level
	Fix     string
	Failed  []Verdict // at least one; they share Fix
	Waiting int       // the number of cases that prove nothing until this is fixed
}

// Causes groups the failed and noted verdicts by cause, in the order in which to fix
// them: first the basic abilities that other cases wait for, then what mixes up players,
// then the terms and other checks without which many cases fail, then a failed MUST, then a
// failed SHOULD, then what is only noted. Among equals, the cause with the most cases comes
// first.
func Causes(verdicts []Verdict) []Cause {
	waiting := make(map[string]int)
	for _, v := range verdicts {
		if v.Outcome == Unproven {
			waiting[v.Until]++
		}
	}
	var causes []Cause
	of := make(map[string]int)
	for _, v := range verdicts {
		if v.Outcome != Failed && v.Outcome != Noted {
			continue
		}
		key := v.Case.Fix
		if ability(v.Case.ID) >= 0 {
			key = v.Case.ID
		}
		i, known := of[key]
		if !known {
			i = len(causes)
			of[key] = i
			causes = append(causes, Cause{Level: v.Level, Fix: v.Case.Fix})
		}
		c := &causes[i]
		c.Failed = append(c.Failed, v)
		c.Waiting += waiting[v.Case.ID]
		if v.Level == Must {
			c.Level = Must
		}
	}
	for i := range causes { // a MUST represents its cause
		slices.SortStableFunc(causes[i].Failed, func(a, b Verdict) int { return rank(a) - rank(b) })
	}
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if d := a.order() - b.order(); d != 0 {
			return d
		}
		return len(b.Failed) - len(a.Failed)
	})
	return causes
}

// order returns the sort key of a cause; the smallest comes first.
func (c Cause) order() int {
	if i := ability(c.Failed[0].Case.ID); i >= 0 {
		return i
	}
	switch id := c.Failed[0].Case.ID; {
	case c.Failed[0].Case.first: // calls of several players at once are everywhere
		return len(abilities)
	case strings.HasPrefix(id, "terms-"), strings.HasSuffix(id, "-hmac-wrong"): // other bad orders are approved too
		return len(abilities) + 1
	case id == "result-again-changed": // what else is different in a second result moves assets too
		return len(abilities) + 1
	}
	return len(abilities) + 2 + rank(c.Failed[0])
}

// First returns the verdict that represents the cause.
func (c Cause) First() Verdict { return c.Failed[0] }

func rank(v Verdict) int {
	switch {
	case v.Outcome == Failed && v.Level == Must:
		return 0
	case v.Outcome == Failed:
		return 1
	default:
		return 2
	}
}

// ability returns the index of a case in abilities, or -1.
func ability(id string) int {
	return slices.Index(abilities, id)
}

// Opening returns the verdicts of the basic abilities that failed in [Judge.Ready].
// They count whichever cases are tried.
func (j *Judge) Opening() []Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	var failed []Verdict
	for _, id := range abilities {
		if v, ok := j.opening[id]; ok && v.Outcome == Failed {
			failed = append(failed, v)
		}
	}
	return failed
}
