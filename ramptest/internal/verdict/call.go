package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Call is what is known about one call: of the game to the service, if it is an
// initialize call, and otherwise of the service to the game.
type Call struct {
	Kind     Kind
	Trap     Trap
	Fault    string // what was wrong with a forged call, or which failure was scripted
	Status   int    // the HTTP status of the answer; 0 if there was none
	Success  bool   // the answer states success, and is correct
	Code     string // the errorCode of an answer that states none; of an initialize call, its data
	Wrong    string // what is wrong with an answer that was lost, or to a result that is confirmed
	Problem  string // what is wrong with the answer, or why there is none; "" if it has the right form
	Lost     bool   // the answer was lost on purpose
	Failing  bool   // the game's store failed on purpose
	Canceled bool   // the caller did not wait for the answer
	Retried  bool   // the service sends a result again after such an answer
	Lacks    string // of a validate call: see [Lacks]
	Fits     bool   // of [Opposite]: it is what the chain says, and the game has confirmed nothing else
}

// Kind is the kind of a call.
type Kind int

// The kinds of calls.
const (
	Initialize Kind = iota
	Assets
	Validate
	Result
)

// Trap is what is wrong with a call on purpose.
type Trap int

// The traps.
const (
	Genuine  Trap = iota
	Scripted      // an initialize call that the service fails
	Forged        // the game must not accept it
	Digest        // a validate call with another digest under the same UUID
	Amount        // a validate call with another amount under the same UUID
	OffTerms      // a validate call for an order that is not on offer
	AtOnce        // one of several validate calls at the same time, of which one must be approved
	Repeated      // one more validate call for an approved order, which may be rejected
	Opposite      // a result of another outcome than the chain, or than an earlier one, if it does not stand
)

// NoTransaction is what a rejected validate call means for the player.
const NoTransaction = "No transaction was made."

// Contrary is what a result is that the game must not confirm.
const Contrary = "a result that contradicts the chain or an earlier one"

// Rejection says that a game has rejected an order, as it may. Why follows.
func Rejection(code string) string { return "Rejected by the game: " + code + "." }

