package judge

import "slices"

// Level is the strength of a case's requirement.
type Level string

// The levels. If the failure of a SHOULD loses, doubles or gives away assets or
// tokens, it counts as a MUST; see [Verdict].
const (
	// the interface requires it, or a failure loses, doubles or gives away assets or tokens
	Must   Level = "MUST"
	Should Level = "SHOULD" // it is safer, but the interface does not require it
)

// Case is one thing that a correct server does.
type Case struct {
	ID      string  // stable, in lower case with hyphens
	Subject string  // what the case is about, in one word
	Title   string  // what a correct server does, in one sentence
	Level   Level   // the strongest level of its inputs; MUST unless a case says otherwise
	Section string  // the section of the interface that the case follows or protects
	Fix     string  // what to do if the case fails, in one sentence
	Inputs  []Input // what a family tries, each with a new player; none for a case that is no family

	needs need
	after []string // the abilities without which the case proves nothing
	mild  bool     // a failure of a SHOULD never counts as a MUST
	alone bool     // no other case may run at the same time
	first bool     // it is tried before the others, and alone
	last  bool     // it is about all other cases
	early bool     // without it, other cases fail too
	order int      // among the causes to fix: the lowest comes first; see [Cases]
	run   func(*trial)
}

// Input is one input of a family.
type Input struct {
	Name  string // unique in its family, in lower case with hyphens
	Title string // what is sent, such as "without an HMAC"
	Level Level

	needs need
	after []string // the abilities without which the input proves nothing
	mild  bool     // a failure of a SHOULD never counts as a MUST
	run   func(*trial)
}

// tries returns what to try for a case: its inputs, or one without a name.
func (c Case) tries() []Input {
	if len(c.Inputs) == 0 {
		return []Input{{Level: c.Level, needs: c.needs, after: c.after, mild: c.mild, run: c.run}}
	}
	all := slices.Clone(c.Inputs)
	for i := range all {
		all[i].needs |= c.needs
		all[i].mild = all[i].mild || c.mild
		all[i].after = slices.Concat(c.after, all[i].after)
	}
	return all
}

// with returns an input that needs something of the target.
func (in Input) with(needs need) Input {
	in.needs = needs
	return in
}

// must returns an input that is a MUST.
func must(name, title string, run func(*trial), after ...string) Input {
	return Input{Name: name, Title: title, Level: Must, run: run, after: after}
}

// should returns an input that is a SHOULD.
func should(name, title string, run func(*trial), after ...string) Input {
	return Input{Name: name, Title: title, Level: Should, run: run, after: after}
}

// prefixed returns inputs whose names begin with prefix.
func prefixed(prefix string, all []Input) []Input {
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}

// mild returns inputs whose failure never counts as a MUST.
func mild(all ...Input) []Input {
	for i := range all {
		all[i].mild = true
	}
	return all
}
