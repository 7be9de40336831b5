package hosttest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The mounts of docs/frameworks.md stand in these functions, line by line.

func mountGin(_ *testing.T, handler *ramp.Handler) *httptest.Server {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.NoRoute(gin.WrapH(handler))
	return httptest.NewServer(engine)
}

func mountEcho(_ *testing.T, handler *ramp.Handler) *httptest.Server {
	router := echo.New()
	router.Any("/api/*", echo.WrapHandler(handler))
	router.RouteNotFound("/*", echo.WrapHandler(handler))
	return httptest.NewServer(router)
}

func mountChi(_ *testing.T, handler *ramp.Handler) *httptest.Server {
	router := chi.NewRouter()
	router.NotFound(handler.ServeHTTP)
	router.MethodNotAllowed(handler.ServeHTTP)
	return httptest.NewServer(router)
}

func mountFiber(t *testing.T, handler *ramp.Handler) *httptest.Server {
	app := fiber.New(fiber.Config{
		ReadBufferSize: 32 << 10, // for a long access token
		BodyLimit:      2 << 20,  // above the 1 MiB of the handler, which logs what is larger
		ErrorHandler: func(c *fiber.Ctx, _ error) error {
			return c.SendStatus(http.StatusInternalServerError)
		},
		DisableStartupMessage: true,
	})
	app.All("/*", func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), 20*time.Second)
		defer cancel()
		reply := handler.Answer(ctx, c.Method(), c.Path(), c.GetReqHeaders(), c.BodyRaw())
		for name := range reply.Header() {
			c.Set(name, reply.Header().Get(name))
		}
		return c.Status(reply.Status).Send(reply.Body)
	})
	return serveFiber(t, app)
}

// serveFiber serves an app, which closes its listener itself.
func serveFiber(t *testing.T, app *fiber.App) *httptest.Server {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener) }()
	t.Cleanup(func() {
		check(t, app.Shutdown())
		check(t, <-ended)
	})
	unused := httptest.NewUnstartedServer(nil)
	check(t, unused.Listener.Close())
	unused.URL = "http://" + listener.Addr().String()
	return unused
}

var mounts = map[string]func(*testing.T, *ramp.Handler) *httptest.Server{
	"gin": mountGin, "echo": mountEcho, "chi": mountChi, "Fiber": mountFiber,
}

// Behind each mount, an order goes its way, and whatever may be a misdirected result is answered with
// 500, so that the service sends it again.
func TestTheMountsAnswerWithWhatTheHandlerSays(t *testing.T) {
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			g := newGame(t, mount)
			id := uuid.New()
			g.validate(id)
			for _, path := range []string{"/api/results", "/api/result/", "/elsewhere/result", "/API/RESULT"} {
				if status := g.postResult(path, uuid.New(), nil); status != http.StatusInternalServerError {
					t.Errorf("%s: HTTP %d instead of 500", path, status)
				}
			}
			long := http.Header{"X-Dapp-Authorization": {"Bearer " + strings.Repeat("x", 20_000)}}
			if status := g.postResult(ramp.PathResult, uuid.New(), long); status != http.StatusInternalServerError {
				t.Errorf("a long token: HTTP %d instead of 500", status)
			}
			packed := http.Header{"Content-Encoding": {"gzip"}}
			if status := g.postResult(ramp.PathResult, uuid.New(), packed); status != http.StatusInternalServerError {
				t.Errorf("a packed body: HTTP %d instead of 500", status)
			}
			if status := g.post(http.MethodGet, "/api/result", nil, nil); status != http.StatusNotFound &&
				status != http.StatusMethodNotAllowed {
				t.Errorf("a GET without a signature: HTTP %d", status)
			}
			if status := g.announce(5 << 20); status != http.StatusInternalServerError {
				t.Errorf("5 MiB: HTTP %d instead of 500", status)
			}
			if status := g.fail(id); status != http.StatusOK || g.gold != 1000 {
				t.Errorf("the result: HTTP %d, %d gold", status, g.gold)
			}
		})
	}
}

// What Fiber does by itself would end the deliveries of a result.
func TestFiberWithItsDefaultsLosesResults(t *testing.T) {
	g := newGame(t, func(t *testing.T, handler *ramp.Handler) *httptest.Server {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post(ramp.PathResult, func(c *fiber.Ctx) error {
			reply := handler.Answer(c.UserContext(), c.Method(), c.Path(), c.GetReqHeaders(), c.Body())
			return c.Status(reply.Status).Send(reply.Body)
		})
		return serveFiber(t, app)
	})
	for what, call := range map[string]struct {
		path   string
		header http.Header
		want   int
	}{
		"a path that no route matches": {path: "/api/results", want: 404},
		"a token of 4 KiB": {path: ramp.PathResult, want: 431,
			header: http.Header{"X-Dapp-Authorization": {"Bearer " + strings.Repeat("x", 4096)}}},
	} {
		if got := g.post(http.MethodPost, call.path, nil, call.header); got != call.want {
			t.Errorf("%s: HTTP %d instead of %d", what, got, call.want)
		}
	}
	if got := g.announce(5 << 20); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a body above its limit: HTTP %d instead of 413", got)
	}
}

// The document shows what is tested here.
func TestTheDocumentHasTheseMounts(t *testing.T) {
	text := string(must.Get(os.ReadFile("../../../../docs/frameworks.md"))(t))
	code := string(must.Get(os.ReadFile("mounts_test.go"))(t))
	_, section, _ := strings.Cut(text, "\n## Mounts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```go\n")[1:]
	if len(blocks) != len(mounts) {
		t.Fatalf("%d blocks, %d mounts", len(blocks), len(mounts))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		indented := "\t" + strings.TrimSuffix(strings.ReplaceAll(block, "\n", "\n\t"), "\t")
		indented = strings.ReplaceAll(indented, "\t\n", "\n")
		if !strings.Contains(strings.ReplaceAll(code, "\t\tDisableStartupMessage: true,\n", ""), indented) {
			t.Errorf("mounts_test.go does not have\n%s", indented)
		}
	}
}

// announce sends the headers of a result of so many bytes, and returns the status of the answer, which
// comes without the body.
func (g *game) announce(size int) (status int) {
	g.t.Helper()
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(g.url, "http://")))(g.t)
	defer conn.Close()
	must.Get(fmt.Fprintf(conn,
		"POST %s HTTP/1.1\r\nHost: game\r\nX-HMAC-SIGNATURE: %064d\r\nContent-Length: %d\r\n\r\n",
		ramp.PathResult, 0, size))(g.t)
	answer := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(g.t)
	check(g.t, answer.Body.Close())
	return answer.StatusCode
}

// postResult delivers the result of an order that the game does not know.
func (g *game) postResult(path string, id uuid.UUID, header http.Header) int {
	body := resultOf(g.t, id)
	if header.Get("Content-Encoding") == "gzip" {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		must.Get(w.Write(body))(g.t)
		check(g.t, w.Close())
		body = packed.Bytes()
	}
	return g.post(http.MethodPost, path, body, header)
}
