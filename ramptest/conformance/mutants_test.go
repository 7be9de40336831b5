package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// TestNoCaseIsBlind breaks the right game in one point for each case, and wants
// the case to see it.
func TestNoCaseIsBlind(t *testing.T) {
	t.Parallel()
	mutants := mutants()
	for _, c := range conformance.Cases() {
		m, ok := mutants[c.ID]
		if !assert.True(t, ok, "no broken server shows that the case %s can fail", c.ID) {
			continue
		}
		delete(mutants, c.ID)
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			judge := func(m mutant) *conformance.Judge {
				target := newStudio(t, m).target
				target.Timeout = m.patience
				judge, err := conformance.New(target)
				require.NoError(t, err)
				t.Cleanup(judge.Close)
				return judge
			}
			if opened := judge(m); !m.waits && opened.Ready(t.Context()) == nil {
				v := opened.Try(t.Context(), c)
				if v.Outcome != conformance.Unproven {
					assert.Equal(t, conformance.Failed, v.Outcome, v.String())
					return
				}
				named := func(ability conformance.Verdict) bool { return ability.Case.ID == v.Until }
				assert.True(t, slices.ContainsFunc(opened.Opening(), named), v.String())
			}
			// Where the opening stops or names an ability, the case is no less sharp.
			v := judge(mutantOf(c.ID)).Try(t.Context(), c)
			assert.Equal(t, conformance.Failed, v.Outcome, v.String())
		})
	}
	for id := range mutants {
		assert.Fail(t, "there is no such case", id)
	}
}

type bug string

// mutant is a way to break the game: a bug inside it, a layer in front of it
// that weakens a check or spoils an answer, or both.
type mutant struct {
	bug      bug
	wrap     func(*studio, http.Handler) http.Handler
	patience time.Duration // of the judge, for a server that does not answer
	waits    bool          // for calls that only its own case makes, so that it cannot be opened
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

func (s *studio) authentic(r *http.Request, body []byte) bool {
	return s.key.Verify(body, r.Header.Get(ramp.HeaderHMAC)) == nil
}

// pass hands on a call with another body, signed anew.
func (s *studio) pass(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set(ramp.HeaderHMAC, s.key.Sign(body))
	next.ServeHTTP(w, r)
}

const yes = `{"success":true,"errorCode":null,"data":null}`

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

// refuses is a server that says no to calls that it should understand.
func refuses(when func(message) bool) mutant {
	return says("", when, 400, `{"success":false,"errorCode":"NO","data":null}`)
}

func says(path string, when func(message) bool, status int, answer string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if m := parse(body); m != nil && (path == "" || r.URL.Path == path) && s.authentic(r, body) && when(m) {
			reply(w, status, answer)
			return
		}
		next.ServeHTTP(w, r)
	})
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
		return must(m)
	})
}

// answers is a server that spoils its answers.
func answers(path string, spoil func(s *studio, r *http.Request, asked message, status *int, body string) string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		status, text := answer.Code, answer.Body.String()
		if r.URL.Path == path {
			text = spoil(s, r, parse(body), &status, text)
		}
		reply(w, status, text)
	})
}

func replaces(path, old, new string) mutant {
	return answers(path, func(_ *studio, _ *http.Request, _ message, _ *int, body string) string {
		return strings.Replace(body, old, new, 1)
	})
}

// signs is a server that signs in another way.
func signs(sign func(s *studio, asked message, right string) string) mutant {
	return answers(ramp.PathValidate, func(s *studio, _ *http.Request, asked message, _ *int, body string) string {
		var answer ramp.ValidateResponse
		if json.Unmarshal([]byte(body), &answer) != nil || answer.Data == nil {
			return body
		}
		right := answer.Data.ValidatorSig.String()
		return strings.Replace(body, right, sign(s, asked, right), 1)
	})
}

// signature signs a digest as the studio does.
func (s *studio) signature(d []byte) string {
	var digest ramp.Digest
	copy(digest[:], d)
	sig, err := s.signer.Sign(s.ctx, digest)
	if err != nil {
		return err.Error()
	}
	return sig.String()
}

// echoes is a server that returns another user_sig.
func echoes(change func(string) string) mutant {
	return answers(ramp.PathValidate, func(_ *studio, _ *http.Request, asked message, _ *int, body string) string {
		return strings.Replace(body, `"userSig":"`+asked.text("user_sig"), `"userSig":"`+change(asked.text("user_sig")), 1)
	})
}

// trusts is a server that takes an HMAC that is not the right one.
func trusts(path string, when func(s *studio, header []string, body []byte) bool) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if r.URL.Path == path && when(s, r.Header[ramp.HeaderHMAC], body) {
			s.pass(w, r, body, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admits is a server that lets a session in that did not prove itself.
func admits(path string, when func(session, authorization []string, right string) bool) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		session, authorization := r.Header[ramp.HeaderSession], r.Header[ramp.HeaderAuthorization]
		if r.URL.Path == path {
			id, token := s.who(session, authorization)
			if when(session, authorization, "Bearer "+token) {
				r.Header.Set(ramp.HeaderSession, id)
				r.Header.Set(ramp.HeaderAuthorization, "Bearer "+token)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// who guesses whose call it is: by the session, or else by the token.
func (s *studio) who(session, authorization []string) (id, token string) {
	s.game.mu.Lock()
	defer s.game.mu.Unlock()
	for _, id := range session {
		if p := s.game.players[id]; p != nil {
			return id, p.token
		}
	}
	for id, p := range s.game.players {
		if slices.Contains(authorization, "Bearer "+p.token) {
			return id, p.token
		}
	}
	return "", ""
}

// byToken is a server that asks the token alone who it is.
func byToken(path string) mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if id, _ := s.who(nil, r.Header[ramp.HeaderAuthorization]); r.URL.Path == path && id != "" {
			r.Header.Set(ramp.HeaderSession, id)
		}
		next.ServeHTTP(w, r)
	})
}

// dies is a server that answers nothing any more after one call.
func dies(of func(r *http.Request, body []byte) bool) mutant {
	var mu sync.Mutex
	dead := false
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
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

// heard is a connection that remembers what it read, so that a mutant sees the
// names of headers as they came.
type heard struct {
	net.Conn
	mu   sync.Mutex
	text []byte
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:n]...)
	return n, err
}

