package audit

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// This file has what moves between calls, and for no order.

// maxAsides bounds what a test logs.
const maxAsides = 100

// stray enters what moved between calls for no order: a finding if the books are closed. The
// caller must hold the lock.
func (b *Auditor) stray(p *player, before, moved tally.Assets) {
	secrets := redact.New(p.session.Token.Reveal())
	var told []string
	found := &Finding{}
	for _, id := range moved.IDs() {
		had, has := amount(before.Of(id)), amount(before.Plus(moved).Of(id))
		found.Assets = append(found.Assets, Balance{secrets.Text(id), had, has, had})
		how := "rose"
		if moved[id].Sign() < 0 {
			how = "fell"
		}
		told = append(told, fmt.Sprintf("%s %s by %s (%s before, %s after)", redact.Isolate(id), how,
			tally.Grouped(new(big.Rat).Abs(moved[id])), tally.Grouped(had.Rat()), tally.Grouped(has.Rat())))
	}
	said := fmt.Sprintf("between two calls, %s's %s", redact.Isolate(p.name), strings.Join(told, ", "))
	if like := b.like(p, moved); like != "" {
		said += ": just what " + like + " is about"
	} else {
		said += ", and no order explains that"
	}
	if b.config.Closed {
		if p.books.Guessed { // an effect that was taken for another order's may have come
			said += " (what this player's orders have moved is not certain, so this may belong to one: " +
				"let the game list assets whenever it is asked, or leave Config.Closed out)"
		}
		found.Problem = secrets.Text(said + remedy)
		b.find(uuid.Nil, found)
		return
	}
	if said = secrets.Text(said); len(b.asides) < maxAsides {
		b.asides = append(b.asides, said)
	}
	b.config.Judged(uuid.Nil, said, nil)
}

const remedy = ". If your test did it, wrap it in service.Outside(func() { … })"

// like names an order that is about just what moved, or about that less its fee: one of the player
// before one of somebody else. The caller must hold the lock.
func (b *Auditor) like(p *player, moved tally.Assets) string {
	var mine, others []string
	for id, o := range b.placed {
		if !isAbout(&o, moved) {
			continue
		}
		name := "burn " + id.String()[:8]
		if o.Mint {
			name = "mint " + id.String()[:8]
		}
		if b.player(o.Session) == p {
			mine = append(mine, name)
		} else {
			others = append(others, name+", an order of somebody else,")
		}
	}
	for _, names := range [][]string{mine, others} {
		if len(names) > 0 {
			return slices.Min(names)
		}
	}
	return ""
}

// isAbout reports whether an order is about just what moved, in either direction.
func isAbout(o *Subject, moved tally.Assets) bool {
	if len(o.Sum) == 0 {
		return false
	}
	net := tally.Assets{}
	for id, n := range o.Sum {
		if net[id] = n; o.Fee != nil {
			net[id] = new(big.Rat).Sub(n, new(big.Rat).Mul(n, o.Fee))
		}
	}
	none := tally.Assets{}
	for _, amounts := range []tally.Assets{o.Sum, net} {
		if moved.Covers(amounts) || moved.Covers(none.Minus(amounts)) {
			return true
		}
	}
	return false
}

// Outside calls f, which may move anything: it belongs to no order.
func (b *Auditor) Outside(ctx context.Context, f func()) {
	before := b.Sweep(ctx)
	b.setOutside(+1, before)
	defer func() {
		b.setOutside(-1, "")
		b.setOutside(0, b.Sweep(ctx))
	}()
	f()
}

// setOutside notes that a function begins, or has ended, that may move anything, and what could not be read
// then: what moves until the next reading would be taken for the function's.
func (b *Auditor) setOutside(more int, unseen string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blind = cmp.Or(b.blind, unseen)
	if b.outside += more; more == 0 {
		return
	}
	for _, p := range b.players {
		p.income = true // until the next reading
	}
}

// Sweep reads what each player owns whom the game has named. It returns what it could not read, and why, or
// "", and keeps it for [Auditor.Unseen].
func (b *Auditor) Sweep(ctx context.Context) (unseen string) {
	b.mu.Lock()
	all := b.named()
	b.mu.Unlock()
	for _, s := range all {
		if _, _, err := b.config.Ask(ctx, s, uuid.Nil); err != nil && unseen == "" {
			unseen = fmt.Sprintf("what session %q owns: %s", s.ID,
				redact.New(s.Token.Reveal()).Text(err.Error()))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unseen = unseen
	return unseen
}

// Unseen says what the last [Auditor.Sweep] could not read, and why, or "", and the same of the first that
// failed around [Auditor.Outside].
func (b *Auditor) Unseen() (last, outside string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unseen, b.blind
}

// named returns the newest session of each player whom the game has named. The caller must hold the lock.
func (b *Auditor) named() (all []ramp.Session) {
	if b.config.Off {
		return nil
	}
	for _, p := range b.players {
		if p.named && p.session.ID != "" {
			all = append(all, p.session)
		}
	}
	slices.SortFunc(all, func(x, y ramp.Session) int { return strings.Compare(x.ID, y.ID) })
	return all
}
