package rampbooks_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// cells returns what the column of a CSV file has in the rows of a figure.
func cells(t *testing.T, printed, figure, column string) (values []string) {
	t.Helper()
	rows := must.Get(csv.NewReader(strings.NewReader(printed)).ReadAll())(t)
	at, of := slices.Index(rows[0], column), slices.Index(rows[0], "figure")
	for _, row := range rows[1:] {
		if row[of] == figure {
			values = append(values, row[at])
		}
	}
	return values
}

// Three runs with a position, added up.
func TestTotalsOfRunsThatFollowEachOtherAddUp(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, &rampproof.Config{AnyFailure: true})
	position := filepath.Join(t.TempDir(), "position")
	store.MintOn(t, n, rig.Token, rig.HoursAgo(5), 490)
	var ordered, onChain []string
	for hours := 5; hours > 2; hours-- { // the mint is in the overlap of each
		end := rig.HoursAgo(hours - 1).Add(-30 * time.Minute).Format(time.RFC3339)
		printed, err := rig.RunCommand(t, orders, "reconcile", "-position", position, "-to", end, "-format", "totals")
		require.NoError(t, err)
		ordered = append(ordered, cells(t, printed, "tokens_ordered", "tokens")...)
		onChain = append(onChain, cells(t, printed, "tokens_on_chain", "tokens")...)
	}
	assert.Equal(t, []string{"5"}, ordered)
	assert.Equal(t, []string{"4.9"}, onChain)
}

// The end of an order is when its result came, and its commit may follow seconds later, or minutes by a clock
// that is behind. What the books of that time did not see is in the next totals, once, and marked.
func TestWhatIsStoredLateIsInTheNextTotals(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, &rampproof.Config{AnyFailure: true})
	position := filepath.Join(t.TempDir(), "position")
	for _, ago := range []time.Duration{4*time.Hour + 10*time.Minute, 3*time.Hour + 10*time.Minute} { // in time
		store.MintOn(t, n, rig.Token, rig.Now.Add(-ago), 490)
	}
	late := map[int][]ramp.Order{} // by the books after which they are stored
	for after, agos := range map[int][]time.Duration{
		4: {4*time.Hour + 2*time.Second, 4*time.Hour + 15*time.Minute}, 3: {3*time.Hour + 59*time.Minute},
	} {
		for _, ago := range agos {
			order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-ago-2*time.Minute))
			hash := n.Send(rig.Now.Add(-ago-time.Minute), rig.Tx{Transfers: []ramp.Transfer{
				rig.Moved(common.Address{}, rig.Player, 490)}})
			late[after] = append(late[after], rig.Ended(order, ramp.OrderSucceeded, hash, rig.Now.Add(-ago)))
		}
	}
	totals := map[string][]string{}
	reconcile := func(end, position, format string) (printed string, err error) {
		return rig.RunCommand(t, orders, "reconcile", "-position", position, "-to", end, "-format", format)
	}
	for hours := 4; hours > 0; hours-- {
		end := rig.HoursAgo(hours).Format(time.RFC3339)
		for range 2 { // the same end again counts nothing twice
			printed, err := reconcile(end, position, "totals")
			if hours < 3 { // before, an event is a finding, because its order is not stored yet
				require.NoError(t, err)
			}
			for _, figure := range []string{"tokens_ordered", "tokens_moved", "tokens_on_chain"} {
				totals[figure] = append(totals[figure], cells(t, printed, figure, "tokens")...)
			}
			for _, figure := range []string{"orders_succeeded", "orders_late"} {
				totals[figure] = append(totals[figure], cells(t, printed, figure, "count")...)
			}
		}
		store.Keep(t, late[hours]...)
		other := filepath.Join(t.TempDir(), "position")
		require.NoError(t, os.WriteFile(other, must.Get(os.ReadFile(position))(t), 0o600))
		lines := must.Get(reconcile(end, other, "lines"))(t)
		assert.Equal(t, len(late[hours]), strings.Count(lines, `,"late"`), "late lines after %s", end)
	}
	assert.Equal(t, map[string][]string{
		"tokens_on_chain":  {"14.7", "9.8"},
		"tokens_ordered":   {"5", "15", "5"},
		"tokens_moved":     {"4.9", "14.7", "4.9"},
		"orders_succeeded": {"1", "3", "1"},
		"orders_late":      {"0", "2", "1"},
	}, totals)
}

