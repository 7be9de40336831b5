// Package ramptest plays the token ramp's side of the interface, so that a
// studio can test its integration offline: it answers initialize calls, makes
// the three calls to the studio's server, keeps a chain behind JSON-RPC, and
// delivers results as often as the interface says. Everything that the
// interface says of the studio's answers is checked.
//
//	service := ramptest.Start(t, ramptest.Config{
//		Key:       key,              // the console's HMAC key
//		Validator: signer.Address(), // the console's validator address
//		Handler:   handler,          // the studio's server, or its URL as Game
//	})
//	client, _ := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client()})
//	started, _ := client.Initialize(ctx, request)
//
//	order, err := service.Mint(ctx, started.UUID, session, ramp.NewAmount(10), ramptest.TransactionFails())
//	sent := service.Advance(time.Minute) // the transaction fails, assets come back
//	err = service.Resend(ctx, order)     // and only once
//
// # Time
//
// One clock rules blocks, deliveries and the end of a UUID. It stands still
// until [Service.Advance] moves it, so that a test of twelve hours takes no
// time; [Config.Speed] lets it run.
//
// # Faults
//
// A [Fault] is what goes otherwise than usual with an order. Faults are
// arguments of [Service.Mint] and [Service.Burn] and go together:
//
//	service.Mint(ctx, id, session, amount, ramptest.LostAnswer(ramptest.OnResult), ramptest.ResultTwice())
//
// # The books
//
// The service keeps books of what each order must move, and [Start] fails the test
// when the game loses assets or moves them twice: see [Books].
//
// # What happened
//
// Every exchange is recorded without its secrets: [Service.Events] and
// [Service.Timeline]. A test that fails shows the timeline.
//
// # Stores
//
// [TestStore] tests a [ramp.Store] of your own, without a service.
//
// The service signs with the same code as a studio verifies with. What the
// interface does not show is settable and documented at its place in [Config].
package ramptest

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// Config is what the service console knows of a project (interface 1), and what
// the interface leaves open. Only Key and Validator are required, and one of Game,
// Handler and [Service.SetHandler].
type Config struct {
	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Validator is the address of the validator key in the console. Required.
	Validator common.Address

	// Game is the base URL of the studio's server.
	Game string

	// Handler is the studio's server in memory, instead of Game. The service
	// then uses no network: reach it through [Service.Client].
	//
	// Each call of it has a goroutine of its own, as on a server, which ends with
	// the call; so it works inside testing/synctest. A handler that ignores the
	// context of its request outlives the call, for which nobody waits beyond
	// Timeout.
	Handler http.Handler

	// AssetsPath, ValidatePath and ResultPath are the endpoints below Game that
	// the console has. Each begins with a slash. Empty stands for the paths of the
	// interface's examples (4.3): [ramp.PathAssets], [ramp.PathValidate] and
	// [ramp.PathResult].
	AssetsPath, ValidatePath, ResultPath string

	// ProjectID is the one project that the service knows. Empty accepts every
	// project ID but the empty one.
	ProjectID string

	// Networks are the networks that the service serves. Empty stands for
	// mainnet and testnet.
	Networks []ramp.Network

	// Client makes the calls to Game. It is copied, and follows no redirect: a
	// token must not reach an address that the console does not have. nil stands
	// for one of its own.
	Client *http.Client

	// Listener is where the service listens. nil stands for a free port of
	// this machine, and for none if Game is empty.
	Listener net.Listener

	// PublicURL is the address that others reach the service by, if it is not
	// that of the listener: [Service.URL] returns it, and the pages can be opened
	// under its host name.
	PublicURL string

	// AnyHost lets the pages be opened under any host name. Without it, only a
	// name of this machine will do, so that no page of the web can reach them
	// through a name that it makes point here.
	AnyHost bool

	// Speed is how fast the clock runs: 1 as on the wall, 60 a minute in a
	// second, 100,000 at most. 0 stands for a still clock, which moves by
	// [Service.Advance] only. A clock that runs needs a [Service.Close].
	Speed float64

	// Epoch is what the clock shows at first. The zero time stands for now.
	//
	// The ExpiresAt of a [ramp.Initialization] goes by the clock of the client.
	// To use one clock, set [ramp.ClientConfig].Now to service.Now.
	Epoch time.Time

	// OnEvent is called with each event that is recorded, one at a time. It must
	// not call the service.
	OnEvent func(Event)

	// Books says what becomes of a game that loses assets or moves them twice. The
	// zero value is [BooksFail].
	Books Books

	// Settle is how long, on the wall, an effect may follow the answer before the
	// books call it missing. 0 stands for 2 seconds, -1 for no time at all.
	Settle time.Duration

	// From here on it is what the interface does not show.

	// FailureStatus is the HTTP status of a failed initialize call (7.1). 0
	// stands for the code of the envelope.
	FailureStatus int

	// MaxBody is the most bytes of any body that the service reads (8). 0 stands
	// for 1 MiB.
	MaxBody int64

	// AcceptExpired lets a UUID be used after its 5 minutes (3). By default
	// [Service.Mint] and [Service.Burn] fail with [ErrExpiredUUID].
	AcceptExpired bool

	// PerToken multiplies the materials and outputs of an initialize call with
	// the number of tokens (2.2). By default they are those of the whole order.
	PerToken bool

	// BurnMethod is the intent.method of a burn (2.5). Empty stands for
	// [ramp.MethodBurnPermit].
	BurnMethod ramp.Method

	// TokenType is the type of the token in an intent (2.5). Empty stands for
	// [ramp.TypeERC20].
	TokenType ramp.AssetType

	// Wallet is the key of a player, who signs the orders and the transactions
	// with it. nil stands for one that is made of the session ID: see
	// [Service.Wallet].
	Wallet func(ramp.Session) *ramp.Signer

	// Digest is what the validator key signs of a request whose Digest is not
	// set yet (5.3). nil stands for a hash of UUID, user address and intent.
	Digest func(*ramp.ValidateRequest) ramp.Digest

	// Timeout is how long the service waits for an answer of the studio. 0
	// stands for 10 seconds.
	Timeout time.Duration

	// Schedule is how long the service waits before each repetition of a result
	// (8). nil stands for [Schedule].
	Schedule []time.Duration

	// Retry says for which HTTP statuses a result is repeated, beside no answer
	// at all (6). nil stands for 500 alone; the service's public guide repeats
	// for every 5xx.
	Retry func(status int) bool

	// Confirmations is how many blocks there must be from the one of the
	// transaction on before its result is delivered. 0 stands for 1. While the
	// clock stands still, no block comes during a call, so a handler whose own
	// Confirmations ([ramp.HandlerConfig]) are more answers HTTP 500 and confirms
	// the repetition.
	Confirmations int

	// BlockTime is the time from a block to the next. 0 stands for a second.
	BlockTime time.Duration

	// ChainID is the number of the chain of a network, and its net_version. nil
	// stands for 7001 for mainnet and 7002 for testnet.
	ChainID func(ramp.Network) uint64

	// Decimals are the places of a token. 0 stands for 18.
	Decimals int

	// Tokens is how much of every token a wallet holds at first. nil stands for
	// 1000. A burn of more fails on the chain.
	Tokens *ramp.Amount

	// AuthorizeRPC says who may call the chain (5.4). nil stands for everyone;
	// the others are answered with HTTP 401.
	AuthorizeRPC func(*http.Request) bool
}

