package audit

import (
	"cmp"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Reading begins a reading of what the player of a session owns. The caller passes what the
// game said to the function that it returns, which enters it if nothing has moved meanwhile.
func (b *Auditor) Reading(s ramp.Session) (enter func(*ramp.Player)) {
	at, _ := b.turn(s)
	return func(read *ramp.Player) { b.look(s, read, at) }
}

// look enters what the game said that the player of a session owns, whoever asked, if
// nothing has changed since the turn at.
func (b *Auditor) look(s ramp.Session, read *ramp.Player, at int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := strangerOf(s.ID)
	if read.PlayerID != "" {
		key = keyOf(read)
	}
	old, p := b.player(s), b.keep(key)
	b.keys[s.ID], p.session, p.name = key, s, cmp.Or(read.Name, read.PlayerID)
	p.books.Adopt(&old.books)
	if p.window == nil { // the player may get another name during a call
		p.window = old.window
	}
	p.named = read.PlayerID != ""
	p.books.Closed = b.config.Closed && p.named // who has no name may share assets with others
	if !b.config.Off && p.window == nil && at == b.changes {
		b.looked(p, b.balances(read))
	}
}

// looked enters a reading while no call is in progress. The caller must hold the lock.
func (b *Auditor) looked(p *player, owns tally.Assets) {
	if p.income && owns != nil {
		p.books.Income(owns)
		p.income = b.outside > 0
		return
	}
	before := p.books.Last
	changed, strange := p.books.Look(owns)
	b.changed(changed)
	if len(strange) > 0 && p.named {
		b.stray(p, before, strange)
	}
}

func (b *Auditor) balances(read *ramp.Player) tally.Assets {
	owns := tally.Assets{}
	for _, asset := range read.Assets {
		if !b.regenerates(asset.ID) {
			owns.Add(asset.ID, asset.Balance.Rat())
		}
	}
	return owns
}
