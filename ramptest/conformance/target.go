package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Target describes the server to judge, with its settings in the service console.
type Target struct {
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

	// Secrets are texts that no verdict may show, such as the text of Key. In text
	// from the server, Player, UUID and Restart, they are replaced by [redacted], as
	// they are, percent-encoded or escaped for JSON. Secrets shorter than 4 bytes are
	// not redacted. Tokens and HMACs need not be listed.
	Secrets []string

	// Validator is the address of the validator key. It is required.
	Validator common.Address

	// Player returns the session of a player who owns assets. It is required. It
	// should create a new player with the proposed name each time. To use existing
	// sessions, see [Pool].
	Player func(ctx context.Context, name string) (ramp.Session, error)

	// ProjectID is the project of the console. If it is empty, the judge sends a
	// placeholder, and skips the case about another project.
	ProjectID string

	// Asset is the ID of the game asset to move, and Second that of another one.
	// They default to the first two assets of which the player owns enough. Cases
	// that need a second asset are skipped if there is none.
	Asset, Second string

	// Amount is how much of an asset an order moves, and Tokens how many tokens that
	// is worth at the game's rate. They default to 400 and 200 if the game approves
	// that and a player owns enough, and to 2 and 1 otherwise. A player
	// should own at least 20 times Amount, and less than 2^31. If both and Token are set, orders at
	// other rates must be rejected.
	Amount, Tokens int64

	// BurnTokens is how many tokens must be burned for that amount, if burns have a
	// rate of their own. It defaults to Tokens.
	BurnTokens int64

	// Token is the address of the token contract. It defaults to a placeholder. If it
	// is set, orders about other contracts must be rejected.
	Token string

	// UUID returns the UUID of a new order. It is for a server that approves only
	// the UUIDs of its own initialize calls. The default is a random UUID.
	UUID func(ctx context.Context, s ramp.Session) (uuid.UUID, error)

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
	// must survive it. If it is nil, cases that need it are skipped.
	Restart func(ctx context.Context) error

	// Strict makes a failed SHOULD count like a failed MUST.
	Strict bool

	// Waive matches the IDs of cases that are waived: they are not tried, and do not
	// count. An input of a family is matched by ID/NAME. An ability is still tried,
	// because other cases depend on it.
	Waive *regexp.Regexp

	// Timeout is the timeout of each call. It defaults to 10 seconds.
	Timeout time.Duration

	// Settle is how long after an answer its effect on a balance may appear, because
	// HTTP 200 only confirms that a result arrived (interface 6). It defaults
	// to 2 seconds.
	Settle time.Duration

	// Late is how long after its approval an order that the judge leaves open is
	// reported. It defaults to 3 seconds. 6 minutes outlast the UUID (interface 8).
	// The judge leaves no order open if Player returns players again.
	Late time.Duration

	given struct{ token, rate, amount, uuid bool } // what was set by the caller
}

// need is a set of the things that a case needs and that a target may lack.
type need int

const (
	aSecondAsset need = 1 << iota
	aProject
	aRestart
	aToken
	aRate
)

// Pool returns a Target.Player that returns the sessions in turn, again and again.
// Cases with two players need at least two sessions, of different users with
// different tokens.
func Pool(sessions ...ramp.Session) func(context.Context, string) (ramp.Session, error) {
	var turns atomic.Uint64
	return func(context.Context, string) (ramp.Session, error) {
		if len(sessions) == 0 {
			return ramp.Session{}, errors.New("the pool of sessions is empty")
		}
		return sessions[(turns.Add(1)-1)%uint64(len(sessions))], nil
	}
}

const mostAmount = 100_000_000 // a player owns 20 times as much, which is less than 2^31

// complete checks the target, and replaces the zero fields that have a default.
func (t *Target) complete() error {
	base, err := url.Parse(t.URL)
	amounts, wrong := []int64{t.Amount, t.Tokens, t.BurnTokens}, ""
	switch {
	case err != nil, base.Host == "", base.Scheme != "http" && base.Scheme != "https":
		wrong = "URL (-url) must be an http or https URL with its scheme and a host, such as http://127.0.0.1:8080"
	case strings.ContainsAny(t.URL, "?#"):
		wrong = "URL (-url) must have no query and no fragment, because paths are appended to it"
	case base.User != nil:
		wrong = "URL (-url) must not contain a user name or a password"
	case !t.AllowRemote && !IsLoopback(base.Hostname()):
		wrong = "URL (-url) is not a loopback address, and AllowRemote (-allow-remote) is not set"
	case t.Key.IsZero():
		wrong = "Key (-key) is missing"
	case t.Validator == common.Address{}:
		wrong = "Validator (-validator) is missing"
	case t.Player == nil:
		wrong = "Player is missing"
	case slices.Min(amounts) < 0, slices.Max(amounts) > mostAmount:
		wrong = fmt.Sprintf("Amount (-amount), Tokens (-tokens) and BurnTokens (-burn-tokens) must be 1 to %d", mostAmount)
	case !slices.Contains([]string{"", "mint", "burn"}, t.Only):
		wrong = "Only (-only) must be mint or burn"
	case t.Asset != "" && t.Asset == t.Second:
		wrong = "Second (-second-asset) must be another asset than Target.Asset (-asset)"
	}
	if wrong != "" {
		return errors.New("conformance: Target." + wrong)
	}
	for name, values := range t.Header {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if strings.HasPrefix(canonical, "X-Dapp-") || slices.Contains([]string{"X-Hmac-Signature", "Content-Type", "Content-Length", "Host"}, canonical) {
			return fmt.Errorf("conformance: Target.Header (-header) must not contain %s, because the judge sets it", canonical)
		}
		t.Secrets = append(slices.Clone(t.Secrets), values...)
	}
	t.URL = strings.TrimRight(t.URL, "/")
	t.AssetsPath = cmp.Or(t.AssetsPath, ramp.PathAssets)
	t.ValidatePath = cmp.Or(t.ValidatePath, ramp.PathValidate)
	t.ResultPath = cmp.Or(t.ResultPath, ramp.PathResult)
	for _, path := range []string{t.AssetsPath, t.ValidatePath, t.ResultPath} {
		full, err := url.Parse(t.URL + path)
		if err != nil || !strings.HasPrefix(path, "/") || full.Host != base.Host {
			return errors.New("conformance: an endpoint must be a path that begins with /, such as /api/assets; the server's address belongs in Target.URL (-url)")
		}
	}
	if t.Unique {
		t.Amount, t.Tokens = cmp.Or(t.Amount, 1), cmp.Or(t.Tokens, 1)
	}
	t.given.uuid = t.UUID != nil
	t.given.token, t.given.rate = t.Token != "", t.Amount != 0 && t.Tokens != 0
	t.given.amount = slices.Max(amounts) > 0 || t.Unique
	t.Amount = cmp.Or(t.Amount, 2)
	t.Tokens = cmp.Or(t.Tokens, max(1, t.Amount/2))
	t.BurnTokens = cmp.Or(t.BurnTokens, t.Tokens)
	t.Token = cmp.Or(t.Token, "0x0000000000000000000000000000000000007e57")
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	t.Settle = cmp.Or(t.Settle, 2*time.Second)
	t.Late = cmp.Or(t.Late, 3*time.Second)
	if t.UUID == nil {
		t.UUID = func(context.Context, ramp.Session) (uuid.UUID, error) { return uuid.NewRandom() }
	}
	return nil
}

// IsLoopback reports whether a host is localhost or a loopback address. Other names
// are not, even if they resolve to one, because that may change.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