// maxSpeed lets a clock run for a day on the wall before it has shown all the
// time that a [time.Duration] holds.
const maxSpeed = 100_000

// check says what cannot work.
func (c *Config) check() error {
	wrong := func(field, problem string) error { return fmt.Errorf("ramptest: Config.%s %s", field, problem) }
	switch {
	case c.Key.IsZero():
		return wrong("Key", "is missing")
	case c.Validator == common.Address{}:
		return wrong("Validator", "is missing")
	case c.Handler != nil && c.Game != "":
		return wrong("Game", "and Config.Handler exclude each other")
	case c.Game != "" && !isAbsolute(c.Game):
		return wrong("Game", "must be the absolute URL of the studio's server")
	case c.PublicURL != "" && !isAbsolute(c.PublicURL):
		return wrong("PublicURL", "must be an absolute URL")
	case !(0 <= c.Speed && c.Speed <= maxSpeed): // nor is NaN
		return wrong("Speed", "must be from 0 to 100000")
	case c.FailureStatus != 0 && (c.FailureStatus < 200 || c.FailureStatus > 599):
		return wrong("FailureStatus", "must be an HTTP status")
	case c.Decimals < 0 || c.Decimals > 77: // what 256 bits hold
		return wrong("Decimals", "must be from 0 to 77")
	case c.Confirmations < 0:
		return wrong("Confirmations", "must not be below 0")
	case c.BlockTime < 0:
		return wrong("BlockTime", "must not be below 0")
	case c.Books < BooksFail || c.Books > BooksOff:
		return wrong("Books", "must be BooksFail, BooksReport or BooksOff")
	case c.Timeout < 0:
		return wrong("Timeout", "must not be below 0")
	case c.MaxBody < 0:
		return wrong("MaxBody", "must not be below 0")
	}
	for field, path := range map[string]string{"AssetsPath": c.AssetsPath, "ValidatePath": c.ValidatePath, "ResultPath": c.ResultPath} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return wrong(field, "must begin with a slash")
		}
	}
	return nil
}

