package ramptest

import (
	"fmt"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
)

// A Fault is a scripted deviation for one order. Pass any number of faults to
// [Service.Mint] or [Service.Burn]; they can be combined.
type Fault struct {
	fault fault.Fault
	may   bool // it need not have an effect
}

// Perhaps returns a fault that need not have an effect. For any other, [Start] fails the test if
// it had none, such as an answer that was never lost because the clock was not moved: the test
// then shows less than it seems to.
func Perhaps(f Fault) Fault {
	f.may = true
	return f
}

// chosen returns faults that a test has chosen.
func chosen(faults []Fault) []fault.Fault {
	list := make([]fault.Fault, len(faults))
	for i, f := range faults {
		list[i] = f.fault
		list[i].Must = !f.may
	}
	return list
}

// String returns the fault in the form that [ParseFault] reads.
func (f Fault) String() string { return f.fault.Name }

// On is the call of the service that a [Fault] affects (interface 4.3).
type On control.Kind

// The calls that a fault can affect.
const (
	OnValidate On = On(control.KindValidate)
	OnResult   On = On(control.KindResult)
)

// TransactionFails makes the transaction fail on the chain: receipt.status is 0x0
// (interface 3).
func TransactionFails() Fault {
	return newFault("transaction-fails", ended, func(s *fault.Script) { s.Fails = true })
}

// StaysPending keeps the transaction out of every block until [Service.Deliver] is
// called for the order.
func StaysPending() Fault {
	return newFault("stays-pending", always, func(s *fault.Script) { s.Pending = true })
}

// MinedWithNext keeps the transaction of the order pending until the next order of its network is approved,
// of whichever player, and lets this one transaction do what both orders are about: a batch of one player, or
// a bundle of two. It is sent and paid for as this order says, and fails if one of them is to fail. Both
// results name it, that of this order first. The interface does not say whether the service does this (6).
//
// A transaction can end only one order of a [ramp.Handler], and none if it mints and burns for one player and
// Confirm is a proof of package rampproof: what is left waits for a person. So the game need not confirm both
// results, and must not move more for one of them than that order is about.
func MinedWithNext() Fault {
	return newFault("mined-with-next", func(e *fault.Effects) bool { return e.Together && ended(e) },
		func(s *fault.Script) { s.WithNext = true })
}

// TransactionType sets the type of the transaction, which is 0x2 by default. Type
// 0x7 has its gas fee sponsored (interface 6). Any other type stands for one that
// is not known yet.
func TransactionType(n uint64) Fault {
	return newFault(fmt.Sprintf("transaction-type=%#x", n), ended, func(s *fault.Script) { s.Kind = n })
}

// Reorganized makes the chain replace the block of the transaction after the first delivery of its
// result, and after those of [ResultTwice] and [ResultAtOnce] that go with it. The transaction
// moves to another block, and the result is delivered again with the receipt from there. The
// interface does not say what the service does in this case; see [ReorganizedUnnoticed].
func Reorganized() Fault {
	return newFault("reorganized", reorganized, func(s *fault.Script) { s.Reorganized = true })
}

// ReorganizedUnnoticed is [Reorganized] for a service that delivers the same body
// again, with the receipt from the block that was replaced.
func ReorganizedUnnoticed() Fault {
	return newFault("reorganized-unnoticed", reorganized, func(s *fault.Script) {
		s.Reorganized, s.Stale = true, true
	})
}

// ResultTwice delivers the result again as soon as the first delivery is answered.
// Pass it twice for a third delivery.
func ResultTwice() Fault {
	return newFault("result-twice", scripted, func(s *fault.Script) { s.Again++ })
}

// ResultAtOnce delivers the result n times at the same time. The deliveries of
// [ResultTwice] follow these. If n is below 1, [Service.Mint] or [Service.Burn] returns an error.
func ResultAtOnce(n int) Fault {
	return newFault(fmt.Sprintf("result-at-once=%d", n), scripted, func(s *fault.Script) {
		if s.AtOnce = n; n < 1 {
			s.Invalid("ResultAtOnce(%d) delivers nothing: give it 1 or more, or use ResultNever", n)
		}
	})
}

// ResultLate delays the first delivery of the result by d.
func ResultLate(d time.Duration) Fault {
	return newFault("result-late="+d.String(), told, func(s *fault.Script) {
		if s.Late += d; d < 0 {
			s.Invalid("ResultLate(%s) is in the past", d)
		}
	})
}

// ResultBeforeAnswer delivers the first result, and those of [ResultAtOnce] that go with it, while a
// repeat of the validate call is not answered: the service has its approval and asks once more, the
// game answers, and the result arrives before that answer does. The game may reject the repeat. It must
// not take the assets again.
func ResultBeforeAnswer() Fault {
	return newFault("result-before-answer", scripted, func(s *fault.Script) { s.BeforeAnswer = true })
}

