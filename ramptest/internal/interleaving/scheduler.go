package interleaving

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Scheduler runs the calls of servers on one database, one statement at a time, in an order that is chosen.
type Scheduler struct {
	*shared
	connector driver.Connector
	servers   []*server

	// Sent are the statements of the last run, in the order in which they were sent.
	Sent []*Statement
}

// Call is a call of a server. It must return when ctx is canceled.
type Call func(ctx context.Context)

// New returns a scheduler with servers on the database of a connector. The administrator must see which
// connections wait, and may end them.
func New(dialect *Dialect, connector driver.Connector, admin *sql.DB, servers int) *Scheduler {
	s := &Scheduler{connector: connector,
		shared: &shared{database: &database{dialect, admin}, events: make(chan event)}}
	for n := range servers {
		one := &server{shared: s.shared, n: n, conns: map[interface{ sever() }]bool{}}
		one.db = sql.OpenDB(stopping{connector, one})
		s.servers = append(s.servers, one)
	}
	return s
}

// DB returns the database as a server sees it.
func (s *Scheduler) DB(server int) *sql.DB { return s.servers[server].db }

// Close closes the connections.
func (s *Scheduler) Close() (err error) {
	for _, one := range s.servers {
		err = errors.Join(err, one.db.Close())
	}
	return err
}

// Name sets the names of order and transaction IDs, which must be the same in every run.
func (s *Scheduler) Name(names map[string]string) { s.names = names }

// stopping is a connector whose connections stop before each statement of a server.
type stopping struct {
	driver.Connector
	server *server
}

func (c stopping) Connect(ctx context.Context) (driver.Conn, error) {
	if c.server.dead.Load() && c.server.playing.Load() {
		return nil, errKilled
	}
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own := &conn{Conn: inner, server: c.server, held: Rows{}}
	if err := own.introduce(ctx); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	c.server.remember(own)
	return own.wrap(), nil
}

// introduce finds out who the connection is, and lets the database not wait by itself.
func (c *conn) introduce(ctx context.Context) error {
	dialect := c.server.dialect
	if dialect.settings != "" {
		c.exec(dialect.settings)
	}
	if dialect.who == "" {
		return nil
	}
	var all rowsRead
	if err := all.read(c.query(ctx, dialect.who, nil)); err != nil {
		return err
	}
	text := func(v driver.Value) string {
		if raw, ok := v.([]byte); ok {
			return string(raw)
		}
		return fmt.Sprint(v)
	}
	if level := text(all.rows[0][1]); level != "" && level != "read committed" {
		c.snapshots = true
	}
	_, err := fmt.Sscan(text(all.rows[0][0]), &c.id)
	return err
}

var errStuck = errors.New("no call can go on: each waits for a lock that none will release")

// Run lets each server make a call. At each stop, choose chooses one of the options. After an error
// the servers are killed.
func (s *Scheduler) Run(calls []Call, choose func([]Option) int) error {
	s.Sent = nil
	s.Later()
	s.playing.Store(true)
	defer s.playing.Store(false)
	for n, one := range s.servers {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		one.cancel, one.at, one.sent, one.waits = cancel, nil, nil, false
		one.answered, one.heard = n >= len(calls), false
		one.dead.Store(false)
		if n < len(calls) {
			go func() {
				calls[n](ctx)
				s.events <- event{server: one, answered: true}
			}()
		}
	}
	for {
		if err := s.settle(); err != nil {
			s.kill()
			return errors.Join(err, s.await())
		}
		options := s.options()
		if len(options) == 0 {
			return nil
		}
		o := options[choose(options)]
		next := s.servers[o.Server]
		switch {
		case o.Fault == Killed:
			next.at[0].Fault = Killed
			s.Sent = append(s.Sent, next.at[0])
			s.kill()
		case next.waits:
			next.sent.Fault = Canceled
			s.giveUp(next)
		default:
			s.send(next, o.Fault)
		}
	}
}

// Heard reports whether the call of a server was answered in the last run, before anything killed
// the server.
func (s *Scheduler) Heard(server int) bool { return s.servers[server].heard }

// Dead reports whether a server was killed in the last run.
func (s *Scheduler) Dead(server int) bool { return s.servers[server].dead.Load() }

