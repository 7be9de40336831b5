package judgetest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// plainFaults are the faults of the plain server. Where no case is named, the interface
// allows the fault, or only a SHOULD sees it.
var plainFaults = []struct {
	name  string
	first string // the case that must be named first; nothing may fail if it is empty
}{
	{"body limit of 4 KB", "receipt-large"},
	{"any method", ""},
	{"strict content type", ""},
	{"result always 200", ""},
	{"data is {} on failure", "rejection-envelope"},
	{"refusal without envelope", "rejection-envelope"},
	{"answers as text/html", ""},
	{"token without Bearer", ""},
	{"any scheme", ""},
	{"token in any case", "assets-token-wrong"},
	{"token contains", "assets-token-wrong"},
	{"balance as a float", "nothing to judge"},
	{"balance cached", "mint-succeeds"},
	{"hmac of uuid only", "validate-hmac-wrong"},
	{"hmac of ascii text", "validate-hmac-raw"},
	{"hmac of 16 characters", "validate-hmac-wrong"},
	{"hmac checked last", "validate-hmac-wrong"},
	{"amount absent is 1", ""},
	{"amount absolute", ""},
	{"zero accepted", ""},
	{"type of sides ignored", ""},
	{"item in any case", ""},
	{"sum wraps at 64 bits", "terms-rate"},
	{"unknown fields rejected", ""},
	{"unknown fields rejected at validate", ""},
	{"unknown fields of the receipt rejected", ""},
	{"project not checked", ""},
	{"uuid not checked", "validate-uuid"},
	{"uuid case", ""},
	{"digest without 0x", ""},
	{"digest hashed if not 32 bytes", "digest-wrong"},
	{"user_sig may be empty", ""},
	{"user_address not checked", ""},
	{"unknown items cost nothing", "terms-rate"},
	{"rate is a minimum", ""},
	{"rate by integer division", "terms-rate"},
	{"rate with 1% tolerance", "terms-rate"},
	{"repeat of another player answered", ""},
	{"repeat rejected", ""},
	{"repeat after the end approved", "validate-(other|after-end)"},
	{"order replaced", "repeats"},
	{"ended uuid reused", "validate-after-end"},
	{"an open order blocks", ""},
	{"open order never released", ""},
	{"one more than the balance", "balance"},
	{"needs one more than the order", ""},
	{"short is signed anyway", "sign-rejected"},
	{"burn pays at validate and result", "burn-succeeds"},
	{"order expires in 2 s", "result-late"},
	{"signs the hash of the text", "sign-unchanged"},
	{"constant nonce", "sign-nonce"},
	{"signature as base64", "sign-form"},
	{"user_sig parsed as bytes", "user-sig"},
	{"snake case in the answer", "sign-form"},
	{"blockTimestamp as text", "result-log"},
	{"first log's first topic", "nothing to judge"},
	{"zero contract rejected", "result-answer"},
	{"actual as an integer", "receipt"},
	{"other statuses rejected", "receipt-status-2"},
	{"status never looked at", "mint-fails"},
	{"failure then success takes again", "result-contrary"},
	{"a repeat is an error", "repeats"},
	{"hash ends two orders", ""},
	{"a failed mint keeps 10%", "mint-fails"},
	{"a burn pays 1% less", "burn-succeeds"},
	{"gives back the wrong item", "mint-fails"},
	{"items of their own, never given back", "mint-fails"},
	{"a mint takes again at its result", "mint-succeeds"},
	{"confirmed before it is stored", "restart|receipt-large"},
	{"effect after 5 s", "mint-fails"},
	{"effect lost now and then", ".+"},
	{"fails after the effect", "mint-succeeds"},
	{"token case", ""},
}

// plainPolicies are rules of the plain server that the interface allows.
var plainPolicies = []string{"only burns", "only mints", "unique items", "items of their own", "own uuids", "wallets"}

