package ramptest_test

import (
	"context"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/ownledger"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// shop is a correct game: it takes once, gives back once and grants once. Its player
// has gold.
type shop struct {
	mu      sync.Mutex
	name    string // of the player; "" is not reported
	gold    int64
	also    map[string]int64 // what each call of a path moves besides, which is wrong
	orders  map[uuid.UUID]*ramp.ValidateRequest
	done    map[uuid.UUID]bool
	reject  error          // of each validate call
	results []*ramp.Result // each call of Result
	answers []error        // of the next calls of Result, before anything is done
}

func newShop() *shop {
	return &shop{gold: 1000, orders: make(map[uuid.UUID]*ramp.ValidateRequest), done: make(map[uuid.UUID]bool)}
}

func (g *shop) owns() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gold
}

func (g *shop) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token-1" {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *shop) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{PlayerID: g.name, Name: g.name,
		Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(g.owns())}}}, nil
}

func (g *shop) Validate(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gold += g.also[ramp.PathValidate]
	if g.reject != nil {
		return g.reject
	}
	if known := g.orders[r.UUID]; known != nil {
		if known.Digest != r.Digest {
			return ramp.Reject("INVALID_MESSAGE")
		}
		return nil
	}
	effect, err := r.Intent.Effect(ramp.OrderAccepted)
	if err != nil {
		return err
	}
	if err := g.move(effect); err != nil {
		return err
	}
	g.orders[r.UUID] = r
	return nil
}

func (g *shop) Result(_ context.Context, _ ramp.Session, r *ramp.Result) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gold += g.also[ramp.PathResult]
	g.results = append(g.results, r)
	if len(g.answers) > 0 {
		err := g.answers[0]
		g.answers = g.answers[1:]
		if err != nil {
			return err
		}
	}
	if g.orders[r.UUID] == nil || g.done[r.UUID] {
		return nil
	}
	effect, err := r.Intent.Effect(r.Outcome())
	if err != nil {
		return err
	}
	g.done[r.UUID] = true
	return g.move(effect)
}

func (g *shop) move(effect ramp.Effect) error {
	for _, asset := range effect.Assets {
		delta, err := effect.Delta(asset).Int64()
		if err != nil || g.gold+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		g.gold += delta
	}
	return nil
}

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// session1 is that of the player.
var session1 = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}

// counter joins a shop, or another game, and a service in memory.
type counter struct {
	shop    *shop
	key     ramp.HMACKey
	service *ramptest.Service
	client  *ramp.Client
	session ramp.Session

	config    ramptest.Config
	handler   http.Handler // the shop
	validator common.Address
}

func newCounter(t testing.TB, options ...func(*ramptest.Config)) *counter {
	t.Helper()
	shop := newShop()
	c := newCounterOf(t, shop, options...)
	c.shop = shop
	return c
}

func newCounterOf(t testing.TB, game ownledger.Game, options ...func(*ramptest.Config)) *counter {
	t.Helper()
	key, signer := console(t)
	handler := must.Get(ownledger.Handler(ramp.HandlerConfig{Terms: anyTerms, Key: key, Signer: signer,
		Logger: ramptest.Logger(t)}, game))(t)
	c := &counter{session: session1, key: key, handler: handler, validator: signer.Address()}
	config := ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler,
		Standalone: ramptest.Standalone{Pages: pages.New()},
		NoThief:    true, // most of these games accept everybody
		Incomplete: true} // and most of these tests end in the middle of an order
	for _, o := range options {
		o(&config)
	}
	c.config = config
	c.service = ramptest.Start(t, config)
	c.client = clientOf(t, c.service, c.key)
	return c
}

const validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"

// console returns what the console and the game know.
func console(t testing.TB) (ramp.HMACKey, *ramp.Signer) {
	return wayKey(t), must.Get(ramp.NewKeySigner(validatorKey))(t)
}

// clientOf and nodeOf return clients of a service, and of its testnet.
func clientOf(t testing.TB, s *ramptest.Service, key ramp.HMACKey) *ramp.Client {
	return must.Get(ramp.NewClient(ramp.ClientConfig{URL: s.URL(), Key: key, HTTPClient: s.Client(), Retries: -1}))(t)
}

func nodeOf(t testing.TB, s *ramptest.Service) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: s.RPCURL(ramp.Testnet), HTTPClient: s.Client(), Retries: -1}))(t)
}

// tokenBalance returns how many smallest units of a token an account has.
func tokenBalance(t testing.TB, node *ramp.RPC, token, account common.Address) *big.Int {
	t.Helper()
	balanceOf := append([]byte{0x70, 0xa0, 0x82, 0x31}, common.LeftPadBytes(account[:], 32)...)
	request := ramp.TransactionRequest{To: &token, Data: balanceOf}
	return new(big.Int).SetBytes(must.Get(node.CallContract(t.Context(), request, ramp.Latest))(t))
}

// confirm returns the receipt that the chain has of a result.
func confirm(t testing.TB, node *ramp.RPC, result *ramp.Result, confirmations uint64) (ramp.Receipt, error) {
	t.Helper()
	confirmed := *result
	_, err := rampproof.Confirmed(node, confirmations).Confirm(t.Context(), nil, &confirmed, nil)
	return confirmed.Receipt, err
}

// send sends a request to the service. headers are pairs.
func (c *counter) send(t testing.TB, method, address, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method,
		c.service.URL()+strings.TrimPrefix(address, c.service.URL()), strings.NewReader(body))
	require.NoError(t, err)
	setHeaders(r, headers)
	client := c.service.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer := must.Get(client.Do(r))(t)
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// direct answers a request that came from an address.
func (c *counter) direct(method, address, body, from string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	r.RemoteAddr = from
	setHeaders(r, headers)
	w := httptest.NewRecorder()
	c.service.ServeHTTP(w, r)
	return w
}

func setHeaders(r *http.Request, headers []string) {
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
}

// whole returns the body of an answer.
func whole(t testing.TB, answer *http.Response) string {
	t.Helper()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return string(body)
}

// auditOff is for a game that moves nothing, or whose calls are counted.
func auditOff(c *ramptest.Config) { c.Audit = ramptest.AuditOff }

// before puts something in front of the game.
func before(serve func(w http.ResponseWriter, r *http.Request, game http.Handler)) func(*ramptest.Config) {
	return func(c *ramptest.Config) {
		game := c.Handler
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, game) })
	}
}

func (c *counter) initialize(t testing.TB) uuid.UUID {
	t.Helper()
	started := must.Get(c.client.Initialize(t.Context(), request()))(t)
	return started.UUID
}

func (c *counter) mint(t testing.TB, faults ...ramptest.Fault) *ramptest.PlacedOrder {
	t.Helper()
	order := must.Get(c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10), faults...))(t)
	return order
}
