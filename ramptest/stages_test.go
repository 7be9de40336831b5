package ramptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// studio is a studio's server, with the parts that a studio uses: Players, a Store, and the
// chain with Proof. Its test asserts nothing.
type studio struct {
	service *ramptest.Service
	client  *ramp.Client
	chain   *ramp.RPC // without a proof, the server has none
	test    *judged

	mu      sync.Mutex
	owns    map[string]int64
	expired bool // the player's session
	apply   func(ramp.Step) error
	steps   []ramp.Step // that were applied
}

func wayKey(t testing.TB) ramp.HMACKey { return must.Get(ramp.TextKey(keyText))(t) }

const keyText = "key of the console"

func (s *studio) Authenticate(_ context.Context, session ramp.Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired && session.ID == "session-1" {
		return ramp.Reject("SESSION_EXPIRED")
	}
	return nil
}

func (s *studio) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	player := &ramp.Player{PlayerID: "player-1"}
	for id, n := range s.owns {
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
	}
	return player, nil
}

// Apply moves the assets of a step.
func (s *studio) Apply(_ context.Context, step ramp.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apply != nil {
		if err := s.apply(step); err != nil {
			return err
		}
	}
	for _, a := range step.Effect.Assets {
		delta, err := step.Effect.Delta(a).Int64()
		if err != nil || s.owns[a.ID]+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		s.owns[a.ID] += delta
	}
	s.steps = append(s.steps, step)
	return nil
}

// open starts the server and the service. proof is nil for a server without the chain, and
// wrap for one without middleware.
func open(t *testing.T, proof func(*ramptest.Service) *rampproof.Config, wrap func(http.Handler) http.Handler) *studio {
	t.Helper()
	return (&studio{owns: map[string]int64{"item_gold": 1000}}).open(t, anyTerms, true, proof, wrap)
}

// open is open for a studio with terms, whose prices are those of an order or of one token.
func (s *studio) open(t *testing.T, terms *ramp.Terms, perOrder bool, proof func(*ramptest.Service) *rampproof.Config,
	wrap func(http.Handler) http.Handler) *studio {
	t.Helper()
	s.test = &judged{TB: t}
	key, signer := console(t)
	s.service = ramptest.Start(s.test, ramptest.Config{PerOrder: perOrder, Key: key, Validator: signer.Address(),
		Settle: -1, NoThief: true, Standalone: ramptest.Standalone{Pages: pages.New()}})
	store := &ramp.MemoryStore{Apply: s.Apply}
	config := ramp.HandlerConfig{Players: s, Store: store, Terms: terms, Key: key, Signer: signer,
		Logger: ramptest.Logger(t), Now: s.service.Now}
	s.chain = must.Get(ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), ChainID: 7002,
		HTTPClient: s.service.Client(), Retries: -1}))(t)
	if proof != nil {
		c := proof(s.service)
		c.Chain, c.Network, c.Logger = s.chain, ramp.Testnet, ramptest.Logger(t)
		c.MintFeeBps = map[common.Address]int{common.HexToAddress(token): 2000, common.HexToAddress(swordToken): 100}
		config.Confirm, config.Wallet = must.Get(rampproof.New(*c))(t), ramp.AnyWallet
	}
	var handler http.Handler = must.Get(ramp.NewHandler(config))(t)
	if wrap != nil {
		handler = wrap(handler)
	}
	s.service.SetHandler(handler)
	s.client = clientOf(t, s.service, key)
	return s
}

// order mints or burns 10 tokens for 100 gold.
func (s *studio) order(ctx context.Context, place func(*ramptest.Service) placer,
	faults ...ramptest.Fault) (*ramptest.PlacedOrder, error) {
	started, err := s.client.Initialize(ctx, request())
	if err != nil {
		return nil, err
	}
	faults = append(faults, ramptest.Perhaps(ramptest.TransactionType(7)))
	return place(s.service)(ctx, started.UUID, session1, ramp.NewAmount(10), faults...)
}

// place is order, which must succeed.
func (s *studio) place(t *testing.T, place func(*ramptest.Service) placer,
	faults ...ramptest.Fault) *ramptest.PlacedOrder {
	return must.Get(s.order(t.Context(), place, faults...))(t)
}

// expire ends the player's session.
func (s *studio) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = true
}

// proved is the right Proof.
func proved(s *ramptest.Service) *rampproof.Config {
	return &rampproof.Config{Payers: []common.Address{s.Payer()},
		Decimals: map[common.Address]int{common.HexToAddress(token): 18}}
}

// learning is a right Proof that asks the token for its decimals.
func learning(s *ramptest.Service) *rampproof.Config {
	return &rampproof.Config{Payers: []common.Address{s.Payer()}}
}

type placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.PlacedOrder,
	error)