type connKey struct{}

// deafTo is a server that does not find a header by the name that came.
func deafTo(path, name string) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		conn := r.Context().Value(connKey{}).(*heard)
		conn.mu.Lock()
		deaf := bytes.Contains(conn.text, []byte("\n"+name+":"))
		conn.text = nil
		conn.mu.Unlock()
		if deaf && r.URL.Path == path {
			r.Header.Del(name)
		}
		next.ServeHTTP(w, r)
	})
}

var (
	isDigest  = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`).MatchString
	isUUID    = regexp.MustCompile(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`).MatchString
	isHexText = regexp.MustCompile(`^(0x)?([0-9a-fA-F]{2})+$`).MatchString
)

// bad says whether a field is not what the interface wants.
func bad(path string) func(message) bool {
	return func(m message) bool {
		text, isText := m.at(path).(string)
		n, isNumber := m.at(path).(json.Number)
		entries, isList := m.at(path).([]any)
		object, isObject := m.at(path).(map[string]any)
		switch path[strings.LastIndexByte(path, '.')+1:] {
		case "digest":
			return !isDigest(text)
		case "uuid":
			return !isUUID(text) || strings.Trim(text, "0-") == ""
		case "user_sig":
			return !isHexText(text)
		case "from", "to":
			return !isList || len(entries) == 0
		case "amount":
			amount, err := ramp.ParseAmount(n.String())
			return !isNumber || err != nil || amount.Sign() <= 0
		case "intent":
			return !isObject || len(object) == 0
		default:
			return !isText || text == ""
		}
	}
}

func is(path, value string) func(message) bool {
	return func(m message) bool { return m.text(path) == value }
}

func all(conditions ...func(message) bool) func(message) bool {
	return func(m message) bool {
		return !slices.ContainsFunc(conditions, func(c func(message) bool) bool { return !c(m) })
	}
}

// amountText are the digits of an amount as they came.
func amountText(m message, path string) string { n, _ := m.at(path).(json.Number); return n.String() }

// computes is a server whose numbers are of another type: what it makes of an
// amount counts, and when that is nothing, or less, it takes nothing.
func computes(convert func(text string) string) mutant {
	return mutant{wrap: func(s *studio, next http.Handler) http.Handler {
		passes := next
		for _, path := range []string{"intent.from.0.amount", "intent.to.0.amount"} {
			asset := strings.TrimSuffix(path, "amount") + "type"
			passes = edits(path, func(m message, old any) any {
				if m.at(asset) == "asset" {
					return json.Number(convert(fmt.Sprint(old)))
				}
				return old
			}).wrap(s, passes)
		}
		return approves(func(m message) bool {
			path := "intent.from.0.amount"
			if m.at("intent.type") == "disassemble" {
				path = "intent.to.0.amount"
			}
			return strings.Trim(convert(amountText(m, path)), "0.") == "" || convert(amountText(m, path))[0] == '-'
		}).wrap(s, passes)
	}}
}

// cut is a number as a fixed count of bits holds it.
func cut(bits uint, signed bool) func(string) string {
	return func(text string) string {
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return "0"
		}
		size := new(big.Int).Lsh(big.NewInt(1), bits)
		n.Mod(n, size)
		if signed && n.Bit(int(bits)-1) == 1 {
			n.Sub(n, size)
		}
		return n.String()
	}
}

// prefix is what a lenient parser makes of a number: the digits at its front.
func prefix(text string) string {
	return cmp.Or(regexp.MustCompile(`^[0-9]+`).FindString(text), "0")
}

// rounded is a number up to the next whole one.
func rounded(text string) string {
	amount, err := ramp.ParseAmount(text)
	if err != nil {
		return "0"
	}
	r := amount.Rat()
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.String()
}

// digitsOnly is a number without everything else.
func digitsOnly(text string) string {
	return regexp.MustCompile(`[^0-9]`).ReplaceAllString(text, "")
}

func plainMAC(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// loose is a server whose parser turns anything into a number.
func loose(path string) mutant {
	return edits(path, func(_ message, old any) any {
		if _, ok := old.(json.Number); ok || old == nil {
			return old
		}
		return json.Number("2")
	})
}

// byBody is a server that takes the session of a result from its signed body.
func byBody() mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if id, ok := parse(body).at("session_id").(string); ok && r.URL.Path == ramp.PathResult {
			r.Header.Set(ramp.HeaderSession, strings.TrimSpace(id))
		}
		next.ServeHTTP(w, r)
	})
}

// mutants is a broken server for each case.
func mutants() map[string]mutant {
	all := make(map[string]mutant)
	for _, some := range []map[string]mutant{
		assetsMutants(), sessionMutants(), hmacMutants(), formMutants(), intentMutants(), amountMutants(),
		signatureMutants(), orderMutants(), receiptMutants(), transportMutants(),
	} {
		for id, m := range some {
			m.waits = m.waits || slices.Contains([]bug{"looks, then takes", "reads, then writes", "looks, then settles"}, m.bug)
			if _, ok := all[id]; ok {
				panic("two mutants for " + id)
			}
			all[id] = m
		}
	}
	return all
}

// mutantOf is a fresh one.
func mutantOf(id string) mutant { return mutants()[id] }