// No books end less than two minutes ago, because a call that ends an order may not have committed yet.
func TestBooksEndTwoMinutesAgo(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	clock := rig.Now.Add(30 * time.Second)
	orders, _ := rig.WithJournal(t, store, n, &clock)
	books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(5), time.Time{}))(t)
	assert.Equal(t, rig.Now.Add(-90*time.Second), books.To)
	_, err := orders.Reconcile(t.Context(), rig.HoursAgo(5), rig.Now)
	assert.ErrorIs(t, err, rampbooks.ErrNotFinal)
	assert.EqualError(t, err, "ramp: reconcile: the period is not final: it ends at 2026-11-20T12:00:00Z, and an "+
		"order that ended less than two minutes ago may not be stored yet: wait until 2026-11-20T12:02:00Z, or end "+
		"at 2026-11-20T11:58:30Z")
	clock = rig.Later()
	must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(5), rig.Now))(t)
}

// A mint on a token that was added was stolen ten hours ago. The position says that it was never compared.
func TestAPositionIsAboutOneGame(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	position := filepath.Join(t.TempDir(), "position")
	added := rig.Product
	added.Token = newToken.Hex()
	stolen := rig.Moved(common.Address{}, rig.Friend, 500)
	stolen.Token = newToken
	n.Send(rig.HoursAgo(10), rig.Tx{Transfers: []ramp.Transfer{stolen}})
	before := sellsOf(t, store, n, rampbooks.Always(rig.Product)...)
	with := sellsOf(t, store, n, rampbooks.Always(rig.Product, added)...)
	must.Get(rig.RunCommand(t, before, "reconcile", "-position", position))(t)
	must.Get(rig.RunCommand(t, before, "reconcile", "-position", position))(t)
	_, err := rig.RunCommand(t, with, "reconcile", "-position", position)
	assert.EqualError(t, err, position+" is the position of books with other tokens: "+
		"they are about chain 1112, network testnet, project any, tokens "+rig.Token.Hex()+
		", and these about chain 1112, network testnet, project any, tokens "+rig.Token.Hex()+" "+newToken.Hex()+
		": begin once with -from where a new token was traded first, and at the latest "+
		"where these books ended, at 2026-11-20T12:00:00Z")
	_, err = rig.RunCommand(t, with, "reconcile", "-position", position, "-from", rig.HoursAgo(20).Format(time.RFC3339))
	assert.EqualError(t, err, "orders and chain disagree; findings: 1")
	_, err = rig.RunCommand(t, with, "reconcile", "-position", position)
	assert.NoError(t, err, "the position is about both now")

	config := rampproof.Config{AnyFailure: true}
	elsewhere := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "http://node", ChainID: 5}))(t)
	for name, other := range map[string]rig.Config{
		"another project": {Projects: []string{"project-2"}, Proof: rig.ProofOn(t, n.RPC(t), &config)},
		"another chain":   {Proof: rig.ProofOn(t, elsewhere, &config)},
		"another network": {Proof: rig.ProofOn(t, n.RPC(t),
			&rampproof.Config{AnyFailure: true, Network: ramp.Mainnet})},
	} {
		other.Store, other.Products, other.Logger = store, rampbooks.Always(rig.Product, added), rig.Quiet
		orders := must.Get(rig.NewOffice(other))(t)
		for _, args := range [][]string{nil, {"-from", "2026-11-19"}} {
			_, err := rig.RunCommand(t, orders, "reconcile", append(args, "-position", position)...)
			assert.ErrorContains(t, err, "is the position of other books", name)
		}
	}
}

