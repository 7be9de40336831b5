package ramptest

// Outcome is the outcome of an order's transaction.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

// asOnChain stands for the outcome on the chain.
const asOnChain Outcome = -1

// String returns the outcome in a word.
func (o Outcome) String() string {
	if o == Succeeded {
		return "succeeded"
	}
	return "failed"
}

// outcomes are the outcomes by their names.
var outcomes = map[string]Outcome{Succeeded.String(): Succeeded, Failed.String(): Failed}