func assetsMutants() map[string]mutant {
	const path = ramp.PathAssets
	entry := func(more string) mutant { return replaces(path, `"assets":[`, `"assets":[`+more+",") }
	return map[string]mutant{
		"assets-answer": answers(path, func(_ *studio, _ *http.Request, _ message, status *int, body string) string {
			*status = 203
			return body
		}),
		"assets-error-code-null": replaces(path, `"errorCode":null,`, ""),
		"assets-balance-string":  replaces(path, `"1000000"`, "1000000"),
		"assets-balance-sign":    entry(`{"id":"item_debt","balance":"-1"}`),
		"assets-id":              entry(`{"id":"","balance":"1"}`),
		"assets-id-once":         entry(`{"id":"item_gem","balance":"0"}`),
		"assets-text-fields":     replaces(path, `"name":"Name"`, `"name":7`),
		"assets-content-type":    plainText(path, 200),
		"assets-other-player":    {bug: "one purse for all"},
		"assets-query": layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			if r.URL.RawQuery != "" {
				reply(w, 400, `{"success":false,"errorCode":"NO","data":null}`)
				return
			}
			next.ServeHTTP(w, r)
		}),
		"assets-other-header": layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			if other := r.Header.Get("Authorization"); other != "" {
				r.Header.Set(ramp.HeaderAuthorization, other)
			}
			next.ServeHTTP(w, r)
		}),
		"assets-method": turns(path, http.MethodPost, http.MethodGet),
	}
}

// plainText is a server that says that some of its answers are text.
func plainText(path string, status int) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		kind := "application/json"
		if r.URL.Path == path && (status == 0) == strings.Contains(answer.Body.String(), "false") {
			kind = "text/plain"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func sessionMutants() map[string]mutant {
	m := map[string]mutant{
		"assets-token-envelope":  replaces(ramp.PathAssets, `"data":null`, `"data":{}`),
		"assets-foreign-token":   admits(ramp.PathAssets, anyToken),
		"validate-foreign-token": admits(ramp.PathValidate, anyToken),
		"assets-header-case":     deafTo(ramp.PathAssets, "X-DAPP-SESSIONID"),
		"validate-header-case":   deafTo(ramp.PathValidate, "x-hmac-signature"),
		"result-header-case":     deafTo(ramp.PathResult, "X-Hmac-Signature"),
		"result-other-session": {bug: "pays the session", wrap: layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if m := parse(body); m != nil && r.URL.Path == ramp.PathResult && s.authentic(r, body) {
				m["session_id"] = r.Header.Get(ramp.HeaderSession)
				body = must(m)
				s.pass(w, r, body, next)
				return
			}
			next.ServeHTTP(w, r)
		}).wrap},
		"result-other-session-refused":    byBody(),
		"assets-foreign-token-declined":   byToken(ramp.PathAssets),
		"validate-foreign-token-declined": byToken(ramp.PathValidate),
	}
	for path, name := range map[string]string{ramp.PathAssets: "assets-", ramp.PathValidate: "validate-"} {
		for id, when := range map[string]func(session, authorization []string, right string) bool{
			"no-token":    func(_, a []string, _ string) bool { return len(a) == 0 },
			"empty-token": func(_, a []string, _ string) bool { return len(a) == 1 && a[0] == "Bearer" },
			"wrong-token": anyToken,
			"cut-token":   func(_, a []string, right string) bool { return len(a) == 1 && strings.HasPrefix(right, a[0]) },
			"long-token":  func(_, a []string, right string) bool { return len(a) == 1 && strings.HasPrefix(a[0], right) },
			"no-scheme":   func(_, a []string, right string) bool { return len(a) == 1 && "Bearer "+a[0] == right },
			"basic": func(_, a []string, right string) bool {
				return len(a) == 1 && strings.Replace(a[0], "Basic", "Bearer", 1) == right
			},
			"two-tokens":      func(_, a []string, right string) bool { return slices.Contains(a, right) },
			"no-session":      func(s, _ []string, _ string) bool { return len(s) == 0 },
			"empty-session":   func(s, _ []string, _ string) bool { return len(s) == 1 && s[0] == "" },
			"unknown-session": func(_, a []string, right string) bool { return slices.Contains(a, right) },
			"two-sessions":    func(s, _ []string, _ string) bool { return len(s) == 2 },
		} {
			m[name+id] = admits(path, when)
		}
	}
	return m
}

func anyToken([]string, []string, string) bool { return true }

func hmacMutants() map[string]mutant {
	m := make(map[string]mutant)
	first := func(header []string) string { return strings.Join(header[:min(1, len(header))], "") }
	for path, name := range map[string]string{ramp.PathValidate: "validate-", ramp.PathResult: "result-"} {
		for id, when := range map[string]func(s *studio, header []string, body []byte) bool{
			"hmac-missing": func(_ *studio, header []string, _ []byte) bool { return len(header) == 0 },
			"hmac-empty":   func(_ *studio, header []string, _ []byte) bool { return first(header) == "" },
			"hmac-short": func(s *studio, header []string, body []byte) bool {
				return strings.HasPrefix(s.key.Sign(body), first(header))
			},
			"hmac-long": func(s *studio, header []string, body []byte) bool {
				return strings.HasPrefix(first(header), s.key.Sign(body))
			},
			"hmac-not-hex": func(_ *studio, header []string, _ []byte) bool {
				_, err := hex.DecodeString(first(header))
				return err != nil
			},
			"hmac-zero": func(_ *studio, header []string, _ []byte) bool { return strings.Trim(first(header), "0") == "" },
			"hmac-last-digit": func(s *studio, header []string, body []byte) bool {
				return len(header) == 1 && strings.HasPrefix(header[0], s.key.Sign(body)[:63])
			},
			"hmac-other-key": func(_ *studio, header []string, _ []byte) bool { return len(first(header)) == 64 },
			"hmac-empty-key": func(_ *studio, header []string, body []byte) bool { return first(header) == plainMAC(nil, body) },
			"hmac-other-body": func(_ *studio, header []string, _ []byte) bool {
				_, err := hex.DecodeString(first(header))
				return err == nil
			},
			"hmac-no-body": func(s *studio, header []string, _ []byte) bool { return first(header) == s.key.Sign(nil) },
			"hmac-digest": func(_ *studio, header []string, body []byte) bool {
				sum := sha256.Sum256(body)
				return first(header) == hex.EncodeToString(sum[:])
			},
			"hmac-two": func(s *studio, header []string, body []byte) bool { return slices.Contains(header, s.key.Sign(body)) },
			"tampered": func(_ *studio, header []string, _ []byte) bool { return len(header) == 1 },
		} {
			m[name+id] = trusts(path, when)
		}
		m[name+"hmac-envelope"] = layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if r.Method == http.MethodPost && !s.authentic(r, body) {
				reply(w, 401, `{"error":"unauthorized"}`)
				return
			}
			next.ServeHTTP(w, r)
		})
		m[name+"hmac-first"] = layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if r.Method == http.MethodPost && !json.Valid(body) {
				reply(w, 400, `{"success":false,"errorCode":"INVALID_BODY","data":null}`)
				return
			}
			next.ServeHTTP(w, r)
		})
		m[name+"hmac-kept-secret"] = layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if right := s.key.Sign(body); r.Method == http.MethodPost && r.Header.Get(ramp.HeaderHMAC) != right {
				reply(w, 401, `{"success":false,"errorCode":"want `+strings.ToUpper(right)+`","data":null}`)
				return
			}
			next.ServeHTTP(w, r)
		})
		m[name+"hmac-capitals"] = layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			if got := r.Header.Get(ramp.HeaderHMAC); got != strings.ToLower(got) {
				r.Header.Set(ramp.HeaderHMAC, "")
			}
			next.ServeHTTP(w, r)
		})
		// Verifies what it writes, not what it read.
		rewritten := layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			var value any
			if json.Unmarshal(body, &value) == nil && r.URL.Path == path && s.key.Verify(must(value), r.Header.Get(ramp.HeaderHMAC)) != nil {
				r.Header.Set(ramp.HeaderHMAC, "")
			}
			next.ServeHTTP(w, r)
		})
		for _, id := range []string{"raw-indented", "raw-escapes", "raw-order", "raw-unicode"} {
			m[name+id] = rewritten
		}
	}
	return m
}

