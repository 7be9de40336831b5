package hosttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	kratos "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/zeromicro/go-zero/core/conf"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/rest"
)

// frameworks serve the handler. Those that are final lose a result: they answer it with what
// the service does not repeat. The tests are of the table in docs/frameworks.md.
var frameworks = []struct {
	name    string
	serve   func(t *testing.T, h *ramp.Handler) *httptest.Server
	limit   time.Duration // after which the framework ends the context; 0 if it does not
	breaker bool          // whether rightful errors of others lose a result
}{
	{"go-zero with its defaults", goZero(""), 3 * time.Second, true},
	{"go-zero as in the table", goZero("go-zero"), 0, false},
	{"kratos with its defaults", serveKratos(), time.Second, false},
	{"kratos as in the table", serveKratos(kratos.Timeout(20 * time.Second)), 0, false},
	{"net/http with TimeoutHandler", func(_ *testing.T, h *ramp.Handler) *httptest.Server {
		return httptest.NewServer(http.TimeoutHandler(h, brief, ""))
	}, brief, false},
	{"chi with Timeout", func(_ *testing.T, h *ramp.Handler) *httptest.Server {
		router := chi.NewRouter()
		router.With(chimiddleware.Timeout(brief)).Post(ramp.PathResult, h.Result)
		router.With(chimiddleware.Timeout(brief)).Post(ramp.PathValidate, h.Validate)
		return httptest.NewServer(router)
	}, brief, false},
	//nolint:staticcheck // SA1019: the table says what it does
	{"echo with Timeout", echoWith(echomiddleware.TimeoutWithConfig(echomiddleware.TimeoutConfig{Timeout: brief})),
		brief, false},
	{"echo with ContextTimeout", echoWith(echomiddleware.ContextTimeout(brief)), brief, false},
}

const brief = 300 * time.Millisecond

func echoWith(middleware echo.MiddlewareFunc) func(*testing.T, *ramp.Handler) *httptest.Server {
	return func(_ *testing.T, h *ramp.Handler) *httptest.Server {
		router := echo.New()
		router.POST(ramp.PathResult, echo.WrapHandler(http.HandlerFunc(h.Result)), middleware)
		router.POST(ramp.PathValidate, echo.WrapHandler(http.HandlerFunc(h.Validate)))
		return httptest.NewServer(router)
	}
}

func serveKratos(options ...kratos.ServerOption) func(*testing.T, *ramp.Handler) *httptest.Server {
	return func(_ *testing.T, h *ramp.Handler) *httptest.Server {
		server := kratos.NewServer(options...)
		server.HandleFunc(ramp.PathResult, h.Result)
		server.HandleFunc(ramp.PathValidate, h.Validate)
		return httptest.NewServer(server)
	}
}

// goZero reads the settings of a row of the table, which are YAML.
func goZero(row string) func(*testing.T, *ramp.Handler) *httptest.Server {
	return func(t *testing.T, h *ramp.Handler) *httptest.Server {
		logx.Disable()
		var c rest.RestConf
		check(t,
			conf.LoadFromYamlBytes([]byte("Name: game\nHost: 127.0.0.1\nPort: 0\n"+strings.Join(settings(t, row),
				"\n")), &c))
		server := must.Get(rest.NewServer(c))(t)
		server.AddRoutes([]rest.Route{{Method: http.MethodPost, Path: ramp.PathResult, Handler: h.Result},
			{Method: http.MethodPost, Path: ramp.PathValidate, Handler: h.Validate}})
		configured := make(chan *http.Server, 1)
		go server.StartWithOpts(func(s *http.Server) { configured <- s })
		t.Cleanup(server.Stop)
		inner := <-configured // which listens on a port that only it knows
		outer := httptest.NewUnstartedServer(inner.Handler)
		outer.Config.ReadTimeout, outer.Config.WriteTimeout = inner.ReadTimeout, inner.WriteTimeout
		outer.Start()
		return outer
	}
}

