package verdict

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheHeadOfAnOrder(t *testing.T) {
	failing := Calls{Attempts: 1, Status: 500, Next: later, Of: "2 of 20"}
	for want, order := range map[string]Facts{
		"The transaction failed, and the game gave everything back.": mint(func(*Facts) {}),
		"The transaction failed, and the game had taken nothing.":    mint(func(o *Facts) { o.Books.Took = nil }),
		"The transaction failed, and the game did not give back all that it took.": mint(func(o *Facts) {
			o.Books.Moved = assets(-40, 0)
		}),
		"The transaction failed, and the game keeps all that it took.": mint(func(o *Facts) {
			o.Books.Moved = assets(-100, 0)
		}),
		"The transaction succeeded, and the game moved assets wrongly.": mint(func(o *Facts) {
			o.Chain.End, o.Books.Moved = Succeeded, assets(-150, 1)
		}),
		"Done: the game took the assets, and the player received the tokens.": mint(func(o *Facts) {
			o.Chain.End, o.Books.Moved = Succeeded, assets(-100, 0)
		}),
		"The game took too much.": mint(func(o *Facts) {
			o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{}, assets(-150, 0)
		}),
		"The transaction waits for the next block.": mint(func(o *Facts) {
			o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{}, assets(-100, 0)
		}),
		"The game did not approve the order, and took assets nevertheless.": mint(func(o *Facts) {
			o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{Refused: "It rejected."}, assets(-100, 0)
		}),
		"The game did not confirm the result.": mint(func(o *Facts) { o.Calls = failing }),
		"The answer was lost on purpose, and it breaks the interface.": mint(func(o *Facts) {
			o.Calls = Calls{Attempts: 1, Lost: true, Wrong: "HTTP 503", Next: later}
		}),
		"Nothing is lost: the burn failed, because the wallet held too few tokens.": burn(func(o *Facts) {
			o.Chain.Short = "1"
		}),
		"Nothing is lost: the burn failed on the chain, and nothing moved.": burn(func(*Facts) {}),
		"The transaction burned less than the order is about, so the game owes nothing for it.": burn(func(o *Facts) {
			o.Chain.End, o.Chain.Less = Succeeded, true
		}),
		"The books found something wrong earlier.": mint(func(o *Facts) {
			o.Books.Findings = []string{"mint 1: 7 gold"}
		}),
	} {
		assert.Equal(t, want, Of(order).Head)
	}
}

// If results contradict each other, the head says what the game has moved for the one that stands.
func TestTheHeadOfADisputeSaysWhatMoved(t *testing.T) {
	as := func(first, stands End, status int) *Dispute {
		return &Dispute{First: first, Stands: stands, Other: Statement{Made: true, Status: status,
			Confirmed: status == 200}}
	}
	for want, order := range map[string]Facts{
		`The game confirmed the outcome "failed", rejected "succeeded", and gave everything back.`: mint(
			func(o *Facts) { o.Books.Dispute = as(Reverted, Reverted, 400) }),
		`The game confirmed the outcome "failed", did not confirm "succeeded", and had taken nothing.`: mint(
			func(o *Facts) { o.Books.Dispute, o.Books.Took = as(Reverted, Reverted, 500), nil }),
		`The game confirmed the outcome "failed", rejected "succeeded", and keeps nothing of the player's.`: mint(
			func(o *Facts) { o.Books.Dispute, o.Books.Took, o.Books.Vague = as(Reverted, Reverted, 400), nil, true }),
		`The game confirmed the outcome "succeeded", rejected "failed", and took the assets.`: mint(func(o *Facts) {
			o.Chain.End, o.Books.Moved = Succeeded, o.Books.Sum
			o.Books.Dispute = as(Succeeded, Succeeded, 400)
		}),
		`The game confirmed the outcome "succeeded", did not answer "failed", and granted the assets.`: burn(
			func(o *Facts) {
				o.Chain.End, o.Books.Moved = Succeeded, o.Books.Sum
				o.Books.Dispute = as(Succeeded, Succeeded, 0)
			}),
		`The game confirmed the outcome "failed", rejected "succeeded", and granted nothing.`: burn(
			func(o *Facts) { o.Books.Dispute = as(Reverted, Reverted, 400) }),
		"The game confirmed two outcomes, of which the first stands: failed; the game gave everything back.": mint(
			func(o *Facts) { o.Books.Dispute = as(Reverted, Reverted, 200) }),
		"The game confirmed a result that said succeeded, but the transaction failed; the game took the assets.": mint(
			func(o *Facts) {
				o.Books.Dispute, o.Books.Moved = &Dispute{First: Succeeded, Stands: Succeeded}, o.Books.Sum
			}),
		`The game confirmed the outcome "failed", and rejected "succeeded".`: mint(func(o *Facts) {
			o.Books.Dispute, o.Books.Why = as(Reverted, Reverted, 400), Off
		}),
	} {
		assert.Equal(t, want, Of(order).Head)
	}
}

// The head of every order is one sentence without figures, and it claims no more than the sentences with them.
func TestEveryHeadIsOneSentenceWithoutFigures(t *testing.T) {
	one := regexp.MustCompile(`^[A-Z][^.\d%!]*\.$`)
	deeds := make(map[string]bool)
	judge := func(o Facts) {
		v, named := Of(o), false
		require.Regexp(t, one, v.Head)
		if strings.HasPrefix(v.Head, "Nothing is lost") {
			require.Equal(t, Reverted, o.Chain.End, v.Head)
		}
		for form, plain := range plainDeeds {
			if form == notGivenBack && strings.HasSuffix(v.Head, keepsAll+".") {
				require.Equal(t, o.Books.Took, o.Books.Moved, v.Head)
				plain = keepsAll
			}
			if strings.HasSuffix(v.Head, " game "+plain+".") || strings.HasSuffix(v.Head, " and "+plain+".") {
				require.True(t, v.Loss, v.Head)
				verb, rest, _ := strings.Cut(form, "%s")
				require.Regexp(t, "The game "+verb+"[^.;]*"+rest+`\.`, v.Said, v.Head)
				deeds[form], named = true, true
			}
		}
		if strings.HasSuffix(v.Head, "moved assets wrongly.") {
			require.Greater(t, strings.Count(v.Said, "The game "), 1, v.Said)
			named = true
		}
		require.Equal(t, v.Loss, named || v.Head == "The books found something wrong earlier.", v.Head)
	}
	everything(judge)
	for o := range everyOrder {
		judge(o)
	}
	assert.Len(t, deeds, len(plainDeeds), "an order for each")
}
