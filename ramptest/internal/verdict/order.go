package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Of returns the verdict on an order.
func Of(o Facts) Verdict {
	m := o.movement()
	var v Verdict
	switch said, next := o.calls(m); {
	case o.Books.Dispute != nil && (!o.over() || o.Calls.Progress == Confirmed || o.Books.Dispute.both()):
		v = o.disputed(m, said, next)
	case o.Calls.Sending:
		if v = newVerdict(Waiting, Wait, said); m.wrong != nil {
			v.Said = join(said, m.begin, m.what)
		}
	case !o.over():
		v = Verdict{State: Waiting, Tone: Wait, Said: join(m.begin, m.what, said), Next: next}
	case m.wrong != nil:
		v = Verdict{State: Loss, Said: join(m.begin, m.what, said)}
	case o.Calls.Refused != "" && o.Books.hidden():
		v = newVerdict(Unknown, Unclear, m.begin, said)
	case o.Calls.Refused != "":
		v = newVerdict(Rejected, Neutral, m.begin)
	case o.Calls.Progress != Confirmed && o.unpaid() && o.unknown() != "" && o.Books.Why != Off:
		v = newVerdict(Unknown, Unclear, m.begin, said, o.unknown())
	case o.Calls.Progress != Confirmed && o.unpaid():
		v = newVerdict(Done, Good, m.begin, m.what, "The game did not accept that.")
	case o.excused() && (o.Books.Why == Known || o.Books.Why == Off):
		v = Verdict{State: Unconfirmed, Tone: Warn, Said: join(m.begin, m.what, said, shared)}
	case o.Calls.Progress != Confirmed:
		v = newVerdict(Unconfirmed, Bad, m.begin, m.what, said)
	case o.Books.Why == Off: // somebody has chosen not to know
		v = newVerdict(Done, Unclear, m.begin, said)
	case o.Books.Why != Known:
		v = newVerdict(Unknown, Unclear, m.begin, said)
	case o.failing():
		v = newVerdict(Done, Warn, m.begin, m.what, said)
	case len(o.Books.Findings)+len(o.Books.Shared)+len(o.Books.Aside) > 0:
		v = newVerdict(Done, Good, m.begin, m.what)
	default:
		v = newVerdict(Done, Good, o.done(m))
	}
	if v.Head == "" || m.wrong != nil || len(o.Books.Findings)+len(o.Books.Shared) > 0 {
		v.Head = o.head(m.deeds)
	}
	if v.Tone == Good && len(o.Books.Aside) > 0 { // somebody has chosen not to know
		v.Tone, v.Said = Unclear, join(v.Said, o.aside())
	}
	v.Attention = v.Attention || o.failing()
	if m.wrong == nil && len(o.Books.Findings) > 0 {
		v.Said = join(v.Said, "Earlier, the books found: "+o.Books.Findings[len(o.Books.Findings)-1]+".")
	}
	if shared := o.Books.Shared; len(shared) > 0 {
		v.Attention = true
		if v.Said = join(v.Said, "The books found: "+shared[len(shared)-1]+"."); v.State == Done {
			v.State, v.Tone = Unknown, Unclear
		}
	}
	if m.wrong != nil || len(o.Books.Findings) > 0 {
		v.Loss, v.Attention, v.Tone = true, true, Bad
		if v.State != Waiting && v.State != Disputed {
			v.State = Loss
		}
	}
	return v
}