func formMutants() map[string]mutant {
	m := map[string]mutant{
		"validate-other-project": edits("project_id", func(message, any) any { return "project-1" }),
		"validate-unknown-fields": refuses(func(m message) bool {
			return m["new"] != nil
		}),
		"result-unknown-fields": refuses(func(m message) bool { return m["new"] != nil }),
		"validate-no-target-candidate": refuses(func(m message) bool {
			return m.at("intent.target_candidate") == nil
		}),
	}
	for path, name := range map[string]string{ramp.PathValidate: "validate-body-", ramp.PathResult: "result-body-"} {
		// A server that is content with a body that it cannot read.
		content := layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if r.URL.Path == path && s.authentic(r, body) && parse(body) == nil {
				reply(w, 200, yes)
				return
			}
			next.ServeHTTP(w, r)
		})
		for _, id := range []string{"empty", "null", "text", "truncated"} {
			m[name+id] = content
		}
		m[name+"array"] = reads(func(body []byte) []byte { return bytes.Trim(body, "[]") })
		m[name+"unclosed"] = reads(func(body []byte) []byte {
			if whole := append(bytes.Clone(body), '}'); json.Valid(whole) {
				return whole
			}
			return body
		})
		first := reads(func(body []byte) []byte {
			var value json.RawMessage
			if json.NewDecoder(bytes.NewReader(body)).Decode(&value) != nil {
				return body
			}
			return value
		})
		m[name+"two"], m[name+"trailing"] = first, first
	}
	for path, ids := range map[string][]string{
		"uuid":               {"no-uuid", "null-uuid", "empty-uuid", "bad-uuid", "number-uuid", "nil-uuid"},
		"user_sig":           {"no-user-sig", "null-user-sig", "empty-user-sig", "text-user-sig"},
		"user_address":       {"no-user-address", "null-user-address"},
		"project_id":         {"no-project", "null-project"},
		"intent":             {"no-intent", "null-intent", "text-intent"},
		"intent.method":      {"no-method", "null-method"},
		"intent.type":        {"no-type", "null-type"},
		"intent.from":        {"no-from", "null-from", "empty-from", "object-from"},
		"intent.to":          {"no-to", "empty-to"},
		"intent.from.0.type": {"no-entry-type"},
		"intent.from.0.id":   {"no-entry-id", "null-entry-id"},
	} {
		for _, id := range ids {
			m["validate-"+id] = approves(bad(path))
		}
	}
	return m
}

func intentMutants() map[string]mutant {
	const from, to = "intent.from.0.type", "intent.to.0.type"
	method := func(method, kind string) func(message) bool {
		return all(is("intent.method", method), is("intent.type", kind))
	}
	aMint, aBurn := method("mint", "assemble"), method("burn-permit", "disassemble")
	return map[string]mutant{
		"intent-mint-disassemble":   approves(method("mint", "disassemble")),
		"intent-burn-assemble":      approves(method("burn-permit", "assemble")),
		"intent-mint-as-burn":       approves(all(aBurn, is(from, "asset"))),
		"intent-unknown-method":     approves(is("intent.method", "steal")),
		"intent-unknown-type":       approves(is("intent.type", "reassemble")),
		"intent-mint-from-token":    approves(all(aMint, is(from, "ERC20"))),
		"intent-mint-to-asset":      edits(to, func(m message, old any) any { return when(aMint(m), "ERC20", old) }),
		"intent-burn-from-asset":    edits(from, func(m message, old any) any { return when(aBurn(m), "ERC20", old) }),
		"intent-burn-to-token":      edits(to, func(m message, old any) any { return when(aBurn(m), "asset", old) }),
		"intent-method-burn":        refuses(is("intent.method", "burn")),
		"intent-small-erc20":        refuses(is(to, "erc20")),
		"intent-unknown-asset":      approves(is("intent.from.0.id", "item_of_nobody")),
		"intent-burn-unknown-asset": approves(is("intent.to.0.id", "item_of_nobody")),
		"intent-second-short":       {bug: "takes one asset after the other"},
		"intent-asset-twice":        {bug: "takes the last entry"},
		"intent-asset-twice-back":   {bug: "gives back the last entry"},
		"intent-burn-asset-twice":   {bug: "grants the last entry"},
		"intent-sum-too-much":       {bug: "takes more than there is"},
		"intent-two-assets":         {bug: "takes the last entry"},
	}
}

