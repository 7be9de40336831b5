package dbtest

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	ramp "github.com/token-ramp/ramp-go"
)

// Round trips are the cost of an order if the database is on another machine.
func TestRoundTrips(t *testing.T) {
	most := map[ramp.Dialect]map[string]int{
		ramp.PostgreSQL: {"accept": 3, "finish": 4, "repeat": 3}, // BEGIN, INSERT, COMMIT; BEGIN, SELECT, UPDATE, COMMIT
		ramp.MySQL:      {"accept": 6, "finish": 6, "repeat": 6},
	}
	for _, d := range databases {
		for _, m := range d.modes {
			if most[d.dialect] == nil || m.isolation != 0 || m.params != "" && m.name != "local times" {
				continue // SQLite has none, and the other modes only change settings
			}
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				p := newPlace(t, d, m)
				line := newLine(t, p)
				p.db = open(t, p.driver, line.dsn)
				p.db.SetMaxOpenConns(1)
				store := newStore(t, p, applyNothing)
				moving := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					_, err := tx.ExecContext(ctx, bind(p.dialect, "UPDATE holdings SET amount = amount WHERE session_id = ?"), step.Order.SessionID)
					return err
				})
				for _, warm := range []bool{true, false} { // a driver may cache prepared statements
					o := newOrder("alice", mint("gold", 5))
					for _, step := range []struct {
						name string
						next ramp.Transition
					}{{"accept", o.accept()}, {"repeat", o.accept()}, {"finish", o.finish(failure)}} {
						before := line.trips()
						ramp.Must(store.Update(t.Context(), o.id, step.next))
						n := line.trips() - before
						if warm {
							continue
						}
						t.Logf("%s: %d round trips", step.name, n)
						if n > most[d.dialect][step.name] {
							t.Errorf("%s: %d round trips, not %d", step.name, n, most[d.dialect][step.name])
						}
					}
					o = newOrder("alice", mint("gold", 5))
					before := line.trips()
					ramp.Must(moving.Update(t.Context(), o.id, o.accept()))
					if n := line.trips() - before - most[d.dialect]["accept"]; !warm {
						t.Logf("a statement of Apply with an argument: %d round trips", n)
						want := 1
						if d.dialect == ramp.MySQL && m.params == "" { // without interpolateParams
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
	dsn    string
	mu     sync.Mutex
	asking bool // whether the client sent last
	asked  int
}

func (l *line) trips() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *line) heard(client bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if client && !l.asking {
		l.asked++
	}
	l.asking = client
}

func newLine(t *testing.T, p *place) *line {
	t.Helper()
	listener := ramp.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = listener.Close() })
	l := &line{}
	var to string
	if p.dialect == ramp.PostgreSQL {
		u := ramp.Must(url.Parse(p.dsn))
		to, u.Host = u.Host, listener.Addr().String()
		l.dsn = u.String()
	} else {
		config := ramp.Must(mysql.ParseDSN(p.dsn))
		to, config.Net, config.Addr = config.Addr, "tcp", listener.Addr().String()
		l.dsn = config.FormatDSN()
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go l.carry(server, client, true)
			go l.carry(client, server, false)
		}
	}()
	return l
}

func (l *line) carry(to io.WriteCloser, from io.ReadCloser, client bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		l.heard(client)
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
