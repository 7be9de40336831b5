package judge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// TestNoCaseIsBlind breaks the right game in one point for each case and each input of a
// family, and wants the case to see it.
func TestNoCaseIsBlind(t *testing.T) {
	t.Parallel()
	skipSlow(t, false)
	mutants := mutants(t)
	for _, c := range judge.Cases() {
		for _, name := range inputs(c) {
			id := strings.TrimSuffix(c.ID+"/"+name, "/")
			m, ok := mutants[id]
			if !assert.True(t, ok, "no broken server shows that the case %s can fail", id) {
				continue
			}
			delete(mutants, id)
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				noCaseIsBlind(t, c, name, id, m)
			})
		}
	}
	for id := range mutants {
		assert.Fail(t, "there is no such case", id)
	}
}

func noCaseIsBlind(t *testing.T, c judge.Case, name, id string, m mutant) {
	run := inVirtualTime
	if c.ID == "http" { // what TCP does is seen on TCP only
		run = func(t *testing.T, m mutant, test func(*testing.T, *studio)) { test(t, newStudio(t, m)) }
	}
	unopened := func() (v judge.Verdict) {
		run(t, mutantOf(t, id), func(t *testing.T, s *studio) {
			s.target.Timeout = m.timeout
			v = s.unopened(t).Try(t.Context(), only(c, name))
		})
		return v
	}
	if testing.Short() && unopened().Outcome == judge.Failed {
		return // most cases need no opening, which takes half of the time
	}
	decided := false
	if !m.waits {
		run(t, m, func(t *testing.T, s *studio) {
			s.target.Timeout = m.timeout
			j := s.unopened(t)
			if j.Ready(t.Context()) != nil {
				return
			}
			v := j.Try(t.Context(), only(c, name))
			if decided = v.Outcome != judge.Unproven; decided {
				assert.Equal(t, judge.Failed, v.Outcome, v.String())
				return
			}
			named := func(ability judge.Verdict) bool { return ability.Case.ID == v.Until }
			assert.True(t, slices.ContainsFunc(j.Opening(), named), v.String())
		})
	}
	if !decided { // where the opening stops or names an ability, the case is no less sharp
		v := unopened()
		assert.Equal(t, judge.Failed, v.Outcome, v.String())
	}
}

// inputs returns the names of the inputs of a case, or one empty name.
func inputs(c judge.Case) []string {
	var names []string
	for _, in := range c.Inputs {
		names = append(names, in.Name)
	}
	if names == nil {
		return []string{""}
	}
	return names
}

// only returns a family with one of its inputs, or the case itself.
func only(c judge.Case, name string) judge.Case {
	c.Inputs = slices.DeleteFunc(slices.Clone(c.Inputs), func(in judge.Input) bool { return in.Name != name })
	return c
}

type bug string

// mutant is a way to break the game: a bug inside it, a layer in front of it
// that weakens a check or spoils an answer, or both.
type mutant struct {
	bug     bug
	wrap    func(*studio, http.Handler) http.Handler
	timeout time.Duration // of the judge, for a server that does not answer
	hears   bool          // the names of headers as they came
	waits   bool          // for calls that only its own case makes, so that it cannot be opened
	terms   bool          // the judge is told the token and the rate
}

// message is a body as a mutant reads it.
type message map[string]any

// at returns what is at a path, nil for nothing.
func (m message) at(path string) any {
	var value any = map[string]any(m)
	for _, name := range strings.Split(path, ".") {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(parent) {
				return nil
			}
			value = parent[n]
		default:
			return nil
		}
	}
	return value
}

func (m message) text(path string) string { return fmt.Sprint(m.at(path)) }

// parse reads a body; nil if it is no object.
func parse(body []byte) message {
	var m message
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&m) != nil || d.More() {
		return nil
	}
	return m
}

// layer is a mutant that stands in front of the right game. It gets each call
// with its body, and may answer by itself.
func layer(do func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler)) mutant {
	return mutant{wrap: func(s *studio, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "the body is cut off", http.StatusBadRequest)
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			do(s, w, r, body, next)
		})
	}}
}

// replies is a server that answers some calls by itself.
func replies(when func(s *studio, r *http.Request, body []byte) bool, status int, answer string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if when(s, r, body) {
			reply(w, status, answer)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hangs is a server that never answers some calls.
func hangs(when func(s *studio, r *http.Request, body []byte) bool) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if when(s, r, body) {
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
}

// at is about the calls of an endpoint.
func at(path string) func(*studio, *http.Request, []byte) bool {
	return func(_ *studio, r *http.Request, _ []byte) bool { return r.URL.Path == path }
}

// bends is a server that reads the head of a call in another way.
func bends(bend func(s *studio, r *http.Request, body []byte)) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		bend(s, r, body)
		next.ServeHTTP(w, r)
	})
}