func mints(s *ramptest.Service) placer { return s.Mint }
func burns(s *ramptest.Service) placer { return s.Burn }

// instead answers the calls of a path itself while it has answers left; 0 passes the call on.
func instead(path string, lets bool, statuses ...int) func(http.Handler) http.Handler {
	var mu sync.Mutex
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			status := 0
			if r.URL.Path == path && len(statuses) > 0 {
				status = statuses[0]
				if len(statuses) > 1 { // the last one stays
					statuses = statuses[1:]
				}
			}
			mu.Unlock()
			if status == 0 {
				inner.ServeHTTP(w, r)
				return
			}
			if lets {
				inner.ServeHTTP(&discard{header: http.Header{}}, r)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"success":false,"errorCode":"NO","data":null}`)
		})
	}
}

// The whole way of a loss: from a studio's server to its test, which asserts nothing and must
// fail, and to the other places where somebody looks. Every one of these was green once.
func TestATestFailsIfAnythingIsLost(t *testing.T) {
	command := must.Get(buildCommand())(t)
	fails := []ramptest.Fault{ramptest.TransactionFails()}
	decimals := func(n int) func(*ramptest.Service) *rampproof.Config {
		return func(s *ramptest.Service) *rampproof.Config {
			p := proved(s)
			p.Decimals[common.HexToAddress(token)] = n
			return p
		}
	}
	for _, test := range []struct {
		name   string
		place  func(*ramptest.Service) placer // mints unless set
		faults []ramptest.Fault
		proof  func(*ramptest.Service) *rampproof.Config
		wrap   func(http.Handler) http.Handler
		apply  func(ramp.Step) error
		during func(*studio, *ramptest.PlacedOrder) // instead of waiting for the result
		want   string                               // part of what the test says
	}{
		{name: "a proxy answers 502 once to a failure", faults: fails, wrap: instead(ramp.PathResult, false, 502, 0),
			want: "The game did not give back 100 item_gold."},
		{name: "a proxy answers 502 once to a burn", place: burns, wrap: instead(ramp.PathResult, false, 502, 0),
			want: "The game did not grant 100 item_gold."},
		{name: "the caller's context ends with the call", faults: fails, wrap: instead(ramp.PathResult, false, 200),
			during: func(s *studio, o *ramptest.PlacedOrder) {
				s.service.Advance(0)
				ctx, cancel := context.WithCancel(context.Background())
				s.service.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == ramp.PathResult {
						_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":null}`)
						cancel()
						return
					}
					_, _ = io.WriteString(w,
						`{"success":true,"errorCode":null,"data":{"v1":{"player_id":"player-1",`+
							`"assets":[{"id":"item_gold","balance":"900"}]}}}`)
				}))
				_ = s.service.Deliver(ctx, o, ramptest.Failed)
			}, want: "has not given back 100 item_gold"},
		{name: "payers of another network", faults: fails, proof: func(s *ramptest.Service) *rampproof.Config {
			p := proved(s)
			p.Payers = []common.Address{{1}}
			return p
		}, want: "The game did not give back 100 item_gold."},
		{name: "proof with decimals that are too high", place: burns, proof: decimals(19),
			want: "The game did not grant 100 item_gold."},
		{name: "proof with decimals that are too low", place: burns, faults: []ramptest.Fault{ramptest.BurnsLess()},
			proof: decimals(17),
			want: "burned less on chain than it is about: the game must move nothing: item_gold: 1,000 before the " +
				"call, 1,100 after it, 1,000 expected"},
		{name: "a give-back is rejected", faults: fails, apply: func(step ramp.Step) error {
			if step.Effect.Kind == ramp.GiveBack {
				return ramp.Reject("BAG_FULL")
			}
			return nil
		}, want: "100 item_gold"},
		{name: "the session expired before the result", faults: fails, wrap: instead(ramp.PathResult, false, 200),
			during: func(s *studio, _ *ramptest.PlacedOrder) { s.expire(); s.service.Advance(24 * time.Hour) },
			want:   "SESSION_EXPIRED"},
		{name: "the path of the result is unknown", faults: fails, wrap: instead(ramp.PathResult, false, 404),
			want: "100 item_gold"},
		{name: "a result is answered 201", faults: fails, wrap: instead(ramp.PathResult, false, 201),
			want: "100 item_gold"},
		{name: "a mint is answered 201", wrap: instead(ramp.PathResult, true, 201), want: "HTTP 201"},
		{name: "a mint is answered 500 for 13 hours", wrap: instead(ramp.PathResult, true, 500),
			want: "Gave up after 20 attempts. The game never confirmed."},
		{name: "a mint is rejected after it was taken", wrap: instead(ramp.PathValidate, true, 403),
			want: "was rejected: the game must move nothing"},
		{name: "a validate call fails after the mint was taken", wrap: instead(ramp.PathValidate, true, 500),
			want: "The game failed with HTTP 500 and NO. The game took 100 item_gold nevertheless."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, test.proof, test.wrap)
			s.apply = test.apply
			place := mints
			if test.place != nil {
				place = test.place
			}
			order, _ := s.order(t.Context(), place, test.faults...) // a test that looks at no error
			if test.during != nil {
				test.during(s, order)
			} else {
				s.service.Advance(24 * time.Hour)
			}
			assert.Equal(t, 1, places(t, s.service, command))
			failed, said := s.test.end()
			assert.True(t, failed, said)
			assert.Contains(t, said, test.want)
		})
	}
}

