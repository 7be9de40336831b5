package conformance

import "slices"

// Cause is one thing to mend, and every case that failed for want of it.
type Cause struct {
	Level   Level
	Mend    string
	Failed  []Verdict // at least one; they share Mend
	Waiting int       // cases that prove nothing until this is mended
}

// Causes groups what failed by what mends it, in the order in which to mend it:
// first what other cases wait for, then every MUST, then what is only noted, and
// of these what most cases failed for.
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
		key := v.Case.Mend
		if ability(v.Case.ID) >= 0 {
			key = v.Case.ID
		}
		i, known := of[key]
		if !known {
			i = len(causes)
			of[key] = i
			causes = append(causes, Cause{Level: v.Level, Mend: v.Case.Mend})
		}
		c := &causes[i]
		c.Failed = append(c.Failed, v)
		c.Waiting += waiting[v.Case.ID]
		if v.Level == Must {
			c.Level = Must
		}
	}
	for i := range causes { // a MUST speaks for its cause
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

// order is small for what comes first.
func (c Cause) order() int {
	if i := ability(c.Failed[0].Case.ID); i >= 0 {
		return i
	}
	return len(abilities) + rank(c.Failed[0])
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

// ability returns the place of a case among the abilities, -1 if it is none.
func ability(id string) int {
	for i, a := range abilities {
		if a.id == id {
			return i
		}
	}
	return -1
}

// Opening returns the verdicts of the basic abilities that [Judge.Ready] found
// not to work. They count whichever cases are tried.
func (j *Judge) Opening() []Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	var failed []Verdict
	for _, a := range abilities {
		if v, ok := j.opening[a.id]; ok && v.Outcome == Failed {
			failed = append(failed, v)
		}
	}
	return failed
}
