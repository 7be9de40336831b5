package support_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

var histories = flag.Int("histories", 300, "how many random histories TestFittingEndsNoOrderWrongly plays")

// history is three days of a few players, of thieves, and of a service that forgets.
type history struct {
	*rand.Rand
	t      *testing.T
	node   *rig.Node
	store  *rig.Store
	orders *rig.Office
	clock  time.Time

	own     map[uuid.UUID]common.Hash // the transaction that has really ended an order; zero if it failed
	mayLate map[uuid.UUID]time.Time   // when the result of an order comes
	ended   []ramp.Step               // by FinishFitting
	lost    int                       // results of transactions that succeeded and never come
}

// memoryTransport calls a handler without a network.
type memoryTransport struct{ http.Handler }

func (m memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	answer := w.Result()
	text, _ := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

const historyLength = 72 * time.Hour

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 64)), t: t,
		own: map[uuid.UUID]common.Hash{}, mayLate: map[uuid.UUID]time.Time{},
	}
	h.store = rig.NewStore(t, func(context.Context, ramp.Step) error { return nil })
	h.node = &rig.Node{Begin: rig.Now.Add(-historyLength - 48*time.Hour),
		Decimals: "0x" + strings.Repeat("0", 62) + "12"}
	chain := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "http://node", ChainID: 1112, Retries: -1,
		HTTPClient: &http.Client{Transport: memoryTransport{h.node}}}))(t)
	owns := func(_ context.Context, session string, wallet common.Address) (bool, error) {
		return session == wallet.Hex(), nil
	}
	h.orders = must.Get(rig.NewOffice(rig.Config{
		Store: h.store, Products: rampbooks.Always(rig.Product), OwnsWallet: owns,
		Proof: rig.ProofOn(t, chain, &rampproof.Config{Payers: []common.Address{rig.Payer},
			Contracts: []common.Address{rig.Vault}}),
		Now: func() time.Time { return h.clock }, Logger: rig.Quiet,
	}))(t)
	h.node.Unfinal = []uint64{0, 3600, 20 * 3600}[h.IntN(3)]
	return h
}

// at is a random time of the history, to the second.
func (h *history) at() time.Time {
	return rig.Now.Add(-historyLength).Add(time.Duration(h.Int64N(int64(historyLength-time.Hour)/1e9)) * time.Second)
}

func (h *history) upTo(d time.Duration) time.Duration {
	return time.Duration(1+h.Int64N(int64(d)/1e9)) * time.Second
}

// event is a transaction that a history will send.
type event struct {
	at time.Time
	tx rig.Tx
	of *ramp.Order // whose own it is, or nil
}

// play makes a history.
func (h *history) play() {
	wallets := []common.Address{rig.Player, rig.Friend, common.HexToAddress("0xca401")}
	var events []event
	var orders []ramp.Order
	for range 3 + h.IntN(8) {
		direction := []ramp.Direction{ramp.Mint, ramp.Burn}[h.IntN(2)]
		user := wallets[h.IntN(len(wallets))]
		o := rig.OrderOf(direction, 1+h.Int64N(2), h.at())
		o.UserAddress, o.SessionID = user.Hex(), user.Hex()
		if h.IntN(8) == 0 { // a thief with the HMAC key names a wallet
			o.SessionID = "mallory"
		}
		at := o.AcceptedAt.Add(h.upTo([]time.Duration{time.Minute, time.Hour, 10 * time.Hour}[h.IntN(3)]))
		if h.IntN(6) == 0 { // the clock of the server was ahead
			at = o.AcceptedAt.Add(-h.upTo(3 * time.Hour))
		}
		if sent := h.IntN(3) > 0 && at.Before(rig.Now); sent {
			amount := o.Assets[0].Amount
			tokens, _ := amount.Int64() // 100 for a token, as hundredths
			transfer := rig.Moved(common.Address{}, user, tokens*98/100)
			if direction == ramp.Burn {
				transfer = rig.Moved(user, common.Address{}, tokens)
			}
			tx := rig.Tx{From: user, Payer: rig.Payer, To: rig.Vault, Transfers: []ramp.Transfer{transfer}}
			events = append(events, event{at, tx, &o})
		}
		orders = append(orders, o)
	}
	for range h.IntN(4) { // a thief
		victim, tokens := wallets[h.IntN(len(wallets))], 100+100*h.Int64N(2)
		bridge := common.HexToAddress("0xb41d9e")
		transfer := []ramp.Transfer{
			rig.Moved(common.Address{}, victim, tokens*98/100), rig.Moved(victim, common.Address{}, tokens),
			rig.Moved(bridge, victim, tokens*98/100), rig.Moved(common.Address{}, victim, h.Int64N(3)),
		}[h.IntN(4)]
		tx := rig.Tx{From: bridge, To: bridge, Transfers: []ramp.Transfer{transfer}}
		events = append(events, event{h.at(), tx, nil})
	}
	slices.SortFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range events {
		if hash := h.node.Send(e.at, e.tx); e.of != nil {
			h.own[e.of.UUID] = hash
		}
	}
	for _, o := range orders {
		h.store.Keep(h.t, o)
		h.result(&o)
	}
}