func (s *studio) authentic(r *http.Request, body []byte) bool {
	return s.key.Verify(body, r.Header.Get(ramp.HeaderHMAC)) == nil
}

// pass hands on a call with another body, signed anew.
func (s *studio) pass(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set(ramp.HeaderHMAC, s.key.Sign(body))
	next.ServeHTTP(w, r)
}

// answerOf returns the answer of a handler.
func answerOf(next http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	return answer
}

const yes = `{"success":true,"errorCode":null,"data":null}`

// no is the envelope of a rejection.
func no(code string) string { return `{"success":false,"errorCode":"` + code + `","data":null}` }

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// approves is a server that says yes to a validate call, and looks no further,
// when the body is in some way wrong.
func approves(when func(message) bool) mutant { return says(ramp.PathValidate, when, 200, yes) }

// confirms is a server that says yes to such a result, and does nothing.
func confirms(when func(message) bool) mutant { return says(ramp.PathResult, when, 200, yes) }

// rejects is a server that says no to calls that it should understand.
func rejects(when func(message) bool) mutant {
	return says("", when, 400, no("NO"))
}

func says(path string, when func(message) bool, status int, answer string) mutant {
	return replies(func(s *studio, r *http.Request, body []byte) bool {
		m := parse(body)
		return m != nil && (path == "" || r.URL.Path == path) && s.authentic(r, body) && when(m)
	}, status, answer)
}

// reads is a server that reads other bytes than it got: it repairs, or garbles.
func reads(repair func(body []byte) []byte) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if r.Method == http.MethodPost && s.authentic(r, body) {
			if other := repair(body); !bytes.Equal(other, body) {
				s.pass(w, r, other, next)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// edits is a server that reads one field in another way.
func edits(path string, edit func(message, any) any) mutant {
	return reads(func(body []byte) []byte {
		m := parse(body)
		if m == nil {
			return body
		}
		i := strings.LastIndexByte(path, '.')
		parent := map[string]any(m)
		if i > 0 {
			parent, _ = m.at(path[:i]).(map[string]any)
		}
		if parent == nil {
			return body
		}
		old := parent[path[i+1:]]
		value := edit(m, old)
		if reflect.DeepEqual(old, value) {
			return body
		}
		parent[path[i+1:]] = value
		return jsonOf(m)
	})
}

// answers is a server that spoils its answers.
func answers(path string, spoil func(s *studio, r *http.Request, asked message, body string) string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		answer := answerOf(next, r)
		text := answer.Body.String()
		if r.URL.Path == path {
			text = spoil(s, r, parse(body), text)
		}
		reply(w, answer.Code, text)
	})
}

// otherStatus is middleware that gives some answers another status than the game did.
func otherStatus(when func(r *http.Request, asked message, status int, answer string) bool, to int) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		answer := answerOf(next, r)
		if when(r, parse(body), answer.Code, answer.Body.String()) {
			answer.Code = to
		}
		reply(w, answer.Code, answer.Body.String())
	})
}

// statusAt is middleware that makes another status of one of an endpoint.
func statusAt(path string, from, to int) mutant {
	return otherStatus(func(r *http.Request, _ message, status int, _ string) bool {
		return r.URL.Path == path && status == from
	}, to)
}

func replaces(path, old, new string) mutant {
	return answers(path, func(_ *studio, _ *http.Request, _ message, body string) string {
		return strings.Replace(body, old, new, 1)
	})
}

func is(path, value string) func(message) bool {
	return func(m message) bool { return m.text(path) == value }
}

func given(path string) func(message) bool {
	return func(m message) bool { return m.at(path) != nil }
}

// inResult narrows a condition to the bodies of results.
func inResult(when func(message) bool) func(message) bool { return all(given("tx_hash"), when) }

// without is whether a result lacks something.
func without(path string) func(message) bool {
	return inResult(func(m message) bool { return m.at(path) == nil })
}

func all(conditions ...func(message) bool) func(message) bool {
	return func(m message) bool {
		return !slices.ContainsFunc(conditions, func(c func(message) bool) bool { return !c(m) })
	}
}

// mutants is a broken server for each case.
func mutants(t testing.TB) map[string]mutant {
	all := make(map[string]mutant)
	for _, some := range []map[string]mutant{
		assetsMutants(), sessionMutants(), hmacMutants(), formMutants(), intentMutants(), termsMutants(),
		amountMutants(),
		signatureMutants(), orderMutants(), answerMutants(), resultMutants(), receiptMutants(), raceMutants(),
		restartMutants(), httpMutants(),
	} {
		for id, m := range some {
			m.waits = m.waits ||
				slices.Contains([]bug{"looks, then takes", "reads, then writes", "looks, then settles"}, m.bug)
			if _, ok := all[id]; ok {
				t.Errorf("two mutants for %s", id)
			}
			all[id] = m
		}
	}
	return all
}

// mutantOf is a fresh one.
func mutantOf(t testing.TB, id string) mutant { return mutants(t)[id] }
