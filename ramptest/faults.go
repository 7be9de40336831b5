package ramptest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// A Fault is a scripted deviation for one order. Pass any number of faults to
// [Service.Mint] or [Service.Burn]; they can be combined.
type Fault struct {
	name  string
	apply func(*script)
	must  bool // a test has chosen it, and shows nothing if it has no effect
	may   bool // it need not have an effect
}

func newFault(name string, apply func(*script)) Fault { return Fault{name: name, apply: apply} }

// Perhaps returns a fault that need not have an effect. For any other, [Start] fails the test if
// it had none, such as an answer that was never lost because the clock was not moved: the test
// then shows less than it seems to.
func Perhaps(f Fault) Fault {
	f.may = true
	return f
}

// chosen returns faults that a test has chosen.
func chosen(faults []Fault) []Fault {
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].must = !faults[i].may
	}
	return faults
}

// String returns the fault in the form that [ParseFault] reads.
func (f Fault) String() string { return f.name }

// On is the call of the service that a [Fault] affects (interface 4.3).
type On control.Kind

// The calls that a fault can affect.
const (
	OnValidate On = On(control.KindValidate)
	OnResult   On = On(control.KindResult)
)

// script is the combined effect of all faults of an order.
type script struct {
	outcome     Outcome
	kind        uint64 // of the transaction
	pending     bool
	late        time.Duration
	never       bool
	held        bool
	stranger    bool // somebody else mints the same
	less        bool // burns one unit less
	atOnce      int  // how many first deliveries are made at the same time
	again       int  // how many more follow, one after the other
	reorganized bool
	stale       bool // every delivery has the body of the first
	withoutFee  bool
	expired     bool
	calls       int     // further validate calls at the same time
	asked       []again // further validate calls, one after the other
	offTerms    []bend  // orders that come first and that the game does not offer
	validate    callScript
	result      callScript
	names       []string // of the faults
	must        []string // the names of those that must have an effect
	err         error    // the first invalid fault
}

// callScript is the script of the calls of one kind.
type callScript struct {
	forged  []forgery // forged calls that come before the genuine one
	lost    int       // how many answers are lost
	fails   int       // how many calls meet a store that fails
	slow    time.Duration
	unknown bool // whether the call has unknown fields
}

// again is a further validate call under the same UUID.
type again struct {
	fault  string
	change func(*ramp.ValidateRequest) error // after which the game must reject it; nil if it is the same
}

// bend turns an intent into one that the game does not offer.
type bend func(intent *ramp.Intent) error

// newScript combines faults.
func newScript(faults []Fault) (script, error) {
	s := script{kind: 2}
	for _, f := range faults {
		if f.apply != nil {
			f.apply(&s)
			s.names = append(s.names, f.name)
			if f.must && !slices.Contains(s.must, f.name) {
				s.must = append(s.must, f.name)
			}
		}
	}
	return s, s.err
}

func (s *script) on(call On) *callScript {
	switch call {
	case OnResult:
		return &s.result
	case OnValidate:
	default:
		s.invalid("a fault can be on validate or result, not on %q", string(call))
	}
	return &s.validate
}

// invalid records an invalid fault, unless there is one already.
func (s *script) invalid(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("ramptest: "+format, args...)
	}
}

// TransactionFails makes the transaction fail on the chain: receipt.status is 0x0
// (interface 3).
func TransactionFails() Fault {
	return newFault("transaction-fails", func(s *script) { s.outcome = Failed })
}

// StaysPending keeps the transaction out of every block until [Service.Deliver] is
// called for the order.
func StaysPending() Fault {
	return newFault("stays-pending", func(s *script) { s.pending = true })
}

// TransactionType sets the type of the transaction, which is 0x2 by default. Type
// 0x7 has its gas fee sponsored (interface 6). Any other type stands for one that
// is not known yet.
func TransactionType(n uint64) Fault {
	return newFault(fmt.Sprintf("transaction-type=%#x", n), func(s *script) { s.kind = n })
}

// Reorganized makes the chain replace the block of the transaction after the first delivery of its
// result, and after those of [ResultTwice] and [ResultAtOnce] that go with it. The transaction
// moves to another block, and the result is delivered again with the receipt from there. The
// interface does not say what the service does in this case; see [ReorganizedUnnoticed].
func Reorganized() Fault {
	return newFault("reorganized", func(s *script) { s.reorganized = true })
}

// ReorganizedUnnoticed is [Reorganized] for a service that delivers the same body
// again, with the receipt from the block that was replaced.
func ReorganizedUnnoticed() Fault {
	return newFault("reorganized-unnoticed", func(s *script) { s.reorganized, s.stale = true, true })
}