// What is no loss does not fail a test.
func TestATestIsGreenIfNothingIsLost(t *testing.T) {
	command := must.Get(buildCommand())(t)
	fails := ramptest.TransactionFails()
	placed := func(place func(*ramptest.Service) placer, pass time.Duration,
		faults ...ramptest.Fault) func(*testing.T, *studio) {
		return func(t *testing.T, s *studio) { s.place(t, place, faults...); s.service.Advance(pass) }
	}
	lost := ramptest.Perhaps(ramptest.LostAnswer(ramptest.OnResult))
	for name, play := range map[string]func(*testing.T, *studio){
		"nothing":                   func(*testing.T, *studio) {},
		"a mint":                    placed(mints, time.Minute),
		"a failed mint":             placed(mints, time.Minute, fails),
		"a burn":                    placed(burns, time.Minute),
		"pending on purpose":        placed(burns, time.Hour, ramptest.StaysPending()),
		"a result that never comes": placed(mints, time.Hour, fails, ramptest.ResultNever()),
		"every answer is lost":      placed(mints, 2*time.Second, fails, lost, lost),
		"a UUID is unused": func(t *testing.T, s *studio) {
			must.Get(s.client.Initialize(t.Context(), request()))(t)
		},
		"a burn of less than the order is about": func(t *testing.T, s *studio) {
			s.place(t, burns, ramptest.BurnsLess())
			s.service.Advance(24 * time.Hour)
			assert.Equal(t, int64(1000), s.owns["item_gold"])
		},
		"an answer to validate is lost": func(t *testing.T, s *studio) {
			_, err := s.order(t.Context(), mints, ramptest.LostAnswer(ramptest.OnValidate))
			require.ErrorIs(t, err, ramptest.ErrLostAnswer)
		},
		"an expired session, after a new login": func(t *testing.T, s *studio) {
			s.place(t, mints, fails)
			must.Get(s.service.Assets(t.Context(),
				ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-2")}))(t)
			s.expire()
			s.service.Advance(time.Minute)
		},
		"rejected": func(t *testing.T, s *studio) {
			clear(s.owns)
			_, err := s.order(t.Context(), mints)
			require.Error(t, err)
		},
		"a contradiction is rejected": func(t *testing.T, s *studio) {
			o := s.place(t, mints)
			s.service.Advance(time.Minute)
			require.Error(t, s.service.Deliver(t.Context(), o, ramptest.Failed))
		},
		"an outage of the server": func(t *testing.T, s *studio) {
			calls := 0
			s.apply = func(ramp.Step) error {
				if calls++; calls > 1 && calls < 4 {
					return errors.New("the database is unreachable")
				}
				return nil
			}
			s.place(t, burns)
			s.service.Advance(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, proved, nil)
			play(t, s)
			assert.Zero(t, places(t, s.service, command))
			failed, said := s.test.end()
			assert.False(t, failed, said)
		})
	}
}

// A game that asks the chain answers HTTP 500 if its settings are not those of the chain. A
// delivery and the test name what differs, because the game's log names only what the node says.
func TestAResultThatTheChainDoesNotConfirmIsExplained(t *testing.T) {
	internal := instead("/api/result", false, http.StatusInternalServerError)
	for _, test := range []struct {
		name  string
		proof func(*ramptest.Service) *rampproof.Config
		wrap  func(http.Handler) http.Handler
		start ramp.Network
		fails []ramptest.Fault
		hint  string
	}{
		{"a failure that the ramp did not pay for", learning, nil, ramp.Testnet,
			[]ramptest.Fault{ramptest.TransactionFails()},
			" (the player paid for this failed transaction of type 0x2: the game's rampproof.Proof accepts only " +
				"those of the ramp, as TransactionType(7) makes them, unless it sets AnyFailure)"},
		{"a failure, and rampproof.Confirmed", nil, internal, ramp.Testnet,
			[]ramptest.Fault{ramptest.TransactionFails()}, ""},
		{"another network", proved, internal, ramp.Mainnet, nil, " (the transaction is on mainnet, but the game " +
			"asked /rpc/testnet: its ramp.Terms and its ramp.RPC must be for one network)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, test.proof, test.wrap)
			r := request()
			r.Intent.Network = test.start
			started := must.Get(s.client.Initialize(t.Context(), r))(t)
			order := must.Get(s.service.Mint(t.Context(), started.UUID, session1, ramp.NewAmount(10), test.fails...))(t)
			if test.hint == "" { // the server looks, as with rampproof.Confirmed
				_, err := s.chain.Receipt(t.Context(), order.TxHash)
				require.ErrorIs(t, err, ramp.ErrNotFound) // yet
			}
			// as the server would, which waits for 5 seconds for another network
			must.Get(s.chain.BlockNumber(t.Context()))(t)
			sent := s.service.Advance(time.Second)
			require.Len(t, sent, 1)
			assert.ErrorContains(t, sent[0].Err, "HTTP 500")
			assert.ErrorContains(t, sent[0].Err, test.hint)
			failed, said := s.test.end()
			assert.True(t, failed)
			assert.Contains(t, said, "The game answered HTTP 500."+test.hint)
			assert.Equal(t, strings.Contains(test.hint, "rampproof"), strings.Contains(said, "rampproof"))
		})
	}
}

