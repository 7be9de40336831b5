package ramptest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Service is an emulated token ramp. It is safe for concurrent use.
type Service struct {
	service *emulator.Service
	pages   http.Handler // nil without Standalone.Pages
	orders  sync.Map     // *order.Order to *PlacedOrder: each that was returned
}

// SetHandler makes handler the game's server from now on, as [Config.Handler]
// does. Use it for a server that needs the address of the service, or its
// [Service.Client], to be built. Leave Game and Handler of the [Config] empty then.
func (s *Service) SetHandler(handler http.Handler) { s.service.SetHandler(handler) }

// servePage answers a request for a page.
func (s *Service) servePage(w http.ResponseWriter, r *http.Request) {
	if s.pages != nil {
		s.pages.ServeHTTP(w, r)
		return
	}
	q := r.URL.Query()
	network := ramp.Network(q.Get("network"))
	status, said := http.StatusOK,
		"The URL is right. For the page itself, set Config.Standalone.Pages to pages.New()."
	fail := func(code int, problem string) { status, said = code, problem }
	id, err := uuid.Parse(q.Get("uuid"))
	terms, _, unknown := s.service.Orders.Terms(id, false)
	switch exchange := r.URL.Path == "/exchange"; {
	case !exchange && r.URL.Path != "/catalog":
		fail(http.StatusNotFound, "This service has no pages: set Config.Standalone.Pages to pages.New().")
	case q.Get("sessionId") == "" || q.Get("accessToken") == "" || exchange && err != nil || !exchange &&
		q.Get("projectId") == "":
		fail(http.StatusBadRequest, "A parameter is missing (interface 2.1).")
	case s.service.Config().Networks[network] == 0 || exchange && unknown == nil && network != terms.Network:
		fail(http.StatusBadRequest, "The network is not that of the initialize call, or is not served.")
	case exchange && errors.Is(unknown, ErrExpiredUUID):
		fail(http.StatusGone, text.Sentence(unknown))
	case exchange && unknown != nil:
		fail(http.StatusNotFound, text.Sentence(unknown))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, said+"\n") // an error means that the caller is gone
}

// URL is the base address of the service: {ramp_api_url} and {ramp_url} of the
// interface, or [Standalone.PublicURL]. If the service is in memory, only
// [Service.Client] reaches it.
func (s *Service) URL() string { return s.service.Guard.URL }

// RPCURL is the address of a network's chain: {rpc_mainnet_url} or
// {rpc_testnet_url} of the interface.
func (s *Service) RPCURL(network ramp.Network) string { return s.URL() + "/rpc/" + string(network) }

// Client returns an HTTP client that reaches the service, in memory or not. Set it as the
// HTTPClient of [ramp.ClientConfig] and [ramp.RPCConfig]. It uses no proxy, and does not depend on
// [http.DefaultTransport], which a test may replace.
func (s *Service) Client() *http.Client { return s.service.Client() }

// ServeHTTP serves the service's own endpoints. Use it to run the service in a
// server of your own.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.service.ServeHTTP(w, r) }

// Payer returns the account with which the service pays for transactions of type 0x7;
// see [TransactionType] and package rampproof.
func (s *Service) Payer() common.Address { return trade.ServiceAccount() }

// Wallet returns the address of a player's wallet, which is the user_address of the
// player's orders (interface 2.5). It is zero if [Config.Wallet] returns nil.
func (s *Service) Wallet(session ramp.Session) common.Address {
	signer, err := s.service.Wallet(session)
	if err != nil {
		return common.Address{}
	}
	return signer.Address()
}

// Assets asks the game for a user's assets (interface 2.4). If the game
// rejects, the error is a [*Rejection]. If its answer breaks the interface, it is
// another error.
func (s *Service) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	return s.service.Assets(ctx, session)
}