func isAbsolute(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// fill sets what was left to us.
func (c *Config) fill() {
	if len(c.Networks) == 0 {
		c.Networks = []ramp.Network{ramp.Mainnet, ramp.Testnet}
	}
	c.Networks = slices.Clone(c.Networks)
	c.AssetsPath = cmp.Or(c.AssetsPath, ramp.PathAssets)
	c.ValidatePath = cmp.Or(c.ValidatePath, ramp.PathValidate)
	c.ResultPath = cmp.Or(c.ResultPath, ramp.PathResult)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.BurnMethod = cmp.Or(c.BurnMethod, ramp.MethodBurnPermit)
	c.TokenType = cmp.Or(c.TokenType, ramp.TypeERC20)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Settle = cmp.Or(c.Settle, 2*time.Second)
	c.Confirmations = cmp.Or(c.Confirmations, 1)
	c.BlockTime = cmp.Or(c.BlockTime, time.Second)
	c.Decimals = cmp.Or(c.Decimals, 18)
	if c.Epoch.IsZero() {
		c.Epoch = time.Now()
	}
	if c.Wallet == nil {
		c.Wallet = sessionWallet
	}
	if c.Digest == nil {
		c.Digest = hashDigest
	}
	if c.Schedule == nil {
		c.Schedule = Schedule()
	}
	c.Schedule = slices.Clone(c.Schedule)
	if c.Retry == nil {
		c.Retry = func(status int) bool { return status == http.StatusInternalServerError }
	}
	if c.ChainID == nil {
		c.ChainID = func(n ramp.Network) uint64 {
			if n == ramp.Mainnet {
				return 7001
			}
			return 7002
		}
	}
	if c.Tokens == nil {
		thousand := ramp.NewAmount(1000)
		c.Tokens = &thousand
	}
	if c.AuthorizeRPC == nil {
		c.AuthorizeRPC = func(*http.Request) bool { return true }
	}
}

// Start starts a service that closes itself when the test ends. It fails the test
// if the books have found anything ([Config.Books]), and shows the timeline if the
// test has failed.
func Start(t testing.TB, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		switch found := s.Imbalances(); {
		case len(found) == 0:
		case config.Books == BooksFail:
			t.Error(report(found))
		default:
			t.Log(report(found))
		}
		if t.Failed() {
			t.Log(s.Timeline())
		}
	})
	return s
}
