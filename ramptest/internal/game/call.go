package game

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Call is one request of the service to the game.
type Call struct {
	Kind    control.Kind
	id      uuid.UUID
	Order   *order.Order  // nil for an assets call
	Tx      control.Event // of a result: its transaction
	Stated  order.Outcome // of a result: the outcome that it states
	OnChain order.Outcome // of a result: the outcome on the chain
	Attempt int
	method  string
	path    string
	session ramp.Session
	hmac    string // of the body; none for an assets call
	Body    []byte

	anonymous bool   // it has no session
	media     string // its Content-Type; "" is application/json, and NoType is none

	Fault    string        // the scripted fault, for the record
	forged   bool          // the game must reject it, even by not answering
	opposite bool          // a result of which nothing is required; see [tally.Tally.Deliver]
	fits     bool          // the game may confirm it all the same
	Again    bool          // a result that the game has confirmed before
	Retried  bool          // the result is sent again after a status of Config.Retry
	Lost     bool          // the answer is lost
	slow     time.Duration // the minimum time that the answer takes
	// what the player owned before a validate call, of what a mint takes; nil if unknown
	owned    tally.Assets
	lacks    string // what the player owned too little of, in words; "" if of nothing that is known
	admitted bool   // of a validate call: the game listed assets for its token just before

	failure *rollback.Failure // of the game's store, on purpose; nil if there is none
}

// NoType is the media type of a call that says none.
const NoType = "none"

// settings name the path of each endpoint, in a test and in the command.
var settings = map[control.Kind]string{
	control.KindAssets:   "AssetsPath of ramptest.Config, or -assets of ramp emulate",
	control.KindValidate: "ValidatePath of ramptest.Config, or -validate of ramp emulate",
	control.KindResult:   "ResultPath of ramptest.Config, or -result of ramp emulate",
}

// header returns the headers of a call (interface 4.3).
func (c *Call) header() (header http.Header) {
	switch {
	case c.anonymous:
		header = gamecall.Anonymous()
	case c.Kind == control.KindAssets:
		header = gamecall.AssetsHeader(c.session)
	default:
		header = gamecall.Header(c.session)
	}
	if c.media != "" {
		header["Content-Type"] = []string{c.media}
	}
	if c.media == NoType {
		delete(header, "Content-Type")
	}
	if c.hmac != "" {
		header[gamecall.Signature] = []string{c.hmac}
	}
	return header
}

// meaning returns what an answer means for the books.
func (c *Call) meaning(a *Answer, err error, retry func(int) bool) tally.Answer {
	switch {
	case c.forged:
		return tally.No
	case a == nil, a.Status >= 500:
		return tally.Open
	case c.Kind == control.KindResult: // the game does not know that its answer is lost
		if a.Status != http.StatusOK && retry(a.Status) {
			return tally.Open
		}
		return tally.Yes
	case errors.Is(err, ErrLostAnswer):
		return tally.Open
	case err == nil:
		return tally.Yes
	case IsRejection(err), a.Status >= 400:
		return tally.No
	default: // an answer that breaks the interface may be meant as an approval
		return tally.Open
	}
}

// confirmed reports whether the service takes a result for confirmed after an answer. A result
// that contradicts the chain, or an earlier one, may be rejected, and a game may fail at any time.
func (c *Call) confirmed(a *Answer, retry func(int) bool) bool {
	again := c.Again && !retry(a.Status)
	return c.Kind == control.KindResult && !c.forged && !c.opposite && (again || a.Status == http.StatusOK)
}

// unheard returns the error of an answer that was lost on purpose, of which judge has returned err.
// The game does not know that, so the answer is as wrong as one that arrives. A game may fail at any
// time, and may reject what contradicts the chain.
func (c *Call) unheard(a *Answer, err error, retry func(int) bool) error {
	switch {
	case err == nil:
	case c.Kind == control.KindResult && WrongOf(err) != "":
		return errors.Join(ErrLostAnswer, err)
	case c.Kind == control.KindResult && !c.opposite && !retry(a.Status):
		return errors.Join(ErrLostAnswer, turnedDown(err))
	case c.Kind == control.KindValidate && a.Status < 500 && !IsRejection(err):
		return errors.Join(ErrLostAnswer, &wrongAnswer{what: wrongly(err), cause: err})
	}
	return ErrLostAnswer
}

// verdictOn returns what there is to say about a call to the game.
func (c *Call) verdictOn(a *Answer, err error, retry func(int) bool) verdict.Verdict {
	v := verdict.Call{Kind: map[control.Kind]verdict.Kind{
		control.KindAssets: verdict.Assets, control.KindValidate: verdict.Validate,
		control.KindResult: verdict.Result}[c.Kind], Fault: c.Fault, Lacks: c.lacks}
	switch {
	case c.forged:
		v.Trap = verdict.Forged
	case c.opposite:
		v.Trap, v.Fits = verdict.Opposite, c.fits
	case c.Kind == control.KindValidate:
		v.Trap = map[string]verdict.Trap{fault.AtOnce: verdict.AtOnce,
			fault.BeforeAnswer: verdict.Repeated, fault.WithOtherDigest: verdict.Digest,
			fault.WithOtherAmount: verdict.Amount, fault.OffTheTerms: verdict.OffTerms}[c.Fault]
	}
	if a != nil {
		v.Status = a.Status
		v.Retried = c.Retried && retry(a.Status)
	}
	switch rejected := RejectionOf(err); {
	case errors.Is(err, ErrCanceled):
		v.Canceled = true
	case errors.Is(err, ErrLostAnswer):
		v.Lost, v.Wrong = true, WrongOf(err)
	case errors.Is(err, ErrStoreFailed):
		v.Failing = true
	case WrongOf(err) != "":
		v.Wrong = WrongOf(err)
	case rejected != nil:
		v.Code = string(rejected.Code)
	case c.forged:
		v.Success = errors.Is(err, ErrForged)
	case err != nil:
		v.Problem = text.Of(err)
		for _, prefix := range []string{"the game did not answer: ",
			"the game's answer breaks the interface: "} {
			v.Problem = strings.TrimPrefix(v.Problem, prefix)
		}
	default:
		v.Success = true
	}
	return verdict.OfCall(v)
}
