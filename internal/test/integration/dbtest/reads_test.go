package dbtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// No statement of a store reads the whole table, however little the database knows about it: after a
// restore it has no statistics, and a prepared statement may keep a plan that fits any argument. What a
// statement reads grows with what it returns, and with nothing else.
func TestNoStatementReadsTheWholeTable(t *testing.T) {
	rows := 200_000
	if testing.Short() {
		rows = 5000
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		if p.tidb {
			t.Skip("TiDB does not say what a connection has read")
		}
		if _, err := p.reads(p); errors.Is(err, fs.ErrNotExist) {
			t.Skipf("only Linux says what a process has read: %v", err)
		}
		if p.still != "" {
			run(t, p.admin, fmt.Sprintf(p.still, p.schema))
		}
		fill(t, p, rows)
		run(t, p.administrator(), fmt.Sprintf("INSERT INTO %[1]s.ramp_refusals"+
			" (uuid, first_at, last_at, refusals, reason) SELECT uuid, accepted_at, accepted_at, 1, 'full'"+
			" FROM %[1]s.ramp_orders", p.schema))
		p.may(t, "DELETE")
		p.db = open(t, p.driver, p.dsn+p.counting)
		p.db.SetMaxOpenConns(1) // whose reads are counted
		t.Run("without statistics", func(t *testing.T) { readsLittle(t, p, 0) })
		p.updateStatistics(t)
		t.Run("with statistics", func(t *testing.T) { readsLittle(t, p, 1) })
	})
}

// readsLittle calls each method of a store. round is different for each call.
func readsLittle(t *testing.T, p *place, round int) {
	ctx, store := t.Context(), newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
	before := day0.AddDate(1, 0, 0)
	var some, erased ramp.Order
	listed := func(orders []ramp.Order, err error) (int, error) { return len(orders), err }
	one := func(_ ramp.Order, err error) (int, error) { return 1, err }
	counted := func(n int, _ time.Time, err error) (int, error) { return n, err }
	o := newOrder("alice", burn("gold", 5))
	hash := func(i int) common.Hash { return common.HexToHash(fmt.Sprintf("0x%x", i)) }
	for _, c := range []struct {
		name string
		do   func() (n int, err error) // n is what it returns, or changes
	}{
		{"OrderByTransaction", func() (_ int, err error) {
			some, err = store.OrderByTransaction(ctx, hash(1002))
			return 1, err
		}},
		{"Order", func() (int, error) { return one(store.Order(ctx, some.UUID)) }},
		{"NewestSuccess", func() (int, error) { return one(store.NewestSuccess(ctx, ramp.Testnet)) }},
		{"NewestSuccess of a network without orders", func() (int, error) {
			if _, err := store.NewestSuccess(ctx, ramp.Mainnet); err == nil {
				return 0, fmt.Errorf("it has orders")
			}
			return 1, nil
		}},
		{"Waiting", func() (int, error) {
			return listed(store.Waiting(ctx, ramp.Mint, before, ramp.OrderPage{After: some, Limit: 10}))
		}},
		{"CountWaiting", func() (int, error) { return counted(store.CountWaiting(ctx, ramp.Mint, before)) }},
		{"CountRefused", func() (int, error) { return counted(store.CountRefused(ctx, ramp.Burn)) }},
		{"Refusals", func() (int, error) {
			found, err := store.Refusals(ctx, some.UUID)
			return len(found), err
		}},
		{"Refused", func() (int, error) { return 1, store.Refused(ctx, some.UUID, "full") }},
		{"SessionOrders", func() (int, error) {
			return listed(store.SessionOrders(ctx, "session7", ramp.OrderPage{Limit: 10}))
		}},
		{"UserOrders", func() (int, error) {
			return listed(store.UserOrders(ctx, "user7", ramp.OrderPage{Limit: 10}))
		}},
		{"Ended", func() (int, error) {
			return listed(store.Ended(ctx, day0, before, ramp.OrderPage{After: some, Limit: 10}))
		}},
		{"EraseSession", func() (_ int, err error) {
			erased, err = store.OrderByTransaction(ctx, hash(1502+round*50))
			if err != nil {
				return 0, err
			}
			return store.EraseSession(ctx, erased.SessionID, day0.AddDate(0, 1, 0))
		}},
		{"DeleteFinished", func() (int, error) {
			return store.DeleteFinished(ctx, ramp.Mint, day0.Add(time.Duration(2+round)*time.Minute))
		}},
		{"Update, which accepts", func() (int, error) {
			_, err := store.Update(ctx, o.id, onTestnet(o.accept()))
			return 1, err
		}},
		{"Update, which ends", func() (int, error) {
			_, err := store.Update(ctx, o.id, o.finish(success))
			return 1, err
		}},
		{"Update, which repeats", func() (int, error) {
			_, err := store.Update(ctx, o.id, o.finish(success))
			return 1, err
		}},
		{"Update by a transaction of another order", func() (int, error) {
			other := newOrder("bob", burn("gold", 5))
			_, err := store.Update(ctx, other.id, onTestnet(other.accept()))
			if err != nil {
				return 0, err
			}
			_, err = store.Update(ctx, other.id, ramp.Finish(other.reportBy(txHashOf(o.id), success), time.Now()))
			if err == nil {
				return 0, fmt.Errorf("it ends two orders")
			}
			return 1, nil
		}},
		{"Check", func() (int, error) { return 10, store.Check(ctx, ramp.Testnet) }},
	} {
		had := must.Get(p.reads(p))(t)
		own := must.Get(p.reads(p))(t) - had
		n, err := c.do()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		read := must.Get(p.reads(p))(t) - had - 2*own
		t.Logf("%s: %d for %d", c.name, read, n)
		each := 8 // with the way through two indexes
		if c.name == "EraseSession" {
			each = 30 // a row that is replaced is entered into every index
		}
		if most := int64(100 + each*n); n == 0 || read > most {
			t.Errorf("%s read %d for %d, more than %d", c.name, read, n, most)
		}
	}
}

// onTestnet accepts an order of testnet.
func onTestnet(accept ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := accept(stored)
		step.Order.Network = ramp.Testnet
		return step, err
	}
}

// rowsRead returns how many rows a connection to MySQL has read.
func rowsRead(p *place) (total int64, err error) {
	rows, err := p.db.Query("SHOW SESSION STATUS LIKE 'Handler_read%'")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return 0, err
		}
		total += n
	}
	return total, rows.Err()
}

// blocksRead returns how many blocks of the tables were read on PostgreSQL, from memory or not.
func blocksRead(p *place) (n int64, err error) {
	if _, err := p.db.Exec("SELECT pg_stat_force_next_flush()"); err != nil {
		return 0, err
	}
	return n, p.db.QueryRow("SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))" +
		" FROM pg_statio_user_tables WHERE relname LIKE 'ramp%' AND schemaname = current_schema()").Scan(&n)
}

// pagesRead returns how many pages of a file this process has read. The cache has room for one.
func pagesRead(*place) (int64, error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "rchar: ")
	bytes, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseInt(bytes, 10, 64)
	return n / 4096, err
}
