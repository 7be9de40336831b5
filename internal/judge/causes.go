package judge

import (
	"cmp"
	"slices"
)

// Cause is one thing to fix, with the cases that failed because of it.
type Cause struct {
	Outcome Outcome // Failed, or Noted if none of its cases counts
	Level   Level
	Fix     string
	Failed  []Verdict // at least one; they share Fix
	Waiting int       // the number of cases that prove nothing until this is fixed
}

// Causes groups the failed and noted verdicts by cause, in the order in which to fix
// them: first what fails, then what is only noted. Within each, a call that anybody can make
// and that was believed comes first. Then comes what hides others: what stands before the
// handler, the basic abilities that other cases wait for, what mixes up players, and the terms
// and other checks without which many cases fail. Then a MUST comes before a SHOULD, and among
// these what gives too much, what loses, and a wrong form, in this order. Among equals, what
// fails with one call at a time comes before what fails with several, and then the cause with
// which most inputs failed.
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
		slices.SortStableFunc(causes[i].Failed, func(a, b Verdict) int {
			return cmp.Or(rank(a)-rank(b), a.before(b))
		})
		causes[i].Outcome = causes[i].First().Outcome
	}
	slices.SortStableFunc(causes, func(a, b Cause) int {
		return cmp.Or(a.First().before(b.First()), b.breadth()-a.breadth())
	})
	return causes
}

// First returns the verdict that represents the cause.
func (c Cause) First() Verdict { return c.Failed[0] }

// before compares the places of two verdicts among the causes.
func (v Verdict) before(other Verdict) int {
	return cmp.Or(cmp.Compare(v.Outcome, other.Outcome), other.open()-v.open(), v.order()-other.order(),
		rank(v)-rank(other), cmp.Compare(other.Harm, v.Harm), v.atOnce()-other.atOnce())
}

// open returns 1 if anybody can do what was seen, and 0 otherwise.
func (v Verdict) open() int {
	if v.Harm == Open {
		return 1
	}
	return 0
}

// order returns where a verdict comes among the causes. The opening tries the first input of
// an ability; cases do not wait for the others.
func (v Verdict) order() int {
	if c := v.Case; ability(c.ID) >= 0 && len(c.Inputs) > 0 && v.Input.Name != c.Inputs[0].Name {
		return len(abilities) + 3
	}
	return v.Case.order
}

// atOnce returns 1 for a case about several calls at once, and 0 for any other.
func (v Verdict) atOnce() int {
	if v.Case.alone && v.Case.needs&aRestart == 0 {
		return 1
	}
	return 0
}

// breadth returns the number of inputs that failed. A case without inputs counts as one.
func (c Cause) breadth() int {
	n := 0
	for _, v := range c.Failed {
		n += max(1, len(v.with(v.Outcome)))
	}
	return n
}

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

// Opening returns the verdicts of the basic abilities that failed in [Judge.Ready].
// They count whichever cases are tried.
func (j *Judge) Opening() []Verdict {
	var failed []Verdict
	if v, ok := j.layered(); ok {
		failed = append(failed, v)
	}
	for _, id := range abilities {
		if v, ok := j.opening[id]; ok && v.Outcome == Failed {
			failed = append(failed, v)
		}
	}
	return failed
}
