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
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Target is the server to judge, and what the service console knows of it.
type Target struct {
	// URL is the base address of the server. Required. It must be a loopback
	// address unless AllowRemote is set: the judge moves assets. No call goes
	// to another host.
	URL         string
	AllowRemote bool

	// AssetsPath, ValidatePath and ResultPath are the endpoints below URL.
	// Empty stands for the paths of the interface's examples (4.3).
	AssetsPath, ValidatePath, ResultPath string

	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Header is sent with every call, for a gateway in front of the server. It
	// must not hold the headers of the interface. No verdict holds its values.
	Header http.Header

	// Secrets are texts of which no verdict may hold 8 bytes, or all of a
	// shorter one, such as the text of Key. Tokens and HMACs need not be among
	// them. They are taken out of what the server, Player, UUID and Restart
	// say; a text of fewer than 4 bytes is not.
	Secrets []string

	// Validator is the address of the validator key. Required.
	Validator common.Address

	// Player returns the session of a player who owns assets, best a new one
	// each time, under the name that is proposed. Required. [Pool] makes it of
	// sessions that exist already.
	Player func(ctx context.Context, name string) (ramp.Session, error)

	// ProjectID is the project of the console. When it is empty, a project of
	// no meaning is sent, and the case of a foreign project is skipped.
	ProjectID string

	// Asset is the ID of the game asset that is moved, and Second that of
	// another one. Empty stands for the first ones of which the player owns
	// enough. Where there is no second one, the cases that need it are skipped.
	Asset, Second string

	// Amount is how much of an asset an order moves, and Tokens how many tokens
	// it is worth, so that the game's own rate holds. 0 stands for 2 and 1. The
	// most that is accepted is 1000: this is a judge, not a load. A player
	// should own 20 times the Amount, and less than 2^31.
	Amount, Tokens int64

	// Token is the token contract's address. Empty stands for one of no
	// meaning.
	Token string

	// UUID returns the UUID of a new order, for a server that approves only
	// those that it got from its own initialize call. nil stands for random
	// ones.
	UUID func(ctx context.Context, s ramp.Session) (uuid.UUID, error)

	// Restart ends the server and starts it again, with what it has stored;
	// sessions must outlive it. nil skips the cases that need it.
	Restart func(ctx context.Context) error

	// Strict makes a failed SHOULD count as a failed MUST does.
	Strict bool

	// Timeout bounds each call. 0 stands for 10 seconds.
	Timeout time.Duration

	// Settle bounds the time from an answer to its effect on a balance: HTTP
	// 200 confirms that a result was received (interface 6), no more. 0 stands
	// for 2 seconds.
	Settle time.Duration
}

// Pool returns a Target.Player that hands out the sessions in turn, from the
// beginning again after the last. Cases with two players need two of them, of
// two users with tokens of their own.
func Pool(sessions ...ramp.Session) func(context.Context, string) (ramp.Session, error) {
	turn := make(chan int, 1)
	turn <- 0
	return func(ctx context.Context, _ string) (ramp.Session, error) {
		if len(sessions) == 0 {
			return ramp.Session{}, errors.New("the pool of sessions is empty")
		}
		select {
		case n := <-turn:
			turn <- (n + 1) % len(sessions)
			return sessions[n], nil
		case <-ctx.Done():
			return ramp.Session{}, ctx.Err()
		}
	}
}

const mostAmount = 1000

// New returns a judge of the target. It makes no call.
func New(target Target) (*Judge, error) {
	base, err := url.Parse(target.URL)
	switch {
	case err != nil, base.Host == "", base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("conformance: Target.URL must be the absolute http or https URL of a server")
	case strings.ContainsAny(target.URL, "?#"):
		return nil, errors.New("conformance: Target.URL must have no query and no fragment: paths are added to it")
	case base.User != nil:
		return nil, errors.New("conformance: Target.URL must not hold a user name or a password")
	case !target.AllowRemote && !IsLoopback(base.Hostname()):
		return nil, errors.New("conformance: Target.URL is not a loopback address, and AllowRemote is not set")
	case target.Key.IsZero():
		return nil, errors.New("conformance: Target.Key is missing")
	case target.Validator == common.Address{}:
		return nil, errors.New("conformance: Target.Validator is missing")
	case target.Player == nil:
		return nil, errors.New("conformance: Target.Player is missing")
	case target.Amount < 0, target.Amount > mostAmount, target.Tokens < 0, target.Tokens > mostAmount:
		return nil, fmt.Errorf("conformance: Target.Amount and Tokens must be 1 to %d", mostAmount)
	case target.Asset != "" && target.Asset == target.Second:
		return nil, errors.New("conformance: Target.Second must be another asset than Target.Asset")
	}
	for name, values := range target.Header {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if strings.HasPrefix(canonical, "X-Dapp-") || slices.Contains([]string{"X-Hmac-Signature", "Content-Type", "Content-Length", "Host"}, canonical) {
			return nil, fmt.Errorf("conformance: Target.Header must not hold %s: the judge writes it itself", canonical)
		}
		target.Secrets = append(slices.Clone(target.Secrets), values...)
	}
	target.URL = strings.TrimRight(target.URL, "/")
	target.AssetsPath = cmp.Or(target.AssetsPath, ramp.PathAssets)
	target.ValidatePath = cmp.Or(target.ValidatePath, ramp.PathValidate)
	target.ResultPath = cmp.Or(target.ResultPath, ramp.PathResult)
	for _, path := range []string{target.AssetsPath, target.ValidatePath, target.ResultPath} {
		full, err := url.Parse(target.URL + path)
		if err != nil || !strings.HasPrefix(path, "/") || full.Host != base.Host {
			return nil, errors.New("conformance: an endpoint is a path that begins with /, as /api/assets does; the server's address is Target.URL (-url)")
		}
	}
	target.Amount = cmp.Or(target.Amount, 2)
	target.Tokens = cmp.Or(target.Tokens, 1)
	target.Token = cmp.Or(target.Token, "0x00000000000000000000000000000000000070c3")
	target.Timeout = cmp.Or(target.Timeout, 10*time.Second)
	target.Settle = cmp.Or(target.Settle, 2*time.Second)
	if target.UUID == nil {
		target.UUID = func(context.Context, ramp.Session) (uuid.UUID, error) { return uuid.NewRandom() }
	}
	return &Judge{
		target:   target,
		met:      make(map[string]bool),
		users:    make(map[string]*trial),
		watched:  make(map[string]bool),
		drifting: make(map[string]bool),
		opening:  make(map[string]Verdict),
		flight:   make(map[string]bool),
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 8 * crowd, IdleConnTimeout: time.Minute},
			// A signed call must not reach an address that nobody named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// IsLoopback says whether a host is localhost or a loopback address. Any other
// name is not: what it stands for may change.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
