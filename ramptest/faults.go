package ramptest

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Fault is what goes otherwise than usual with one order. Give any number of
// them to [Service.Mint] or [Service.Burn]; they go together.
type Fault struct {
	name  string
	apply func(*script)
}

// String says what the fault is.
func (f Fault) String() string { return f.name }

// On says which call of the service a [Fault] is about (interface 4.3).
type On Kind

// The calls that a fault can be about.
const (
	OnValidate On = On(KindValidate)
	OnResult   On = On(KindResult)
)

// script is what all faults of an order come to.
type script struct {
	outcome     Outcome
	kind        uint64 // of the transaction
	pending     bool
	late        time.Duration
	never       bool
	held        bool
	atOnce      int // how many first deliveries there are at the same time
	again       int // and how many one after the other, after these
	reorganised bool
	withoutFee  bool
	expired     bool
	calls       int     // further validate calls at the same time
	asked       []again // further validate calls, one after the other
	validate    wire
	result      wire
	err         error // what makes no sense about the faults
}

// wire is what goes wrong with the calls of one kind.
type wire struct {
	forged  []forgery // what comes before the call itself
	lost    int       // how many answers nobody hears
	slow    time.Duration
	unknown bool // whether there are fields that nobody knows
}

// again is a further validate call under the same UUID.
type again int

const (
	sameAgain again = iota
	otherDigest
	otherAmount
)

// newScript puts faults together.
func newScript(faults []Fault) (script, error) {
	s := script{kind: 2}
	for _, f := range faults {
		if f.apply != nil {
			f.apply(&s)
		}
	}
	return s, s.err
}

func (s *script) on(call On) *wire {
	switch call {
	case OnResult:
		return &s.result
	case OnValidate:
	default:
		s.refuse("a fault can be on validate or result, not on %q", string(call))
	}
	return &s.validate
}

// refuse keeps the first thing that makes no sense.
func (s *script) refuse(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("ramptest: "+format, args...)
	}
}

// TransactionFails lets the chain execute the transaction without success:
// receipt.status is 0x0 (interface 3).
func TransactionFails() Fault {
	return Fault{"transaction fails", func(s *script) { s.outcome = Failed }}
}

// StaysPending keeps the transaction out of every block. [Service.Deliver] ends
// it.
func StaysPending() Fault {
	return Fault{"transaction stays pending", func(s *script) { s.pending = true }}
}

// TransactionType makes it a transaction of another type than 0x2: 0x7 has its
// gas fee sponsored (interface 6), any other is one that nobody knows yet.
func TransactionType(n uint64) Fault {
	return Fault{fmt.Sprintf("transaction type %#x", n), func(s *script) { s.kind = n }}
}

// Reorganised lets the chain replace the block of the transaction after the
// first delivery of its result, however many times that comes. The transaction
// gets into another block, and the result is delivered again with the receipt from
// there. What the service does then, the interface does not show.
func Reorganised() Fault {
	return Fault{"reorganised", func(s *script) { s.reorganised = true }}
}

// ResultTwice delivers the result again as soon as it was answered. Give it
// twice for a third time.
func ResultTwice() Fault {
	return Fault{"result twice", func(s *script) { s.again++ }}
}

// ResultAtOnce delivers the result n times at the same time. With [ResultTwice],
// it comes again after these. An order whose n is below 1 is refused.
func ResultAtOnce(n int) Fault {
	return Fault{fmt.Sprintf("result %d times at once", n), func(s *script) {
		if s.atOnce = n; n < 1 {
			s.refuse("ResultAtOnce(%d) delivers nothing: give it 1 or more, or use ResultNever", n)
		}
	}}
}

// ResultLate delivers the result that much later.
func ResultLate(d time.Duration) Fault {
	return Fault{"result late by " + d.String(), func(s *script) {
		if s.late += d; d < 0 {
			s.refuse("ResultLate(%s) is in the past", d)
		}
	}}
}

// ResultNever keeps the result from being delivered.
func ResultNever() Fault {
	return Fault{"result never", func(s *script) { s.never = true }}
}

// ResultAfterNext keeps the result back until the first one of another order,
// that is not kept back itself, was delivered. Then it comes, as often as the
// other faults have it. Until there is another order, it does not come at all, as
// with [ResultNever].
func ResultAfterNext() Fault {
	return Fault{"result out of order", func(s *script) { s.held = true }}
}

// WithoutFee leaves intent.fee_rate and intent.actual out of the result, as in
// one example of the interface (6).
func WithoutFee() Fault {
	return Fault{"result without fee", func(s *script) { s.withoutFee = true }}
}

