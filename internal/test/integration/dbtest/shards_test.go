package dbtest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/regions"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// A player moves while nothing waits. If the new database alone were asked about an order, a repeated validate
// call would take gold a second time and be signed, both calls of a burn would grant it a second time, and a
// repeated result would get 500.
func TestNothingIsPaidAgainAfterAMove(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 100)
	sold, failed, bought := newOrder("alice", mint("gold", 60)), newOrder("alice", mint("gold", 7)),
		newOrder("alice", burn("gold", 30))
	ended := map[*order]uint64{&sold: success, &failed: failure, &bought: success}
	for o, status := range ended {
		s.expect(s.validate(*o), "200")
		s.expect(s.result(*o, status), "200")
	}
	for _, to := range []int{1, 0} { // and back
		check(t, s.game.Move(t.Context(), "alice", to, time.Millisecond))
		for o, status := range ended {
			for range 2 {
				s.expect(s.validate(*o), "200 ORDER_FINISHED")
				s.expect(s.result(*o, status), "200")
			}
		}
		here, parcels := s.gold("alice")
		want := [2]int{}
		want[to] = 100 - 60 + 30
		equal(t, "gold of alice", fmt.Sprint(here, parcels), fmt.Sprint(want, 0))
	}
	equal(t, "orders", fmt.Sprint(s.orders()), "[3 0]")
}

// What a person asks about a player who has moved, and the books, are of both databases.
func TestTheDeskAndTheBooksAreOfAllShards(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 10_000)
	const day = 24 * time.Hour
	chain := newChain(day0.Add(-2*day), day0.Add(2*day))
	user := common.Address{0xbb}
	gold := ramp.IntentAsset{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(500)}
	tokens := ramp.IntentAsset{Type: ramp.TypeERC20, ID: rig.Token.Hex(), Amount: ramp.NewAmount(5)}
	accept := func(d ramp.Direction, at time.Time) order {
		t.Helper()
		intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: []ramp.IntentAsset{gold},
			To: []ramp.IntentAsset{tokens}}
		if d == ramp.Burn {
			intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: intent.To,
				To: intent.From}
		}
		o := newOrder("alice", intent)
		o.user = user.Hex()
		take(t, s.store, o.id, ramp.OnlyOf(nil, ramp.Testnet, acceptAt(o, at)))
		return o
	}
	var waiting, ended []string
	for shard := range 2 {
		check(t, s.game.Move(t.Context(), "alice", shard, time.Millisecond))
		for n, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			at := day0.Add(time.Duration(4*shard+n) * time.Hour)
			o := accept(d, at)
			from, to, hundredths := common.Address{}, user, int64(490)
			if d == ramp.Burn {
				from, to, hundredths = user, common.Address{}, 500
			}
			report := o.report(success)
			report.TxHash = sends(chain, at.Add(20*time.Second), from, to, hundredths).Hex()
			take(t, s.store, o.id, ramp.Finish(report, at.Add(time.Minute)))
			ended = append(ended, o.id.String())
		}
		waiting = append(waiting, accept(ramp.Mint, time.Now().Add(-time.Minute)).id.String())
	}
	equal(t, "orders", fmt.Sprint(s.orders()), "[3 3]")

	proof := must.Get(rampproof.New(rampproof.Config{Chain: chain.RPC(t), Network: ramp.Testnet, AnyFailure: true}))(t)
	items := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100)}}
	product := ramp.Product{Name: "gold", Token: rig.Token.Hex(), MintFeeBps: 200, Materials: items, Outputs: items}
	log := slog.New(slog.DiscardHandler)
	desk := must.Get(support.New(support.Config{Store: s.store, Proof: proof, Logger: log}))(t)
	books := must.Get(rampbooks.New(rampbooks.Config{Store: s.store, Proof: proof, Logger: log,
		Products: rampbooks.Always(product)}))(t)
	says := func(args string, texts ...string) {
		t.Helper()
		var out strings.Builder
		err := regions.Run(t.Context(), desk, books, strings.Fields(args), &out)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, text := range texts {
			equal(t, fmt.Sprintf("%s says %q:\n%s\n", args, text, out.String()),
				strings.Contains(strings.Join(strings.Fields(out.String()), " "), text), true)
		}
	}
	says("list -older 0s", waiting...)
	says("list -session alice", append(ended, waiting...)...)
	says("list -from "+day0.Format(time.RFC3339), ended...)
	says("count", "0s 2 0")
	for _, id := range append(ended, waiting...) {
		says("find "+id, id)
		says("show "+id, id)
	}
	says("reconcile -format totals -from "+day0.Format(time.RFC3339)+" -to "+day0.Add(day).Format(time.RFC3339),
		`"orders_succeeded","",2`, `"items_taken","gold",,1000`, `"items_granted","gold",,1000`)
	sum := must.Get(books.Reconcile(t.Context(), day0, day0.Add(day)))(t)
	equal(t, "findings", len(sum.Findings), 0)
	equal(t, "orders whose event was seen", sum.Witnesses, 4)

	// Nobody is told half of it.
	s.game.Directory = open(t, s.places[0].driver, s.places[0].dsn)
	s.places[0].db.SetMaxOpenConns(1)
	held := must.Get(s.places[0].db.Conn(t.Context()))(t)
	defer held.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expectText(t, regions.Run(ctx, desk, books, []string{"find", "nobody"}, &strings.Builder{}), "shard 0")
}
