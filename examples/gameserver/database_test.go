package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// frozen returns an address that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// The first host of the database neither answers nor refuses: the second one is asked in time.
func TestAFrozenHostOfTheDatabaseIsLeft(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres:") {
			t.Skip("its driver knows one host only")
		}
		u := must(url.Parse(address))(t)
		u.Host = frozen(t) + "," + u.Host
		db, _, err := openDatabase(u.String(), 2)
		check(t, err)
		defer db.Close()
		soon, cancel := context.WithTimeout(t.Context(), callDeadline)
		defer cancel()
		for err = db.PingContext(soon); err != nil && soon.Err() == nil; err = db.PingContext(soon) {
			t.Log(err) // a machine may be so busy that the second host is late, too
		}
		check(t, err)
	})
}

// What the game and its commands write is written, also if the server of the database or the address
// has turned autocommit off.
func TestWhatIsWrittenIsCommitted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		_, dsn, isMySQL := strings.Cut(address, "mysql:")
		if !isMySQL {
			t.Skip("it has no such setting")
		}
		migrated(t, address)
		config := must(mysql.ParseDSN(dsn))(t)
		config.Params = map[string]string{"autocommit": "0"}
		off := "mysql:" + config.FormatDSN()
		said(t, "close", "-db", off, "-who", "alice", "-reason", "case 17")
		var closed string
		check(t, handle(t, address).QueryRow("SELECT closed FROM shop WHERE id = 1").Scan(&closed))
		says(t, closed, "alice")
		p := deploy(t, off, "-any-rate")
		session := login(t, p.url, "alice")
		service, client := serviceOf(t, p.url)
		turn(t, "open", off)
		must(service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "100")), session,
			ramp.NewAmount(1)))(t)
		var orders int
		check(t, handle(t, address).QueryRow("SELECT COUNT(*) FROM ramp_orders").Scan(&orders))
		equal(t, "orders", orders, 1)
		service.Advance(time.Minute)
	})
}

// More validate calls overlap than the pool has connections. They wait for one, and each is answered.
func TestOverlappingCallsWaitForAConnection(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite:") {
			t.Skip("it has one writer at a time")
		}
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url, ramptest.AuditOff) // which would ask for assets meanwhile
		gold := item(t, "item_gold", "100")
		var players []ramp.Session
		for n := range 10 {
			players = append(players, login(t, p.url, fmt.Sprint("player ", n)))
		}
		var orders []uuid.UUID
		for range 150 {
			orders = append(orders, initialize(t, client, gold))
		}
		var all sync.WaitGroup
		for n, id := range orders {
			all.Go(func() {
				if _, err := service.Mint(t.Context(), id, players[n%len(players)], ramp.NewAmount(1)); err != nil {
					t.Errorf("call %d: %v", n, err)
				}
			})
		}
		all.Wait()
	})
}