// An identifier in right-to-left text reorders neither sentences nor lists.
func TestRightToLeftIdentifiersAreIsolated(t *testing.T) {
	const gold = "זהב"
	s := open(t, nil, nil)
	s.owns = map[string]int64{gold: 1000}
	s.apply = func(step ramp.Step) error {
		if step.Effect.Kind == ramp.GiveBack {
			s.owns[gold] -= 100 // and what it gives back is lost
		}
		return nil
	}
	asked := request()
	asked.Intent.Materials = []ramp.Item{{ID: gold, Amount: ramp.NewAmount(100),
		IconURL: "https://example.com/gold.png"}}
	started := must.Get(s.client.Initialize(t.Context(), asked))(t)
	order := must.Get(s.service.Mint(t.Context(), started.UUID, session1, ramp.NewAmount(10),
		ramptest.TransactionFails()))(t)
	s.service.Advance(time.Minute)
	const isolated = "100 \u2068" + gold + "\u2069"
	for _, path := range []string{"/control/orders", "/", "/orders/" + order.UUID.String()} {
		answer := must.Get(s.service.Client().Get(s.service.URL() + path))(t)
		body := must.Get(io.ReadAll(answer.Body))(t)
		assert.Contains(t, string(body), isolated, path)
	}
	_, said := s.test.end()
	assert.Contains(t, said, isolated)
}

// commandFolder has the command that buildCommand builds once, which the places below include.
var commandFolder string

var buildCommand = sync.OnceValues(func() (binary string, err error) {
	if commandFolder, err = os.MkdirTemp("", "ramp"); err != nil {
		return "", err
	}
	binary = filepath.Join(commandFolder, "ramp")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/ramp").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return binary, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if commandFolder != "" {
		_ = os.RemoveAll(commandFolder)
	}
	os.Exit(code)
}

// places returns how many orders need attention, which every place where somebody looks
// must agree on: the API's list, the page's list and its count, and the command. That of the
// test itself is left to the caller.
func places(t *testing.T, s *ramptest.Service, command string) (n int) {
	t.Helper()
	client := s.Client()
	plain := func(page string) string {
		return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page,
			" "))), " ")
	}
	get := func(path string) string {
		answer, err := client.Get(s.URL() + path)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
		return string(body)
	}
	var list control.OrderList
	require.NoError(t, json.Unmarshal([]byte(get("/control/orders?attention=true")), &list))
	n = list.Total
	assert.Len(t, list.Orders, n)
	page := get("/?show=attention")
	assert.Equal(t, n, strings.Count(page, `id="order-`), "the list of the page")
	if n > 0 || !strings.Contains(plain(page), "Connect your game") { // an empty list has no counts
		assert.Contains(t, plain(page), fmt.Sprintf("Needs attention %d ", n), "the count of the page")
	}
	for _, o := range list.Orders {
		own := plain(get("/orders/" + o.UUID.String()))
		assert.Contains(t, own, o.Head, "its own page")
		assert.Equal(t, o.TxHash != common.Hash{},
			regexp.MustCompile("Mine the transaction|Send the result").MatchString(own), "its buttons")
	}

	host, err := url.Parse(s.URL())
	require.NoError(t, err)
	listens := httptest.NewServer(&httputil.ReverseProxy{Transport: client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }})
	defer listens.Close()
	run := exec.Command(command, "orders", "-at", listens.URL, "-attention", "-json")
	printed, _ := run.Output()
	var shown control.OrderList
	require.NoError(t, json.Unmarshal(printed, &shown), "%s", printed)
	assert.Equal(t, n, shown.Total, "the command")
	assert.Equal(t, n > 0, run.ProcessState.ExitCode() != 0, "the exit status of the command")
	return n
}