// result decides what the service reports of an order, and when.
func (h *history) result(o *ramp.Order) {
	hash, sent := h.own[o.UUID]
	delivered := func() time.Time {
		at := o.AcceptedAt
		if sent {
			at = h.node.At(h.node.BlockOf(hash))
		}
		return at.Add(h.upTo([]time.Duration{time.Minute, 12 * time.Hour}[h.IntN(2)]))
	}
	end := func(state ramp.OrderState, hash common.Hash) {
		if at := delivered(); at.Before(rig.Now) {
			h.store.Keep(h.t, rig.Ended(*o, state, hash, at))
		}
	}
	switch h.IntN(6) {
	case 0, 1: // the service forgets it
		if sent {
			h.lost++
		}
	case 2: // late: after this was run once or twice
		h.mayLate[o.UUID] = rig.Now.Add(h.upTo(20 * time.Hour))
	case 3: // a thief with the HMAC key says that it failed, by a transaction that nobody sees
		if h.IntN(2) == 0 {
			end(ramp.OrderFailed, common.Hash{2, byte(h.IntN(256)), byte(h.IntN(256)), byte(h.IntN(256))})
			return
		}
		fallthrough
	default:
		if sent {
			end(ramp.OrderSucceeded, hash)
		} else if h.IntN(2) == 0 {
			end(ramp.OrderFailed, common.Hash{3, byte(h.IntN(256)), byte(h.IntN(256)), byte(h.IntN(256))})
		}
	}
}

// reorganize moves some of the transactions that are not final to another block, or removes
// them.
func (h *history) reorganize() {
	final := h.node.BlockAt(rig.Now) - h.node.Unfinal
	for i := range h.node.Sent {
		tx := &h.node.Sent[i]
		if tx.Block <= final {
			continue
		}
		switch h.IntN(4) {
		case 0:
			tx.Block = final + 1 + uint64(h.Int64N(int64(h.node.Unfinal)))
		case 1:
			maps.DeleteFunc(h.own, func(_ uuid.UUID, own common.Hash) bool { return own == tx.Hash })
			tx.Hash = common.Hash{4}
		}
	}
	h.node.Sent = slices.DeleteFunc(h.node.Sent, func(tx rig.Tx) bool { return tx.Hash == common.Hash{4} })
	slices.SortStableFunc(h.node.Sent, func(a, b rig.Tx) int { return int(a.Block) - int(b.Block) })
}

// finish runs the command, as a scheduler does.
func (h *history) finish() {
	books, err := h.orders.Reconcile(h.t.Context(), h.clock.Add(-historyLength), time.Time{})
	require.NoError(h.t, err)
	steps, err := h.orders.FinishFitting(h.t.Context(), books, scheduler)
	require.NoError(h.t, err)
	h.ended = append(h.ended, steps...)
}

// wrong returns what is wrong with an order that was ended.
func (h *history) wrong(s ramp.Step) string {
	switch own := h.own[s.Order.UUID]; {
	case s.Effect.Kind == ramp.GiveBack:
		return "it was given back"
	case s.Order.State != ramp.OrderSucceeded:
		return "it is " + string(s.Order.State)
	case s.Order.TxHash != own.Hex():
		return fmt.Sprintf("it ended by %s, and its own transaction is %s", s.Order.TxHash, own)
	case s.Order.SessionID == "mallory":
		return "it is a thief's"
	default:
		return ""
	}
}

// In random histories with thieves, late results, clocks that were wrong and
// reorganizations, no order is ended wrongly, and many are ended.
func TestFittingEndsNoOrderWrongly(t *testing.T) {
	racedetector.Skip(t)
	finished, lost := 0, 0
	plays := *histories
	if testing.Short() {
		plays /= 3
	}
	for n := range plays {
		h := newHistory(t, uint64(n))
		h.play()
		for _, after := range []time.Duration{0, 9 * time.Hour, 24 * time.Hour} {
			h.clock = rig.Now.Add(after)
			h.node.Head = h.node.BlockAt(h.clock)
			for id, at := range h.mayLate {
				o, sent := h.store.Orders[id], h.own[id] != common.Hash{}
				if at.Before(h.clock) && o.State == ramp.OrderAccepted && sent {
					h.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, h.own[id], at))
				}
			}
			h.finish()
			if after == 0 {
				h.reorganize()
			}
		}
		for _, step := range h.ended {
			assert.Empty(t, h.wrong(step), "history %d: %s %s", n, step.Order.Direction, step.Order.UUID)
		}
		finished, lost = finished+len(h.ended), lost+h.lost
	}
	t.Logf("%d histories: of %d results that were lost, %d were made up for", plays, lost, finished)
	assert.Greater(t, 4*finished, lost, "the test would pass if nothing were ended")
}
