package support_test

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
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// cells returns what the column of a CSV file has in the rows of a figure.
func cells(t *testing.T, printed, figure, column string) (values []string) {
	t.Helper()
	rows := ramp.Must(csv.NewReader(strings.NewReader(printed)).ReadAll())
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
	orders, store, n := newOrders(t, 100*time.Hour, &rampproof.Config{AnyFailure: true})
	position := filepath.Join(t.TempDir(), "position")
	store.mintOn(t, n, token, hoursAgo(5), 490)
	var ordered, onChain []string
	for hours := 5; hours > 2; hours-- { // the mint is in the overlap of each
		end := hoursAgo(hours - 1).Add(-30 * time.Minute).Format(time.RFC3339)
		printed, err := command(t, orders, "reconcile", "-position", position, "-to", end, "-format", "totals")
		require.NoError(t, err)
		ordered = append(ordered, cells(t, printed, "tokens_ordered", "tokens")...)
		onChain = append(onChain, cells(t, printed, "tokens_on_chain", "tokens")...)
	}
	assert.Equal(t, []string{"5"}, ordered)
	assert.Equal(t, []string{"4.9"}, onChain)
}

// A mint on a token that was added was stolen ten hours ago. The position says that it was never compared.
func TestAPositionIsAboutOneGame(t *testing.T) {
	_, store, n := newOrders(t, 100*time.Hour, paid)
	position := filepath.Join(t.TempDir(), "position")
	added := product
	added.Token = newToken.Hex()
	stolen := moved(common.Address{}, friend, 500)
	stolen.Token = newToken
	n.send(hoursAgo(10), sentTx{transfers: []ramp.Transfer{stolen}})
	before := sellsOf(t, store, n, rampbooks.Always(product)...)
	with := sellsOf(t, store, n, rampbooks.Always(product, added)...)
	ramp.Must(command(t, before, "reconcile", "-position", position))
	ramp.Must(command(t, before, "reconcile", "-position", position))
	_, err := command(t, with, "reconcile", "-position", position)
	assert.EqualError(t, err, position+" is the position of books with other tokens: "+
		"they are about chain 1112, network testnet, project any, tokens "+token.Hex()+
		", and these about chain 1112, network testnet, project any, tokens "+token.Hex()+" "+newToken.Hex()+
		": begin once with -from where a new token was traded first, and at the latest "+
		"where these books ended, at 2026-11-20T12:00:01Z")
	_, err = command(t, with, "reconcile", "-position", position, "-from", hoursAgo(20).Format(time.RFC3339))
	assert.EqualError(t, err, "orders and chain disagree; findings: 1")
	_, err = command(t, with, "reconcile", "-position", position)
	assert.NoError(t, err, "the position is about both now")

	config := rampproof.Config{AnyFailure: true}
	elsewhere := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: "http://node", ChainID: 5}))
	for name, other := range map[string]backofficeConfig{
		"another project": {ProjectID: "project-2", Proof: proofOn(n.rpc(t), &config)},
		"another chain":   {Proof: proofOn(elsewhere, &config)},
		"another network": {Proof: proofOn(n.rpc(t), &rampproof.Config{AnyFailure: true, Network: ramp.Mainnet})},
	} {
		other.Store, other.Products, other.Logger = store, rampbooks.Always(product, added), quiet
		orders := ramp.Must(newBackoffice(other))
		for _, args := range [][]string{nil, {"-from", "2026-11-19"}} {
			_, err := command(t, orders, "reconcile", append(args, "-position", position)...)
			assert.ErrorContains(t, err, "is the position of other books", name)
		}
	}
}

// Two jobs with one position are refused, and one waits for the other during a deployment.
func TestOneProcessKeepsThePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
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
		_, err := command(t, s.backoffice, "reconcile", "-position", position)
		assert.EqualError(t, err, "another process keeps the books of "+position+": another program uses the file")

		var log bytes.Buffer
		config := rampproof.Config{AnyFailure: true}
		second := ramp.Must(newBackoffice(backofficeConfig{Store: s.store, Proof: proofOn(s.chain, &config),
			Products: rampbooks.Always(product), Now: s.service.Now, Logger: slog.New(slog.NewJSONHandler(&log, nil))}))
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
	orders, store, n := newOrders(t, 100*time.Hour, paid)
	store.mintOn(t, n, token, hoursAgo(5), 490)
	n.unfinal = 600
	_, err := orders.Reconcile(t.Context(), hoursAgo(10), now)
	assert.ErrorIs(t, err, rampbooks.ErrNotFinal)
	position := filepath.Join(t.TempDir(), "position")
	printed, err := command(t, orders, "reconcile", "-from", "2026-11-20", "-to", "2026-11-20T12:00:00Z",
		"-position", position)
	assert.EqualError(t, err, "ramp: reconcile: the period is not final: it ends at 2026-11-20T12:00:00Z, "+
		"and the newest block that is final is of 2026-11-20T11:50:00Z: wait, or end there")
	assert.Empty(t, printed)
	assert.NoFileExists(t, position)
	_, err = command(t, orders, "reconcile", "-from", "2026-11-20", "-to", "2026-11-20T11:50:01Z")
	assert.NoError(t, err)
}