// settings returns what the last cell of a row of the table has in backquotes.
func settings(t *testing.T, row string) (list []string) {
	t.Helper()
	if row == "" {
		return nil
	}
	text := must.Get(os.ReadFile("../../../../docs/frameworks.md"))(t)
	line := regexp.MustCompile(`(?m)^\| ` + row + `\b.*\| (.*) \|$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatalf("docs/frameworks.md has no row %q", row)
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line[1], -1) {
		list = append(list, m[1])
	}
	return list
}

func TestTheTableHasTheSettingOfKratos(t *testing.T) {
	if list := settings(t, "kratos"); len(list) != 1 || list[0] != "http.Timeout(20*time.Second)" {
		t.Errorf("the row of kratos has %q: change the test too", list)
	}
}

func TestTheTableHasTheSettingsOfFiber(t *testing.T) {
	spaces := regexp.MustCompile(" +")
	code := must.Get(os.ReadFile("../../../../examples/frameworks/fiber/main.go"))(t)
	example := spaces.ReplaceAllString(string(code), " ")
	named := 0
	for _, setting := range settings(t, "Fiber") {
		if name, _, isSetting := strings.Cut(setting, ": "); isSetting {
			named++
			if !strings.Contains(example, setting+",") {
				t.Errorf("the example has another %s than %s", name, setting)
			}
		}
	}
	if named != 2 {
		t.Errorf("the row of Fiber has %d settings with a value", named)
	}
}

// game is a player with gold, an order that waits for its result, and a service.
type game struct {
	t       *testing.T
	key     ramp.HMACKey
	url     string
	gold    int64
	confirm func(context.Context) error // how long a result takes
	client  *http.Client
}

func (g *game) Authenticate(context.Context, ramp.Session) error { return nil }

func (g *game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

func (g *game) apply(ctx context.Context, step ramp.Step) error {
	if step.Order.State != ramp.OrderAccepted && g.confirm != nil {
		if err := g.confirm(ctx); err != nil {
			return err
		}
	}
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		g.gold += delta
	}
	return nil
}

func newGame(t *testing.T, serve func(*testing.T, *ramp.Handler) *httptest.Server) *game {
	t.Helper()
	key := must.Get(ramp.TextKey("a key of these tests"))(t)
	signer := must.Get(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
	g := &game{t: t, key: key, gold: 1000, client: &http.Client{Transport: &http.Transport{}}}
	store := &ramp.MemoryStore{Apply: g.apply}
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true}))(t)
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Players: g, Store: store, Terms: terms, Key: key,
		Signer: signer,
		Logger: slog.New(slog.DiscardHandler)}))(t)
	server := serve(t, handler)
	t.Cleanup(server.Close)
	t.Cleanup(g.client.CloseIdleConnections)
	g.url = server.URL
	return g
}

var intent = ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
	From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(100)}},
	To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3",
		Amount: ramp.NewAmount(1)}}}

// validate has a mint approved.
func (g *game) validate(id uuid.UUID) {
	g.t.Helper()
	body := must.Get(json.Marshal(&ramp.ValidateRequest{UserSig: "0xabcd",
		UserAddress: "0xbB00000000000000000000000000000000000000", ProjectID: "project-1",
		Digest: sha256.Sum256(id[:]), UUID: id, Intent: intent}))(g.t)
	if status := g.post(http.MethodPost, ramp.PathValidate, body, nil); status != http.StatusOK || g.gold != 900 {
		g.t.Fatalf("validate: HTTP %d, %d gold", status, g.gold)
	}
}

// fail delivers the result that a mint has failed.
func (g *game) fail(id uuid.UUID) (status int) {
	g.t.Helper()
	return g.post(http.MethodPost, ramp.PathResult, resultOf(g.t, id), nil)
}

// resultOf returns the result that a mint has failed.
func resultOf(t testing.TB, id uuid.UUID) []byte {
	return must.Get(json.Marshal(&ramp.Result{SessionID: "alice", UUID: id,
		TxHash:  fmt.Sprintf("0x%x", sha256.Sum256(id[:])),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}, Intent: intent}))(t)
}

// post makes a call with a signature, unless it is a GET, and with more headers.
func (g *game) post(method, path string, body []byte, more http.Header) (status int) {
	g.t.Helper()
	request := must.Get(http.NewRequestWithContext(g.t.Context(), method, g.url+path, bytes.NewReader(body)))(g.t)
	request.Header = http.Header{"Content-Type": {"application/json"}}
	if method == http.MethodPost {
		request.Header.Set(ramp.HeaderHMAC, g.key.Sign(body))
	}
	request.Header.Set(ramp.HeaderSession, "alice")
	request.Header.Set(ramp.HeaderAuthorization, "Bearer token")
	for name, values := range more {
		request.Header.Set(name, values[0])
	}
	answer := must.Get(g.client.Do(request))(g.t)
	check(g.t, answer.Body.Close())
	return answer.StatusCode
}

// The results of orders that this game does not know are rightly answered with 500. None of
// them may keep the genuine result of a player from its order.
func TestABreakerLosesResults(t *testing.T) {
	const unknown = 60
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			g := newGame(t, f.serve)
			id := uuid.New()
			g.validate(id)
			for range unknown {
				g.fail(uuid.New())
			}
			lost := 0 // the breaker lets some calls through, at random
			for range unknown {
				if g.fail(uuid.New()) != http.StatusInternalServerError {
					lost++
				}
			}
			if f.breaker != (lost > 0) {
				t.Errorf("%d of %d results were answered otherwise than with 500", lost, unknown)
			}
			if status := g.fail(id); !f.breaker && (status != http.StatusOK || g.gold != 1000) {
				t.Errorf("the genuine result: HTTP %d, %d gold", status, g.gold)
			}
		})
	}
}

// A result may wait for the chain, and what it waits for may ignore its context. The handler answers 500
// before the framework answers in its place.
func TestATimeoutLosesNoResult(t *testing.T) {
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, f.serve)
			id := uuid.New()
			g.validate(id)
			longer, want := 3500*time.Millisecond, http.StatusOK // longer than the defaults above
			if f.limit > 0 {
				longer, want = time.Minute, http.StatusInternalServerError
			}
			answered := make(chan struct{})
			g.confirm = func(context.Context) error {
				select {
				case <-answered:
				case <-time.After(longer):
				}
				return nil
			}
			if status := g.fail(id); status != want {
				t.Errorf("HTTP %d instead of %d", status, want)
			}
			close(answered)
		})
	}
}