// Mint plays a player who mints. It asks the game to approve turning the
// materials of the initialize call into tokens (interface 2.5). The game's
// answer must pass every check of sections 2.6 and 5.3. The transaction then goes
// to the chain, the next block includes it, and the service delivers the result.
// Call [Service.Advance] to make that happen.
//
// If the game rejects, the error is a [*Rejection]. If its answer breaks the
// interface, it is another error. The same call again repeats the same request and
// returns the same order. It cannot add faults; see [ErrPlaced].
func (s *Service) Mint(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount,
	faults ...Fault) (*PlacedOrder, error) {
	return s.place(ctx, ramp.Mint, id, session, tokens, faults)
}

// Burn plays a player who burns. It asks the game to approve turning tokens into
// the outputs of the initialize call. In all else it works like [Service.Mint].
func (s *Service) Burn(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount,
	faults ...Fault) (*PlacedOrder, error) {
	return s.place(ctx, ramp.Burn, id, session, tokens, faults)
}

func (s *Service) place(ctx context.Context, direction ramp.Direction, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*PlacedOrder, error) {
	o, err := s.service.Orders.Place(ctx, trade.Named(string(direction)), id, session, tokens, chosen(faults))
	if o == nil {
		return nil, err
	}
	return s.public(o), err
}

// public returns an order as the service returns it, always the same one.
func (s *Service) public(o *order.Order) *PlacedOrder {
	known, _ := s.orders.LoadOrStore(o, &PlacedOrder{UUID: o.UUID, Session: o.Session, Network: o.Network,
		Request: o.Request, Approval: o.Approval, TxHash: o.TxHash, order: o})
	return known.(*PlacedOrder)
}

// State returns the state of an order.
func (s *Service) State(o *PlacedOrder) State { return State(o.kept().Delivery.Now().State) }

// Deliver sends the game a result with the outcome, now and once (interface 6).
// If the transaction is still pending, Deliver first mines it with that outcome.
// Where the chain cannot produce the outcome, such as the success of a burn of more
// tokens than the wallet holds, the result has the chain's outcome instead. A
// transaction that is already in a block does not change: if the outcome differs,
// the result contradicts the chain.
//
// Call it again for a redelivery, or from several goroutines at once. It returns nil if the game
// confirmed with HTTP 200 and the envelope of 4.3. The service continues with its schedule if the
// game has not answered, if it answered with a status of [Config.Retry], or if it rejected a result
// that contradicts the chain.
//
// Deliver also accepts a [PlacedOrder] that you made by hand from a Session, a UUID and
// the Intent of a Request. No chain knows its transaction, and the service does
// not retry its result.
func (s *Service) Deliver(ctx context.Context, o *PlacedOrder, outcome Outcome) error {
	return s.service.Orders.ByHand(ctx, o.kept(), order.Outcome(outcome))
}

// Resend sends the game the result again, now and once, with the outcome on the
// chain (interface 6). The error is [ErrPending] if the transaction is pending.
func (s *Service) Resend(ctx context.Context, o *PlacedOrder) error {
	return s.service.Orders.ByHand(ctx, o.kept(), order.AsOnChain)
}

// Now returns the time on the service's clock.
func (s *Service) Now() time.Time { return s.service.Clock.Now() }

// Advance moves the service's clock forward. It does what falls due in order, each
// at its own time: it mines blocks, and delivers and retries results (interface 8).
// It returns the deliveries once all are answered.
//
// Calls of Advance wait for each other. A handler must therefore not call Advance,
// or wait for a goroutine that does, while Advance is calling it: that would
// deadlock.
func (s *Service) Advance(d time.Duration) (sent []Delivery) {
	for _, d := range s.service.Orders.Advance(d) {
		sent = append(sent, Delivery{s.public(d.Order), d.Attempt, d.Time, d.Status, d.Err, d.Next})
	}
	return sent
}

// Outside calls f, with which the test itself moves the assets of players: they earn, spend or
// trade. The books read what players own before and after it, and know that what moves meanwhile
// belongs to no order. See [Config.Closed].
func (s *Service) Outside(f func()) { s.service.Audit.Outside(s.service.Life.Alive, f) }