func when(condition bool, yes, no any) any {
	if condition {
		return yes
	}
	return no
}

func amountMutants() map[string]mutant {
	const from, to = "intent.from.0.amount", "intent.to.0.amount"
	sign := func(path string, sign int) func(message) bool {
		return func(m message) bool {
			amount, err := ramp.ParseAmount(amountText(m, path))
			return err == nil && amount.Sign() == sign
		}
	}
	missing := func(path string) func(message) bool { return func(m message) bool { return m.at(path) == nil } }
	infinite := func(path string) func(message) bool {
		return func(m message) bool {
			_, err := ramp.ParseAmount(amountText(m, path))
			return amountText(m, path) != "" && err != nil
		}
	}
	m := map[string]mutant{
		"mint-amount-tokens-negative": approves(sign(to, -1)),
		"mint-amount-tokens-zero":     approves(sign(to, 0)),
		"mint-amount-tokens-missing":  approves(missing(to)),
		"burn-amount-negative":        approves(sign(to, -1)),
		"burn-amount-zero":            approves(sign(to, 0)),
		"burn-amount-missing":         approves(missing(to)),
		"burn-amount-null":            approves(missing(to)),
		"burn-amount-text":            loose(to),
		"burn-amount-tokens-negative": approves(sign(from, -1)),
		"burn-amount-tokens-zero":     edits(from, func(m message, old any) any { return when(sign(from, 0)(m), json.Number("1"), old) }),
		"burn-amount-bomb":            approves(infinite(to)),

		"mint-amount-2-31":      computes(cut(32, true)),
		"mint-amount-2-32":      computes(cut(32, false)),
		"mint-amount-2-32-more": computes(cut(32, false)),
		"mint-amount-2-53": approves(func(m message) bool { // what is no safe integer is not compared
			amount, err := ramp.ParseAmount(amountText(m, from))
			return err == nil && amount.Cmp(ramp.NewAmount(1<<53)) > 0
		}),
		"mint-amount-2-63":      computes(cut(64, true)),
		"mint-amount-2-64":      computes(cut(64, false)),
		"mint-amount-2-64-more": computes(cut(64, false)),
		"mint-amount-10-30": computes(func(text string) string { // what does not fit counts as nothing
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return "0"
			}
			return strconv.FormatInt(n, 10)
		}),
		"mint-amount-1e30":              computes(prefix),
		"mint-amount-2-256-more":        computes(cut(256, false)),
		"mint-amount-1e400":             computes(prefix),
		"mint-amount-bomb":              computes(prefix),
		"mint-amount-exponent-overflow": computes(prefix),
		"mint-amount-digits":            approves(infinite(from)),

		"mint-amount-one-more":  {bug: "takes more than there is"},
		"mint-amount-netted":    approves(func(m message) bool { return strings.HasPrefix(amountText(m, "intent.from.1.amount"), "-") }),
		"mint-amount-tiny-bomb": approves(infinite(from)),
	}
	for _, id := range []string{"negative", "minus-one", "minus-half"} {
		m["mint-amount-"+id] = approves(sign(from, -1))
	}
	for _, id := range []string{"zero", "minus-zero", "zero-point", "zero-exponent"} {
		m["mint-amount-"+id] = approves(sign(from, 0))
	}
	for _, id := range []string{"missing", "null"} {
		m["mint-amount-"+id] = approves(missing(from))
	}
	for _, id := range []string{"text", "boolean", "list", "object"} {
		m["mint-amount-"+id] = approves(func(m message) bool {
			_, isNumber := m.at(from).(json.Number)
			return !isNumber && m.at(from) != nil
		})
	}
	for _, id := range []string{"half", "more-than-one", "tiny"} {
		m["mint-amount-"+id] = computes(rounded)
		m["burn-amount-"+id] = computes(rounded)
		m["mint-amount-"+id+"-back"] = mutant{bug: "gives back whole numbers"}
	}
	for _, id := range []string{"point", "exponent", "exponent-minus"} {
		m["mint-amount-"+id] = computes(digitsOnly)
		m["burn-amount-"+id] = computes(digitsOnly)
		// What is not written as digits alone counts as nothing when it comes back.
		m["mint-amount-"+id+"-back"] = confirms(func(m message) bool {
			return strings.Trim(amountText(m, from), "0123456789") != ""
		})
	}
	return m
}