// ResultTwice delivers the result again as soon as the first delivery is answered.
// Pass it twice for a third delivery.
func ResultTwice() Fault {
	return newFault("result-twice", func(s *script) { s.again++ })
}

// ResultAtOnce delivers the result n times at the same time. The deliveries of
// [ResultTwice] follow these. If n is below 1, [Service.Mint] or [Service.Burn] returns an error.
func ResultAtOnce(n int) Fault {
	return newFault(fmt.Sprintf("result-at-once=%d", n), func(s *script) {
		if s.atOnce = n; n < 1 {
			s.invalid("ResultAtOnce(%d) delivers nothing: give it 1 or more, or use ResultNever", n)
		}
	})
}

// ResultLate delays the first delivery of the result by d.
func ResultLate(d time.Duration) Fault {
	return newFault("result-late="+d.String(), func(s *script) {
		if s.late += d; d < 0 {
			s.invalid("ResultLate(%s) is in the past", d)
		}
	})
}

// ResultNever keeps the result from being delivered.
func ResultNever() Fault {
	return newFault("result-never", func(s *script) { s.never = true })
}

// BurnsLess makes the transaction of a burn burn one of the token's smallest units less
// than the order is about, so it pays for nothing. A game must not grant anything: if it does,
// it has no rampproof.Proof, or the Decimals are too low. It need not confirm the result.
func BurnsLess() Fault {
	return newFault("burns-less", func(s *script) { s.less = true })
}

// MintedByStranger mints the tokens of the order once more, for the wallet of somebody
// who has the validator key, without an order.
func MintedByStranger() Fault {
	return newFault("minted-by-stranger", func(s *script) { s.stranger = true })
}

// ResultAfterNext holds the result back until the first result of another order,
// one that is not held back itself, has been delivered. The result then follows, as
// often as the other faults say. Without another order it is never delivered, as
// with [ResultNever].
func ResultAfterNext() Fault {
	return newFault("result-after-next", func(s *script) { s.held = true })
}

// WithoutFee leaves intent.fee_rate and intent.actual out of the result, as in
// one example of the interface (6).
func WithoutFee() Fault {
	return newFault("without-fee", func(s *script) { s.withoutFee = true })
}

// ExpiredUUID treats the UUID as if its 5 minutes were over (interface 3), whatever
// the clock shows. Unless [Config.AcceptExpired] is set, the call fails with
// [ErrExpiredUUID].
func ExpiredUUID() Fault {
	return newFault("expired-uuid", func(s *script) { s.expired = true })
}

// ValidateTwice makes the validate call again after it was approved. The game
// must approve again and must not take the assets again.
func ValidateTwice() Fault {
	return newFault("validate-twice", func(s *script) { s.asked = append(s.asked, again{fault: "again"}) })
}

// ValidateAtOnce makes the validate call n times at the same time. The game must approve at least
// one of them and take the assets once. If any answer breaks the interface, or if n is below 1,
// [Service.Mint] or [Service.Burn] returns an error.
func ValidateAtOnce(n int) Fault {
	return newFault(fmt.Sprintf("validate-at-once=%d", n), func(s *script) {
		if s.calls = n - 1; n < 1 {
			s.invalid("ValidateAtOnce(%d) asks for nothing: give it 1 or more", n)
		}
	})
}

// ValidateOtherDigest makes another validate call after the approval, with a
// different digest under the same UUID. If the game approves that too, the error
// is [ErrTwoOrders].
func ValidateOtherDigest() Fault {
	other := again{withOtherDigest, otherDigest}
	return newFault("validate-other-digest", func(s *script) { s.asked = append(s.asked, other) })
}

// ValidateOtherAmount makes another validate call after the approval, with
// different amounts under the same UUID. If the game approves that too, the error
// is [ErrTwoOrders].
func ValidateOtherAmount() Fault {
	other := again{withOtherAmount, otherAmount}
	return newFault("validate-other-amount", func(s *script) { s.asked = append(s.asked, other) })
}

// ValidateOtherToken asks for another order first: the same under a UUID of its own,
// but with the token of another contract, which may be worthless. If the game
// approves it, the error is [ErrOffTerms].
func ValidateOtherToken() Fault {
	return newFault("validate-other-token", func(s *script) { s.offTerms = append(s.offTerms, otherToken) })
}

// ValidateOtherRate asks for another order first: the same under a UUID of its own, but
// the player receives twice as much. If the game approves it, the error is
// [ErrOffTerms].
func ValidateOtherRate() Fault {
	return newFault("validate-other-rate", func(s *script) { s.offTerms = append(s.offTerms, otherRate) })
}

