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
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// plainFaults are the faults of the plain server.
var plainFaults = strings.Split(strings.TrimSpace(`
body limit of 4 KB
any method
strict content type
result answers 204
result answers {}
result answers ok as text
result always 200
errorCode empty on success
errorCode is a number
errorCode null on failure
data is {} on failure
refusal without envelope
refusal as success true
answers as text/html
token optional
token without Bearer
any scheme
token not bound to session
session ignored
token prefix
token in any case
token of 16 characters
token not checked
token contains
any player's token at validate
token not checked at validate
token not checked at assets
balance as a number
balance with commas
balance as a float
balance cached
assets without v1
hmac optional
no hmac at result
no hmac at validate
hmac of sorted json
hmac of compact json
hmac of uuid only
hmac of ascii text
hmac of latin-1 text
hmac prefix
hmac of 16 characters
hmac checked last
amount as int64 of a float
amount as a float64
amount as int32
amount rounded
amount absent is 1
amount absolute
zero accepted
negative accepted
type of sides ignored
item in any case
first entry only
last entry counts
sum wraps at 64 bits
sum wraps at 32 bits
unknown fields rejected
unknown fields rejected at validate
unknown fields of the receipt rejected
project not checked
uuid not checked
uuid case
digest cut to 32 bytes
digest without 0x
digest hashed if not 32 bytes
user_sig may be empty
user_address not checked
method ignored
type ignored
token not checked in intent
other tokens ignored
unknown items cost nothing
any listed item
rate not checked
rate is a minimum
rate the wrong way on burns
rate by integer division
rate with 1% tolerance
repeat takes again
repeat of another player answered
repeat signs any digest
repeat rejected
repeat after the end approved
order replaced
ended uuid reused
an open order blocks
open order never released
balance not checked
one more than the balance
balance clamped at zero
needs one more than the order
short is signed anyway
check and take race
mint takes nothing
burn pays at validate
burn pays at validate and result
order expires in 2 s
signs with the ethereum prefix
signs the hash of the text
signs the hash of the digest
constant nonce
nonce of the second
signature without 0x
signature of 64 bytes
signature as base64
user_sig in lower case
user_sig trimmed
user_sig parsed as bytes
snake case in the answer
result needs a live token
blockTimestamp as text
needs a log
first log's first topic
type 2 only
zero contract rejected
actual as an integer
fee_rate required
no status is a failure
no status is a success
status 0x0 only
other statuses rejected
status never looked at
unknown order confirmed
unknown order paid from the webhook
unknown order is 404
a repeat has its effect again
success then failure gives back
failure then success takes again
a repeat is an error
a repeat is a conflict
hash ends two orders
results race
effect for the caller's session
effect for session_id
effect of the webhook's intent
a failed mint keeps 10%
a burn pays 1% less
a burn pays 20% less
gives back the wrong item
one item only
tokens instead of items
a failed mint gives nothing back
a mint takes again at its result
a mint gives back on success
a burn pays nothing
a failed burn pays
confirmed before it is stored
effect after 5 s
effect lost now and then
hangs on unknown orders
fails after the effect
token case
`), "\n")

// plainPolicies are rules of the plain server that the interface allows.
var plainPolicies = []string{"only burns", "only mints", "unique items", "own uuids", "wallets"}

// plainPolicy tells the judge of a policy.
func plainPolicy(name string, target *conformance.Target, game *plainServer) {
	switch name {
	case "hangs on unknown orders":
		target.Timeout = 10 * time.Second // the default of the command
	case "only burns", "only mints":
		target.Only = name[len("only ") : len(name)-1]
	case "unique items":
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
		only = "|constant nonce|order expires in 2 s"
	}
	for _, name := range slices.Concat([]string{""}, plainPolicies, plainFaults) {
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
				Amount: 400, Tokens: 4, BurnTokens: 5, Token: plainToken, Settle: 600 * time.Millisecond, Timeout: 3 * time.Second,
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
				if v.Input != "" {
					id += "/" + v.Input
				}
				if v.Outcome == conformance.Failed {
					failed = append(failed, id)
				} else {
					noted = append(noted, id)
				}
			}
			t.Logf("PLAIN | %s | failed %d %s | noted %d %s | skipped %d %.300v | %v", name, len(failed), strings.Join(failed[:min(3, len(failed))], " "), len(noted), strings.Join(noted, " "), len(skipped), skipped, judge.Err())
		})
	}
}
