package ramptest

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
)

// tone tells the reader whether an outcome is good. Each tone has its own sign, so
// that the pages do not depend on color.
type tone string

const (
	good    tone = "good"
	bad     tone = "bad"
	waiting tone = "wait"
	unknown tone = "unknown"
)

// Sign returns the mark that precedes a text.
func (t tone) Sign() string {
	return map[tone]string{good: "✓", bad: "✗", waiting: "●", unknown: "?"}[t]
}

// outcomeView describes what happened to an order and what comes next.
type outcomeView struct {
	Tone tone
	Said string
	Next string    // what comes next; shown before Due
	Due  time.Time // when it comes; zero if nothing is planned
	Then string    // shown after Due
}

// balanceRow is what the player owns of one asset.
type balanceRow struct {
	ID                    string
	Before, Now, Expected string // "" if unknown
	Tone                  tone
	Note                  string
	Aside                 string // movements that are not part of the order
}

// happened describes the state of an order, from its schedule, its chain and the
// books.
func (s *orders) happened(o *Order, acc *account) outcomeView {
	p := o.delivery.standing()
	outcome, mined := s.outcome(o)
	burn := o.Request.Intent.Type == ramp.Disassemble
	wrong := o.differences(acc, p)
	v := outcomeView{Tone: waiting}
	if wrong != nil {
		v.Tone, v.Said = bad, o.loss(outcome, mined, wrong)+" "
	}
	answer := "The game did not answer."
	switch {
	case p.status != 0:
		answer = fmt.Sprintf("The game answered HTTP %d.", p.status)
	case p.attempts <= o.script.result.lost:
		answer = "The game's answer was lost, as you chose."
	}
	switch {
	case p.sending > 0:
		v.Said = fmt.Sprintf("Sending the result now (attempt %d). ", p.attempts) + v.Said
	case !mined && o.script.pending:
		v.Said += "The transaction stays pending, as you chose. No result will come."
	case !mined:
		if wrong == nil {
			v.Said = "The game approved. "
		}
		v.Said += "The transaction waits for the next block."
		v.Next, v.Due = "Next block", s.chains[o.Network].NextBlock()
	case p.state == Confirmed && wrong != nil:
		v.Said += "It answered HTTP 200: no further attempt."
	case p.state == Confirmed:
		v.Tone, v.Said = good, o.success(outcome, s.player(o))
		if s.studio.audit.mode == BooksOff {
			v.Said = fmt.Sprintf("The game confirmed that the %s %s. The books are off, so its assets were not checked.", verbOf(burn), outcome)
		} else if acc == nil || acc.last == nil || acc.order.Disputed || len(acc.order.Totals) != 1 {
			v.Tone = unknown
			v.Said = fmt.Sprintf("The game confirmed that the %s %s, but what it moved is unknown.", verbOf(burn), outcome)
			if r, ok := s.studio.readings.of(o.Session); ok && r.err != nil {
				v.Said += " Its assets endpoint: " + say(r.err)
			}
		}
	case p.state == Refused:
		v.Tone = bad
		v.Said += fmt.Sprintf("The game refused the result (HTTP %d). It will not be sent again.", p.status)
	case p.state == GivenUp:
		v.Tone = bad
		v.Said += fmt.Sprintf("Gave up after %d attempts. The game never confirmed.", p.attempts)
	case !p.next.IsZero() && p.attempts > 0:
		v.Said += answer
		v.Next, v.Due = "Next attempt", p.next
		v.Then = fmt.Sprintf("(%d of %d)", p.retries+1, len(s.config.Schedule)+1)
	case !p.next.IsZero():
		v.Said += fmt.Sprintf("The transaction %s.", outcome)
		v.Next, v.Due = "The result is sent", p.next
	case o.script.never && p.attempts == 0:
		v.Said += fmt.Sprintf("The transaction %s. No result will come, as you chose.", outcome)
	case o.script.held && p.attempts == 0:
		v.Said += fmt.Sprintf("The transaction %s. The result waits for the result of another order, as you chose.", outcome)
	case p.attempts > 0:
		v.Said += answer + " The result is not sent again automatically."
	default:
		v.Said += fmt.Sprintf("The transaction %s just now.", outcome)
	}
	v.Said = strings.TrimSpace(v.Said)
	return v
}

