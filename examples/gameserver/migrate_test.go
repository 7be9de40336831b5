package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// migrates runs the command migrate, and returns what it says meanwhile.
func migrates(t *testing.T, address string) (said *logBuffer, ended chan error) {
	t.Helper()
	said, ended = new(logBuffer), make(chan error, 1)
	go func() { ended <- run(t.Context(), []string{"migrate", "-db", address}, os.Getenv, io.Discard, said) }()
	return said, ended
}

// Every server of a deployment migrates when it starts: one of them does, and the others wait.
func TestMigrationsTakeTurns(t *testing.T) {
	for round := range 4 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, address string) {
				if strings.HasPrefix(address, "sqlite:") {
					t.Skip("a server creates its own file")
				}
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						_, ended := migrates(t, address)
						if err := <-ended; err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				noInvalidIndex(t, address)
				deploy(t, address)
			})
		})
	}
}

func noInvalidIndex(t *testing.T, address string) {
	t.Helper()
	if strings.HasPrefix(address, "postgres:") {
		var invalid, indexes int
		check(t, handle(t, address).QueryRow("SELECT count(*) FILTER (WHERE NOT indisvalid), count(*) FROM pg_index"+
			" WHERE indrelid = 'ramp_orders'::regclass").Scan(&invalid, &indexes))
		equal(t, "invalid indexes", invalid, 0)
		equal(t, "indexes", indexes, 7)
	}
}

// A migration that was interrupted leaves an invalid index. The next one makes it anew, and says which
// transaction it waits for.
func TestAnInvalidIndexIsMadeAnew(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres:") {
			t.Skip("it has no invalid indexes")
		}
		migrated(t, address)
		db := handle(t, address)
		must(db.Exec("DROP INDEX ramp_orders_ended"))(t)
		open := must(db.Begin())(t)
		must(open.Exec("LOCK TABLE ramp_orders IN ROW EXCLUSIVE MODE"))(t)
		interrupted, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if run(interrupted, []string{"migrate", "-db", address}, os.Getenv, io.Discard, io.Discard) == nil {
			t.Fatal("the migration was not interrupted")
		}
		var valid bool
		check(t,
			db.QueryRow("SELECT indisvalid FROM pg_index WHERE indexrelid = 'ramp_orders_ended'::regclass").Scan(
				&valid))
		equal(t, "whether the index is valid", valid, false)

		var pid int
		check(t, open.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
		said, ended := migrates(t, address)
		said.find(t, fmt.Sprintf(`(waits for the transaction of process %d of user )`, pid))
		says(t, said.String(), "the index ramp_orders_ended is invalid")
		_, second := migrates(t, address)
		select {
		case err := <-second:
			t.Errorf("another migration ended before: %v", err)
		case err := <-ended:
			t.Errorf("the migration ended before the transaction: %v", err)
		case <-time.After(500 * time.Millisecond):
		}
		check(t, open.Commit())
		check(t, <-ended)
		check(t, <-second)
		noInvalidIndex(t, address)
	})
}

// A column is added although a transaction is open, and the calls meanwhile wait for a second at most.
func TestACallWaitsForASecondWhileAColumnIsAdded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		d, err := dialectOf(address)
		check(t, err)
		if d.file {
			t.Skip("one transaction writes at a time")
		}
		migrated(t, address)
		db := handle(t, address)
		open := must(db.Begin())(t) // as a long report does
		const read = "SELECT COUNT(*) FROM ramp_orders"
		var rows int
		check(t, open.QueryRow(read).Scan(&rows))
		said := make(chan string, 1)
		m := &migration{db, d, func(text string) { said <- text }}
		conn := must(db.Conn(t.Context()))(t)
		defer conn.Close()
		ended := make(chan error, 1)
		go func() { ended <- m.change(t.Context(), conn, "ALTER TABLE ramp_orders ADD COLUMN added TEXT NULL") }()
		for calls, longest := 0, time.Duration(0); ; calls++ {
			start := time.Now()
			check(t, db.QueryRow(read).Scan(&rows))
			longest = max(longest, time.Since(start))
			select {
			case err := <-ended:
				t.Fatalf("it did not wait: %v", err)
			case text := <-said:
				says(t, text, "a transaction holds the table of orders")
				t.Logf("of %d calls, the longest waited for %v", calls, longest)
				if longest > 3*time.Second {
					t.Errorf("a call waited for %v", longest)
				}
				check(t, open.Commit())
				check(t, <-ended)
				check(t, db.QueryRow("SELECT COUNT(added) FROM ramp_orders").Scan(&rows))
				return
			default:
			}
		}
	})
}
