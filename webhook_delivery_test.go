package ramp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// bank lists the gold of a vault.
type bank struct {
	noPlayers
	*vault
}

func (b bank) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(b.gold[s.ID])}}}, nil
}

// For an hour, every result meets one of these. The service delivers by the schedule of
// the interface (8), and each order must end rightly once the trouble is over.
func TestAnHourOfTroubleLosesNoOrder(t *testing.T) {
	otherKey, err := ramp.TextKey("the key before the rotation")
	require.NoError(t, err)
	before := func(change func(http.ResponseWriter, *http.Request)) func(*ramp.HandlerConfig) func(http.Handler) http.Handler {
		return func(*ramp.HandlerConfig) func(http.Handler) http.Handler {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					change(w, r)
					next.ServeHTTP(w, r)
				})
			}
		}
	}
	path := func(change func(string) string) func(*ramp.HandlerConfig) func(http.Handler) http.Handler {
		return before(func(_ http.ResponseWriter, r *http.Request) { r.URL.Path = change(r.URL.Path) })
	}
	configured := func(change func(*ramp.HandlerConfig)) func(*ramp.HandlerConfig) func(http.Handler) http.Handler {
		return func(c *ramp.HandlerConfig) func(http.Handler) http.Handler {
			change(c)
			return func(next http.Handler) http.Handler { return next }
		}
	}
	failing := func(fail func() error) func(*ramp.HandlerConfig) func(http.Handler) http.Handler {
		return configured(func(c *ramp.HandlerConfig) { c.Store, c.Players, c.Game = nil, nil, &recorder{result: fail} })
	}
	for name, trouble := range map[string]func(*ramp.HandlerConfig) func(http.Handler) http.Handler{
		"the key is wrong":            configured(func(c *ramp.HandlerConfig) { c.Key = otherKey }),
		"the limit is too low":        configured(func(c *ramp.HandlerConfig) { c.MaxBody = 100 }),
		"another database":            failing(func() error { return ramp.ErrOrderUnknown }),
		"the game panics":             failing(func() error { panic("a bug") }),
		"the game aborts":             failing(func() error { panic(http.ErrAbortHandler) }),
		"the call is canceled":        failing(func() error { return context.Canceled }),
		"the game rejects with 401":   failing(func() error { return &ramp.Rejection{Status: 401, Code: "INVALID_USER"} }),
		"the game rejects with 200":   failing(func() error { return &ramp.Rejection{Status: 200, Code: ramp.CodePermanent} }),
		"the game rejects with 400":   failing(func() error { return &ramp.Rejection{Status: 400, Code: "INVALID_MESSAGE"} }),
		"the game rejects with a NUL": failing(func() error { return ramp.Reject("\x00\xff") }),
		"the codes have a bug": configured(func(c *ramp.HandlerConfig) {
			c.Key, c.TranslateCode = otherKey, func(ramp.Code) ramp.Code { panic("a bug") }
		}),
		"a proxy removes the HMAC": before(func(_ http.ResponseWriter, r *http.Request) { r.Header.Del(ramp.HeaderHMAC) }),
		"a proxy repeats the HMAC": before(func(_ http.ResponseWriter, r *http.Request) {
			r.Header.Add(ramp.HeaderHMAC, r.Header.Get(ramp.HeaderHMAC))
		}),
		"a proxy cuts the HMAC":      before(func(_ http.ResponseWriter, r *http.Request) { r.Header.Set(ramp.HeaderHMAC, "ab") }),
		"a proxy changes the body":   before(func(_ http.ResponseWriter, r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }),
		"a proxy drops the body":     before(func(_ http.ResponseWriter, r *http.Request) { r.Body = http.NoBody }),
		"a middleware has a limit":   before(func(w http.ResponseWriter, r *http.Request) { r.Body = http.MaxBytesReader(w, r.Body, 100) }),
		"the path has a prefix":      path(func(p string) string { return "/ramp" + p }),
		"the path lost its prefix":   path(func(p string) string { return strings.TrimPrefix(p, "/api") }),
		"the path has a slash":       path(func(p string) string { return p + "/" }),
		"the path is in upper case":  path(strings.ToUpper),
		"the connections are broken": before(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(), Handler: http.NotFoundHandler()})
				v := &vault{gold: map[string]int64{}}
				store, err := ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: v.Apply})
				require.NoError(t, err)
				config := ramp.HandlerConfig{Terms: anyTerms, Players: bank{vault: v}, Store: store, Key: testKey(t), Signer: testSigner(t),
					Now: service.Now, Logger: slog.New(slog.DiscardHandler)}
				rightly, err := ramp.NewHandler(config)
				require.NoError(t, err)
				service.SetHandler(rightly)
				client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: testKey(t), HTTPClient: service.Client()})
				require.NoError(t, err)
				var orders []*ramptest.Order
				place := func(session string, of placer, faults ...ramptest.Fault) {
					v.gold[session] = 1000
					request := testRequest()
					request.Intent.Outputs = request.Intent.Materials
					started, err := client.Initialize(t.Context(), request)
					require.NoError(t, err)
					order, err := of(t.Context(), started.UUID, ramp.Session{ID: session, Token: ramp.NewAccessToken("token-" + session)},
						ramp.NewAmount(1), faults...)
					require.NoError(t, err)
					orders = append(orders, order)
				}
				place("minted", service.Mint)
				place("failed", service.Mint, ramptest.TransactionFails())
				place("burned", service.Burn)

				wrongly := config
				inFront := trouble(&wrongly)
				handler, err := ramp.NewHandler(wrongly)
				require.NoError(t, err)
				results := inFront(handler)
				service.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == ramp.PathResult {
						results.ServeHTTP(w, r)
						return
					}
					rightly.ServeHTTP(w, r)
				}))
				for _, delivery := range service.Advance(time.Hour) {
					assert.False(t, delivery.Next.IsZero(), "%s", delivery)
					assert.Contains(t, []int{0, 500}, delivery.Status, "%s", delivery)
				}
				service.SetHandler(rightly)
				service.Advance(12 * time.Hour)
				for _, order := range orders {
					assert.Equal(t, ramptest.Confirmed, service.State(order), "%s", order)
				}
				assert.Equal(t, map[string]int64{"minted": 900, "failed": 1000, "burned": 1100}, v.gold)
			})
		})
	}
}

