package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Each of these lost a result: it was rolled back, or answered with 400, at each delivery of the
// service's schedule. The reports are of people who receive webhooks.

const deliveries = 1 + 20 // of a result (interface 8)

// studioOf is a game server on a place, whose sender can go while Apply runs.
type studioOf struct {
	*world
	gone      atomic.Pointer[http.Request] // the call whose sender goes while Apply runs
	conflicts atomic.Int64
	fails     atomic.Pointer[error] // of Apply at a result
	begun     chan struct{}         // gets a value when Apply waits for the sender to go
}

func newStudioOf(t *testing.T, p *place) *studioOf {
	t.Helper()
	s := &studioOf{begun: make(chan struct{}, 1)}
	game := studio{db: p.db, dialect: p.dialect}
	store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if step.Order.State != ramp.OrderAccepted {
			if err := s.fails.Load(); err != nil {
				return *err
			}
			if call := s.gone.Load(); call != nil {
				s.begun <- struct{}{}
				<-call.Context().Done()
			}
		}
		return game.Apply(ctx, tx, step)
	})
	s.world = newWorld(t, p, store)
	s.handler = s.handlerWith(store)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Goes") != "" {
			s.gone.Store(r)
			defer s.gone.Store(nil)
		}
		s.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.address = func() string { return server.URL }
	return s
}

// handlerWith returns a handler that hands conflicts over.
func (s *studioOf) handlerWith(store ramp.Store) *ramp.Handler {
	return must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Store: store, Key: s.key,
		Players: studio{db: s.db, dialect: s.dialect}, Signer: must.Get(ramp.NewKeySigner(validatorKey))(s.t),
		Logger: ramptest.Logger(s.t),
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error {
			s.conflicts.Add(1)
			return nil
		}}))(s.t)
}

// failedMint returns an order that gives 60 gold back.
func (s *studioOf) failedMint(session string) order {
	s.t.Helper()
	s.give(session, "gold", 100)
	o := newOrder(session, mint("gold", 60))
	s.expect(s.validate(o), "200")
	return o
}

// ends fails the test unless the order has ended and moved what it must.
func (s *studioOf) ends(o order) {
	s.t.Helper()
	equal(s.t, "state", must.Get(s.store.Order(s.t.Context(), o.id))(s.t).State, ramp.OrderFailed)
	s.assertMoves(map[uuid.UUID][]string{o.id: {
		fmt.Sprintf("take %s -60 gold", o.session), fmt.Sprintf("give back %s +60 gold", o.session)}})
}

// The sender waits for a shorter time than Apply needs.
func TestASenderWithoutPatienceLosesNoResult(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		s := newStudioOf(t, p)
		o := s.failedMint("alice")
		body := must.Get(json.Marshal(o.report(failure)))(t)
		var answered int
		for range deliveries {
			ctx, giveUp := context.WithCancel(t.Context())
			go func() {
				select {
				case <-s.begun:
				case <-ctx.Done():
				}
				giveUp()
			}()
			request := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, s.address()+ramp.PathResult,
				bytes.NewReader(body)))(t)
			request.Header.Set(ramp.HeaderHMAC, s.key.Sign(body))
			request.Header.Set("X-Goes", "1")
			if response, err := s.client.Do(request); err == nil {
				response.Body.Close()
				equal(t, "status", response.StatusCode, http.StatusOK)
				answered++
			}
			giveUp()
		}
		equal(t, "deliveries after the first, which has ended the order", answered, deliveries-1)
		s.ends(o)
	})
}