// calls describes the transaction, if it is pending, or how the game answered the
// results.
func (o *Facts) calls(m movement) (said string, next Next) {
	c := o.Calls
	switch {
	case c.Refused != "" && o.Books.hidden():
		return o.unknown(), next
	case c.Refused != "":
		return "", next
	case c.Sending:
		return fmt.Sprintf("Sending the result now (attempt %d).", c.Attempts), next
	case o.Chain.End == Pending && o.Chain.Stays:
		return "The transaction stays pending, as you chose. No result will come.", next
	case o.Chain.End == Pending && o.Chain.WithNext:
		return "The transaction waits for the next order, as you chose.", next
	case o.Chain.End == Pending && o.Chain.Stands:
		return "The transaction waits for a block, and the chain stands still, as you chose.", next
	case o.Chain.End == Pending:
		return "The transaction waits for the next block.", Next{What: "Next block", At: o.Chain.Block}
	case c.Progress == TurnedDown:
		return fmt.Sprintf("The game rejected the result (HTTP %d). It will not be sent again.",
			c.Status), next
	case c.Progress == GivenUp:
		return fmt.Sprintf("Gave up after %d attempts. The game never confirmed.", c.Attempts), next
	case c.Progress == Confirmed:
		switch why := o.unknown(); {
		case m.wrong != nil:
			said = "It answered HTTP 200: no further attempt."
		case why != "":
			said = "The game confirmed. " + why
		}
		return join(said, o.repeated()), next
	case c.Attempts == 0 && o.Chain.Stands:
		return "The result waits for more blocks, and the chain stands still, as you chose.", next
	case c.Attempts == 0 && !c.Next.IsZero():
		return "", Next{What: "The result is sent", At: c.Next}
	case c.Attempts == 0 && c.Never:
		return "No result will come, as you chose.", next
	case c.Attempts == 0 && c.Held:
		return "The result waits for the result of another order, as you chose.", next
	case c.Attempts == 0:
		return "The result is sent next.", next
	}
	said = fmt.Sprintf("The game answered HTTP %d.", c.Status)
	switch {
	case c.Lost && c.Status != 0:
		said = "The game's store failed on purpose."
	case c.Lost && c.Wrong != "":
		said = wronglyLost(c.Wrong)
	case c.Lost:
		said = "The answer was lost on purpose."
	case c.Status == 0:
		said = "The game did not answer."
	}
	if c.Next.IsZero() {
		return said + " The result is not sent again by itself.", next
	}
	return said, Next{What: "Next attempt", At: c.Next, Of: c.Of}
}

// repeated describes the answer to a result that was sent again after the game had
// confirmed it, if that answer is no confirmation.
func (o *Facts) repeated() string {
	switch {
	case !o.failing():
		return ""
	case o.Calls.Status == 0:
		return "The game did not answer when the result was sent again."
	case o.Calls.Wrong != "":
		return wrongly(o.Calls.Wrong)
	default:
		return fmt.Sprintf("When the result was sent again, the game answered HTTP %d.", o.Calls.Status)
	}
}

// movement is what the game has moved, compared with what is due by now.
type movement struct {
	begin string // how the transaction ended
	what  string // what moved
	deeds deeds  // what the game did wrong
	// what it moved wrongly: negative where the player lacks something; nil if nothing is wrong
	wrong  tally.Assets
	toCome tally.Assets // what may still move; nil if nothing may
}

// movement compares what the game moved with what is due by now.
func (o *Facts) movement() movement {
	end, ok := o.end()
	m := movement{begin: o.begin(end)}
	b := o.Books
	if b.Why != Known || !ok {
		return m
	}
	if o.unpaid() && end == Succeeded {
		end = Reverted // it pays for as little
	}
	due := tally.Assets{}
	if end == Succeeded || end == Pending && o.Mint && o.Calls.Refused == "" {
		due = b.Sum
	}
	switch rest := due.Minus(b.Moved); {
	case len(b.Sum) == 0: // nothing of the order is judged
		return m
	case len(rest) == 0:
	case end == Pending && len(b.Moved) == 0: // a game may take the assets with the result
		m.toCome = rest
	case end != Pending && (!o.over() || o.excused()) && (len(b.Moved) == 0 || b.Moved.Equal(b.Sum)):
		m.toCome = rest
	default:
		m.wrong = b.Moved.Minus(due)
	}
	switch {
	case m.wrong != nil:
		m.deeds = o.loss(end, due)
		m.what = m.deeds.String()
	case o.Mint:
		if m.what = o.mint(end, m.toCome); end == Pending {
			m.begin = ""
		}
	default:
		m.what = o.burn(end, m.toCome)
	}
	return m
}

// aside names what is not judged.
func (o *Facts) aside() string {
	ids := redact.Isolate(strings.Join(o.Books.Aside, ", "))
	return "Not judged, because it moves by itself: " + ids + "."
}

// begin describes how the transaction ended.
func (o *Facts) begin(end End) string {
	switch {
	case o.Books.Dispute != nil:
		return ""
	case o.Calls.Refused != "":
		return o.Calls.Refused
	case end == Pending:
		return "The game approved."
	case !o.Mint && end == Reverted && o.Chain.Short != "":
		return fmt.Sprintf("The burn failed: it needs %s, the wallet held %s.", o.Tokens, o.Chain.Short)
	case !o.Mint && end == Reverted:
		return "The burn failed on the chain."
	case o.unpaid() && end == Succeeded:
		return "The transaction burned less than the order is about."
	default:
		return fmt.Sprintf("The transaction %s.", end)
	}
}