// FailInitialize makes the next initialize calls fail, one for each failure, in
// this order, regardless of their content.
func (s *Service) FailInitialize(failures ...InitializeFailure) {
	for _, f := range failures {
		s.service.Console.Failing.Add([]emulator.InitializeFailure{emulator.InitializeFailure(f)})
	}
}

// FailRPC makes the next requests to the chains fail, one for each code, in this order, regardless
// of their content. A code below 100 is a JSON-RPC error code: those of the interface (7.3) are
// negative, and 3 is a reverted contract call. Any other code is an HTTP status, [RPCNoAnswer] or
// [RPCCutOff]; 429 has a Retry-After of 1 second. 0 lets a request succeed.
func (s *Service) FailRPC(codes ...int) { s.service.Node.Failing.Add(codes) }

// NodeState is what is wrong with a chain, or with the node that shows it, see [Service.SetNode]. The zero
// value is a chain that makes blocks, and a node that shows all of them. Balances, and what contracts say,
// are always those of now.
type NodeState struct {
	// Stands lets the chain make no block. The transactions of orders stay pending, and no result comes that
	// needs another block. When the chain goes on, it makes a block at once, and [Service.Advance] puts what
	// is pending into it.
	Stands bool

	// Behind is how many blocks the node's newest one is older than the chain's. Later blocks, with their
	// transactions, receipts and logs, are unknown to the node.
	Behind uint64

	// MaxLogs is how many logs eth_getLogs returns at most, the oldest ones. It does not say that there are
	// more. 0 is all.
	MaxLogs int

	// Forgets is how old the history is that the node has: it knows no transaction, no receipt and no log
	// of older blocks, and does not say so. 0 is all.
	Forgets time.Duration
}

// SetNode sets what is wrong with the chain of a network, or with its node, until it is set again. The books
// and verdicts of the service read the chain as it is, whatever its node shows. For requests that fail, see
// [Service.FailRPC]. [Start] fails the test if a setting changed nothing, see [Config.Incomplete]. A service
// that continues from a state file begins without it.
func (s *Service) SetNode(network ramp.Network, n NodeState) {
	s.service.Node.Set(network, chain.Node(n))
}

// FailAssets makes the next assets calls fail, one for each failure, in this order, as a network
// may: the game has answered, and the service learns nothing. It is not a failure of the game.
func (s *Service) FailAssets(failures ...AssetsFailure) {
	for _, f := range failures {
		s.service.Game.Failing.Add([]string{string(f)})
	}
}

// Events returns what happened so far, oldest first. It has at most the last 1,000
// requests to the chains and balance readings of the books, and the last 10,000 of all
// other events, or 100,000 with [Standalone].State. Bodies are truncated to 64 KiB.
func (s *Service) Events() []control.Event { return s.service.History.All() }

// Timeline returns what happened so far, one event per line with the time since the
// service started. It includes the bodies of failed exchanges and leaves out
// routine events; see [control.Event.Routine].
func (s *Service) Timeline() string {
	timeline, _ := s.service.History.Timeline(func(*control.Event) bool { return true })
	return timeline
}

// Imbalances returns the last 1,000 findings of the books, oldest first. See
// [Config.Audit].
func (s *Service) Imbalances() (all []*Imbalance) {
	for _, f := range s.service.Audit.Found() {
		all = append(all, imbalance(f))
	}
	return all
}

// Close stops the service. It waits for calls in progress, and for the
// [Config.Handler] to return from them, but no longer than [Config.Timeout].
// Afterwards the methods that call the game fail with [ErrClosed], and
// [Service.Advance] does nothing.
func (s *Service) Close() { s.service.Close() }

// Check returns what [Start] fails a test for when it ends, as one error. Call it at the end of a
// test that uses [New], such as in TestMain. It asks the game for assets like a thief, see
// [Config.NoThief], and what players own if [Config.Closed] is set.
func (s *Service) Check() error {
	if problems := s.service.Problems(); problems != "" {
		return errors.New(problems)
	}
	return nil
}
