package rampbooks_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"log/slog"
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
		"where these books ended, at 2026-11-20T12:00:01Z")
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
			s.KeepBooks(first, position, func(context.Context, *rampbooks.Reconciliation) error {
				close(began)
				return nil
			})
		})
		<-began
		_, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position)
		assert.EqualError(t, err, "another process keeps the books of "+position+": another program uses the file")

		var log bytes.Buffer
		config := rampproof.Config{AnyFailure: true}
		second := must.Get(rig.NewOffice(rig.Config{Store: s.Store, Proof: rig.ProofOn(t, s.Chain, &config),
			Products: rampbooks.Always(rig.Product), Now: s.Service.Now,
			Logger: slog.New(slog.NewJSONHandler(&log, nil))}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended.Go(func() {
			second.KeepBooks(ctx, position, func(context.Context, *rampbooks.Reconciliation) error {
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
