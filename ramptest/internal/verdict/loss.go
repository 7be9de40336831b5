package verdict

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// loss says what the game did wrong, for each asset from what it moved and what was due. So each
// figure is one that moved, or that was due.
func (o *Facts) loss(end End, due tally.Assets) (said deeds) {
	all := o.Books.Moved.Plus(nil)
	maps.Copy(all, due)
	for _, id := range all.IDs() {
		moved, must := o.Books.Moved.Of(id), due.Of(id)
		off := new(big.Rat).Sub(moved, must)
		took := o.Books.Took.Of(id).Sign() < 0 && !o.Books.Vague // for this order, at some time
		switch owes, did := must.Sign(), moved.Sign(); {
		case off.Sign() == 0:
		case owes == 0 && did < 0:
			said.add(o.tookUndue(end, took), id, moved)
		case owes == 0:
			said.add(o.gaveUndue(end, took), id, moved)
		case owes < 0 && did > 0:
			said.add("did not take %s", id, must)
			said.add("gave %s", id, moved)
		case owes < 0 && off.Sign() > 0 && took && o.Books.Took.Of(id).Cmp(must) <= 0:
			said.add("gave back %s that it must keep", id, off)
		case owes < 0 && off.Sign() > 0:
			said.add("did not take %s", id, off)
		case owes < 0:
			said.add("took %s too much", id, off)
		case did < 0:
			said.add("did not grant %s", id, must)
			said.add("took %s", id, moved)
		case off.Sign() < 0:
			said.add("did not grant %s", id, off)
		default:
			said.add("granted %s too much", id, off)
		}
	}
	return said
}

// notGivenBack is the deed of a game that keeps what a failed mint took.
const notGivenBack = "did not give back %s"

// tookUndue says that the game took an asset of which nothing was due.
func (o *Facts) tookUndue(end End, took bool) string {
	switch {
	case o.Calls.Refused != "":
		return "took %s nevertheless"
	case o.Mint && end == Reverted && took:
		return notGivenBack
	default:
		return "took %s"
	}
}

// gaveUndue says that the game gave an asset of which nothing was due.
func (o *Facts) gaveUndue(end End, took bool) string {
	refused := o.Calls.Refused != ""
	switch {
	case o.Mint && refused:
		return "gave %s nevertheless"
	case o.Mint && end == Reverted && took:
		return "gave back %s too much"
	case o.Mint && end == Reverted && len(o.Books.Took) == 0 && !o.Books.Vague:
		return "gave %s, although it had taken nothing"
	case o.Mint:
		return "gave %s"
	case refused, end == Reverted:
		return "granted %s nevertheless"
	case end == Pending:
		return "granted %s before the tokens were burned"
	default:
		return "granted %s too much"
	}
}

// deeds are sentences about what the game did, each with the assets with which it did that.
type deeds struct {
	forms  []string // such as "took %s", in the order of the sentences
	assets map[string]tally.Assets
}

func (d *deeds) add(form, id string, n *big.Rat) {
	if d.assets == nil {
		d.assets = make(map[string]tally.Assets)
	}
	if d.assets[form] == nil {
		d.forms, d.assets[form] = append(d.forms, form), tally.Assets{}
	}
	d.assets[form][id] = n
}

func (d *deeds) String() string {
	var said []string
	for _, form := range d.forms {
		said = append(said, "The game "+fmt.Sprintf(form, amounts(d.assets[form]))+".")
	}
	return join(said...)
}
