package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/report"
	"github.com/token-ramp/ramp-go/ramptest/internal/route"
)

// Handler serves the API below /control, with bodies up to maxBody bytes. allow returns why a request may
// not use it, or nil if it may.
func Handler(e Emulator, allow func(*http.Request) *control.Error, maxBody int64) http.Handler {
	table := new(route.Table)
	describe := func(r *http.Request, _ noQuery) (control.Description, error) {
		return e.Describe(r.Context())
	}
	check := func(r *http.Request, _ noQuery) (control.Checked, error) {
		return e.Check(r.Context())
	}
	orders := func(r *http.Request, q control.OrdersQuery) (control.OrderList, error) {
		return e.Orders(r.Context(), q)
	}
	order := func(r *http.Request, q control.OrderQuery) (control.OrderReport, error) {
		return e.Order(r.Context(), r.PathValue("uuid"), q)
	}
	send := func(r *http.Request, asked control.SendRequest) (control.Sent, error) {
		return e.Send(r.Context(), r.PathValue("uuid"), asked)
	}
	for path, methods := range map[string]map[string]http.HandlerFunc{
		"/control":                    {"GET": get(describe)},
		"/control/check":              {"GET": get(check)},
		"/control/orders":             {"GET": get(orders), "POST": post(e.Start)},
		"/control/orders/{uuid}":      {"GET": get(order)},
		"/control/orders/{uuid}/send": {"POST": body(send)},
		"/control/advance":            {"POST": post(e.Advance)},
		"/control/failures":           {"POST": post(e.Fail)},
		"/control/node":               {"POST": post(e.SetNode)},
		"/control/reset":              {"POST": post(e.Reset)},
		"/control/events":             {"GET": events(e)},
	} {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		table.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if do := methods[r.Method]; do != nil {
				do(w, r)
				return
			}
			w.Header().Set("Allow", allowed)
			write(w, nil,
				report.Errorf(control.CodeMethod, "%s has no method %s, but %s", path, r.Method, allowed))
		}))
	}
	table.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write(w, nil, report.Errorf(control.CodeNotFound, "there is no path %s", r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if denied := allow(r); denied != nil {
			write(w, nil, denied)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		table.ServeHTTP(w, r)
	})
}

// noQuery is the query of a request that has no parameters.
type noQuery struct{}

// get answers a request without a body.
func get[Q, A any](do func(*http.Request, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := readQuery(r.URL.Query(), &q); err != nil {
			write(w, nil, err)
			return
		}
		answer, err := do(r, q)
		write(w, answer, err)
	}
}

// post answers a request with a body.
func post[B, A any](do func(context.Context, B) (A, error)) http.HandlerFunc {
	return body(func(r *http.Request, asked B) (A, error) { return do(r.Context(), asked) })
}

func body[B, A any](do func(*http.Request, B) (A, error)) http.HandlerFunc {
	return get(func(r *http.Request, _ noQuery) (answer A, err error) {
		var asked B
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return answer, report.Errorf(control.CodeInvalid, "the body is too large or was cut off")
		}
		if err := readBody(text, &asked); err != nil {
			return answer, err
		}
		return do(r, asked)
	})
}

// failure is the body of an answer other than HTTP 200.
type failure struct {
	Error *control.Error `json:"error"`
}

// write answers with an answer, or with an error.
func write(w http.ResponseWriter, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		var failed *control.Error
		if !errors.As(err, &failed) {
			failed = report.Errorf(control.CodeGame, "%v", err)
		}
		answer, status = failure{failed}, failed.Code.Status()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(encoded(answer), '\n')) // an error means that the caller is gone
}

// encoded returns the JSON of an answer, which is not HTML.
func encoded(answer any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		panic(err) // cannot happen: strings, numbers and times can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// heartbeat is how often an idle stream of events sends a comment.
const heartbeat = 15 * time.Second

// events answers with a page of the events, or streams them as server-sent events.
func events(e Emulator) http.HandlerFunc {
	list := get(func(r *http.Request, q control.EventsQuery) (control.EventList, error) {
		return e.Events(r.Context(), q)
	})
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			list(w, r)
			return
		}
		var q control.EventsQuery
		query := r.URL.Query()
		if last := r.Header.Get("Last-Event-ID"); last != "" { // a browser that connects again
			number, run, _ := strings.Cut(last, "@")
			query.Set("after", number)
			query.Set("run", run)
		}
		err := readQuery(query, &q)
		if q.Wait = heartbeat.String(); err != nil {
			write(w, nil, err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, func() (control.EventList, error) {
			happened, err := e.Events(r.Context(), q)
			if n := len(happened.Events); n > 0 {
				q.After, q.Run = happened.Events[n-1].Number, happened.Run
			}
			return happened, err
		})
	}
}

// stream writes events until there is an error or the caller is gone.
func stream(w http.ResponseWriter, next func() (control.EventList, error)) {
	flush := http.NewResponseController(w).Flush
	_, err := io.WriteString(w, ": events of the emulator\n\n")
	for err == nil && flush() == nil {
		var happened control.EventList
		if happened, err = next(); err == nil && len(happened.Events) == 0 {
			_, err = io.WriteString(w, ":\n\n")
		}
		for _, e := range happened.Events {
			if err == nil {
				_, err = fmt.Fprintf(w, "id: %d@%s\nevent: %s\ndata: %s\n\n", e.Number, happened.Run, e.Kind,
					encoded(e))
			}
		}
	}
}