// The sender closes its writing side when the request is written, and still reads the answer.
func TestASenderThatClosesItsWritingSideLosesNoResult(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		s := newStudioOf(t, p)
		o := s.failedMint("alice")
		body := must.Get(json.Marshal(o.report(failure)))(t)
		for range deliveries {
			conn := must.Get(net.Dial("tcp", strings.TrimPrefix(s.address(), "http://")))(t)
			must.Get(fmt.Fprintf(conn,
				"POST %s HTTP/1.1\r\nHost: game\r\nX-Goes: 1\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
				ramp.PathResult, ramp.HeaderHMAC, s.key.Sign(body), len(body), body))(t)
			check(t, conn.(*net.TCPConn).CloseWrite())
			answer := string(must.Get(io.ReadAll(conn))(t))
			_ = conn.Close()
			select {
			case <-s.begun:
			default:
			}
			if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
				t.Fatal(answer)
			}
		}
		s.ends(o)
	})
}

// The connection of one server has another character set, in which our own row may read differently.
func TestAnotherCharacterSetLosesNoResult(t *testing.T) {
	for _, c := range []struct {
		d       rampsql.Dialect
		params  string
		session string
		ended   bool // by the server with that connection
	}{
		{rampsql.MySQL, "&charset=latin1", "alice\U0001f642", true},
		{rampsql.MySQL, "&charset=latin1", "玩家一号", true},
		{rampsql.MySQL, "&charset=utf8", "alice\U0001f642", true},
		{rampsql.MySQL, "&charset=latin1", "Álice", true},
		{rampsql.PostgreSQL, "&client_encoding=LATIN1", "alice\U0001f642", false},
		{rampsql.PostgreSQL, "&client_encoding=LATIN1", "Álice", false},
		{rampsql.SQLite, "", "alice\U0001f642", true}, // it has no character set of a connection
	} {
		t.Run(fmt.Sprint(c.d, c.params, " ", c.session), func(t *testing.T) {
			d := databaseOf(t, c.d)
			p := newPlace(t, d, mode{}, d.anySession)
			s := newStudioOf(t, p)
			o := s.failedMint(c.session)
			right := s.handler
			if c.params != "" {
				wrong := *p
				address, query, _ := strings.Cut(p.dsn, "?")
				wrong.db = must.Get(sql.Open(p.driver, address+"?"+query+c.params))(t)
				t.Cleanup(func() { _ = wrong.db.Close() })
				// What the game's own statements read there is not the subject: they use the right connection.
				s.handler = s.handlerWith(newStore(t, &wrong,
					func(ctx context.Context, _ *sql.Tx, step ramp.Step) error {
						tx := must.Get(p.db.BeginTx(ctx, nil))(t)
						defer func() { _ = tx.Rollback() }()
						if err := (studio{db: p.db, dialect: p.dialect}).Apply(ctx, tx, step); err != nil {
							return err
						}
						return tx.Commit()
					}))
			}
			for range deliveries - 1 {
				answer := s.result(o, failure)
				if c.ended {
					s.expect(answer, "200")
				} else {
					equal(t, "status", answer.status, http.StatusInternalServerError)
				}
			}
			if c.ended {
				equal(t, "conflicts", s.conflicts.Load(), 0)
			}
			s.handler = right
			s.expect(s.result(o, failure), "200")
			s.ends(o)
		})
	}
}

// Apply meets a conflict of another order, in another store or in this one, and says so.
func TestAConflictOfAnotherOrderLosesNoResult(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		s := newStudioOf(t, p)
		o, other := s.failedMint("alice"), newOrder("bob", burn("gold", 5))
		s.expect(s.validate(other), "200")
		for _, id := range []uuid.UUID{other.id, o.id} {
			conflict := &ramp.ConflictError{Order: must.Get(s.store.Order(t.Context(), id))(t), Field: "receipt.status"}
			wrapped := fmt.Errorf("the guild's order: %w", conflict)
			s.fails.Store(&wrapped)
			for range (deliveries - 1) / 2 {
				s.expect(s.result(o, failure), "500 INTERNAL_ERROR")
			}
		}
		equal(t, "conflicts", s.conflicts.Load(), 0)
		s.fails.Store(nil)
		s.expect(s.result(o, failure), "200")
		s.ends(o)
	})
}