// ResultNever keeps the result from being delivered.
func ResultNever() Fault {
	return newFault("result-never", mined, func(s *fault.Script) { s.Never = true })
}

// BurnsLess makes the transaction of a burn burn one of the token's smallest units less
// than the order is about, so it pays for nothing. A game must not grant anything: if it does,
// it has no rampproof.Proof, or the Decimals are too low. It need not confirm the result.
func BurnsLess() Fault {
	return newFault("burns-less", ended, func(s *fault.Script) { s.Less = true })
}

// MintedByStranger mints the tokens of the order once more, for the wallet of somebody
// who has the validator key, without an order.
func MintedByStranger() Fault {
	return newFault("minted-by-stranger", ended, func(s *fault.Script) { s.Stranger = true })
}

// ResultAfterNext holds the result back until the first result of another order,
// one that is not held back itself, has been delivered. The result then follows, as
// often as the other faults say. Without another order it is never delivered, as
// with [ResultNever].
func ResultAfterNext() Fault {
	return newFault("result-after-next", scripted, func(s *fault.Script) { s.Held = true })
}

// WithoutFee leaves intent.fee_rate and intent.actual out of the result, as in
// one example of the interface (6).
func WithoutFee() Fault {
	return newFault("without-fee", told, func(s *fault.Script) { s.WithoutFee = true })
}

// ResultWithoutLogs leaves the logs out of the receipt in the result, as if the service had copied it too
// early. The node has them. The interface does not say that the two are the same (6), so a game that reads
// logs must ask the chain for them, as a [ramp.Confirmer] of package rampproof does.
func ResultWithoutLogs() Fault {
	return newFault("result-without-logs", func(e *fault.Effects) bool { return e.LeftOut },
		func(s *fault.Script) { s.WithoutLogs = true })
}

// ExpiredUUID treats the UUID as if its 5 minutes were over (interface 3), whatever
// the clock shows. Unless [Config.AcceptExpired] is set, the call fails with
// [ErrExpiredUUID].
func ExpiredUUID() Fault {
	return newFault("expired-uuid", always, func(s *fault.Script) { s.Expired = true })
}

// ValidateTwice makes the validate call again after it was approved. The game
// must approve again and must not take the assets again.
func ValidateTwice() Fault {
	return newFault("validate-twice", always, func(s *fault.Script) {
		s.Repeats = append(s.Repeats, fault.Repeat{Name: fault.Again})
	})
}

// ValidateAtOnce makes the validate call n times at the same time. The game must approve at least
// one of them and take the assets once. If any answer breaks the interface, or if n is below 1,
// [Service.Mint] or [Service.Burn] returns an error.
func ValidateAtOnce(n int) Fault {
	return newFault(fmt.Sprintf("validate-at-once=%d", n), always, func(s *fault.Script) {
		if s.Calls = n - 1; n < 1 {
			s.Invalid("ValidateAtOnce(%d) asks for nothing: give it 1 or more", n)
		}
	})
}

// ValidateOtherDigest makes another validate call after the approval, with a
// different digest under the same UUID. If the game approves that too, the error
// is [ErrTwoOrders].
func ValidateOtherDigest() Fault {
	other := fault.Repeat{Name: fault.WithOtherDigest, Change: otherDigest}
	return newFault("validate-other-digest", always, func(s *fault.Script) {
		s.Repeats = append(s.Repeats, other)
	})
}

// ValidateOtherAmount makes another validate call after the approval, with
// different amounts under the same UUID. If the game approves that too, the error
// is [ErrTwoOrders].
func ValidateOtherAmount() Fault {
	other := fault.Repeat{Name: fault.WithOtherAmount, Change: otherAmount}
	return newFault("validate-other-amount", always, func(s *fault.Script) {
		s.Repeats = append(s.Repeats, other)
	})
}

// ValidateOtherToken asks for another order first: the same under a UUID of its own,
// but with the token of another contract, which may be worthless. If the game
// approves it, the error is [ErrOffTerms].
func ValidateOtherToken() Fault {
	return newFault("validate-other-token", always, func(s *fault.Script) {
		s.OffTerms = append(s.OffTerms, otherToken)
	})
}

// ValidateOtherRate asks for another order first: the same under a UUID of its own, but
// the player receives twice as much. If the game approves it, the error is
// [ErrOffTerms].
func ValidateOtherRate() Fault {
	return newFault("validate-other-rate", always, func(s *fault.Script) {
		s.OffTerms = append(s.OffTerms, otherRate)
	})
}

// ValidateExtraItem asks for another order first: the same under a UUID of its own, but
// with one more item that the game takes or grants. If the game approves it, the error is
// [ErrOffTerms].
func ValidateExtraItem() Fault {
	return newFault("validate-extra-item", always, func(s *fault.Script) {
		s.OffTerms = append(s.OffTerms, extraItem)
	})
}