func signatureMutants() map[string]mutant {
	m := make(map[string]mutant)
	for _, id := range []string{"missing", "null", "empty", "0x", "31-bytes", "33-bytes", "64-bytes", "odd", "not-hex", "no-prefix", "number"} {
		m["digest-"+id] = approves(bad("digest"))
	}
	digest := func(m message) []byte { return common.FromHex(m.text("digest")) }
	prefixed := signs(func(s *studio, asked message, _ string) string {
		return s.signature(crypto.Keccak256([]byte("\x19Ethereum Signed Message:\n32"), digest(asked)))
	})
	seen := make(map[string]bool)
	var kept string
	for id, mutant := range map[string]mutant{
		"sign-ones":  prefixed,
		"sign-known": prefixed,
		"sign-leading-zeros": signs(func(s *studio, asked message, _ string) string {
			return s.signature(new(big.Int).SetBytes(digest(asked)).Bytes()) // moved to the front
		}),
		"sign-trailing-zeros": signs(func(s *studio, asked message, _ string) string {
			return s.signature(common.LeftPadBytes(bytes.TrimRight(digest(asked), "\x00"), 32))
		}),
		"sign-form": signs(func(_ *studio, _ message, right string) string { return right[:130] }),
		"sign-recovers": signs(func(_ *studio, asked message, _ string) string {
			other, _ := crypto.ToECDSA(bytes.Repeat([]byte{7}, 32))
			sig, _ := crypto.Sign(digest(asked), other)
			sig[64] += 27
			return "0x" + hex.EncodeToString(sig)
		}),
		"sign-burn": signs(func(s *studio, asked message, right string) string {
			if asked.text("intent.method") == "mint" {
				return right
			}
			return s.signature(crypto.Keccak256(digest(asked)))
		}),
		"sign-each-digest": signs(func(_ *studio, _ message, right string) string {
			kept = cmp.Or(kept, right)
			return kept
		}),
		"sign-again": signs(func(s *studio, asked message, right string) string {
			if !seen[asked.text("uuid")] {
				seen[asked.text("uuid")] = true
				return right
			}
			return s.signature(crypto.Keccak256(digest(asked)))
		}),
		"sign-capitals": signs(func(s *studio, asked message, right string) string {
			if strings.ToLower(asked.text("digest")) == asked.text("digest") {
				return right
			}
			return s.signature(make([]byte, 32))
		}),
		"sign-v": signs(func(_ *studio, _ message, right string) string {
			return right[:130] + strings.NewReplacer("1b", "00", "1c", "01").Replace(right[130:])
		}),
		"sign-low-s": signs(func(_ *studio, _ message, right string) string {
			sig, _ := ramp.ParseSignature(right)
			n := crypto.S256().Params().N
			new(big.Int).Sub(n, new(big.Int).SetBytes(sig[32:64])).FillBytes(sig[32:64])
			sig[64] ^= 27 ^ 28
			return sig.String()
		}),
		"user-sig":           echoes(func(string) string { return "0x" }),
		"user-sig-capitals":  echoes(strings.ToLower),
		"user-sig-no-prefix": echoes(func(sig string) string { return "0x" + sig }),
		"user-sig-long":      echoes(func(sig string) string { return sig[:132] }),
		"user-sig-short":     echoes(func(sig string) string { return sig + "1b" }),
		"user-sig-other-hash": refuses(func(m message) bool {
			sig := common.FromHex(m.text("user_sig"))
			if m["receipt"] != nil || len(sig) != 65 {
				return false
			}
			sig[64] -= 27
			key, err := crypto.SigToPub(digest(m), sig)
			return err != nil || crypto.PubkeyToAddress(*key) != common.HexToAddress(m.text("user_address"))
		}),
		"validate-error-code-null": replaces(ramp.PathValidate, `"errorCode":null,`, ""),
		"validate-decline-envelope": answers(ramp.PathValidate, func(_ *studio, _ *http.Request, _ message, _ *int, body string) string {
			return strings.Replace(body, `"data":null`, `"data":{"validatorSig":""}`, 1)
		}),
		"validate-form-envelope": says(ramp.PathValidate, bad("digest"), 422, `{"detail":[]}`),
		"validate-content-type":  plainText(ramp.PathValidate, 200),
		"decline-content-type":   plainText(ramp.PathValidate, 0),
		"decline-status": answers(ramp.PathValidate, func(_ *studio, _ *http.Request, _ message, status *int, body string) string {
			if strings.Contains(body, "INVALID_BALANCE") {
				*status = 500
			}
			return body
		}),
		"decline-no-token": answers(ramp.PathAssets, func(_ *studio, r *http.Request, _ message, _ *int, body string) string {
			return strings.Replace(body, "INVALID_USER", "no: "+r.Header.Get(ramp.HeaderAuthorization), 1)
		}),
	} {
		m[id] = mutant
	}
	return m
}

func orderMutants() map[string]mutant {
	return map[string]mutant{
		"mint-succeeds":                   {bug: "takes nothing"},
		"mint-fails":                      {bug: "keeps what failed"},
		"burn-succeeds":                   {bug: "never grants"},
		"burn-fails":                      {bug: "grants what failed"},
		"mint-takes-at-validate":          {bug: "holds until the result"},
		"burn-grants-at-result":           {bug: "shows burns at validate"},
		"burn-spent-early":                {bug: "grants at validate"},
		"mint-several":                    {bug: "one order a player"},
		"validate-twice":                  {bug: "takes again"},
		"validate-twice-back":             {bug: "takes again"},
		"validate-twice-approved":         {bug: "declines repeats"},
		"validate-at-once":                {bug: "looks, then takes"},
		"mints-at-once":                   {bug: "reads, then writes"},
		"mints-at-once-short":             {bug: "reads, then writes"},
		"validate-other-amount":           {bug: "approves whatever is known"},
		"validate-other-amount-declined":  {bug: "pins no amount"},
		"validate-other-digest":           {bug: "pins no amount"},
		"validate-other-tokens":           {bug: "pins no amount"},
		"validate-other-direction":        {bug: "pins no amount"},
		"validate-other-owner":            {bug: "approves whatever is known"},
		"validate-other-owner-declined":   {bug: "approves whatever is known"},
		"validate-other-digest-declined":  repeats(),
		"validate-failed-other-digest":    {bug: "approves whatever is known"},
		"validate-succeeded-other-digest": {bug: "approves whatever is known"},
		"validate-after-failure":          {bug: "approves whatever is known"},
		"validate-after-success":          {bug: "forgets settled orders"},
		"validate-declined-then-right":    {bug: "remembers declined orders"},

		"mint-failure-twice":       {bug: "settles each time"},
		"mint-failure-at-once":     {bug: "looks, then settles"},
		"mint-failure-then-other":  {bug: "the last outcome counts"},
		"mint-success-twice":       {bug: "a repeat is an error"},
		"mint-success-at-once":     {bug: "a repeat is an error"},
		"mint-success-then-other":  {bug: "the last outcome counts"},
		"burn-success-twice":       {bug: "settles each time"},
		"burn-success-at-once":     {bug: "looks, then settles"},
		"burn-success-then-other":  {bug: "the last outcome counts"},
		"burn-failure-twice":       {bug: "a repeat is an error"},
		"burn-failure-at-once":     {bug: "a repeat is an error"},
		"burn-failure-then-other":  {bug: "the last outcome counts"},
		"result-20-times":          {bug: "forgets after ten"},
		"burn-20-times":            {bug: "forgets after ten"},
		"results-at-once":          {bug: "reads, then writes"},
		"results-at-once-answered": {bug: "a repeat is an error"},
		"result-error-code-null":   replaces(ramp.PathResult, `"errorCode":null,`, ""),
		"result-data-null":         replaces(ramp.PathResult, `,"data":null`, ""),
		"result-content-type":      plainText(ramp.PathResult, 200),
		"result-unknown-mint":      {bug: "believes in unknown orders"},
		"result-unknown-burn":      {bug: "believes in unknown orders"},
		"result-unknown-again":     {bug: "confirms unknown orders"},
		"result-before-validate":   {bug: "ends unknown orders"},
		"result-declined-mint":     {bug: "believes in unknown orders"},
		"result-declined-burn":     {bug: "believes in unknown orders"},
		"result-other-owner-mint":  {bug: "pays the session"},
		"result-other-owner-burn":  {bug: "pays the session"},
		"result-more-back":         {bug: "believes the result"},
		"result-more-granted":      {bug: "believes the result"},
		"result-negative-back": layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if m := parse(body); r.URL.Path == ramp.PathResult && strings.HasPrefix(amountText(m, "intent.from.0.amount"), "-") {
				s.game.mu.Lock()
				balances := s.game.players[r.Header.Get(ramp.HeaderSession)].balances
				less, _ := balances["item_gold"].Add(ramp.NewAmount(-2))
				balances["item_gold"] = less
				s.game.mu.Unlock()
				reply(w, 200, yes)
				return
			}
			next.ServeHTTP(w, r)
		}),
		"result-mint-as-burn": {bug: "believes the result"},
		"result-burn-as-mint": {bug: "believes the result"},
		"result-other-asset":  {bug: "believes the result"},

		"restart-mint-fails":     {bug: "forgets orders"},
		"restart-burn-succeeds":  {bug: "forgets orders"},
		"restart-result-again":   {bug: "forgets orders"},
		"restart-validate-again": {bug: "forgets orders"},
	}
}

