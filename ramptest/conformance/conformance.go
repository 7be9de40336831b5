// Package conformance judges a game's server by what it does. The server may be
// written in any language and needs no hook. The judge plays the service over HTTP,
// and uses the server's own assets endpoint to measure what moved.
//
// The judge is a table of cases. Each cites the section of the interface that it follows
// and says how to fix a failure. [Test] runs them as a test, and the command "ramp check"
// on a command line, where "ramp check -list" shows them.
//
// What the interface leaves open, the cases leave open too. An order may be rejected
// with any errorCode and any HTTP status. A fraction may be taken or rejected. Assets
// may be taken at validate or held until the result.
package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
	"github.com/token-ramp/ramp-go/internal/transport"
)

// Test judges a server in a test. Each case is a subtest named by its ID.
// A failed MUST fails the test. A failed SHOULD is only logged, unless Strict is set
// or the failure gives assets away. A case that could not be tried fails the test too, so
// that it is not mistaken for a pass. So does a MUST that needs a field of Server which is not set:
// its error names the field. Waive it if it does not concern your game.
//
// Some cases prove nothing until a basic ability works, such as giving back after a failed mint.
// Without the ability these subtests are skipped, and the test itself fails, even if -run selects
// other subtests. The test ends when the server stops answering.
func Test(t *testing.T, server Server) {
	t.Helper()
	judge.Test(t, judge.Config(server))
}

// Server describes the server to judge, with its settings in the service console.
type Server struct {
	// URL is the base URL of the server. It is required. It must be a loopback
	// address unless AllowRemote is set, because the judge moves assets. The judge
	// calls no other host.
	URL         string
	AllowRemote bool

	// AssetsPath, ValidatePath and ResultPath are the paths of the endpoints below
	// URL. They default to those of the interface's examples (interface 4.3).
	AssetsPath, ValidatePath, ResultPath string

	// Key is the HMAC key of the console. It is required.
	Key ramp.HMACKey

	// Header is sent with every call, for a gateway in front of the server. It
	// must not contain headers of the interface. Verdicts never show its values.
	Header http.Header

	// Secrets are texts that no verdict may show, such as the text of Key. In text that comes from
	// the server, or from the functions Player, UUID or Restart, they are replaced by [redacted],
	// also where they are percent-encoded or escaped for JSON. Secrets shorter than 4 bytes are not
	// redacted. Tokens and HMACs need not be listed.
	Secrets []string

	// Validator is the address of the validator key. It is required.
	Validator common.Address

	// Player returns the session of a player who owns assets. It is required. It
	// should create a new player with the proposed name each time. It may also return
	// existing sessions in turn, of at least two users with different tokens.
	Player func(ctx context.Context, name string) (ramp.Session, error)

	// ProjectID is the project of the console. If it is empty, the judge sends a
	// placeholder, and skips the case about another project.
	ProjectID string

	// Asset is the ID of the game asset to move, and Second that of another one.
	// They default to the first two assets of which the player owns enough.
	Asset, Second string

	// OneAsset says that the game has one asset only. Cases about a second one are skipped then.
	OneAsset bool

	// Amount is how much of an asset an order moves, and Tokens how many tokens that is worth at
	// the game's rate. A player should own at least 20 times Amount of both assets, and less than 2^31.
	// Amount defaults to the largest even number up to 400 of which the player owns so much, and Tokens
	// to half of it, if the game approves that; they default to 2 and 1 otherwise. If Amount, Tokens and
	// Token are set, orders at other rates must be rejected.
	Amount, Tokens int64

	// BurnTokens is how many tokens must be burned for that amount, if burns have a
	// rate of their own. It defaults to Tokens.
	BurnTokens int64

	// Token is the address of the token contract. It defaults to a placeholder. If it
	// is set, orders about other contracts must be rejected.
	Token string

	// UUID returns the UUID of a new order, and the token of its page if it has one of its own,
	// which the validate and result calls then send. It is for a server that approves only
	// the UUIDs of its own initialize calls. The default is a random UUID and the session's token.
	UUID func(ctx context.Context, s ramp.Session) (uuid.UUID, ramp.AccessToken, error)

	// Wallet returns the address of a player's wallet, or "" if the judge may choose it. It
	// is for a server that checks user_address, and takes precedence over the
	// wallet_address that the server reports.
	Wallet func(s ramp.Session) string

	// Only is "mint" or "burn" for a game that has only such orders. Cases about the
	// other direction are skipped.
	Only string

	// Unique says that the assets are unique items, of which a player owns 1 each: an
	// order moves 1, and a burn returns what was minted before.
	Unique bool

	// Restart stops the server and starts it again with its stored data. Sessions
	// must survive it. Cases need it.
	Restart func(ctx context.Context) error

	// Strict makes a failed SHOULD count like a failed MUST.
	Strict bool

	// Waive matches the IDs of cases that are waived: they are not tried, and do not count. If a
	// case tries several inputs, each is matched by ID/NAME: the ID of the case, and the name of
	// the input. An ability is still tried, because other cases depend on it.
	Waive *regexp.Regexp

	// Timeout is the timeout of each call. It defaults to 10 seconds.
	Timeout time.Duration

	// Settle is how long after an answer its effect on a balance may appear, because
	// HTTP 200 only confirms that a result arrived (interface 6). It defaults
	// to 2 seconds.
	Settle time.Duration

	// The judge leaves some orders open, and sends their results this long after their approval. It
	// defaults to 3 seconds. 6 minutes outlast the UUID (interface 8). The judge leaves no order
	// open if Player returns the same player more than once.
	Late time.Duration
}

// Format writes the scheme and host of URL under every verb but %p, because a Server holds secrets.
func (s Server) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, transport.Shown(s.URL)) }