// plainPolicy tells the judge of a policy.
func plainPolicy(name string, target *conformance.Target, game *plainServer) {
	switch name {
	case "only burns", "only mints":
		target.Only = name[len("only ") : len(name)-1]
	case "unique items", "items of their own", "items of their own, never given back":
		target.Unique, target.Amount, target.Tokens, target.BurnTokens = true, 1, 1, 1
	case "own uuids":
		target.UUID = func(context.Context, ramp.Session) (uuid.UUID, error) {
			game.mu.Lock()
			defer game.mu.Unlock()
			id := uuid.New()
			game.issued[id.String()] = true
			return id, nil
		}
	case "wallets":
		target.Wallet = func(s ramp.Session) string {
			game.mu.Lock()
			defer game.mu.Unlock()
			return game.players[s.ID].wallet
		}
	}
}

func TestPlain(t *testing.T) {
	only := os.Getenv("PLAIN")
	if only == "" && !all {
		only = strings.Join(plainPolicies, "|") + "||constant nonce|order expires in 2 s"
	}
	want := map[string]string{}
	names := slices.Concat([]string{""}, plainPolicies)
	for _, fault := range plainFaults {
		want[fault.name] = fault.first
		names = append(names, fault.name)
	}
	for _, name := range names {
		if only != "" && !matches(only, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := crypto.HexToECDSA(strings.TrimPrefix(validatorKey, "0x"))
			require.NoError(t, err)
			game := newPlainServer(name, []byte(consoleKey), key)
			server := httptest.NewServer(game)
			defer server.Close()
			hmacKey, err := ramp.TextKey(consoleKey)
			require.NoError(t, err)
			target := conformance.Target{URL: server.URL, Key: hmacKey, Validator: crypto.PubkeyToAddress(key.PublicKey), ProjectID: plainProject,
				Amount: 400, Tokens: 4, BurnTokens: 5, Token: plainToken, Settle: 600 * time.Millisecond,
				Player: func(ctx context.Context, player string) (ramp.Session, error) {
					r, err := http.Post(server.URL+"/login", "application/json", strings.NewReader(`{"player":"`+player+`"}`))
					if err != nil {
						return ramp.Session{}, err
					}
					defer r.Body.Close()
					var s struct{ SessionID, AccessToken string }
					err = json.NewDecoder(r.Body).Decode(&s)
					return ramp.Session{ID: s.SessionID, Token: ramp.NewAccessToken(s.AccessToken)}, err
				}}
			if name == "one more than the balance" {
				target.Tokens, target.BurnTokens = 400, 400
			}
			target.Restart = func(context.Context) error {
				game.restart()
				server.CloseClientConnections()
				return nil
			}
			plainPolicy(name, &target, game)
			judge, err := conformance.New(target)
			require.NoError(t, err)
			defer judge.Close()
			if err := judge.Ready(t.Context()); err != nil {
				text := strings.SplitN(err.Error(), "\n", 2)[0]
				t.Logf("PLAIN | %s | stops | %s", name, text[:min(len(text), 200)])
				assert.Equal(t, "nothing to judge", want[name], text)
				return
			}
			verdicts := judge.Run(t.Context(), conformance.Cases(), 4, nil)
			var failed, noted, skipped []string
			for _, v := range verdicts {
				if v.Outcome == conformance.Skipped || v.Outcome == conformance.Unproven {
					skipped = append(skipped, v.Case.ID)
				}
			}
			for _, cause := range conformance.Causes(verdicts) {
				v := cause.First()
				id := v.Case.ID
				if v.Input.Name != "" {
					id += "/" + v.Input.Name
				}
				if v.Outcome == conformance.Failed {
					t.Log(v)
					failed = append(failed, id)
				} else {
					noted = append(noted, id)
				}
			}
			first := ""
			if len(failed) > 0 {
				first, _, _ = strings.Cut(failed[0], "/")
			}
			assert.True(t, matches(want[name], first), "the first cause is %q, want %q", first, want[name])
			t.Logf("PLAIN | %s | failed %d %s | noted %d %s | skipped %d %.300v | %v", name, len(failed), strings.Join(failed[:min(3, len(failed))], " "), len(noted), strings.Join(noted, " "), len(skipped), skipped, judge.Err())
		})
	}
}
