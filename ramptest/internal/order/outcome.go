package order

// Outcome is the outcome of an order's transaction.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

// AsOnChain stands for the outcome on the chain.
const AsOnChain Outcome = -1

// String returns the outcome in a word.
func (o Outcome) String() string {
	if o == Succeeded {
		return "succeeded"
	}
	return "failed"
}

// Outcomes are the outcomes by their names.
var Outcomes = map[string]Outcome{Succeeded.String(): Succeeded, Failed.String(): Failed}

// NotSentAgain says what is wrong with an answer to a result that is no confirmation, and that the
// service does not take for a failure either.
const NotSentAgain = ", after which the result is not sent again (6)"
