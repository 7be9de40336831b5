package main

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	ramp "github.com/token-ramp/ramp-go"
)

// frozen returns an address that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	listener := ramp.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// The first host of the database neither answers nor refuses: the second one is asked in time.
func TestAFrozenHostOfTheDatabaseIsLeft(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres:") {
			t.Skip("its driver knows one host only")
		}
		u := ramp.Must(url.Parse(address))
		u.Host = frozen(t) + "," + u.Host
		db, _, err := openDatabase(u.String(), 2)
		check(t, err)
		defer db.Close()
		begun := time.Now()
		check(t, db.PingContext(t.Context()))
		if took := time.Since(begun); took > callDeadline {
			t.Errorf("it took %v", took)
		}
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
		config := ramp.Must(mysql.ParseDSN(dsn))
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
		ramp.Must(service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "100")), session, ramp.NewAmount(1)))
		var orders int
		check(t, handle(t, address).QueryRow("SELECT COUNT(*) FROM ramp_orders").Scan(&orders))
		equal(t, "orders", orders, 1)
	})
}