// player returns the name of an order's player, as the game last reported it.
func (s *orders) player(o *Order) string {
	if r, ok := s.studio.readings.of(o.Session); ok && r.err == nil {
		return cmp.Or(r.player.Name, r.player.PlayerID, "the player")
	}
	return "the player"
}

func verbOf(burn bool) string {
	if burn {
		return "burn"
	}
	return "mint"
}

// success describes what a correct game did.
func (o *Order) success(outcome Outcome, player string) string {
	burn := o.Request.Intent.Type == ramp.Disassemble
	switch {
	case !burn && outcome == Succeeded:
		received, err := afterFee(o.token().Amount, o.fee)
		if err != nil {
			return "Done. The game took " + items(o.Request.Intent.From) + "."
		}
		return fmt.Sprintf("Done. The game took %s; %s received %s.", items(o.Request.Intent.From), player, count(received))
	case !burn:
		return "The transaction failed. The game gave back " + items(o.Request.Intent.From) + "."
	case outcome == Succeeded:
		return fmt.Sprintf("Done. The burn of %s succeeded; the game granted %s.", count(o.token().Amount), items(o.Request.Intent.To))
	default:
		return o.failedBurn() + " Nothing moved."
	}
}

// failedBurn describes why a burn failed.
func (o *Order) failedBurn() string {
	amount := o.token().Amount
	if o.had != nil && amount.Rat().Cmp(o.had) > 0 {
		return fmt.Sprintf("The burn failed: it needs %s, the wallet held %s.", count(amount), books.Decimal(o.had))
	}
	return "The burn failed on the chain."
}

// maxItems is how many assets a sentence lists.
const maxItems = 3

// items lists the assets of an intent.
func items(assets []ramp.IntentAsset) string {
	sum := books.Assets{}
	for _, a := range assets {
		sum.Add(a.ID, a.Amount.Rat())
	}
	return amounts(sum, slices.Sorted(maps.Keys(sum)))
}

// amounts lists assets with their absolute amounts.
func amounts(a books.Assets, ids []string) string {
	var parts []string
	for _, id := range ids {
		if len(parts) == maxItems && len(ids) > maxItems+1 {
			parts = append(parts, fmt.Sprintf("%d other assets", len(ids)-maxItems))
			break
		}
		parts = append(parts, books.Decimal(new(big.Rat).Abs(a[id]))+" "+id)
	}
	return strings.Join(parts, ", ")
}

// differences returns what the game has moved minus what it should have moved by now.
// An amount is negative where the game owes the player. nil means that nothing is
// wrong, or that this is unknown.
func (o *Order) differences(acc *account, p standing) books.Assets {
	if acc == nil || acc.order.Disputed || len(acc.order.Totals) != 1 {
		return nil
	}
	actual := acc.order.Totals[0]
	due := acc.order.Due()
	if !acc.order.Told {
		if due = (books.Assets{}); acc.order.Mint {
			due = acc.order.Sum
		}
	}
	wrong := actual.Minus(due)
	if len(wrong) == 0 || acc.order.Told && !p.state.over() && (actual.Equal(acc.order.Sum) || len(actual) == 0) {
		return nil // the effect may still come
	}
	return wrong
}

// loss describes what is wrong with the assets that a game moved.
func (o *Order) loss(outcome Outcome, mined bool, wrong books.Assets) string {
	burn := o.Request.Intent.Type == ramp.Disassemble
	var missing, extra []string
	for _, id := range slices.Sorted(maps.Keys(wrong)) {
		if wrong[id].Sign() < 0 {
			missing = append(missing, id)
		} else {
			extra = append(extra, id)
		}
	}
	var parts []string
	add := func(ids []string, text string) {
		if len(ids) > 0 {
			parts = append(parts, fmt.Sprintf(text, amounts(wrong, ids)))
		}
	}
	begin := "The transaction " + outcome.String() + "."
	switch {
	case !mined:
		begin = "The game approved."
		add(missing, "It took %s too much.")
		add(extra, map[bool]string{false: "It did not take %s.", true: "It granted %s before the tokens were burned."}[burn])
	case !burn && outcome == Failed:
		add(missing, "The game did not give back %s.")
		add(extra, "The game gave back %s too much.")
	case !burn:
		add(missing, "The game took %s too much.")
		add(extra, "The game did not take %s.")
	case outcome == Failed:
		begin = o.failedBurn()
		add(missing, "The game took %s.")
		add(extra, "The game granted %s nevertheless.")
	default:
		add(missing, "The game did not grant %s.")
		add(extra, "The game granted %s too much.")
	}
	return begin + " " + strings.Join(parts, " ")
}

