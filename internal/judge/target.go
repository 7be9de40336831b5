package judge

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
	"github.com/token-ramp/ramp-go/internal/transport"
)

// Config describes the server to judge. It is the Server of package ramptest/conformance, which says what its
// fields mean.
type Config struct {
	URL         string
	AllowRemote bool

	AssetsPath, ValidatePath, ResultPath string

	Key       ramp.HMACKey
	Header    http.Header
	Secrets   []string
	Validator common.Address

	Player    func(ctx context.Context, name string) (ramp.Session, error)
	ProjectID string

	Asset, Second  string
	OneAsset       bool
	Amount, Tokens int64
	BurnTokens     int64
	Token          string

	UUID   func(ctx context.Context, s ramp.Session) (uuid.UUID, ramp.AccessToken, error)
	Wallet func(s ramp.Session) string

	Only    string
	Unique  bool
	Restart func(ctx context.Context) error
	Strict  bool
	Waive   *regexp.Regexp

	Timeout, Settle, Late time.Duration
}

// settings are a target with its defaults, and what the caller has set.
type settings struct {
	Config
	given struct{ token, rate, amount, uuid bool }
}

// need is a set of the things that a case needs and that a target may lack.
type need int

const (
	aSecondAsset need = 1 << iota // of which the player owns enough, unless the game has one asset only
	aListedAsset                  // a second one, of which the player may own nothing
	aProject
	aRestart
	aToken
	aRate
)

// Pool returns a Config.Player that returns the sessions in turn, again and again.
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

// The amounts of an order, unless the target says: the largest up to usualAmount of which a
// player owns enough, because a fee of some percent shows only then, but no less than leastAmount.
const (
	leastAmount = 2
	usualAmount = 400
)

// reserve is how many times the amount of an order a player must own of an asset.
const reserve = 20

// complete checks the target, and replaces the zero fields that have a default.
func (t *settings) complete() error {
	base, err := url.Parse(t.URL)
	_, problem := transport.Address(t.URL)
	amounts, wrong := []int64{t.Amount, t.Tokens, t.BurnTokens}, ""
	switch {
	case err != nil, base.Host == "", base.Scheme != "http" && base.Scheme != "https":
		wrong = "URL (-url) must be an http or https URL with its scheme and a host, such as " +
			"http://127.0.0.1:8080"
	case strings.ContainsAny(t.URL, "?#"):
		wrong = "URL (-url) must have no query and no fragment, because paths are appended to it"
	case problem != "":
		wrong = "URL (-url) " + problem
	case base.User != nil:
		wrong = "URL (-url) must not contain a user name or a password"
	case !t.AllowRemote && !IsLoopback(base.Hostname()):
		wrong = "URL (-url) is not a loopback address, and AllowRemote (-allow-remote) is not set"
	case t.Key.IsZero():
		wrong = "Key (-key-file) is missing"
	case t.Validator == common.Address{}:
		wrong = "Validator (-validator) is missing"
	case t.Player == nil:
		wrong = "Player is missing"
	case slices.Min(amounts) < 0, slices.Max(amounts) > mostAmount:
		wrong = fmt.Sprintf(
			"Amount (-amount), Tokens (-tokens) and BurnTokens (-burn-tokens) must be 1 to %d", mostAmount)
	case !slices.Contains([]string{"", "mint", "burn"}, t.Only):
		wrong = "Only (-only) must be mint or burn"
	case t.Asset != "" && t.Asset == t.Second:
		wrong = "Second (-second-asset) must be another asset than Server.Asset (-asset)"
	case t.OneAsset && t.Second != "":
		wrong = "OneAsset (-one-asset) and Server.Second (-second-asset) must not both be set"
	}
	if wrong != "" {
		return errors.New("conformance: Server." + wrong)
	}
	for name, values := range t.Header {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if strings.HasPrefix(canonical, "X-Dapp-") ||
			slices.Contains([]string{"X-Hmac-Signature", "Content-Type", "Content-Length", "Host"},
				canonical) {
			return fmt.Errorf(
				"conformance: Server.Header (-header) must not contain %s, because the "+
					"judge sets it", canonical)
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
			return errors.New(
				"conformance: an endpoint must be a path that begins with /, such as /api/assets; the " +
					"server's address belongs in Server.URL (-url)")
		}
	}
	if t.Unique {
		t.Amount, t.Tokens = cmp.Or(t.Amount, 1), cmp.Or(t.Tokens, 1)
	}
	t.given.uuid = t.UUID != nil
	t.given.token, t.given.rate = t.Token != "", t.Amount != 0 && t.Tokens != 0
	t.given.amount = slices.Max(amounts) > 0 || t.Unique
	t.Amount = cmp.Or(t.Amount, leastAmount)
	t.Tokens = cmp.Or(t.Tokens, max(1, t.Amount/2))
	t.BurnTokens = cmp.Or(t.BurnTokens, t.Tokens)
	t.Token = cmp.Or(t.Token, "0x0000000000000000000000000000000000007e57")
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	t.Settle = cmp.Or(t.Settle, 2*time.Second)
	t.Late = cmp.Or(t.Late, 3*time.Second)
	if t.UUID == nil {
		t.UUID = func(context.Context, ramp.Session) (id uuid.UUID, _ ramp.AccessToken, err error) {
			id, err = uuid.NewRandom()
			return id, ramp.AccessToken{}, err
		}
	}
	return nil
}

// IsLoopback reports whether a host is localhost or a loopback address. Other names
// are not, even if they resolve to one, because that may change.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