// done describes an order that has ended as it must.
func (o *Facts) done(m movement) string {
	switch {
	case o.Chain.End == Succeeded && o.Mint:
		return fmt.Sprintf("Done. The game took %s; %s received %s.", amounts(o.Books.Sum),
			redact.Isolate(o.Player), o.Received)
	case o.Chain.End == Succeeded && !o.unpaid():
		return fmt.Sprintf("Done. The burn of %s succeeded; the game granted %s.", o.Tokens,
			amounts(o.Books.Sum))
	default:
		return join(m.begin, m.what)
	}
}

// mint describes a mint for which nothing is wrong.
func (o *Facts) mint(end End, toCome tally.Assets) string {
	b := o.Books
	sum := amounts(b.Sum)
	switch {
	case toCome != nil && end != Reverted && len(b.Took) > 0:
		return fmt.Sprintf("The game took %s, and has given it back.", amounts(b.Took))
	case end == Pending && toCome != nil:
		return fmt.Sprintf("The game approved and has not taken %s yet.", sum)
	case end == Pending:
		return fmt.Sprintf("The game approved and took %s.", sum)
	case end == Succeeded && toCome != nil:
		return fmt.Sprintf("The game has not taken %s yet.", sum)
	case end == Succeeded:
		return fmt.Sprintf("The game took %s.", sum)
	case toCome != nil:
		return fmt.Sprintf("The game has not given back %s yet.", amounts(toCome))
	case len(b.Took) > 0:
		return fmt.Sprintf("The game gave back %s.", amounts(b.Took))
	case b.Vague:
		return "The game keeps nothing of the player's."
	default:
		return "The game had taken nothing, so nothing was due."
	}
}

// burn describes a burn for which nothing is wrong.
func (o *Facts) burn(end End, toCome tally.Assets) string {
	switch {
	case toCome != nil && end == Reverted:
		return fmt.Sprintf("The game granted %s, and has not taken it back yet.", amounts(toCome))
	case toCome != nil:
		return fmt.Sprintf("The game has not granted %s yet.", amounts(toCome))
	case end == Succeeded:
		return fmt.Sprintf("The game granted %s.", amounts(o.Books.Sum))
	case end == Pending || len(o.Books.Took) > 0 || o.Books.Vague:
		return ""
	default:
		return "Nothing moved."
	}
}

// both reports whether the game confirmed two outcomes.
func (d *Dispute) both() bool { return d.Stands != Pending && d.Other.Confirmed }

// other is the outcome that does not stand.
func (d *Dispute) other() End {
	if d.Stands == Reverted {
		return Succeeded
	}
	return Reverted
}

// deedAs says in a few words without figures what the game has moved for an outcome that it confirmed, if
// that is right; "" if there is nothing to say.
func (o *Facts) deedAs(stands End) string {
	failed := stands == Reverted || o.unpaid()
	switch b := o.Books; {
	case stands == Pending, len(b.Sum) == 0:
		return ""
	case !failed && o.Mint:
		return "took the assets"
	case !failed:
		return "granted the assets"
	case len(b.Took) > 0 && o.Mint:
		return "gave everything back"
	case o.Mint && b.Vague:
		return "keeps nothing of the player's"
	case o.Mint:
		return "had taken nothing"
	case len(b.Took) > 0 || b.Vague:
		return ""
	default:
		return "granted nothing"
	}
}

