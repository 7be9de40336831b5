package judge_test

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

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

// unpacks is a server on a framework that unpacks bodies.
func unpacks(path string) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if unpacked, err := gzip.NewReader(bytes.NewReader(body)); err == nil && r.URL.Path == path {
			r.Body, r.ContentLength = unpacked, -1
		}
		next.ServeHTTP(w, r)
	})
}

func plainMAC(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func hmacMutants() map[string]mutant {
	m := make(map[string]mutant)
	first := func(header []string) string { return strings.Join(header[:min(1, len(header))], "") }
	for path, name := range map[string]string{ramp.PathValidate: "validate-", ramp.PathResult: "result-"} {
		for id, when := range map[string]func(s *studio, header []string, body []byte) bool{
			"hmac-wrong/missing": func(_ *studio, header []string, _ []byte) bool { return len(header) == 0 },
			"hmac-wrong/empty":   func(_ *studio, header []string, _ []byte) bool { return first(header) == "" },
			"hmac-wrong/short": func(s *studio, header []string, body []byte) bool {
				return strings.HasPrefix(s.key.Sign(body), first(header))
			},
			"hmac-wrong/long": func(s *studio, header []string, body []byte) bool {
				return strings.HasPrefix(first(header), s.key.Sign(body))
			},
			"hmac-wrong/not-hex": func(_ *studio, header []string, _ []byte) bool {
				_, err := hex.DecodeString(first(header))
				return err != nil
			},
			"hmac-wrong/zero": func(_ *studio, header []string, _ []byte) bool {
				return strings.Trim(first(header), "0") == ""
			},
			"hmac-wrong/last-digit": func(s *studio, header []string, body []byte) bool {
				return len(header) == 1 && strings.HasPrefix(header[0], s.key.Sign(body)[:63])
			},
			"hmac-wrong/other-key": func(_ *studio, header []string, _ []byte) bool { return len(first(header)) == 64 },
			"hmac-wrong/empty-key": func(_ *studio, header []string, body []byte) bool {
				return first(header) == plainMAC(nil, body)
			},
			"hmac-wrong/other-body": func(_ *studio, header []string, _ []byte) bool {
				_, err := hex.DecodeString(first(header))
				return err == nil
			},
			"hmac-wrong/no-body": func(s *studio, header []string, _ []byte) bool {
				return first(header) == s.key.Sign(nil)
			},
			"hmac-wrong/digest": func(_ *studio, header []string, body []byte) bool {
				sum := sha256.Sum256(body)
				return first(header) == hex.EncodeToString(sum[:])
			},
			"hmac-wrong/two": func(s *studio, header []string, body []byte) bool {
				return slices.Contains(header, s.key.Sign(body))
			},
			"hmac-wrong/tampered": func(_ *studio, header []string, _ []byte) bool { return len(header) == 1 },
		} {
			m[name+id] = trusts(path, when)
		}
		m["rejection-envelope/"+name+"hmac"] = replies(func(s *studio, r *http.Request, body []byte) bool {
			return r.Method == http.MethodPost && !s.authentic(r, body)
		}, 401, `{"error":"unauthorized"}`)
		m[name+"hmac-first"] = replies(func(_ *studio, r *http.Request, body []byte) bool {
			return r.Method == http.MethodPost && !json.Valid(body)
		}, 400, no("INVALID_BODY"))
		m[name+"hmac-kept-secret"] = layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte,
			next http.Handler) {
			if right := s.key.Sign(body); r.Method == http.MethodPost && r.Header.Get(ramp.HeaderHMAC) != right {
				reply(w, 401, no("want "+strings.ToUpper(right)))
				return
			}
			next.ServeHTTP(w, r)
		})
		m[name+"hmac-capitals"] = bends(func(_ *studio, r *http.Request, _ []byte) {
			if got := r.Header.Get(ramp.HeaderHMAC); got != strings.ToLower(got) {
				r.Header.Set(ramp.HeaderHMAC, "")
			}
		})
		m[name+"hmac-wrong/packed"] = unpacks(path)
		// Verifies what it writes, not what it read.
		rewritten := bends(func(s *studio, r *http.Request, body []byte) {
			var value any
			if json.Unmarshal(body, &value) == nil && r.URL.Path == path &&
				s.key.Verify(jsonOf(value), r.Header.Get(ramp.HeaderHMAC)) != nil {
				r.Header.Set(ramp.HeaderHMAC, "")
			}
		})
		for _, id := range []string{"hmac-raw/indented", "hmac-raw/escapes", "hmac-raw/order", "hmac-raw/unicode"} {
			m[name+id] = rewritten
		}
	}
	return m
}
