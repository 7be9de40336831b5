// Package conformance judges a game's server, written in any language, by what
// it does. It plays the service over HTTP, and measures what moved by asking
// the server's own assets endpoint; it needs no hook in the game.
//
// The judge is a table of cases: [Cases]. Each cites the section of the
// interface that it follows and says how to mend what it finds. Package
// ramptest runs it as a test (Conformance), and "ramp check" on a command line.
//
// Whatever the interface leaves open, a case leaves open: an order may be
// declined with any errorCode under any HTTP status, a fraction may be taken or
// refused, assets may be taken at validate or held until the result.
package conformance

// Level says why a case must hold.
type Level string

// The levels. A SHOULD that fails so that assets or tokens are lost, doubled or
// given away counts as a MUST: see [Verdict].
const (
	Must   Level = "MUST"   // the interface says so, or without it assets or tokens are lost, doubled or given away
	Should Level = "SHOULD" // it is safer so, though the interface does not say it
)

// Case is one thing that a right server does.
type Case struct {
	ID      string // stable, in lower case with hyphens
	Subject string // what it is about, in a word
	Title   string // what a right server does, in a sentence
	Level   Level
	Section string // of the interface, that it follows or guards
	Mend    string // what to do when it fails, in a sentence

	needs need
	alone bool // nothing may run beside it
	run   func(*trial)
}

// need is what a case cannot do without and not every target has.
type need int

const (
	aSecondAsset need = 1 << iota
	aProject
	aRestart
)

// Cases returns every case, in the order in which to try them.
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
		{"transport", transportCases()}, // last, for it ends with a sign of life
	} {
		for _, c := range subject.cases {
			c.Subject = subject.name
			c.alone = c.alone || c.needs&aRestart != 0 || subject.name == "transport"
			all = append(all, c)
		}
	}
	return all
}