// ValidateExtraItem asks for another order first: the same under a UUID of its own, but
// with one more item that the game takes or grants. If the game approves it, the error is
// [ErrOffTerms].
func ValidateExtraItem() Fault {
	return newFault("validate-extra-item", func(s *script) { s.offTerms = append(s.offTerms, extraItem) })
}

// TamperedBody sends a call whose amounts were changed in transit before the
// genuine call (interface 5.2). If the game accepts it, the error is [ErrForged].
func TamperedBody(call On) Fault {
	return newFault("tampered-body="+string(call), func(s *script) { s.on(call).forge(tamperedBody) })
}

// WrongHMAC sends a call with a wrong signature before the genuine call (interface
// 5.2). If the game accepts it, the error is [ErrForged].
func WrongHMAC(call On) Fault {
	return newFault("wrong-hmac="+string(call), func(s *script) { s.on(call).forge(wrongHMAC) })
}

// MissingHMAC sends a call without a signature before the genuine call (interface
// 5.2). If the game accepts it, the error is [ErrForged].
func MissingHMAC(call On) Fault {
	return newFault("missing-hmac="+string(call), func(s *script) { s.on(call).forge(missingHMAC) })
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
	return newFault("lost-answer="+string(call), func(s *script) { s.on(call).lost++ })
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
	return newFault("store-fails", func(s *script) { s.result.fails = 1 })
}

// SlowAnswer makes the game's answer take the time d. If that exceeds
// [Config.Timeout], the service stops waiting and the answer is lost. If the clock
// stands still, the wait moves it, so [Service.Advance] may end that much later.
func SlowAnswer(call On, d time.Duration) Fault {
	return newFault(fmt.Sprintf("slow-answer=%s:%s", call, d), func(s *script) {
		if s.on(call).slow = d; d < 0 {
			s.invalid("SlowAnswer(%s) is in the past", d)
		}
	})
}

// UnknownFields adds fields to the call that the interface does not have. Any
// version of the service may add fields, and the game must ignore them.
func UnknownFields(call On) Fault {
	return newFault("unknown-fields="+string(call), func(s *script) { s.on(call).unknown = true })
}

// forgery turns what a genuine call says into what a forged one does.
type forgery func(*claim)

// claim is the signed part of a call.
type claim struct {
	body  []byte
	hmac  string
	fault string // of a forged one, for the record
}

func (c *callScript) forge(f forgery) { c.forged = append(c.forged, f) }

func tamperedBody(c *claim) {
	c.fault = "tampered body"
	c.body = bytes.ReplaceAll(c.body, []byte(`"amount":`), []byte(`"amount":9`))
}

func wrongHMAC(c *claim) {
	c.fault = "wrong HMAC"
	c.hmac = strings.Map(func(r rune) rune {
		if r == '0' {
			return '1'
		}
		return '0'
	}, c.hmac)
}

func missingHMAC(c *claim) {
	c.fault = "missing HMAC"
	c.hmac = ""
}

func otherDigest(r *ramp.ValidateRequest) error {
	r.Digest = ramp.Digest(crypto.Keccak256([]byte("another"), r.Digest[:]))
	return nil
}

func otherAmount(r *ramp.ValidateRequest) error {
	r.Digest, r.Intent = ramp.Digest{}, copied(r.Intent)
	return cmp.Or(double(r.Intent.From), double(r.Intent.To))
}

func otherToken(intent *ramp.Intent) error {
	for _, side := range [][]ramp.IntentAsset{intent.From, intent.To} {
		if side[0].Type != ramp.TypeAsset {
			side[0].ID = common.BytesToAddress(crypto.Keccak256([]byte("another token"),
				[]byte(side[0].ID))).Hex()
		}
	}
	return nil
}

func otherRate(intent *ramp.Intent) error { return double(intent.To) }

func extraItem(intent *ramp.Intent) error {
	assets, _ := tradeIn(intent).sides(intent)
	*assets = append(*assets,
		ramp.IntentAsset{Type: ramp.TypeAsset, ID: "extra_item", Amount: ramp.NewAmount(1)})
	return nil
}

// double doubles the amounts of one side of an intent.
func double(side []ramp.IntentAsset) (err error) {
	for i := range side {
		if side[i].Amount, err = side[i].Amount.Add(side[i].Amount); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	return nil
}

// The faults of further validate calls, as the record names them.
const (
	askedAtOnce     = "at once"
	withOtherDigest = "with another digest"
	withOtherAmount = "with another amount"
	offTheTerms     = "off the terms"
)
