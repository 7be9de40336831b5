package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// dies is a server that answers nothing any more after one call.
func dies(of func(r *http.Request, body []byte) bool) mutant {
	var mu sync.Mutex
	dead := false
	m := layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		mu.Lock()
		dead = dead || of(r, body)
		gone := dead
		mu.Unlock()
		if gone {
			reply(w, 503, `{}`)
			return
		}
		next.ServeHTTP(w, r)
	})
	m.patience = time.Second // so that the judge soon knows
	return m
}

// turns is a server that serves another method as if it were the right one.
func turns(path, from, to string) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if r.URL.Path == path && r.Method == from {
			r.Method = to
		}
		next.ServeHTTP(w, r)
	})
}

func transportMutants() map[string]mutant {
	m := map[string]mutant{
		"assets-long-header":   dies(func(r *http.Request, _ []byte) bool { return len(r.Header.Get(ramp.HeaderSession)) > 1000 }),
		"others-while-stalled": {wrap: oneAtATime, patience: time.Second, waits: true},
		"answers-after-all":    says(ramp.PathResult, given("receipt"), 500, `{}`),
	}
	for path, name := range map[string]string{ramp.PathValidate: "validate-", ramp.PathResult: "result-"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			m[name+"method/"+strings.ToLower(method)] = turns(path, method, http.MethodPost)
		}
		picky := func(reject func(r *http.Request) bool) mutant {
			return mutant{wrap: func(_ *studio, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path && reject(r) {
						reply(w, 415, `{"success":false,"errorCode":"NO","data":null}`)
						return
					}
					next.ServeHTTP(w, r)
				})
			}}
		}
		m[name+"charset"] = picky(func(r *http.Request) bool { return r.Header.Get("Content-Type") != "application/json" })
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
		m[name+"cut-off"] = mutant{wrap: func(_ *studio, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body) // what it got is taken for all
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				next.ServeHTTP(w, r)
			})
		}}
		m[name+"large"] = dies(func(r *http.Request, body []byte) bool { return len(body) > 4<<20 && r.URL.Path == path })
		m[name+"deep"] = dies(func(r *http.Request, body []byte) bool {
			return bytes.Contains(body, []byte("[[[[")) && r.URL.Path == path
		})
	}
	return m
}

// oneAtATime is a server with one worker: a body that stalls holds up everybody.
func oneAtATime(_ *studio, next http.Handler) http.Handler {
	var worker sync.Mutex
	var once sync.Once
	var quick atomic.Int64
	busy := make(chan struct{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1<<16 {
			worker.Lock()
			defer worker.Unlock()
			once.Do(func() { close(busy) })
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		// One call measures before the bodies stall. Later ones find the worker
		// at work, however late the bodies arrive.
		if quick.Add(1) > 1 {
			select {
			case <-busy:
			case <-r.Context().Done():
				return
			}
		}
		worker.Lock()
		defer worker.Unlock()
		next.ServeHTTP(w, r)
	})
}
