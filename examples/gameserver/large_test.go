package main

import (
	"database/sql"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// RAMP_TEST_ROWS=1000000 builds an index on a table of so many orders while four servers write,
// and measures the longest write. A quiet machine is needed: see docs/compatibility.md.
func TestAnIndexOnALargeTableDelaysNoWrite(t *testing.T) {
	rows, err := strconv.Atoi(needs(t, "RAMP_TEST_ROWS"))
	check(t, err)
	const columns = ` '%', 'succeeded', 'mint', 'testnet', 'project', CONCAT('session-', n), '0x00000000000000000000000000000000000000bb', '%', '{}', NULL, '', n, n `
	padded := strings.NewReplacer("'%'", "'"+strings.Repeat("c", 40)+"'")
	eachDatabase(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite") {
			t.Skip("it has one writer at a time")
		}
		migrated(t, address)
		db, _, err := openDatabase(address, 10)
		check(t, err)
		defer db.Close()
		drop, fill, insert := "DROP INDEX ramp_orders_ended", "SELECT gen_random_uuid(),"+columns+"FROM generate_series(1, $1) n", "SELECT $1::uuid,"+columns+"FROM generate_series(1, 1) n"
		build := func() error {
			return run(t.Context(), []string{"migrate", "-db", address}, os.Getenv, io.Discard, io.Discard)
		}
		if strings.HasPrefix(address, "mysql") {
			drop = "ALTER TABLE ramp_orders DROP INDEX ramp_orders_ended"
			fill, insert = "SELECT UUID(),"+columns+"FROM (SELECT seq n FROM seq_1_to_100000000 LIMIT ?) s", "SELECT ?,"+columns+"FROM (SELECT 1 n) s"
			build = func() error {
				_, err := db.Exec("ALTER TABLE ramp_orders ADD INDEX ramp_orders_ended (finished_at, uuid), ALGORITHM=INPLACE, LOCK=NONE")
				return err
			}
		}
		_, err = db.Exec(drop)
		check(t, err)
		fill, insert = padded.Replace(fill), padded.Replace(insert)
		_, err = db.Exec("INSERT INTO ramp_orders "+fill, rows)
		check(t, err)
		quiet, _ := longestWrite(t, db, insert, func() error { time.Sleep(5 * time.Second); return nil })
		longest, took := longestWrite(t, db, insert, build)
		t.Logf("the longest write takes %v, and %v while the index is built, in %v", quiet, longest, took)
		if longest > 100*time.Millisecond && longest > 2*quiet {
			t.Error("the index blocks writes")
		}
	})
}

// longestWrite inserts rows, one after the other on four connections, while do runs.
func longestWrite(t *testing.T, db *sql.DB, insert string, do func() error) (longest, took time.Duration) {
	t.Helper()
	done := make(chan struct{})
	var mu sync.Mutex
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				begun := time.Now()
				_, err := db.Exec("INSERT INTO ramp_orders "+insert, uuid.NewString())
				mu.Lock()
				longest = max(longest, time.Since(begun))
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(5 * time.Millisecond) // some hundred orders a second
			}
		})
	}
	begun := time.Now()
	err := do()
	took = time.Since(begun)
	close(done)
	writers.Wait()
	check(t, err)
	return longest, took
}