func receiptMutants() map[string]mutant {
	const log = "receipt.logs.0."
	given := func(path string) func(message) bool { return func(m message) bool { return m.at(path) != nil } }
	result := func(when func(message) bool) func(message) bool { return all(given("tx_hash"), when) }
	without := func(path string) func(message) bool {
		return result(func(m message) bool { return m.at(path) == nil })
	}
	length := func(n int) func(message) bool {
		return result(func(m message) bool { logs, _ := m.at("receipt.logs").([]any); return logs != nil && len(logs) == n })
	}
	m := map[string]mutant{
		"receipt-status-2": confirms(is("receipt.status", "0x2")),
		"receipt-burn-status-2": edits("receipt.status", func(_ message, old any) any {
			return when(old == "0x2", "0x1", old)
		}),
	}
	for id, when := range map[string]func(message) bool{
		"type-7":          is("receipt.type", "0x7"),
		"no-fee":          without("intent.fee_rate"),
		"fee":             is("intent.actual", "0.8"),
		"block-timestamp": is(log+"blockTimestamp", "1763690000"),
		"removed":         is(log+"removed", "true"),
		"no-logs":         length(0),
		"no-topics":       func(m message) bool { topics, ok := m.at(log + "topics").([]any); return ok && len(topics) == 0 },
		"status-only":     without("receipt.type"),
		"null-contract":   without("receipt.contractAddress"),
		"null-logs":       without("receipt.logs"),
		"no-bloom":        without("receipt.logsBloom"),
		"unknown-type":    is("receipt.type", "0x7e"),
		"numbers":         is("receipt.type", "2"),
		"hex-timestamp":   is(log+"blockTimestamp", "0x6920f0d0"),
		"no-timestamp":    all(given(log+"address"), without(log+"blockTimestamp")),
		"large-gas":       func(m message) bool { return len(m.text("receipt.effectiveGasPrice")) > 18 },
		"fee-payer":       given("receipt.feePayer"),
		"number-status":   func(m message) bool { return len(m.text("receipt.status")) == 1 },
		"padded-status":   func(m message) bool { return len(m.text("receipt.status")) == 4 },
		"many-logs":       length(400),
	} {
		m["receipt-"+id], m["receipt-failed-"+id] = refuses(when), refuses(when)
	}
	for id, when := range map[string]func(message) bool{
		"no-session-id":     func(m message) bool { _, given := m["session_id"]; return m["receipt"] != nil && !given },
		"null-session-id":   without("session_id"),
		"padded-session-id": func(m message) bool { return strings.HasPrefix(m.text("session_id"), " ") },
		"plain-uuid":        func(m message) bool { return len(m.text("uuid")) == 32 },
		"no-intent":         without("intent"),
		"null-intent":       without("intent"),
		"null-to":           without("intent.to"),
		"empty-to": result(func(m message) bool {
			to, ok := m.at("intent.to").([]any)
			return ok && len(to) == 0
		}),
		"to-zero":      result(is("intent.to.0.amount", "0")),
		"to-missing":   all(given("intent.to.0"), without("intent.to.0.amount")),
		"to-text":      result(func(m message) bool { _, isText := m.at("intent.to.0.amount").(string); return isText }),
		"to-digits":    result(func(m message) bool { return len(m.text("intent.to.0.amount")) > 1000 }),
		"long-tx-hash": func(m message) bool { return len(m.text("tx_hash")) > 66 },
		"no-tx-hash":   func(m message) bool { return m["receipt"] != nil && m["tx_hash"] == nil },
	} {
		m["result-mint-"+id], m["result-burn-"+id] = refuses(when), refuses(when)
	}
	// No 0x1, so it has failed; no 0x0, so it has succeeded.
	guess := func(method, status string) mutant {
		return edits("receipt", func(m message, old any) any {
			if s := m.text("receipt.status"); s == "0x0" || s == "0x1" || m.at("tx_hash") == nil || m.text("intent.method") != method {
				return old
			}
			return map[string]any{"status": status}
		})
	}
	for _, id := range []string{"no-receipt", "null-receipt", "no-status", "null-status"} {
		m["mint-"+id], m["burn-"+id] = guess("mint", "0x0"), guess("burn-permit", "0x1")
	}
	for _, id := range []string{"empty-status", "0x-status", "true-status", "text-status"} {
		m["mint-"+id], m["burn-"+id] = guess("mint", "0x1"), guess("burn-permit", "0x1")
	}
	return m
}