// TamperedBody sends a call whose amounts were changed in transit before the
// genuine call (interface 5.2). If the game accepts it, the error is [ErrForged].
func TamperedBody(call On) Fault {
	return newFault("tampered-body="+string(call), called(call), func(s *fault.Script) {
		on(s, call).Forge(fault.TamperedBody)
	})
}

// WrongHMAC sends a call with a wrong signature before the genuine call (interface
// 5.2). If the game accepts it, the error is [ErrForged].
func WrongHMAC(call On) Fault {
	return newFault("wrong-hmac="+string(call), called(call), func(s *fault.Script) {
		on(s, call).Forge(fault.WrongHMAC)
	})
}

// MissingHMAC sends a call without a signature before the genuine call (interface
// 5.2). If the game accepts it, the error is [ErrForged].
func MissingHMAC(call On) Fault {
	return newFault("missing-hmac="+string(call), called(call), func(s *fault.Script) {
		on(s, call).Forge(fault.MissingHMAC)
	})
}

// LostAnswer lets the game act but loses its answer. The service then retries a
// result as [Config.Schedule] says. A validate call fails with [ErrLostAnswer], and
// no transaction is submitted. Pass it twice to lose two answers.
//
// The game does not know that its answer is lost. So if the lost answer breaks the interface, or
// refuses a result with a status after which the service does not send the result again, the test
// fails as if the answer had arrived.
//
// Lost answers are counted per order: when the call is repeated, with or without
// the same faults, its answer arrives.
func LostAnswer(call On) Fault {
	return newFault("lost-answer="+string(call), lost(call), func(s *fault.Script) { on(s, call).Lost++ })
}

// StoreFails makes the game's store fail at the first result, before it has done anything, as a
// database may at any time. A [ramp.Handler] answers with HTTP 500, and the service delivers the
// result again. If another answer arrives, then something between the handler and the service has
// changed it, and each failure of the database loses a result for good. [LostAnswer] applies to
// the deliveries after the one that failed.
//
// It needs a [ramp.Handler] as [Config.Handler], with any store. What stands before the handler
// must pass the context of the request.
func StoreFails() Fault {
	return newFault("store-fails", retriedAfterFailure, func(s *fault.Script) { s.Result.Fails = 1 })
}

// SlowAnswer makes the game's answer take the time d. If that exceeds
// [Config.Timeout], the service stops waiting and the answer is lost. If the clock
// stands still, the wait moves it, so [Service.Advance] may end that much later.
func SlowAnswer(call On, d time.Duration) Fault {
	return newFault(fmt.Sprintf("slow-answer=%s:%s", call, d), called(call), func(s *fault.Script) {
		if on(s, call).Slow = d; d < 0 {
			s.Invalid("SlowAnswer(%s) is in the past", d)
		}
	})
}

// UnknownFields adds fields to the call that the interface does not have. Any
// version of the service may add fields, and the game must ignore them.
func UnknownFields(call On) Fault {
	return newFault("unknown-fields="+string(call), called(call), func(s *fault.Script) {
		on(s, call).Unknown = true
	})
}

// newFault returns a fault. acted reports whether it had an effect on an order.
func newFault(name string, acted func(*fault.Effects) bool, apply func(*fault.Script)) Fault {
	return Fault{fault: fault.Fault{Name: name, Acted: acted, Apply: apply}}
}

// on returns the script of a call.
func on(s *fault.Script, call On) *fault.Call {
	switch call {
	case OnResult:
		return &s.Result
	case OnValidate:
	default:
		s.Invalid("a fault can be on validate or result, not on %q", string(call))
	}
	return &s.Validate
}

// What shows that a fault had an effect.

func always(*fault.Effects) bool        { return true }
func mined(e *fault.Effects) bool       { return e.Mined }
func told(e *fault.Effects) bool        { return e.Told() }
func scripted(e *fault.Effects) bool    { return e.Scripted }
func reorganized(e *fault.Effects) bool { return e.Reorganized }

// ended reports whether the game has learned how the transaction ended, if it ever does.
func ended(e *fault.Effects) bool { return e.Mined && (e.Told() || e.Script.Never) }

// retriedAfterFailure reports whether the store has failed, and what the game did with the next delivery.
func retriedAfterFailure(e *fault.Effects) bool { return e.Failed && (e.Attempts > 1 || !e.Planned) }

// called reports whether a call was made.
func called(call On) func(*fault.Effects) bool {
	return func(e *fault.Effects) bool { return call != OnResult || e.Told() }
}

// lost reports whether the answer after the lost ones has arrived.
func lost(call On) func(*fault.Effects) bool {
	return func(e *fault.Effects) bool {
		return call == OnValidate || e.Attempts > e.Script.Result.Fails+e.Script.Result.Lost
	}
}
