package judge_test

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	ramp "github.com/token-ramp/ramp-go"
)

// admits is a server that lets a session in that did not prove itself.
func admits(path string, when func(session, authorization []string, right string) bool) mutant {
	return bends(func(s *studio, r *http.Request, _ []byte) {
		session, authorization := r.Header[ramp.HeaderSession], r.Header[ramp.HeaderAuthorization]
		if id, token := s.who(session, authorization); r.URL.Path == path &&
			when(session, authorization, "Bearer "+token) {
			r.Header.Set(ramp.HeaderSession, id)
			r.Header.Set(ramp.HeaderAuthorization, "Bearer "+token)
		}
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
	return bends(func(s *studio, r *http.Request, _ []byte) {
		if id, _ := s.who(nil, r.Header[ramp.HeaderAuthorization]); r.URL.Path == path && id != "" {
			r.Header.Set(ramp.HeaderSession, id)
		}
	})
}

// recordedConn is a connection that remembers what it read, so that a mutant sees the
// names of headers as they came.
type recordedConn struct {
	net.Conn
	mu   sync.Mutex
	text []byte
}

func (h *recordedConn) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:n]...)
	return n, err
}

type connKey struct{}

// deafTo is a server that does not find a header by the name that came.
func deafTo(path, name string) mutant {
	m := bends(func(_ *studio, r *http.Request, _ []byte) {
		conn := r.Context().Value(connKey{}).(*recordedConn)
		conn.mu.Lock()
		deaf := bytes.Contains(conn.text, []byte("\n"+name+":"))
		conn.text = nil
		conn.mu.Unlock()
		if deaf && r.URL.Path == path {
			r.Header.Del(name)
		}
	})
	m.hears = true
	return m
}

// wantsHeader is a server that rejects a result whose header contradicts its body.
func wantsHeader() mutant {
	return replies(func(_ *studio, r *http.Request, body []byte) bool {
		header := r.Header.Get(ramp.HeaderSession)
		id, ok := parse(body).at("session_id").(string)
		return ok && r.URL.Path == ramp.PathResult && header != "" && header != strings.TrimSpace(id)
	}, 500, no("SESSION_MISMATCH"))
}

func assetsMutants() map[string]mutant {
	const path = ramp.PathAssets
	entry := func(more string) mutant { return replaces(path, `"assets":[`, `"assets":[`+more+",") }
	return map[string]mutant{
		"assets":                statusAt(path, 200, 203),
		"null-fields/assets":    replaces(path, `"errorCode":null,`, ""),
		"assets-balance-string": replaces(path, `"1000000"`, "1000000"),
		"assets-balance-sign":   entry(`{"id":"item_debt","balance":"-1"}`),
		"assets-id":             entry(`{"id":"","balance":"1"}`),
		"assets-id-once":        entry(`{"id":"item_gem","balance":"0"}`),
		"assets-text-fields":    replaces(path, `"name":"Name"`, `"name":7`),
		"content-type/assets":   plainText(path, 200),
		"assets-other-player":   {bug: "one purse for all"},
		"assets-older-callers/query": replies(func(_ *studio, r *http.Request, _ []byte) bool {
			return r.URL.RawQuery != ""
		}, 400, no("NO")),
		"assets-older-callers/header": bends(func(_ *studio, r *http.Request, _ []byte) {
			if other := r.Header.Get("Authorization"); other != "" {
				r.Header.Set(ramp.HeaderAuthorization, other)
			}
		}),
	}
}

// plainText is a server that says that some of its answers are text.
func plainText(path string, status int) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		answer := answerOf(next, r)
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
		"rejection-envelope/token": replaces(ramp.PathAssets, `"data":null`, `"data":{}`),
		"assets-foreign-token":     admits(ramp.PathAssets, anyToken),
		"validate-foreign-token":   admits(ramp.PathValidate, anyToken),
		"header-case/assets":       deafTo(ramp.PathAssets, "X-DAPP-SESSIONID"),
		"header-case/validate":     deafTo(ramp.PathValidate, "x-hmac-signature"),
		"header-case/result":       deafTo(ramp.PathResult, "X-Hmac-Signature"),
		"result-other-session": {bug: "pays the session",
			wrap: layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
				if m := parse(body); m != nil && r.URL.Path == ramp.PathResult && s.authentic(r, body) {
					m["session_id"] = r.Header.Get(ramp.HeaderSession)
					s.pass(w, r, jsonOf(m), next)
					return
				}
				next.ServeHTTP(w, r)
			}).wrap},
		"result-old-token": replies(func(_ *studio, r *http.Request, _ []byte) bool {
			return r.URL.Path == ramp.PathResult && strings.Contains(r.Header.Get(ramp.HeaderAuthorization), "nobody")
		}, 401, no("INVALID_TOKEN")),
	}
	for path, name := range map[string]string{ramp.PathAssets: "assets", ramp.PathValidate: "validate"} {
		for id, when := range map[string]func(session, authorization []string, right string) bool{
			"token-wrong/missing": func(_, a []string, _ string) bool { return len(a) == 0 },
			"token-wrong/empty":   func(_, a []string, _ string) bool { return len(a) == 1 && a[0] == "Bearer" },
			"token-wrong/unknown": anyToken,
			"token-wrong/cut": func(_, a []string, right string) bool {
				return len(a) == 1 && strings.HasPrefix(right, a[0])
			},
			"token-wrong/long": func(_, a []string, right string) bool {
				return len(a) == 1 && strings.HasPrefix(a[0], right)
			},
			"token-wrong/capitals": func(_, a []string, right string) bool {
				return len(a) == 1 && strings.EqualFold(a[0], right)
			},
			"session-odd/no-scheme": func(_, a []string, right string) bool {
				return len(a) == 1 && "Bearer "+a[0] == right
			},
			"session-odd/basic": func(_, a []string, right string) bool {
				return len(a) == 1 && strings.Replace(a[0], "Basic", "Bearer", 1) == right
			},
			"session-odd/two-tokens":      func(_, a []string, right string) bool { return slices.Contains(a, right) },
			"session-odd/no-session":      func(s, _ []string, _ string) bool { return len(s) == 0 },
			"session-odd/empty-session":   func(s, _ []string, _ string) bool { return len(s) == 1 && s[0] == "" },
			"session-odd/unknown-session": func(_, a []string, right string) bool { return slices.Contains(a, right) },
			"session-odd/two-sessions":    func(s, _ []string, _ string) bool { return len(s) == 2 },
			"session-odd/letters": func(s, _ []string, _ string) bool {
				return len(s) == 1 && strings.HasPrefix(s[0], "S") // and "session" otherwise
			},
		} {
			m[name+"-"+id] = admits(path, when)
		}
	}
	return m
}

func anyToken([]string, []string, string) bool { return true }
