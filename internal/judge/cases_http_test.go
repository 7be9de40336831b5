package judge_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// dies is a server that answers nothing any more after one call.
func dies(of func(r *http.Request, body []byte) bool) mutant {
	var mu sync.Mutex
	dead := false
	m := replies(func(_ *studio, r *http.Request, body []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		dead = dead || of(r, body)
		return dead
	}, 503, `{}`)
	m.timeout = time.Second // so that the judge soon knows
	return m
}

// turns is a server that serves another method as if it were the right one.
func turns(path, from, to string) mutant {
	return bends(func(_ *studio, r *http.Request, _ []byte) {
		if r.URL.Path == path && r.Method == from {
			r.Method = to
		}
	})
}

func typeOf(r *http.Request) string { return r.Header.Get("Content-Type") }

func httpMutants() map[string]mutant {
	m := map[string]mutant{"handler": breaks(503)}
	for path, name := range map[string]string{ramp.PathValidate: "http/validate-", ramp.PathResult: "http/result-",
		ramp.PathAssets: "http/assets-"} {
		picky := func(reject func(r *http.Request) bool) mutant {
			return mutant{wrap: func(_ *studio, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path && reject(r) {
						reply(w, 415, no("NO"))
						return
					}
					next.ServeHTTP(w, r)
				})
			}}
		}
		m[name+"type-none"] = picky(func(r *http.Request) bool { return typeOf(r) == "" })
		m[name+"type-octets"] = picky(func(r *http.Request) bool { return typeOf(r) == "application/octet-stream" })
		m[name+"type-text"] = picky(func(r *http.Request) bool { return strings.HasPrefix(typeOf(r), "text/plain") })
		if path == ramp.PathAssets {
			continue
		}
		m[name+"method"] = turns(path, http.MethodGet, http.MethodPost)
		m[name+"charset"] = picky(func(r *http.Request) bool {
			return strings.HasPrefix(typeOf(r), "application/json") && typeOf(r) != "application/json"
		})
		m[name+"chunked"] = picky(func(r *http.Request) bool { return r.ContentLength < 0 })
		m[name+"slow"] = mutant{wrap: func(_ *studio, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path { // what comes first is taken for all
					b := make([]byte, 1<<20)
					n, _ := r.Body.Read(b)
					r.Body = io.NopCloser(bytes.NewReader(b[:n]))
				}
				next.ServeHTTP(w, r)
			})
		}}
		m[name+"large"] = dies(func(r *http.Request, body []byte) bool {
			return len(body) > 4<<20 && r.URL.Path == path
		})
		m[name+"deep"] = dies(func(r *http.Request, body []byte) bool {
			return bytes.Contains(body, []byte("[[[[")) && r.URL.Path == path
		})
	}
	return m
}

// breaks is a server behind a circuit breaker, which opens for a second after every tenth
// result.
func breaks(statuses ...int) mutant {
	var mu sync.Mutex
	var results int
	var until time.Time
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		mu.Lock()
		if r.URL.Path == ramp.PathResult && time.Now().After(until) {
			if results++; results%10 == 0 {
				until = time.Now().Add(time.Second)
			}
		}
		open, status := time.Now().Before(until), statuses[results/10%len(statuses)]
		mu.Unlock()
		if open {
			reply(w, status, "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A layer before the handler is one finding, the first one, and no case accuses the handler
// of what it did not answer.
func TestALayerBeforeTheHandlerIsOneFinding(t *testing.T) {
	skipSlow(t, false)
	t.Parallel()
	inVirtualTime(t, breaks(502, 503, 504), func(t *testing.T, s *studio) {
		s.target.Timeout = 10 * time.Second
		verdicts := newJudge(t, s).Run(t.Context(), judge.Cases(), 4, nil)
		assert.Equal(t, []string{"handler"}, outcomes(verdicts, judge.Failed))
		causes := judge.Causes(verdicts)
		assert.Equal(t, "handler", causes[0].First().Case.ID)
		assert.Contains(t, causes[0].First().Saw, "something before the handler answered HTTP 503 to ")
		assert.Contains(t, causes[0].First().Note, "must not count those")
	})
}