// ExpiredUUID lets the player come when the UUID's 5 minutes are over (interface
// 3), whatever the clock shows. Unless [Config.AcceptExpired] is set, the call
// fails with [ErrExpiredUUID].
func ExpiredUUID() Fault {
	return Fault{"expired UUID", func(s *script) { s.expired = true }}
}

// ValidateTwice asks for the approval again once it was given. The studio must
// approve again, and take nothing again.
func ValidateTwice() Fault {
	return Fault{"validate twice", func(s *script) { s.asked = append(s.asked, sameAgain) }}
}

// ValidateAtOnce asks for the approval n times at the same time. The studio must
// approve at least one of them, and take once. An answer to any of them that
// breaks the interface is the error of the call. An order whose n is below 1 is
// refused.
func ValidateAtOnce(n int) Fault {
	return Fault{fmt.Sprintf("validate %d times at once", n), func(s *script) {
		if s.calls = n - 1; n < 1 {
			s.refuse("ValidateAtOnce(%d) asks for nothing: give it 1 or more", n)
		}
	}}
}

// ValidateOtherDigest asks, once the approval was given, for one of another
// digest under the same UUID. If the studio approves that too, the call fails
// with [ErrTwoOrders].
func ValidateOtherDigest() Fault {
	return Fault{"validate with another digest", func(s *script) { s.asked = append(s.asked, otherDigest) }}
}

// ValidateOtherAmount asks, once the approval was given, for one of other
// amounts under the same UUID. If the studio approves that too, the call fails
// with [ErrTwoOrders].
func ValidateOtherAmount() Fault {
	return Fault{"validate with another amount", func(s *script) { s.asked = append(s.asked, otherAmount) }}
}

// TamperedBody sends, before the call, one whose amounts were changed on the way
// (interface 5.2). A studio that accepts it gives an [ErrForged].
func TamperedBody(call On) Fault {
	return Fault{string(call) + " with a tampered body", func(s *script) { s.on(call).forge(tamperedBody) }}
}

// WrongHMAC sends, before the call, one that was signed with another key
// (interface 5.2). A studio that accepts it gives an [ErrForged].
func WrongHMAC(call On) Fault {
	return Fault{string(call) + " with a wrong HMAC", func(s *script) { s.on(call).forge(wrongHMAC) }}
}

// MissingHMAC sends, before the call, one without signature (interface 5.2). A
// studio that accepts it gives an [ErrForged].
func MissingHMAC(call On) Fault {
	return Fault{string(call) + " without an HMAC", func(s *script) { s.on(call).forge(missingHMAC) }}
}

// LostAnswer lets the studio act, but nobody hears its answer. A result is then
// repeated, as [Config.Schedule] has it. A validate call fails with
// [ErrLostAnswer], and nothing gets on the chain. Give it twice to lose two
// answers.
//
// What is lost is counted for each order: the same call again, with the same
// faults or without, is heard.
func LostAnswer(call On) Fault {
	return Fault{string(call) + ", its answer lost", func(s *script) { s.on(call).lost++ }}
}

// SlowAnswer lets the studio's answer take that long. One that takes more than
// [Config.Timeout] is as good as lost: the service waits no longer. A still clock
// moves by the wait, so that [Service.Advance] may end that much later.
func SlowAnswer(call On, d time.Duration) Fault {
	return Fault{string(call) + ", its answer slow", func(s *script) {
		if s.on(call).slow = d; d < 0 {
			s.refuse("SlowAnswer(%s) is in the past", d)
		}
	}}
}

// UnknownFields puts fields into the call that the interface does not have. They
// may appear in any version, and mean nothing to the studio.
func UnknownFields(call On) Fault {
	return Fault{string(call) + " with unknown fields", func(s *script) { s.on(call).unknown = true }}
}

// forgery makes something else of a call that is otherwise right.
type forgery func(*call)

func (w *wire) forge(f forgery) { w.forged = append(w.forged, f) }

func tamperedBody(c *call) {
	c.fault = "tampered body"
	c.body = bytes.ReplaceAll(c.body, []byte(`"amount":`), []byte(`"amount":9`))
}

func wrongHMAC(c *call) {
	c.fault = "wrong HMAC"
	c.hmac = strings.Map(func(r rune) rune {
		if r == '0' {
			return '1'
		}
		return '0'
	}, c.hmac)
}

func missingHMAC(c *call) {
	c.fault = "missing HMAC"
	c.hmac = ""
}

// withUnknownFields adds fields to the objects of a body.
func withUnknownFields(body []byte) []byte {
	const field = `"unknown_field":{"list":[1,null,"text"]},`
	for _, object := range []string{`{"type":"asset",`, `"intent":{`, `"receipt":{`, `"logs":[{`} {
		with := object + field
		body = bytes.ReplaceAll(body, []byte(object), []byte(with))
	}
	return append([]byte("{"+field), body[1:]...)
}
