// Package conformance judges a game's server by what it does. The server may be
// written in any language and needs no hook. The judge plays the service over HTTP,
// and uses the server's own assets endpoint to measure what moved.
//
// The judge is a table of cases; see [Cases]. Each cites the section of the
// interface that it follows and says how to fix a failure. The Conformance function
// of package ramptest runs the cases as a test, and the command "ramp check" runs
// them on a command line.
//
// What the interface leaves open, the cases leave open too. An order may be declined
// with any errorCode and any HTTP status. A fraction may be taken or refused. Assets
// may be taken at validate or held until the result.
package conformance

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
	ID      string // stable, in lower case with hyphens
	Subject string // what the case is about, in one word
	Title   string // what a correct server does, in one sentence
	Level   Level
	Section string // the section of the interface that the case follows or protects
	Fix     string // what to do if the case fails, in one sentence

	needs need
	alone bool // no other case may run at the same time
	run   func(*trial)
}

// need is a set of the things that a case needs and that a target may lack.
type need int

const (
	aSecondAsset need = 1 << iota
	aProject
	aRestart
)

// Cases returns all cases in the order in which to try them.
func Cases() []Case {
	var all []Case
	for _, subject := range []struct {
		name  string
		cases []Case
	}{
		{"assets", assetsCases()},
		{"sessions", sessionCases()},
		{"hmac", hmacCases()},
		{"form", formCases()},
		{"intents", intentCases()},
		{"amounts", amountCases()},
		{"signatures", signatureCases()},
		{"orders", orderCases()},
		{"results", resultCases()},
		{"receipts", receiptCases()},
		{"restart", restartCases()},
		{"transport", transportCases()}, // last, because it ends by checking that the server still answers
	} {
		for _, c := range subject.cases {
			c.Subject = subject.name
			c.alone = c.alone || c.needs&aRestart != 0 || subject.name == "transport"
			all = append(all, c)
		}
	}
	return all
}