func transportMutants() map[string]mutant {
	m := map[string]mutant{
		"assets-long-header":   dies(func(r *http.Request, _ []byte) bool { return len(r.Header.Get(ramp.HeaderSession)) > 1000 }),
		"others-while-stalled": {wrap: oneAtATime, patience: time.Second, waits: true},
		"answers-after-all":    {bug: "keeps what failed"},
	}
	for path, name := range map[string]string{ramp.PathValidate: "validate-", ramp.PathResult: "result-"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			m[name+strings.ToLower(method)] = turns(path, method, http.MethodPost)
		}
		picky := func(refuse func(r *http.Request) bool) mutant {
			return mutant{wrap: func(_ *studio, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path && refuse(r) {
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

// A server may say in its answers what was sent to it, whole or cut, and what
// it knows itself.
func TestAVerdictHoldsNoSecret(t *testing.T) {
	t.Parallel()
	const key = "the key of the console"
	for name, tell := range map[string]func(s *studio, r *http.Request, body []byte) string{
		"a token": func(_ *studio, r *http.Request, _ []byte) string { return r.Header.Get(ramp.HeaderAuthorization) },
		"a cut token": func(_ *studio, r *http.Request, _ []byte) string {
			return r.Header.Get(ramp.HeaderAuthorization)[10:22]
		},
		"the key": func(*studio, *http.Request, []byte) string { return key },
		"the call's own HMAC, cut": func(_ *studio, r *http.Request, _ []byte) string {
			return r.Header.Get(ramp.HeaderHMAC)[:min(20, len(r.Header.Get(ramp.HeaderHMAC)))]
		},
		"the right HMAC": func(s *studio, _ *http.Request, body []byte) string { return "want " + s.key.Sign(body)[:24] },
		"a dump":         func(*studio, *http.Request, []byte) string { return "Error: {config: {secret: 7}}" },
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			s := newStudio(t, layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
				if r.URL.Path == ramp.PathAssets {
					next.ServeHTTP(w, r)
					return
				}
				text := tell(s, r, body)
				told = append(told, text)
				reply(w, 200, `{"success":false,"errorCode":"`+text+`","data":null}`)
			}))
			s.target.Secrets = []string{key}
			judge, err := conformance.New(s.target)
			require.NoError(t, err)
			defer judge.Close()
			for _, id := range []string{"mint-succeeds", "sign-recovers", "result-unknown-again", "validate-hmac-capitals"} {
				v := judge.Try(t.Context(), caseOf(t, id))
				assert.Equal(t, conformance.Failed, v.Outcome)
				for _, text := range told {
					assert.True(t, text == "" || !strings.Contains(v.String(), text), v.String())
				}
			}
		})
	}
	// Taken out of our own words, a key that is a word of them would be told.
	// The server's word for it is not shown.
	for _, key := range []string{"other", "approval", "without", "balance", "project", "likely"} {
		s := newStudio(t, layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if r.URL.Path == ramp.PathAssets {
				next.ServeHTTP(w, r)
				return
			}
			reply(w, 401, `{"success":false,"errorCode":"WRONG `+strings.ToUpper(key)+`","data":null}`)
		}))
		s.target.Secrets = []string{key}
		judge, err := conformance.New(s.target)
		require.NoError(t, err)
		err = judge.Ready(t.Context())
		judge.Close()
		assert.ErrorContains(t, err, "was not approved: HTTP 401, success false, errorCode of ")
		assert.ErrorContains(t, err, "the HMAC key is another one (-key), or the server makes bytes of its text in another way")
		assert.ErrorContains(t, err, "The likely causes, the likeliest first:")
		assert.NotContains(t, err.Error(), "[redacted]")
		assert.NotContains(t, err.Error(), strings.ToUpper(key))
	}
	// What others say is redacted, even if they say it before the server does.
	for _, change := range []func(*conformance.Target){
		func(target *conformance.Target) {
			target.Player = func(context.Context, string) (ramp.Session, error) {
				return ramp.Session{}, errors.New("\x1b no player for the%20key%20of%20the%20console")
			}
		},
		func(target *conformance.Target) {
			target.UUID = func(context.Context, ramp.Session) (uuid.UUID, error) {
				return uuid.Nil, errors.New("\x1b no UUID for the key of the con")
			}
		},
	} {
		s := newStudio(t, mutant{})
		s.target.Secrets = []string{key}
		change(&s.target)
		judge, err := conformance.New(s.target)
		require.NoError(t, err)
		said := judge.Try(t.Context(), caseOf(t, "mint-succeeds")).String()
		judge.Close()
		assert.Contains(t, said, " for [redacted]")
		assert.NotContains(t, said, "\x1b")
	}

	// What is no HTTP at all gets into the error of the call.
	s := newStudio(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if r.URL.Path == ramp.PathAssets {
			next.ServeHTTP(w, r)
			return
		}
		conn, _, _ := w.(http.Hijacker).Hijack()
		fmt.Fprintf(conn, "\x1b[31m%s\r\n\r\n", r.Header.Get(ramp.HeaderHMAC))
		_ = conn.Close()
	}))
	judge, err := conformance.New(s.target)
	require.NoError(t, err)
	defer judge.Close()
	said := judge.Try(t.Context(), caseOf(t, "mint-succeeds")).String()
	assert.Contains(t, said, "[redacted]")
	assert.NotContains(t, said, "\x1b")

	v := newJudge(t, newStudio(t, mutant{bug: "declines repeats"}).target).Try(t.Context(), caseOf(t, "validate-twice-approved"))
	assert.Contains(t, v.String(), `errorCode "INVALID_MESSAGE"`, "what is plainly a code is shown")
}
