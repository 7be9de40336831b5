// Package conformance judges a game's server by what it does. The server may be
// written in any language and needs no hook. The judge plays the service over HTTP,
// and uses the server's own assets endpoint to measure what moved.
//
// The judge is a table of cases; see [Cases]. Each cites the section of the
// interface that it follows and says how to fix a failure. A case may be a family: the
// same question with several inputs. [Test] runs the cases as a test, and the command "ramp check" runs them on a command line.
//
// What the interface leaves open, the cases leave open too. An order may be rejected
// with any errorCode and any HTTP status. A fraction may be taken or rejected. Assets
// may be taken at validate or held until the result.
package conformance

import (
	"cmp"
	"slices"
)

// Level is the strength of a case's requirement.
type Level string

// The levels. If the failure of a SHOULD loses, doubles or gives away assets or
// tokens, it counts as a MUST; see [Verdict].
const (
	Must   Level = "MUST"   // the interface requires it, or a failure loses, doubles or gives away assets or tokens
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

// need is a set of the things that a case needs and that a target may lack.
type need int

const (
	aSecondAsset need = 1 << iota
	aProject
	aRestart
	aToken
	aRate
)

// Cases returns all cases in the order in which to try them.
func Cases() []Case {
	var all, last []Case
	for _, subject := range []struct {
		name, section string // the section of a case that names no other
		cases         []Case
	}{
		{"assets", "2.4", assetsCases()},
		{"sessions", "5.1", sessionCases()},
		{"hmac", "5.2", hmacCases()},
		{"form", "2.5", formCases()},
		{"intents", "2.5", intentCases()},
		{"terms", "2.5", termsCases()},
		{"amounts", "2.5", amountCases()},
		{"signatures", "5.3", signatureCases()},
		{"orders", "2.5", orderCases()},
		{"results", "6", resultCases()},
		{"receipts", "6", receiptCases()},
		{"races", "5", raceCases()},
		{"restart", "8", restartCases()},
		{"http", "4.3", httpCases()},
	} {
		for _, c := range subject.cases {
			c.Subject, c.Section = subject.name, cmp.Or(c.Section, subject.section)
			c.alone = c.alone || c.first || c.needs&aRestart != 0
			switch i := ability(c.ID); {
			case i >= 0:
				c.order = i + 1
			case c.first: // calls of several players at once are everywhere
				c.order = len(abilities) + 1
			case c.early:
				c.order = len(abilities) + 2
			case c.ID != handlerID:
				c.order = len(abilities) + 3
			}
			for _, in := range c.Inputs {
				if c.Level == "" || in.Level == Must {
					c.Level = in.Level
				}
			}
			c.Level = cmp.Or(c.Level, Must)
			if c.last {
				last = append(last, c)
			} else {
				all = append(all, c)
			}
		}
	}
	return append(all, last...)
}