// Two jobs with one position are refused, and one waits for the other during a deployment.
func TestOneProcessKeepsThePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewShop(t)
		position := filepath.Join(t.TempDir(), "position")
		first, end := context.WithCancel(t.Context())
		began := make(chan struct{})
		var ended sync.WaitGroup
		ended.Go(func() {
			s.KeepBooks(first, rampbooks.PositionFile(position),
				func(context.Context, *rampbooks.Reconciliation) error {
					close(began)
					return nil
				})
		})
		<-began
		_, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position)
		assert.EqualError(t, err, "another process keeps the books of "+position+": another program uses it")

		var log bytes.Buffer
		config := rampproof.Config{AnyFailure: true}
		second := must.Get(rig.NewOffice(rig.Config{Store: s.Store, Proof: rig.ProofOn(t, s.Chain, &config),
			Products: rampbooks.Always(rig.Product), Now: s.Service.Now,
			Logger: slog.New(slog.NewJSONHandler(&log, nil))}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended.Go(func() {
			second.KeepBooks(ctx, rampbooks.PositionFile(position),
				func(context.Context, *rampbooks.Reconciliation) error {
					cancel()
					return nil
				})
		})
		time.Sleep(59 * time.Minute)
		end()
		ended.Wait()
		assert.Equal(t, 1, strings.Count(log.String(), "another process keeps the books"))
		assert.Contains(t, log.String(),
			`"level":"WARN","msg":"ramp: the books were not read","error":"another process keeps`)
	})
}

// The next month begins where this one was said to end: what happens until then would be in neither.
func TestAPeriodThatIsNotFinalIsAnError(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	store.MintOn(t, n, rig.Token, rig.HoursAgo(5), 490)
	n.Unfinal = 600
	_, err := orders.Reconcile(t.Context(), rig.HoursAgo(10), rig.Now)
	assert.ErrorIs(t, err, rampbooks.ErrNotFinal)
	position := filepath.Join(t.TempDir(), "position")
	printed, err := rig.RunCommand(t, orders, "reconcile", "-from", "2026-11-20", "-to", "2026-11-20T12:00:00Z",
		"-position", position)
	assert.EqualError(t, err, "ramp: reconcile: the period is not final: it ends at 2026-11-20T12:00:00Z, "+
		"and the newest block that is final is of 2026-11-20T11:50:00Z: wait, or end there")
	assert.Empty(t, printed)
	assert.NoFileExists(t, position)
	_, err = rig.RunCommand(t, orders, "reconcile", "-from", "2026-11-20", "-to", "2026-11-20T11:50:01Z")
	assert.NoError(t, err)
}

// A game that moves to a new project keeps its books, as long as they are about the former one, too.
func TestAPositionGoesOnWithANewProject(t *testing.T) {
	s := rig.NewShop(t)
	position := filepath.Join(t.TempDir(), "position")
	reconcile := func(projects ...string) error {
		config := rampproof.Config{AnyFailure: true}
		office := must.Get(rig.NewOffice(rig.Config{Store: s.Store, Proof: rig.ProofOn(t, s.Chain, &config),
			Projects: projects, Products: rampbooks.Always(rig.Product), Now: s.Service.Now, Logger: rig.Quiet}))(t)
		args := []string{"-position", position}
		if _, err := os.Stat(position); err != nil {
			args = append(args, "-from", s.Begin.UTC().Format(time.RFC3339))
		}
		s.Service.Advance(time.Hour)
		_, err := rig.RunCommand(t, office, "reconcile", args...)
		return err
	}
	require.NoError(t, reconcile("project-1"))
	require.NoError(t, reconcile("project-2", "project-1"))
	for _, others := range [][]string{{"project-2"}, {"project-3", "project-2"}, nil} {
		assert.ErrorContains(t, reconcile(others...), "is the position of other books", others)
	}
}
