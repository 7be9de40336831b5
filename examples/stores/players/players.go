// Package players keeps players in memory, writes them back later, and lets the steps of
// orders move their rows all the same. Copy it for a game of actors, or of a mutex for each
// player. It is written for PostgreSQL, and a session is a player here.
//
// Each write raises the version of the row, and a write-back expects the version that it
// knows. So one that comes late, or from a process that no longer owns the player, changes
// nothing: the player's unsaved play is lost then, but never what an order moved.
//
// What players exchange is saved for all of them in one transaction, with [Memory.Trade].
// If only one of them were saved, a crash would double what was exchanged.
package players

import (
	"context"
	"database/sql"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Schema creates the table of the players.
const Schema = `CREATE TABLE IF NOT EXISTS players (
	id      text   PRIMARY KEY,
	version bigint NOT NULL DEFAULT 0,
	gold    bigint NOT NULL, -- negative for a debt, such as after a chargeback
	plays   bigint NOT NULL DEFAULT 0
);`

// Player is what the game changes in memory.
type Player struct {
	Gold, Plays int64

	version int64
	unsaved bool
}

// Memory has the players that are loaded.
type Memory struct {
	db     *sql.DB
	seed   maphash.Seed
	locks  [256]sync.Mutex // of all players, loaded or not, each with some others
	loaded sync.Map        // *Player by ID, under the lock of the player
}

// New returns a memory without players.
func New(db *sql.DB) *Memory { return &Memory{db: db, seed: maphash.MakeSeed()} }

// lock locks players in a fixed order, so that two trades cannot deadlock. Two players may
// share a lock.
func (m *Memory) lock(ids ...string) (unlock func()) {
	var shared []int
	for _, id := range ids {
		shared = append(shared, int(maphash.String(m.seed, id)%uint64(len(m.locks))))
	}
	slices.Sort(shared)
	shared = slices.Compact(shared)
	for _, i := range shared {
		m.locks[i].Lock()
	}
	return func() {
		for _, i := range shared {
			m.locks[i].Unlock()
		}
	}
}

// Play changes a player in memory, and loads the player first if need be. play must not
// call m or the store. For what two players exchange, use [Memory.Trade].
func (m *Memory) Play(ctx context.Context, id string, play func(*Player) error) error {
	defer m.lock(id)()
	p, err := m.load(ctx, id)
	if err != nil {
		return err
	}
	p.unsaved = true
	return play(p)
}

// Trade changes two players, and saves both in one transaction before it returns. After an
// error neither has changed. trade must not call m or the store.
func (m *Memory) Trade(ctx context.Context, a, b string, trade func(a, b *Player) error) error {
	if a == b {
		return errors.New("players: a player cannot trade with itself")
	}
	defer m.lock(a, b)()
	first, err := m.load(ctx, a)
	if err != nil {
		return err
	}
	second, err := m.load(ctx, b)
	if err != nil {
		return err
	}
	changed, alsoChanged := *first, *second // so that an error leaves the players as they are
	if err := trade(&changed, &alsoChanged); err != nil {
		return err
	}
	if err := m.write(ctx, map[string]*Player{a: &changed, b: &alsoChanged}); err != nil {
		return err
	}
	*first, *second = changed, alsoChanged
	return nil
}

// Gold returns what a player owns, without loading the player.
func (m *Memory) Gold(ctx context.Context, id string) (gold int64, err error) {
	defer m.lock(id)()
	if p, ok := m.loaded.Load(id); ok {
		return p.(*Player).Gold, nil
	}
	err = m.db.QueryRowContext(ctx, "SELECT gold FROM players WHERE id = $1", id).Scan(&gold)
	return gold, err
}

// Save writes a player back. Call it often, and before the player leaves this process.
func (m *Memory) Save(ctx context.Context, id string) error {
	defer m.lock(id)()
	return m.save(ctx, id)
}

// errMoved means that another process has written the row. It has the player now.
var errMoved = errors.New("players: the row has changed; what was not saved is lost")

func (m *Memory) save(ctx context.Context, id string) error {
	found, ok := m.loaded.Load(id)
	if !ok || !found.(*Player).unsaved {
		return nil
	}
	return m.write(ctx, map[string]*Player{id: found.(*Player)})
}

// write writes players in one transaction. If another process has written one of them, it
// writes nothing, and forgets them all.
func (m *Memory) write(ctx context.Context, players map[string]*Player) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()                                    // does nothing after the commit
	for _, id := range slices.Sorted(maps.Keys(players)) { // in a fixed order, so that two cannot deadlock
		p := players[id]
		done, err := tx.ExecContext(ctx,
			"UPDATE players SET gold = $1, plays = $2, version = version + 1 WHERE id = $3 AND version = $4",
			p.Gold, p.Plays, id, p.version)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			for id := range players {
				m.loaded.Delete(id)
			}
			return errors.Join(errMoved, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return err // if it was committed all the same, the next write finds another version
	}
	for _, p := range players {
		p.version++
		p.unsaved = false
	}
	return nil
}

// load waits for a step whose commit is still under way, because it locks the row.
func (m *Memory) load(ctx context.Context, id string) (*Player, error) {
	if p, ok := m.loaded.Load(id); ok {
		return p.(*Player), nil
	}
	p := &Player{}
	err := m.db.QueryRowContext(ctx, "SELECT gold, plays, version FROM players WHERE id = $1 FOR UPDATE",
		id).Scan(&p.Gold, &p.Plays, &p.version)
	if err != nil {
		return nil, err
	}
	m.loaded.Store(id, p)
	return p, nil
}

// Store is a [rampsql.Store] whose steps meet no play: the player is locked and saved, the
// step moves the row, and the player is loaded again when the game next needs it. A player
// who is not loaded costs nothing. A result reads its order first, for the session.
type Store struct {
	*rampsql.Store
	Memory *Memory
}

// Update implements [ramp.Store].
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	opened, err := next(nil)
	player := opened.Order.SessionID
	if errors.Is(err, ramp.ErrOrderUnknown) { // it needs the stored order
		stored, unread := s.Order(ctx, id)
		switch {
		case errors.Is(unread, ramp.ErrOrderUnknown):
			return ramp.Step{}, err
		case unread != nil:
			return ramp.Step{}, unread
		}
		player, err = stored.SessionID, nil
	}
	if err != nil {
		return ramp.Step{}, err
	}
	defer s.Memory.lock(player)()
	if err := s.Memory.save(ctx, player); err != nil && !errors.Is(err, errMoved) {
		return ramp.Step{}, err
	}
	defer s.Memory.loaded.Delete(player) // also after an error: the commit may have succeeded
	return s.Store.Update(ctx, id, next)
}

// Apply moves the gold of a step, in the transaction of the order. A mint may be rejected.
// A grant or a give-back never fails: it reduces a debt, and creates a player who is gone.
func Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one, because the terms have one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // gold cannot be divided
		}
		statement := `INSERT INTO players (id, gold) VALUES ($2, $1)
			ON CONFLICT (id) DO UPDATE SET gold = players.gold + excluded.gold, version = players.version + 1`
		if step.Effect.Kind == ramp.Take {
			statement = "UPDATE players SET gold = gold + $1, version = version + 1 WHERE id = $2 AND " +
				"gold + $1 >= 0"
		}
		done, err := tx.ExecContext(ctx, statement, delta, step.Order.SessionID)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 { // only a mint: too little gold, or no such player
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	return nil
}