// disputed describes an order whose results contradict each other or the chain. That needs
// attention only if the game confirmed both.
func (o *Facts) disputed(m movement, call string, next Next) Verdict {
	d := o.Books.Dispute
	v := Verdict{State: Waiting, Tone: Wait, Next: next}
	switch {
	case d.both():
		v.State, v.Tone, v.Attention = Disputed, Warn, true
	case o.over() && !o.Calls.Sending && d.Other.Made && d.Stands == o.Chain.End && o.Books.Why == Known:
		v.State, v.Tone = Done, Good // the game rejected what it must reject
	case o.over() && !o.Calls.Sending && o.Books.Why != Known && o.Books.Why != Off:
		v.State, v.Tone, v.Attention = Unknown, Unclear, true
	case o.over() && !o.Calls.Sending:
		v.State, v.Tone = Done, Warn
	}
	answer := fmt.Sprintf("rejected %q", d.other())
	switch {
	case d.Other.Status == 0:
		answer = fmt.Sprintf("did not answer %q", d.other())
	case d.Other.Status >= 500:
		answer = fmt.Sprintf("did not confirm %q", d.other())
	}
	switch {
	case !d.Other.Made && d.Stands != Pending:
		v.Said = fmt.Sprintf("The game confirmed a result that said %s, but the transaction %s.", d.Stands,
			o.Chain.End)
	case !d.Other.Made:
		v.Head = fmt.Sprintf("The result said %s, but the transaction %s.", d.First, o.Chain.End)
		v.Said = v.Head + " The game has not confirmed it."
	case d.Stands == Pending:
		v.Said = "Results stated two outcomes, and the game has confirmed neither."
	case d.Other.Confirmed:
		v.Said = fmt.Sprintf("The game confirmed two outcomes, of which the first stands: %s.", d.Stands)
	default:
		v.Said = fmt.Sprintf("The game confirmed the outcome %q, and %s.", d.Stands, answer)
	}
	v.Head = cmp.Or(v.Head, v.Said)
	if deed := o.deedAs(d.Stands); deed == "" || m.wrong != nil || m.toCome != nil || o.Books.Why != Known {
		// the head says nothing about what moved
	} else if d.Other.Made && !d.Other.Confirmed {
		v.Head = fmt.Sprintf("The game confirmed the outcome %q, %s, and %s.", d.Stands, answer, deed)
	} else {
		v.Head = strings.TrimSuffix(v.Head, ".") + "; the game " + deed + "."
	}
	if o.over() && !o.Calls.Sending {
		call = ""
	}
	if v.State == Unknown {
		call = o.unknown()
	}
	if v.State == Disputed {
		v.Said = join("Disputed.", v.Said)
	}
	v.Said = join(v.Said, m.what, call)
	return v
}

// Row is what an order moved of one asset, or of the tokens, and the player's balance of it.
type Row struct {
	ID          string
	Due, Moved  string // what the order must have moved by now, and what it moved; "" if unknown
	Tone        Tone   // whether that is the same
	Note        string
	Before, Now string // the balance before the order, and now, after all orders; "" if unknown
	Aside       string // what moved outside of the order in between
}

// Rows compares what an order moved of its assets with what is due by now. before and now are nil if
// unknown.
func Rows(o Facts, before, now tally.Assets) []Row {
	m := o.movement()
	_, ok := o.end()
	judged := ok && o.Books.Why == Known && before != nil && now != nil
	var outside tally.Assets
	if judged {
		outside = now.Minus(before).Minus(o.Books.Moved)
	}
	all := o.Books.Sum.Plus(nil)
	maps.Copy(all, m.wrong)
	var rows []Row
	for _, id := range slices.Sorted(maps.Keys(all)) {
		r := Row{ID: id, Before: decimal(before, id), Now: decimal(now, id)}
		switch {
		case !judged:
			r.Tone, r.Note = Unclear, "unknown"
		case m.wrong[id] != nil:
			r.Tone, r.Note = Bad, "the player lacks "+tally.Grouped(new(big.Rat).Abs(m.wrong[id]))
			if m.wrong[id].Sign() > 0 {
				r.Note = "the player has " + tally.Grouped(m.wrong[id]) + " too many"
			}
		case m.toCome[id] != nil:
			r.Tone, r.Note = Wait, tally.Signed(m.toCome[id])+" to come"
		default:
			r.Tone = Good
		}
		if judged {
			r.Moved = tally.Signed(o.Books.Moved.Of(id))
			r.Due = tally.Signed(o.Books.Moved.Minus(m.wrong).Plus(m.toCome).Of(id))
			if n := outside[id]; n != nil {
				r.Aside = "outside of this order: " + tally.Signed(n)
			}
		}
		rows = append(rows, r)
	}
	for _, id := range o.Books.Aside {
		rows = append(rows, Row{ID: id, Tone: Unclear, Note: "not judged"})
	}
	return rows
}

// Tokens returns the row of the tokens. moved is what the transaction moved in the
// player's wallet, and fee what the service kept of that, such as "2%", or ""; before is nil if unknown.
func Tokens(end End, before, now, moved *big.Rat, fee string) Row {
	r := Row{ID: "tokens", Now: tally.Grouped(now), Tone: Good}
	if before == nil {
		r.Tone, r.Note = Unclear, "unknown"
		return r
	}
	r.Before, r.Moved = tally.Grouped(before), tally.Signed(moved)
	switch r.Due = r.Moved; { // the chain is exact
	case end == Pending:
		r.Due, r.Tone, r.Note = "", Wait, "not decided yet"
	case moved.Sign() != 0 && fee != "":
		r.Note = "after the fee of " + fee
	}
	if outside := new(big.Rat).Sub(new(big.Rat).Sub(now, before), moved); outside.Sign() != 0 {
		r.Aside = "outside of this order: " + tally.Signed(outside)
	}
	return r
}
