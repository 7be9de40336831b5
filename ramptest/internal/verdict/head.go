package verdict

import (
	"fmt"
	"strings"
)

const shared = "The transaction is that of another order, too, so a person must end this one."

// head says in one sentence without figures what happened to an order, and what the game did wrong. The
// balances have the figures, and the calls the statuses.
func (o *Facts) head(wrong deeds) string {
	switch c := o.Calls; {
	case len(wrong.forms) > 0:
		return o.headOfLoss(wrong)
	case len(o.Books.Findings) > 0:
		return "The books found something wrong earlier."
	case len(o.Books.Shared) > 0:
		return "The books found something wrong with this order or another one."
	case c.Sending:
		return "The result is being sent."
	case c.Refused != "" && o.Books.hidden(), c.Progress == Confirmed && o.Books.Why != Known:
		return o.why()
	case c.Refused != "":
		return "The game did not approve the order."
	case o.Chain.End == Pending && o.Chain.Stays:
		return "The transaction stays pending, as you chose."
	case o.Chain.End == Pending && o.Chain.WithNext:
		return "The transaction waits for the next order, as you chose."
	case o.Chain.End == Pending:
		return "The transaction waits for the next block."
	case c.Progress == Open && c.Attempts == 0:
		return o.headOfUnsent()
	case c.Progress == Open:
		return o.headOfUnconfirmed()
	case c.Progress != Confirmed && o.unpaid():
		return "The transaction burned less than the order is about, and the game did not accept that."
	case o.over() && o.excused():
		return shared
	case c.Progress == TurnedDown:
		return "The game rejected the result, which is not sent again."
	case c.Progress == GivenUp:
		return "The game never confirmed the result, and no attempt is left."
	case o.failing() && c.Status == 0:
		return "The game confirmed, and did not answer when the result was sent again."
	case o.failing() && c.Wrong != "":
		return "The game confirmed, but its answer breaks the interface."
	case o.failing():
		return "The game confirmed, but not when the result was sent again."
	default:
		return o.headOfDone()
	}
}

// headOfLoss says what the game did wrong: one thing, or that it is more than one.
func (o *Facts) headOfLoss(did deeds) string {
	what := "moved assets wrongly"
	if len(did.forms) == 1 {
		what = plainDeeds[did.forms[0]]
		if did.forms[0] == notGivenBack && o.Books.Moved.Equal(o.Books.Took) {
			what = keepsAll
		}
	}
	end, _ := o.end()
	switch {
	case o.Calls.Refused != "":
		return "The game did not approve the order, and " + what + "."
	case o.Books.Dispute != nil, end == Pending:
		return "The game " + what + "."
	default:
		return strings.TrimSuffix(o.headOfEnd(end), ".") + ", and the game " + what + "."
	}
}

// plainDeeds are the forms of [deeds] without figures. Each holds for a part of what was due, too.
var plainDeeds = map[string]string{
	"did not take %s":                          "did not take all that was due",
	"gave back %s that it must keep":           "gave back what it must keep",
	"gave %s":                                  "gave assets",
	"gave %s nevertheless":                     "gave assets nevertheless",
	"gave %s, although it had taken nothing":   "gave assets, although it had taken nothing",
	"gave back %s too much":                    "gave back too much",
	notGivenBack:                               "did not give back all that it took",
	"took %s":                                  "took assets",
	"took %s nevertheless":                     "took assets nevertheless",
	"took %s too much":                         "took too much",
	"did not grant %s":                         "did not grant all that was due",
	"granted %s nevertheless":                  "granted assets nevertheless",
	"granted %s before the tokens were burned": "granted assets before the tokens were burned",
	"granted %s too much":                      "granted too much",
}

// keepsAll is the plain form of [notGivenBack] if nothing came back.
const keepsAll = "keeps all that it took"

// headOfEnd says how the transaction ended.
func (o *Facts) headOfEnd(end End) string {
	switch {
	case !o.Mint && end == Reverted && o.Chain.Short != "":
		return "The burn failed, because the wallet held too few tokens."
	case !o.Mint && end == Reverted:
		return "The burn failed on the chain."
	case o.unpaid() && end == Succeeded:
		return "The transaction burned less than the order is about."
	default:
		return fmt.Sprintf("The transaction %s.", end)
	}
}

// headOfUnsent describes an order whose result was not sent yet.
func (o *Facts) headOfUnsent() string {
	switch c := o.Calls; {
	case !c.Next.IsZero():
		return o.headOfEnd(o.Chain.End)
	case c.Never:
		return "No result will come, as you chose."
	case c.Held:
		return "The result waits for that of another order, as you chose."
	default:
		return "The result is sent next."
	}
}

// headOfUnconfirmed describes the last answer of an order whose result is not confirmed yet.
func (o *Facts) headOfUnconfirmed() string {
	c, said := o.Calls, "The game did not confirm the result"
	switch {
	case c.Lost && c.Status != 0:
		said = "The game's store failed on purpose"
	case c.Lost && c.Wrong != "":
		said = "The answer was lost on purpose, and it breaks the interface"
	case c.Lost:
		said = "The answer was lost on purpose"
	case c.Status == 0:
		said = "The game did not answer"
	}
	if c.Next.IsZero() {
		said += ", and the result is not sent again by itself"
	}
	return said + "."
}

// headOfDone describes an order that has ended as it must.
func (o *Facts) headOfDone() string {
	b, end := o.Books, o.Chain.End
	switch failed := end == Reverted || o.unpaid(); {
	case len(b.Aside) > 0 && len(b.Sum) == 0:
		return "Done, but not judged: these assets move by themselves."
	case !failed && o.Mint:
		return "Done: the game took the assets, and the player received the tokens."
	case !failed:
		return "Done: the tokens were burned, and the game granted the assets."
	case o.Mint && len(b.Took) > 0:
		return "The transaction failed, and the game gave everything back."
	case o.Mint && b.Vague:
		return "The transaction failed, and the game keeps nothing of the player's."
	case o.Mint:
		return "The transaction failed, and the game had taken nothing."
	case o.unpaid(): // the player's tokens are gone
		return "The transaction burned less than the order is about, so the game owes nothing for it."
	case o.Chain.Short == "" && len(b.Took) == 0 && !b.Vague:
		return nothingLost(strings.TrimSuffix(o.headOfEnd(end), ".") + ", and nothing moved.")
	default:
		return nothingLost(o.headOfEnd(end))
	}
}

// nothingLost says of a failure that all is right, for a reader who wonders about its tick.
func nothingLost(failure string) string {
	return "Nothing is lost: " + strings.ToLower(failure[:1]) + failure[1:]
}