// Whoever calls the result endpoint, and however, an answer is a confirmation, a
// decision of the game, or one after which the service delivers again.
func FuzzAnswersToResults(f *testing.F) {
	right := resultCall().bytes()
	f.Add("POST", "/api/result", "Content-Length", "7", right, testKey(f).Sign(right), byte(0))
	f.Add("POST", "/ramp/api/RESULT//", "x-hmac-signature", "ab", right, "", byte(1))
	f.Add("GET", "/result", "X-Dapp-Sessionid", "\xff", []byte("[]"), "0x", byte(2))
	f.Add("PUT", "/api/result", "Content-Encoding", "gzip", []byte{}, strings.Repeat("0", 64), byte(3))
	f.Add("POST", "/api/result", "Expect", "100-continue", bytes.Repeat([]byte("x"), 5000), strings.Repeat("0", 64), byte(4))
	f.Add("", "/x/result", "Transfer-Encoding", "chunked", right, testKey(f).Sign(right), byte(5))
	f.Fuzz(func(t *testing.T, method, path, name, value string, body []byte, signature string, answer byte) {
		errs := []error{nil, context.Canceled, &ramp.Rejection{Status: int(answer) * 4, Code: ramp.Code(value)}, ramp.Permanent(nil), ramp.Reject(ramp.Code(value))}
		says := int(answer) % (len(errs) + 1)
		game := &recorder{result: func() error {
			if says == len(errs) {
				panic(value)
			}
			return errs[says]
		}}
		handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: game, Key: testKey(t), Signer: testSigner(t), MaxBody: 4096,
			Logger: slog.New(slog.DiscardHandler), TranslateCode: func(c ramp.Code) ramp.Code { return c + ramp.Code(value) }})
		require.NoError(t, err)
		if answer%2 == 0 { // so that the fuzzer gets further than the HMAC
			signature = testKey(t).Sign(body)
		}
		request := &http.Request{Method: method, URL: &url.URL{Path: path}, ContentLength: int64(len(body)),
			Header: http.Header{name: {value}, ramp.HeaderHMAC: {signature}}, Body: io.NopCloser(bytes.NewReader(body))}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		called := len(game.calls) > 0
		posted := method == http.MethodPost
		ends := strings.HasSuffix(path, "/result")
		switch {
		case posted && path == ramp.PathResult && called && says == 3:
			require.Equal(t, 400, w.Code, "Permanent")
		case posted && path == ramp.PathResult && called && says == 0:
			require.Equal(t, 200, w.Code)
		case posted && ends:
			require.Equal(t, 500, w.Code)
		case path == ramp.PathResult:
			require.Equal(t, 405, w.Code)
		case ends:
			require.Equal(t, 404, w.Code)
		}
		if called {
			require.True(t, posted && path == ramp.PathResult)
		}
	})
}