// rows returns the balances of an order's assets, and of the player's other assets.
func (s *orders) rows(o *Order, acc *account) (own, others []balanceRow) {
	p := o.delivery.standing()
	outcome, mined := s.outcome(o)
	now := books.Assets(nil)
	if acc != nil {
		now = acc.last
	}
	if r, ok := s.studio.readings.of(o.Session); ok && r.err == nil {
		now = balances(r.player)
	}
	sum := books.Assets{}
	var wrong, before books.Assets
	for _, list := range [][]ramp.IntentAsset{o.Request.Intent.From, o.Request.Intent.To} {
		for _, a := range list {
			if a.Type == ramp.TypeAsset {
				sum.Add(a.ID, a.Amount.Rat())
			}
		}
	}
	judged := acc != nil && !acc.order.Disputed && len(acc.order.Totals) == 1 && acc.last != nil && now != nil
	if acc != nil {
		before = acc.order.Before
	}
	late := false
	if judged {
		wrong = o.differences(acc, p)
		// The missing effect may have come since the last reading of the books.
		gap := now.Minus(acc.last)
		late = len(wrong) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(wrong)), func(id string) bool {
			return gap[id] == nil || new(big.Rat).Add(gap[id], wrong[id]).Sign() != 0
		})
	}
	for _, id := range slices.Sorted(maps.Keys(sum.Plus(now))) {
		if sum[id] == nil && wrong[id] == nil {
			others = append(others, balanceRow{ID: id, Now: decimal(now, id)})
			continue
		}
		row := balanceRow{ID: id, Before: decimal(before, id), Now: decimal(now, id)}
		switch {
		case !judged:
			row.Tone, row.Note = unknown, "not judged"
		case wrong[id] == nil || late:
			row.Expected, row.Tone = row.Now, good
			if late {
				row.Note = "came late"
			}
		default:
			row.Expected = decimal(now.Minus(books.Assets{id: wrong[id]}), id)
			row.Tone, row.Note = bad, books.Decimal(new(big.Rat).Abs(wrong[id]))+" missing"
			if wrong[id].Sign() > 0 {
				row.Note = books.Decimal(wrong[id]) + " too many"
			}
		}
		if judged && before != nil && !late {
			if other := now.Minus(before).Minus(acc.order.Totals[0]); other[id] != nil {
				row.Aside = "outside this order: " + signed(other[id])
			}
		}
		own = append(own, row)
	}
	slices.SortStableFunc(own, func(a, b balanceRow) int { return cmp.Compare(rank(a.Tone), rank(b.Tone)) })
	held := s.chains[o.Network].TokenBalance(o.token().contract(), o.wallet.Address())
	tokens := balanceRow{ID: "tokens", Now: books.Decimal(held), Expected: books.Decimal(held), Tone: good}
	if o.had != nil {
		tokens.Before = books.Decimal(o.had)
	}
	if mined && outcome == Failed && tokens.Before == tokens.Now {
		tokens.Note = "nothing moved"
	}
	return append([]balanceRow{tokens}, own...), others
}

// rank sorts what is wrong first.
func rank(t tone) int { return slices.Index([]tone{bad, unknown, good}, t) }

// signed formats an amount with its sign.
func signed(n *big.Rat) string {
	if n.Sign() > 0 {
		return "+" + books.Decimal(n)
	}
	return books.Decimal(n)
}

// decimal formats the amount of an asset; "" means that it is unknown.
func decimal(a books.Assets, id string) string {
	switch {
	case a == nil:
		return ""
	case a[id] == nil:
		return "0"
	default:
		return books.Decimal(a[id])
	}
}
