package judgetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// honest are servers that differ in what the interface leaves open: how they store
// orders, when a mint takes its assets, how they read numbers and which HTTP they speak.
var honest = []struct {
	name, language string
	policy         string
	flags          []string
	restarts       bool
	except         string // a policy that it cannot have
	always         bool   // it runs with every go test
}{
	{name: "threads", language: "python", restarts: true, always: true},
	{name: "wsgi", language: "python", policy: "takes-at-result",
		flags: []string{"-http", "wsgi", "-numbers", "doubles"}},
	{name: "single", language: "python", policy: "strict,whole", flags: []string{"-http", "single"}, except: "latency"},
	{name: "doubles", language: "node", policy: "one-hash", always: true},
	{name: "whole", language: "node", policy: "whole,strict,takes-at-result", restarts: true},
}

// policies are the rules of real games that the interface allows.
var policies = []struct {
	name   string // the policies of a server, separated by commas
	flags  []string
	stays  bool // it must not be restarted
	always bool // it runs with every go test
}{
	{name: "", always: true},
	{name: "one-order"},
	{name: "cooldown"},
	{name: "login-limit,one-asset", flags: []string{"-one-asset"}},
	{name: "call-limit", flags: []string{"-parallel", "8"}},
	{name: "price,status-400", flags: terms},
	{name: "body-limit,closes"},
	{name: "latency", flags: []string{"-parallel", "8"}},
	{name: "digits,wallet"},
	{name: "late", stays: true}, // an effect that is late is not in the database yet
	{name: "no-repeats", flags: []string{"-parallel", "1"}},
	{name: "literal-status,missing-fails,token-at-result,regenerates"},
}

// silent requires that nothing fails and everything is tried.
func silent(t *testing.T, v verdict) {
	t.Helper()
	t.Log(v)
	assert.Equal(t, exitRight, v.exit, "the exit status")
	assert.Empty(t, v.with("failed"))
	assert.Empty(t, v.with("untried"))
}

func TestHonestServersPass(t *testing.T) {
	for _, server := range honest {
		for _, policy := range policies {
			impossible := policy.name != "" && policy.name == server.except
			if impossible || !all && !(server.always && policy.always) {
				continue
			}
			t.Run(server.name+"/"+policy.name, func(t *testing.T) {
				t.Parallel()
				rules := strings.Trim(server.policy+","+policy.name, ",")
				url, restart := start(t, server.language, append(slices.Clone(server.flags), "-policy", rules)...)
				flags := slices.Clone(policy.flags)
				if server.restarts && !policy.stays {
					flags = append(flags, "-restart", restart)
				}
				silent(t, check(t, url, flags...))
			})
		}
	}
}

// TestAnHonestServerPassesWithTwoPlayers gives the judge two sessions and no login.
func TestAnHonestServerPassesWithTwoPlayers(t *testing.T) {
	if !all {
		t.Skip("JUDGE_ALL is not set")
	}
	for language := range servers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			url, _ := start(t, language)
			flags := []string{"-login="} // instead of the default of check
			for _, player := range []string{"alice", "bob"} {
				response := must.Get(http.Post(url+"/login", "application/json",
					strings.NewReader(`{"player":"`+player+`"}`)))(t)
				var session struct{ SessionID, AccessToken string }
				require.NoError(t, json.NewDecoder(response.Body).Decode(&session))
				require.NoError(t, response.Body.Close())
				flags = append(flags, "-session", session.SessionID+"="+session.AccessToken)
			}
			v := check(t, url, flags...)
			silent(t, v)
			assert.NotContains(t, v.with("skipped"), "assets-other-player", "it needs two")
		})
	}
}
