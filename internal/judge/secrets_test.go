package judge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// A server may say in its answers what was sent to it, and what it knows itself.
func TestAVerdictHoldsNoSecret(t *testing.T) {
	t.Parallel()
	const key = "the key of the console"
	for name, tell := range map[string]func(s *studio, r *http.Request, body []byte) string{
		"a token": func(_ *studio, r *http.Request,
			_ []byte) string {
			return r.Header.Get(ramp.HeaderAuthorization)
		},
		"the key": func(*studio, *http.Request, []byte) string { return key },
		"the call's own HMAC": func(_ *studio, r *http.Request,
			_ []byte) string {
			return r.Header.Get(ramp.HeaderHMAC)
		},
		"the right HMAC": func(s *studio, _ *http.Request, body []byte) string { return "want " + s.key.Sign(body) },
		"a dump":         func(*studio, *http.Request, []byte) string { return "Error: {config: {secret: 7}}" },
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			s := newStudio(t,
				layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
					if r.URL.Path == ramp.PathAssets {
						next.ServeHTTP(w, r)
						return
					}
					text := tell(s, r, body)
					texts = append(texts, text)
					reply(w, 200, `{"success":false,"errorCode":"`+text+`","data":null}`)
				}))
			s.target.Secrets = []string{key}
			j := s.unopened(t)
			for _, id := range []string{"mint-succeeds", "sign-v", "result-unknown-again", "validate-hmac-capitals"} {
				v := j.Try(t.Context(), caseOf(t, id))
				assert.Equal(t, judge.Failed, v.Outcome)
				for _, text := range texts {
					assert.True(t, text == "" || !strings.Contains(v.String(), text), v.String())
				}
			}
		})
	}
	// Taken out of our own words, a key that is a word of them would be told.
	// The server's word for it is not shown.
	for _, key := range []string{"wrong", "approval", "without", "balance", "project", "likely"} {
		s := newStudio(t, replies(at(ramp.PathValidate), 401, no("WRONG "+key)))
		s.target.Secrets = []string{key}
		err := s.unopened(t).Ready(t.Context())
		assert.ErrorContains(t, err, "was not approved: HTTP 401, success false, errorCode of ")
		assert.ErrorContains(t, err, "the HMAC key is wrong (-key-file), or the server decodes it differently")
		assert.ErrorContains(t, err, "Likely causes, most likely first:")
		assert.NotContains(t, err.Error(), "[redacted]")
		assert.NotContains(t, err.Error(), "WRONG "+key)
	}
	// What others say is redacted, even if they say it before the server does.
	for _, change := range []func(*judge.Config){
		func(target *judge.Config) {
			target.Player = func(context.Context, string) (ramp.Session, error) {
				return ramp.Session{}, errors.New("\x1b no player for the%20key%20of%20the%20console")
			}
		},
		func(target *judge.Config) {
			target.UUID = func(context.Context, ramp.Session) (uuid.UUID, ramp.AccessToken, error) {
				return uuid.Nil, ramp.AccessToken{}, errors.New("\x1b no UUID for the+key+of+the+console")
			}
		},
	} {
		s := newStudio(t, mutant{})
		s.target.Secrets = []string{key}
		change(&s.target)
		said := s.unopened(t).Try(t.Context(), caseOf(t, "mint-succeeds")).String()
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
	said := s.unopened(t).Try(t.Context(), caseOf(t, "mint-succeeds")).String()
	assert.Contains(t, said, "[redacted]")
	assert.NotContains(t, said, "\x1b")

	v := newJudge(t, newStudio(t, mutant{bug: "rejects repeats"})).Try(t.Context(),
		caseOf(t, "validate-twice-approved"))
	assert.Contains(t, v.String(), `errorCode "INVALID_MESSAGE"`, "what is plainly a code is shown")
}