// OfCall returns the verdict on a call.
func OfCall(c Call) Verdict {
	failed := func(format string, args ...any) Verdict {
		return Verdict{State: Failed, Tone: Bad, Attention: true, Said: fmt.Sprintf(format, args...)}
	}
	right := func(format string, args ...any) Verdict {
		return newVerdict(Rejected, Good, fmt.Sprintf(format, args...))
	}
	neutral := func(state State, format string, args ...any) Verdict {
		return newVerdict(state, Neutral, fmt.Sprintf(format, args...))
	}
	lacks := ""
	if c.Lacks != "" {
		lacks = " " + strings.ToUpper(c.Lacks[:1]) + c.Lacks[1:] + "."
	}
	with := fmt.Sprintf("HTTP %d", c.Status)
	if c.Code != "" {
		with += " and " + c.Code
	}
	other := c.Trap == Digest || c.Trap == Amount || c.Trap == OffTerms
	what := map[Trap]string{OffTerms: "an order off the terms of its UUID", // each contains the fault's name
		Digest:   "an order with another digest under the same UUID",
		Amount:   "an order with another amount under the same UUID",
		Opposite: Contrary,
		Forged:   "a forged call: " + c.Fault}[c.Trap]
	switch {
	case c.Canceled:
		return neutral(Failed, "The caller did not wait for the answer.")
	case c.Lost && c.Wrong != "":
		return failed("%s", wronglyLost(c.Wrong))
	case c.Lost && c.Status != 0:
		return newVerdict(Waiting, Wait, fmt.Sprintf("The answer was lost on purpose: HTTP %d.", c.Status))
	case c.Failing:
		said := fmt.Sprintf("The game's store failed on purpose: HTTP %d.", c.Status)
		return newVerdict(Waiting, Wait, said)
	case c.Trap == Scripted:
		return neutral(Failed, "Failed on purpose: %s.", c.Fault)
	case c.Kind == Initialize && c.Success:
		return newVerdict(Done, Good, "A UUID was issued.")
	case c.Kind == Initialize:
		return failed("No UUID was issued: %s.", c.Code)
	case c.Trap == Forged && c.Success:
		return failed("The game accepted %s.", what)
	case c.Trap == Forged && c.Status == 0:
		return neutral(Rejected, "The game did not accept %s, but without an answer, as after a crash.", what)
	case c.Trap == Forged && c.Status >= 500:
		return neutral(Rejected, "The game did not accept %s, but with HTTP %d, as a crash would.", what,
			c.Status)
	case c.Trap == Forged:
		return right("Check passed: the game rejected %s.", what)
	case c.Status == 0:
		return failed("The game did not answer: %s.", c.Problem)
	case other && c.Success:
		return failed("The game approved %s.", what)
	case c.Trap == Opposite && c.Success && !c.Fits:
		return newVerdict(Disputed, Warn, "The game confirmed "+what+".")
	case c.Success:
		return newVerdict(Done, Good,
			[...]string{"", "The game listed the assets.", "Approved.", "Confirmed."}[c.Kind])
	case c.Wrong != "":
		return failed("%s", wrongly(c.Wrong))
	case c.Trap == Opposite && c.Fits:
		return neutral(Rejected, "The game did not confirm what the chain says, after a result that said "+
			"something else.")
	case c.Trap == Opposite && c.Status >= 500:
		return neutral(Rejected, "The game did not confirm %s, but with HTTP %d, as a crash would.", what,
			c.Status)
	case c.Trap == Opposite:
		return right("Check passed: the game rejected %s.", what)
	case c.Status >= 500 && c.Retried && c.Kind == Result:
		return failed("The game failed with %s. The result is sent again.", with)
	case c.Status >= 500:
		return failed("The game failed with %s.", with)
	case c.Problem != "" && (c.Status == 200 || c.Trap != Genuine):
		return failed("The answer breaks the interface: %s.", c.Problem)
	case other:
		return right("Check passed: the game rejected %s.", what)
	case c.Trap == Repeated:
		return neutral(Rejected, "%s The service has the approval already, so nothing is lost.",
			Rejection(c.Code))
	case c.Trap == AtOnce:
		return neutral(Rejected, "%s Another of the calls at once must be approved.%s", Rejection(c.Code),
			lacks)
	case c.Kind == Validate && c.Status == 200:
		return neutral(Rejected, "%s%s %s", Rejection(c.Code), lacks, NoTransaction)
	case c.Kind == Result:
		return failed("The game rejected the result with %s. It is not sent again.", with)
	case c.Kind == Validate:
		return failed("The game rejected the call with %s.%s %s", with, lacks, NoTransaction)
	default:
		return failed("The game rejected the call with %s.", with)
	}
}

// Lacks says what a mint takes of which the player owned too little, or which the game does not
// list; "" if there is nothing. Whatever is not in owned is unknown.
func Lacks(takes, owned tally.Assets, listed []string) string {
	short, available, unlisted := tally.Assets{}, tally.Assets{}, []string{}
	for id, n := range owned {
		if n.Cmp(takes[id]) < 0 {
			short[id], available[id] = takes[id], n
			if !slices.Contains(listed, id) {
				unlisted = append(unlisted, redact.Isolate(id))
			}
		}
	}
	if len(short) == 0 {
		return ""
	}
	if len(unlisted) > 0 && len(listed) > 0 {
		if slices.Sort(unlisted); len(listed) > maxItems {
			listed = append(listed[:maxItems:maxItems], "…")
		}
		return fmt.Sprintf("the order takes %s; the game lists %s, not %s", amounts(short),
			redact.Isolate(strings.Join(listed, ", ")), strings.Join(unlisted, ", "))
	}
	return fmt.Sprintf("the order takes %s; the player owned %s", amounts(short), amounts(available))
}
