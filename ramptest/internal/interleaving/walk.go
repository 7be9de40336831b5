package interleaving

import "slices"

// Option is a statement that can be next, and what goes wrong with it.
type Option struct {
	Server int
	Text   string
	Fault  Fault
	rows   Rows
}

func (o Option) same(other Option) bool { return o.Server == other.Server && o.Fault == other.Fault }

// independent reports whether two options have the same effect in either order.
func independent(a, b Option) bool {
	everybody := func(f Fault) bool { return f == Killed || f == KilledBehind }
	return a.Server != b.Server && !everybody(a.Fault) && !everybody(b.Fault) && !a.rows.meets(b.rows)
}

// Walk chooses in every possible way, depth first: each run repeats the choices of the run before
// but the last one. The zero value walks through the interleavings without a fault.
//
// It leaves out what differs only by swaps of independent statements. When it has tried a statement
// at a fork and goes on to another, the first one sleeps: it is not tried behind the other, unless
// a statement between them depends on it. (Such sets are known as sleep sets.)
type Walk struct {
	Faults bool // whether something goes wrong, once in each run

	Runs    int // complete interleavings
	ByFault map[Fault]int
	Pruned  int // runs that were given up, because they would have repeated another
	Strayed int // runs in which the database did not do again what it did before

	path   []fork
	depth  int
	pruned bool
	astray bool
}

// fork is a choice on the way.
type fork struct {
	options []Option
	taken   int
	asleep  []Option
}

func (f fork) option() Option { return f.options[f.taken] }

// Choose returns which of the options is next.
func (w *Walk) Choose(options []Option) int {
	defer func() { w.depth++ }()
	harmless := slices.IndexFunc(options, func(o Option) bool { return o.Fault == None })
	switch {
	case w.astray || w.pruned:
		return harmless
	case w.depth < len(w.path):
		taken := w.path[w.depth].option()
		i := slices.IndexFunc(options, taken.same)
		if i < 0 {
			w.astray = true
			return harmless
		}
		return i
	}
	f := fork{asleep: w.asleep()}
	faults := w.Faults && !w.Failed()
	for _, o := range options {
		if (o.Fault == None || faults) && !slices.ContainsFunc(f.asleep, o.same) {
			f.options = append(f.options, o)
		}
	}
	if len(f.options) == 0 {
		w.pruned = true
		return harmless
	}
	w.path = append(w.path, f)
	return slices.IndexFunc(options, f.options[0].same)
}

// asleep returns the options that need not be tried at the next fork.
func (w *Walk) asleep() (asleep []Option) {
	if w.depth == 0 {
		return nil
	}
	last := w.path[w.depth-1]
	for _, o := range slices.Concat(last.asleep, last.options[:last.taken]) {
		if independent(o, last.option()) {
			asleep = append(asleep, o)
		}
	}
	return asleep
}

// Failed reports whether something has gone wrong in this run.
func (w *Walk) Failed() bool {
	return slices.ContainsFunc(w.path[:min(w.depth, len(w.path))], func(f fork) bool {
		return f.option().Fault != None
	})
}

// Whole reports whether this run is an interleaving of its own, to be judged and counted.
func (w *Walk) Whole() bool { return !w.pruned && !w.astray }

// Next prepares the next run. It reports false if there is none.
func (w *Walk) Next() bool {
	switch {
	case w.astray:
		w.Strayed++
	case w.pruned:
		w.Pruned++
	default:
		fault := None
		for _, f := range w.path {
			if f.option().Fault != None {
				fault = f.option().Fault
			}
		}
		if w.ByFault == nil {
			w.ByFault = map[Fault]int{}
		}
		w.ByFault[fault]++
		w.Runs++
	}
	w.depth, w.astray, w.pruned = 0, false, false
	for len(w.path) > 0 {
		last := &w.path[len(w.path)-1]
		if last.taken++; last.taken < len(last.options) {
			return true
		}
		w.path = w.path[:len(w.path)-1]
	}
	return false
}
