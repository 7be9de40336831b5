package dbtest

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// Property 13: whoever ends an order by hand at the moment when somebody else does, or
// when its result arrives after all, pays nothing twice.

// envRaces is how many races there are of each kind. By default there are few.
const envRaces = "RAMP_TEST_RACES"

func TestAnOrderIsFinishedByHandOnce(t *testing.T) {
	races := 20
	if text := os.Getenv(envRaces); text != "" {
		var err error
		races, err = strconv.Atoi(text)
		check(t, err)
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		d := newSupportDesk(t, p)
		want, paid := moves{}, map[string]int{}
		for n := range races {
			for kind, rivals := range map[string]func(first, second *ramptest.Order) [2]func() error{
				"twice": func(first, _ *ramptest.Order) [2]func() error {
					return [2]func() error{d.finish(first, first), d.finish(first, first)}
				},
				"two sessions": func(first, second *ramptest.Order) [2]func() error {
					return [2]func() error{d.finish(first, first), d.finish(second, first)}
				},
				"late result": func(first, _ *ramptest.Order) [2]func() error {
					return [2]func() error{d.finish(first, first), d.resend(first)}
				},
			} {
				first, second := d.burn("alice", ramptest.ResultNever()), d.burn("bob", ramptest.StaysPending())
				errs := d.race(n%2 == 0, rivals(first, second))
				ended := 0
				for _, o := range []*ramptest.Order{first, second} {
					stored, err := d.store.Order(t.Context(), o.UUID)
					check(t, err)
					if want[o.UUID] = nil; stored.State == ramp.OrderSucceeded {
						ended++
						want[o.UUID] = []string{"grant " + o.Session.ID + " +5 gold"}
					}
				}
				if ended != 1 {
					t.Errorf("%s: %d orders have ended by one transaction: %v", kind, ended, errs)
				}
				if kind == "two sessions" && (errs[0] == nil) == (errs[1] == nil) {
					t.Errorf("one must win and one must lose: %v", errs)
				}
				paid[kind] += ended
			}
		}
		d.books(want)
		t.Logf("paid once each: %v", paid)
	})
}

// docs/operations.md says what to do if an order was ended by the transaction of another
// one: here of two sessions with one wallet, which is why Proof accepted it.
func TestAnOrderThatEndedByAnothersTransactionIsRepaired(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	check(t, err)
	statement := regexp.MustCompile("`(UPDATE ramp_orders SET tx_hash = )'0x…'( WHERE uuid = )'<order 1>'`").FindSubmatch(guide)
	if statement == nil {
		t.Fatal("the guide has no statement that frees a transaction")
	}
	for _, own := range []bool{false, true} {
		t.Run(map[bool]string{false: "it has none", true: "it has one of its own"}[own], func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				d := newSupportDesk(t, p)
				first, second := d.burn("alice", ramptest.StaysPending()), d.burn("bob", ramptest.ResultNever())
				check(t, d.finish(first, second)())
				if err := d.resend(second)(); err == nil {
					t.Fatal("one transaction has ended two orders")
				}
				hash := "NULL"
				if own {
					hash = "'" + first.TxHash.Hex() + "'"
				} else { // by hand
					run(t, p.db, "UPDATE holdings SET amount = amount - 5 WHERE session_id = 'alice'")
				}
				run(t, p.db, string(statement[1])+hash+string(statement[2])+"'"+first.UUID.String()+"'")
				check(t, d.resend(second)())
				want := map[bool]string{false: "0 5", true: "5 5"}[own]
				if own {
					check(t, d.service.Deliver(t.Context(), first, ramptest.Succeeded)) // which moves nothing more
				}
				var alice, bob int64
				check(t, p.db.QueryRow("SELECT amount FROM holdings WHERE session_id = 'alice'").Scan(&alice))
				check(t, p.db.QueryRow("SELECT amount FROM holdings WHERE session_id = 'bob'").Scan(&bob))
				if got := fmt.Sprint(alice, bob); got != want {
					t.Errorf("they hold %s, not %s", got, want)
				}
			})
		})
	}
}

// supportDesk is a world whose service has a chain, and the people who end its orders.
type supportDesk struct {
	*world
	service *ramptest.Service
	client  *ramp.Client
	orders  *support.Orders
}

func newSupportDesk(t *testing.T, p *place) *supportDesk {
	t.Helper()
	w := newWorld(t, p, nil)
	w.give("alice", "gold", 0)
	w.give("bob", "gold", 0)
	signer, err := ramp.NewKeySigner(validatorKey)
	check(t, err)
	tokens := ramp.NewAmount(1_000_000)
	d := &supportDesk{world: w, service: ramptest.Start(t, ramptest.Config{PerOrder: true, Key: w.key, Validator: signer.Address(), Handler: http.NotFoundHandler(),
		Books: ramptest.BooksOff, Tokens: &tokens, KeepOrders: 10,
		Wallet: func(ramp.Session) *ramp.Signer { return signer }})} // one wallet for all sessions
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: d.service.RPCURL(ramp.Testnet), HTTPClient: d.service.Client()})
	check(t, err)
	proof := &ramp.Proof{Payers: []common.Address{d.service.Payer()}, Decimals: map[common.Address]int{common.HexToAddress(token): 18}}
	w.game.Chain, w.game.Proof, w.game.AnyWallet, w.game.Now = chain, proof, true, d.service.Now
	w.game.Logger = slog.New(slog.DiscardHandler)
	d.service.SetHandler(newHandler(t, w.game))
	d.client, err = ramp.NewClient(ramp.ClientConfig{URL: d.service.URL(), Key: w.key, HTTPClient: d.service.Client()})
	check(t, err)
	d.orders, err = support.New(support.Config{Store: w.store, Chain: chain, Proof: proof, Now: d.service.Now, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	return d
}

// burn starts a burn of one token for 5 gold, and lets its transaction end.
func (d *supportDesk) burn(session string, fault ramptest.Fault) *ramptest.Order {
	d.t.Helper()
	gold := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(5), IconURL: "https://example.com/gold.png"}}
	started, err := d.client.Initialize(d.t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project",
		Token: token, Materials: gold, Outputs: gold}})
	check(d.t, err)
	o, err := d.service.Burn(d.t.Context(), started.UUID, ramp.Session{ID: session, Token: ramp.NewAccessToken("token of " + session)}, ramp.NewAmount(1), fault)
	check(d.t, err)
	d.service.Advance(time.Second)
	return o
}

// finish returns a call that ends an order by the transaction of another one or its own.
func (d *supportDesk) finish(o, by *ramptest.Order) func() error {
	return func() error {
		_, err := d.orders.Finish(d.t.Context(), o.UUID, by.TxHash, support.Decision{Who: "alice", Reason: "a race"})
		var conflict *ramp.ConflictError
		if errors.As(err, &conflict) && (conflict.Other == nil || conflict.Other.UUID == uuid.Nil) {
			d.t.Errorf("a conflict, and not with the order that has the transaction: %v", err)
		}
		return err
	}
}

// resend returns a call that delivers the result of an order.
func (d *supportDesk) resend(o *ramptest.Order) func() error {
	return func() error { return d.service.Resend(d.t.Context(), o) }
}

// race makes two calls at once. If they contend, the one that is first in the database
// waits there for the other one; otherwise chance decides.
func (d *supportDesk) race(contend bool, calls [2]func() error) (errs [2]error) {
	d.answered.Store(0)
	if contend {
		d.rivals.Store(1)
	}
	defer d.rivals.Store(0)
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			defer d.answered.Add(1)
			errs[i] = call()
		})
	}
	wg.Wait()
	return errs
}
