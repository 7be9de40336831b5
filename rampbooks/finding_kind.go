package rampbooks

// FindingKind is what is wrong with an order or an event.
type FindingKind string

// The kinds of findings.
const (
	// An event has no order. For example, somebody else has the validator key, another game uses
	// the token, the order was deleted, or the clocks of a server and the chain differed: see docs/books.md.
	EventWithoutOrder FindingKind = "event_without_order"

	// An order succeeded, but its event does not exist: its transaction moved none of its tokens, or its
	// result named none. The result was invented or is of another token, a reorganization has changed what
	// the transaction did, or the node has pruned its events.
	OrderWithoutEvent FindingKind = "order_without_event"

	// An order succeeded by a transaction that is not on this chain, or that failed: a reorganization has
	// undone it, the node does not have it, or the result was invented. The events that may have come in its
	// place, and the other orders that they fit, are in the same finding. docs/on-call.md says what to do,
	// and when the player of a mint is owed the assets.
	TransactionUndone FindingKind = "transaction_undone"

	// An order failed or was abandoned, but its event exists. A mint was given back and
	// minted; a burn was burned and not granted.
	EndedOtherwise FindingKind = "ended_otherwise"

	// An order has waited for 13 hours, and its event exists. Its result never came, or was
	// refused. Finish it with the transaction. It is a finding of the period in which its 13 hours
	// ended and, if the books have a position, of all later ones until it has ended.
	WaitsWithEvent FindingKind = "waits_with_event"

	// An order has waited for 13 hours, and it has no event. Abandon it, as docs/on-call.md says. If an event
	// fits it that has ended another order of the same wallet, this one follows in Orders: whoever has the
	// HMAC key may have reported a burn as their own. It is a finding only of the period in which its 13
	// hours ended. Later periods only count it.
	WaitsWithoutEvent FindingKind = "waits_without_event"

	// The event of an order has another amount, user, token, direction or time. If the event would also
	// fit other orders of its user, these follow in Orders: one of them may be its real owner.
	Differs FindingKind = "differs"

	// Several orders may belong to an event, or several events to an order. Nothing is
	// guessed.
	Ambiguous FindingKind = "ambiguous"

	// Several orders ended by one transaction, which paid for one of them.
	SharedTransaction FindingKind = "shared_transaction"

	// An order was not compared, because no setting knows its token: list what the game sold before,
	// with its time, in [Config].Products. It is not accused of anything.
	NotCompared FindingKind = "not_compared"
)

// FindingKinds are all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{EventWithoutOrder, OrderWithoutEvent, TransactionUndone, EndedOtherwise,
		WaitsWithEvent, WaitsWithoutEvent, Differs, Ambiguous, SharedTransaction, NotCompared}
}

// The ways in which an order and an event belong together.
const (
	ByTransaction = "tx_hash"
	ByAmount      = "user, token, direction, amount and time"
)
