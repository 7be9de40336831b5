// Package judge judges a game's server by what it does: it is what package
// ramptest/conformance, a test, and the command "ramp check" run.
//
// It is a table of cases; see [Cases]. Each cites the section of the interface that it follows
// and says how to fix a failure. A case may be a family: the same question with several inputs.
package judge

import (
	"cmp"
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
		{"results", "6", append(answerCases(), resultCases()...)},
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
