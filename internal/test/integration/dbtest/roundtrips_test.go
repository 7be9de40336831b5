package dbtest

import (
	"context"
	"database/sql"
	"net"
	"sync/atomic"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Round trips are the cost of an order if the database is on another machine.
func TestRoundTrips(t *testing.T) {
	for _, d := range databases {
		for _, m := range d.modes {
			if d.trips == nil || m.isolation != 0 || m.params != "" && m.name != "local times" {
				continue // SQLite has none, and the other modes only change settings
			}
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				p := newPlace(t, d, m)
				trips := p.counted(t)
				store := newStore(t, p, applyNothing)
				moving := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					_, err := tx.ExecContext(ctx,
						bind(p.dialect, "UPDATE holdings SET amount = amount WHERE session_id = ?"),
						step.Order.SessionID)
					return err
				})
				for _, warm := range []bool{true, false} { // a driver may cache prepared statements
					o := newOrder("alice", mint("gold", 5))
					for _, step := range []struct {
						name string
						next ramp.Transition
					}{{"accept", o.accept()}, {"repeat", o.accept()}, {"finish", o.finish(failure)}} {
						before := int(trips.Load())
						must.Get(store.Update(t.Context(), o.id, step.next))(t)
						n := int(trips.Load()) - before
						if warm {
							continue
						}
						t.Logf("%s: %d round trips", step.name, n)
						if n > d.trips[step.name] {
							t.Errorf("%s: %d round trips, not %d", step.name, n, d.trips[step.name])
						}
					}
					claiming := newClaimingStore(t, p, applyNothing, newClaims(t, p))
					o = newOrder("alice", mint("gold", 5))
					must.Get(claiming.Update(t.Context(), o.id, o.accept()))(t)
					before := int(trips.Load())
					must.Get(claiming.Update(t.Context(), o.id, o.finish(failure)))(t)
					// The step is begun, a claim is committed, and the step is begun again.
					if n, most := int(trips.Load())-before, d.trips["finish with claims"]; !warm {
						t.Logf("finish with claims: %d round trips", n)
						if n > most {
							t.Errorf("finish with claims: %d round trips, not %d", n, most)
						}
					}
					o = newOrder("alice", mint("gold", 5))
					before = int(trips.Load())
					must.Get(moving.Update(t.Context(), o.id, o.accept()))(t)
					if n := int(trips.Load()) - before - d.trips["accept"]; !warm {
						t.Logf("a statement of Apply with an argument: %d round trips", n)
						want := 1
						if d.prepares && m.params == "" { // without interpolateParams
							want = 2
						}
						equal(t, "round trips of a statement of Apply with an argument", n, want)
					}
				}
			})
		}
	}
}

// line is a connection to a database that counts how often the direction changes.
type line struct {
	net.Conn
	trips  *atomic.Int64
	asking atomic.Bool // whether the client sent last
}

func (l *line) Write(b []byte) (int, error) {
	if !l.asking.Swap(true) {
		l.trips.Add(1)
	}
	return l.Conn.Write(b)
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.asking.Store(false)
	return n, err
}

// counted lets the place use one connection, which counts its round trips.
func (p *place) counted(t *testing.T) (trips *atomic.Int64) {
	t.Helper()
	trips = &atomic.Int64{}
	p.db = p.dialed(t, p.dsn, func(conn net.Conn) net.Conn { return &line{Conn: conn, trips: trips} })
	p.db.SetMaxOpenConns(1)
	t.Cleanup(func() { check(t, p.db.Close()) })
	return trips
}