// options returns what can be next.
func (s *Scheduler) options() (options []Option) {
	for _, one := range s.servers {
		switch {
		case one.finished():
		case one.waits:
			options = append(options, Option{one.n, one.sent.Text, Canceled, one.sent.all})
		default:
			st := one.at[0]
			options = append(options, Option{one.n, st.Text, None, st.rows})
			for _, f := range st.faults(s.dialect) {
				options = append(options, Option{one.n, st.Text, f, st.all})
			}
		}
	}
	if !slices.ContainsFunc(options, func(o Option) bool { return o.Fault == None }) {
		return nil // all have finished: settle returns nothing else
	}
	for _, one := range s.servers {
		if len(one.at) > 0 {
			return append(options, Option{one.n, one.at[0].Text, Killed, nil})
		}
	}
	return options
}

// send lets the statement go at which a server stopped.
func (s *Scheduler) send(one *server, f Fault) {
	st := one.at[0]
	one.sent, one.at = st, one.at[1:]
	st.Fault = f
	s.Sent = append(s.Sent, st)
	st.fate <- f
	if !s.dialect.file || !st.ends() && st.InTx && f == None {
		return
	}
	_ = s.await() // until it is over, and may have released the lock of the file
	for _, other := range s.servers {
		if other.waits {
			other.waits = false
			other.sent.fate <- None
		}
	}
}

// giveUp cancels a statement that waits.
func (s *Scheduler) giveUp(one *server) {
	one.waits = false
	one.cancel()
	if s.dialect.file {
		one.sent.fate <- Canceled
	}
}

// kill kills all servers.
func (s *Scheduler) kill() {
	for _, one := range s.servers {
		one.dead.Store(true)
	}
	for _, one := range s.servers {
		one.sever()
		for _, st := range one.at {
			st.fate <- Killed
		}
		if one.waits && s.dialect.file {
			one.sent.fate <- Killed
		}
		one.at, one.waits = nil, false
	}
}

// settle returns when every server has stopped before a statement, waits for a lock or has
// answered, and not all of them wait.
func (s *Scheduler) settle() error {
	const deadlock = 3 * time.Second // after which every database has ended one
	for deadline := time.Now().Add(deadlock); ; time.Sleep(time.Millisecond / 2) {
		if err := s.await(); err != nil {
			return err
		}
		stopped, waiting := false, false
		for _, one := range s.servers {
			stopped, waiting = stopped || len(one.at) > 0, waiting || one.waits
		}
		if !waiting {
			return nil
		}
		if s.dialect.file {
			if !stopped {
				return errStuck
			}
			return nil
		}
		still, err := s.dialect.waits(s.admin)
		if err != nil {
			return err
		}
		for _, one := range s.servers {
			if one.waits && !still[one.sent.conn] {
				one.waits, waiting = false, false
			}
		}
		if waiting && stopped {
			return nil
		}
		if time.Now().After(deadline) {
			return errStuck
		}
	}
}

// await returns when no server runs.
func (s *Scheduler) await() error {
	for deadline := time.Now().Add(patience); slices.ContainsFunc(s.servers, (*server).runs); {
		select {
		case e := <-s.events:
			s.note(e)
		case <-time.After(time.Millisecond / 2):
			if time.Now().After(deadline) {
				return errors.New("a call neither goes on nor waits for the database")
			}
			if err := s.findWaiting(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scheduler) note(e event) {
	one := e.server
	switch {
	case e.stops != nil && one.dead.Load():
		e.stops.fate <- Killed
	case e.stops != nil:
		one.at, one.waits = append(one.at, e.stops), false
	case e.waits && one.dead.Load():
		one.sent.fate <- Killed
	case e.waits:
		one.waits, one.sent.Waited = true, true
	case e.killed:
		s.kill()
		one.sent.fate <- Killed
	default:
		one.answered, one.heard, one.waits = true, !one.dead.Load(), false
	}
}

// findWaiting asks the database whether all servers that run wait.
func (s *Scheduler) findWaiting() error {
	if s.dialect.file {
		return nil
	}
	waits, err := s.dialect.waits(s.admin)
	if err != nil {
		return err
	}
	for _, one := range s.servers {
		if one.runs() && (one.sent == nil || !waits[one.sent.conn]) {
			return nil
		}
	}
	for _, one := range s.servers {
		if one.runs() {
			one.waits, one.sent.Waited = true, true
		}
	}
	return nil
}
