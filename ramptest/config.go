package ramptest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Audit sets how the service reports a game that loses assets or moves them twice.
// The service asks for a player's assets before and after each validate and result
// call, and compares the difference with what the order must move.
//
// Movements between calls are only logged, because a player earns and spends assets, unless
// [Config.Closed] is set. Movements during a call are attributed to the order. A game or a test
// that changes the player's assets at that moment therefore looks wrong. Nothing is compared if the
// game does not list the player's assets, for orders that were made by hand, and for orders whose
// results stated two outcomes.
type Audit int

// The modes of the books.
const (
	// AuditFail reports every finding: as an error of [Service.Mint],
	// [Service.Burn], [Service.Deliver] and [Service.Resend], in [Delivery].Err,
	// and as a failure of the test that [Start] was given. It is the default.
	AuditFail Audit = iota

	// AuditReport reports findings only in [Service.Imbalances], the record and,
	// with [Start], the log of the test.
	AuditReport

	// AuditOff disables the books, so that the service does not ask for assets. Use
	// it for a game that moves no assets, or for a test that counts its calls.
	AuditOff
)

// Schedule returns how long the service waits before each retry of a result that
// was not confirmed: 2 times 5, 7 times 15 and 10 times 60 minutes. The interface
// (8) lists these 19 retries, although it says that there are up to 20 in 12 hours.
// One more of 5 minutes would satisfy both.
func Schedule() []time.Duration {
	return slices.Concat(
		slices.Repeat([]time.Duration{5 * time.Minute}, 2),
		slices.Repeat([]time.Duration{15 * time.Minute}, 7),
		slices.Repeat([]time.Duration{60 * time.Minute}, 10),
	)
}

// Config configures a [Service]. Key and Validator are required, and so is one of
// Game, Handler and [Service.SetHandler].
type Config struct {
	// What the service console knows about a project (interface 1).

	Key       ramp.HMACKey   // the HMAC key; required
	Validator common.Address // the address of the validator key; required

	// Game is the base URL of the game's server. The paths of the endpoints are appended to its
	// path. If it has a user and a password, they are sent with each call and shown nowhere.
	Game string

	// AssetsPath, ValidatePath and ResultPath are the endpoints below Game. Each
	// begins with a slash. They default to the paths of the interface's examples
	// (4.3): [ramp.PathAssets], [ramp.PathValidate] and [ramp.PathResult].
	AssetsPath, ValidatePath, ResultPath string

	// ProjectID is the only project that the service knows. If empty, the service
	// accepts every nonempty project ID.
	ProjectID string

	// Networks are the networks that the service serves, each with its chain ID,
	// which is also its net_version. They default to mainnet with 7001 and testnet
	// with 7002.
	Networks map[ramp.Network]uint64

	// How the service and the game's server reach each other.

	// Handler is the game's server in memory, instead of Game. The service
	// then uses no network. Use [Service.Client] to reach it.
	//
	// As on a server, each call runs in its own goroutine, which ends with the
	// call, so it works inside testing/synctest. The service waits for a call no
	// longer than Timeout. A handler that ignores the context of its request
	// outlives the call.
	//
	// A rampsql.Store behind Handler rolls back its first attempt at each step, as a
	// database may at any time, and makes another. So the books find an Apply that
	// changes anything outside of its transaction.
	Handler http.Handler

	// Client makes the calls to Game. The service uses a copy that follows no
	// redirects, because a token must not reach an address that is not registered
	// in the console. If nil, the service makes its own client, which uses no proxy.
	Client *http.Client

	// Timeout is how long the service waits for an answer from the game. It
	// defaults to 10 seconds.
	Timeout time.Duration

	// Time, and the books.

	// Epoch is the time at which the clock starts. It defaults to now.
	//
	// The ExpiresAt of a [ramp.Initialization] follows the client's clock.
	// To use one clock, set [ramp.ClientConfig].Now to service.Now.
	Epoch time.Time

	// UUID returns the UUID of the next order, each time another one. It defaults to [uuid.New]. If it is
	// the same in each run, and so are Epoch and what the test does, the [Service.Timeline] is, too, and can
	// be a golden file.
	UUID func() uuid.UUID

	// Audit sets how the service reports a game that loses assets or moves them
	// twice. It defaults to [AuditFail].
	Audit Audit

	// Closed says that nothing but orders moves the assets of players while the test runs. Whatever
	// else moves between two calls is then an error, such as a second give-back by a job of the game,
	// unless the test wraps it in [Service.Outside]. The books read what players own after each
	// [Service.Advance] and at the end of the test, too. The game must return a player_id: without
	// one, the test fails, and the message says so. Closed is for unit tests. By default [Start] only
	// logs such a movement.
	Closed bool

	// NoThief says that the game may accept any session. By default, the service asks the game for assets
	// like a thief, with half of each session that the game has accepted: with an invented token for the
	// session, and with its right token for an invented session, for another player's session, and for the
	// session with its letters in the other case. If the game answers, it lists and sells what belongs to
	// others. It asks at the end of each [Service.Advance], [Service.Deliver] and [Service.Resend] for the
	// sessions that were not asked for yet, and once more when the test of [Start] ends and in
	// [Service.Check]. A session that could not be asked for fails the test. No event shows these calls.
	// Set NoThief if the game accepts every session, if it is a mock that expects certain calls, if it
	// limits how often a wrong token may be sent, or if a token is valid for several players on purpose.
	// With [AuditOff], nobody asks either.
	NoThief bool

	// Incomplete says that the test may end before the service has seen everything. By default, [Start] fails
	// a test that has not failed otherwise if:
	//
	//   - the result of an approved order was not sent, and no [Fault] such as [StaysPending] says so
	//   - [Service.Deliver] or [Service.Resend] was called for an order that was made by hand, which the
	//     books do not follow; if [Config.Closed] is set, they see what it moves
	//   - an order was rejected, or has not ended, and the game did not say what its player owned then; a
	//     session that the game has never accepted owns nothing
	//   - failures of [Service.FailInitialize], [Service.FailRPC] or [Service.FailAssets] are left, because
	//     nothing has met them, or a setting of [Service.SetNode] has changed nothing
	Incomplete bool

	// Settle is how long, in real time, an effect may lag behind the answer before
	// the books report it as missing. It defaults to 2 seconds; -1 is no time.
	Settle time.Duration

	// Regenerating are the IDs of assets that move by themselves, such as energy. The
	// books do not judge them. Of an order about one, they judge the rest, and [Start] logs
	// which asset was not judged.
	Regenerating []string

	// Mailbox returns what waits for a player outside of the list of assets, such as a grant in a
	// mailbox that the player must open. The books count it as owned. If nil, nothing waits.
	Mailbox func(ramp.Session) []ramp.Asset

	// What the interface does not say: calls.

	// FailureStatus is the HTTP status of a failed initialize call (7.1). It
	// defaults to the code of the envelope.
	FailureStatus int

	// MaxBody is the maximum size of a body that the service reads, in bytes (8).
	// It defaults to 1 MiB.
	MaxBody int64

	// Schedule is how long the service waits before each retry of a result (8). It
	// defaults to [Schedule].
	Schedule []time.Duration

	// Retry reports whether the service retries a result after an HTTP status (6).
	// It always retries if there was no answer. The default is to retry for 500
	// only; the service's public guide retries for every 5xx.
	Retry func(status int) bool

	// What the interface does not say: orders.

	// AcceptExpired lets a UUID be used after its 5 minutes (3). By default
	// [Service.Mint] and [Service.Burn] fail with [ErrExpiredUUID].
	AcceptExpired bool

	// PerOrder says that the materials and outputs of an initialize call are for a
	// whole order. By default they are for one token, and an order has them times the
	// number of tokens. The interface does not say which the service means (2.2);
	// ramp.TermsConfig has the same field.
	PerOrder bool

	// NetAmounts says that the number of tokens in the intent of a mint is the one after
	// its fee. By default it is the one before: 2.5 calls it the quantity to be issued.
	NetAmounts bool

	// ResultType is the Content-Type of a result, which the interface does not give (6). It defaults to
	// application/json, and "none" sends none.
	ResultType string

	// UUIDDigits writes each UUID as 32 hex digits, without hyphens. The interface calls
	// it a string (2.3, 2.5).
	UUIDDigits bool

	// BurnMethod is the intent.method of a burn (2.5). It defaults to
	// [ramp.MethodBurnPermit].
	BurnMethod ramp.Method

	// TokenType is the type of the token in an intent (2.5). It defaults to
	// [ramp.TypeNFT] for an order with a non-fungible item, and otherwise to
	// [ramp.TypeERC20].
	TokenType ramp.AssetType

	// Wallet returns a player's key, which signs the player's orders and
	// transactions. It is called once for a session, and defaults to a key derived
	// from the session ID. See [Service.Wallet].
	Wallet func(ramp.Session) *ramp.Signer

	// Digest returns the digest of a request that has none yet. The validator key
	// signs it (5.3). It defaults to a hash of UUID, user address and intent.
	Digest func(*ramp.ValidateRequest) ramp.Digest

	// What the interface does not say: chains.

	// Confirmations is how many blocks, including the transaction's own, the service
	// waits for before it delivers the result. It defaults to 1. While the clock stands
	// still, no block is mined during a call. A handler whose Confirm requires more
	// confirmations therefore answers HTTP 500 first, and confirms the retry.
	Confirmations int

	// BlockTime is the time between two blocks. It defaults to one second.
	BlockTime time.Duration

	// Decimals is the number of decimals of a token. It defaults to 18.
	Decimals int

	// Tokens is how much of every token a wallet holds at first. It defaults to
	// 1000. A burn of more than the wallet holds fails on the chain.
	Tokens *ramp.Amount

	// AuthorizeRPC reports whether a request may call the chain (5.4). Others get
	// HTTP 401. If nil, everyone may.
	AuthorizeRPC func(*http.Request) bool

	// Standalone is for a service that runs as a program of its own. Tests seldom need it.
	Standalone Standalone
}

// Format writes the scheme and host of Game under every verb but %p, because a Config holds secrets.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, transport.Shown(c.Game)) }

// Pages are the pages of a service. Package pages has them.
type Pages = frontend.Pages

// Standalone configures a service that runs as a program of its own, beside the game's server, as
// ramp emulate does: where people and programs reach it, how its clock runs, and what it
// keeps.
type Standalone struct {
	// Pages are the pages to look at: set them to what New of package pages returns. Without
	// them, the pages of the interface (4.2) only check their parameters and answer in plain
	// text, so that package pages is not compiled into a test that opens no page.
	Pages Pages

	// Listener is where the service listens. If nil, the service listens on a free
	// port of the loopback interface, or not at all if [Config.Game] is empty.
	Listener net.Listener

	// PublicURL is the address at which others reach the service, if it is not
	// the listener's. [Service.URL] returns it, and the pages can be opened under
	// its host name. It has no path.
	PublicURL string

	// ControlToken is the token that a caller of the control API and of the pages
	// about all players must send; see docs/control.md. If empty, only programs on
	// this machine may use them, and pages can only be opened under local host names
	// and that of PublicURL, which blocks DNS rebinding.
	ControlToken string

	// Keys says where a person finds the HMAC key and the validator key, for the pages, which do
	// not show them. It defaults to "those of the program that runs this emulator".
	Keys string

	// Secrets are further texts that the service shows nowhere, such as keys of the program that
	// runs it. It knows the HMAC key, ControlToken, the password of Game, and the access tokens of
	// players.
	Secrets []string

	// Speed is how fast the clock runs: 1 is real time, 60 is a minute per second,
	// and 100,000 is the maximum. At 0, the clock stands still, and only
	// [Service.Advance] moves it. If the clock runs, call [Service.Close].
	Speed float64

	// State keeps the service in a file, and continues where another service with
	// that file was, ignoring Config.Epoch; see [OpenState]. Both must have the same
	// Networks, Wallet and Decimals of [Config]. Close the service before the file. If nil, the
	// service starts empty and keeps its last 10,000 events, which is about 1,600
	// orders. With a file it keeps 100,000.
	State *StateFile

	// KeepOrders is the minimum number of finished orders that the service keeps.
	// The control API and the pages forget older ones. 0 keeps all.
	KeepOrders int

	// OnEvent is called with each event that is recorded, one at a time. It must
	// not call the service.
	OnEvent func(control.Event)

	// OtherKey is [Config.Key] in the other encoding: [ramp.Base64URLKey] of the same text if
	// Key is its [ramp.TextKey], or the reverse. The service rejects what is signed
	// with it, but the record and the pages say that only the encoding is wrong. If
	// zero, there is no such hint.
	OtherKey ramp.HMACKey
}

// Format writes the scheme and host of PublicURL, as [Config] does with Game.
func (s Standalone) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, transport.Shown(s.PublicURL))
}

// maxSpeed lets a clock run for a day of real time before it has passed all the
// time that a [time.Duration] can hold.
const maxSpeed = 100_000

// check returns an [*ramp.InvalidError] if the configuration cannot work.
func (c *Config) check() error {
	var wrong ramp.InvalidError
	must := func(ok bool, field, problem string) {
		if !ok {
			wrong.Fields = append(wrong.Fields, ramp.FieldError{Path: "Config." + field, Problem: problem})
		}
	}
	must(!c.Key.IsZero(), "Key", "is required")
	must(c.Validator != common.Address{}, "Validator", "is required")
	must(c.Handler == nil || c.Game == "", "Game", "excludes Config.Handler")
	address := func(text, field string, alone bool) {
		u, problem := transport.Address(text)
		if problem == "" && alone && (u.Path != "" || u.User != nil) {
			problem = "must be an address without a path and a user, because the pages lie directly below it"
		}
		must(text == "" || problem == "", field, problem)
	}
	address(c.Game, "Game", false)
	address(c.Standalone.PublicURL, "Standalone.PublicURL", true)
	// false for NaN too
	must(0 <= c.Standalone.Speed && c.Standalone.Speed <= maxSpeed, "Standalone.Speed",
		"must be from 0 to 100000")
	must(c.FailureStatus == 0 || 200 <= c.FailureStatus && c.FailureStatus <= 599, "FailureStatus",
		"must be an HTTP status")
	// the most that 256 bits hold
	must(0 <= c.Decimals && c.Decimals <= 77, "Decimals", "must be from 0 to 77")
	must(AuditFail <= c.Audit && c.Audit <= AuditOff, "Audit", "must be AuditFail, AuditReport or AuditOff")
	must(c.Handler == nil || c.Client == nil, "Client",
		"means nothing with Config.Handler, which is called directly")
	must(c.Audit != AuditOff || !c.Closed, "Closed", "means nothing with AuditOff, which keeps no books")
	must(c.Audit != AuditOff || c.Mailbox == nil, "Mailbox", "means nothing with AuditOff")
	must(c.Audit != AuditOff || len(c.Regenerating) == 0, "Regenerating", "means nothing with AuditOff")
	must(!c.Closed || c.isUnitTest(), "Closed",
		"is for a test: it excludes Standalone.Speed, Standalone.Listener and Standalone.State")
	const negative, relative = "must not be below 0", "must begin with a slash, and have no fragment"
	isPath := func(path string) bool {
		return path == "" || path[0] == '/' && !strings.Contains(path, "#")
	}
	must(c.Confirmations >= 0, "Confirmations", negative)
	must(c.BlockTime >= 0, "BlockTime", negative)
	must(c.Timeout >= 0, "Timeout", negative)
	must(c.Standalone.KeepOrders >= 0, "Standalone.KeepOrders", negative)
	must(c.MaxBody >= 0, "MaxBody", negative)
	must(isPath(c.AssetsPath), "AssetsPath", relative)
	must(isPath(c.ValidatePath), "ValidatePath", relative)
	must(isPath(c.ResultPath), "ResultPath", relative)
	if len(wrong.Fields) == 0 {
		return nil
	}
	return &wrong
}

// isUnitTest reports whether nothing but a test drives the service: no clock, no page, and no
// other service before or after it.
func (c *Config) isUnitTest() bool {
	return c.Standalone.Speed == 0 && c.Standalone.Listener == nil && c.Standalone.State == nil
}

// setDefaults replaces the zero fields that have a default.
func (c *Config) setDefaults() {
	if len(c.Networks) == 0 {
		c.Networks = map[ramp.Network]uint64{ramp.Mainnet: 7001, ramp.Testnet: 7002}
	}
	c.Networks = maps.Clone(c.Networks)
	c.AssetsPath = cmp.Or(c.AssetsPath, ramp.PathAssets)
	c.ValidatePath = cmp.Or(c.ValidatePath, ramp.PathValidate)
	c.ResultPath = cmp.Or(c.ResultPath, ramp.PathResult)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.Standalone.Keys = cmp.Or(c.Standalone.Keys, "those of the program that runs this emulator")
	c.BurnMethod = cmp.Or(c.BurnMethod, ramp.MethodBurnPermit)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Settle = cmp.Or(c.Settle, 2*time.Second)
	c.Confirmations = cmp.Or(c.Confirmations, 1)
	c.BlockTime = cmp.Or(c.BlockTime, time.Second)
	c.Decimals = cmp.Or(c.Decimals, 18)
	if c.UUID == nil {
		c.UUID = uuid.New
	}
	if c.Wallet == nil {
		c.Wallet = trade.SessionWallet
	}
	c.Wallet = trade.OncePerSession(c.Wallet)
	if c.Digest == nil {
		c.Digest = trade.HashDigest
	}
	if c.Schedule == nil {
		c.Schedule = Schedule()
	}
	c.Schedule = slices.Clone(c.Schedule)
	if c.Retry == nil {
		c.Retry = func(status int) bool { return status == http.StatusInternalServerError }
	}
	if c.Tokens == nil {
		thousand := ramp.NewAmount(1000)
		c.Tokens = &thousand
	}
}

// emulator returns the configuration of the emulator.
func (c *Config) emulator() emulator.Config {
	config := emulator.Config{
		Key: c.Key, Validator: c.Validator, Game: c.Game,
		AssetsPath: c.AssetsPath, ValidatePath: c.ValidatePath, ResultPath: c.ResultPath,
		ProjectID: c.ProjectID, Networks: c.Networks, Client: c.Client, Timeout: c.Timeout,
		Epoch: c.Epoch, Mode: emulator.Mode(c.Audit), Closed: c.Closed, NoThief: c.NoThief, Settle: c.Settle,
		UUID: c.UUID, Incomplete: c.Incomplete,
		Finding: func(f *audit.Finding) error { return imbalance(f) }, Regenerating: c.Regenerating,
		Mailbox: c.Mailbox, IsUnitTest: c.isUnitTest(),
		FailureStatus: c.FailureStatus, MaxBody: c.MaxBody, Schedule: c.Schedule, Retry: c.Retry,
		AcceptExpired: c.AcceptExpired, UUIDDigits: c.UUIDDigits,
		ResultType: c.ResultType,
		Rules: trade.Rules{PerOrder: c.PerOrder, NetAmounts: c.NetAmounts, BurnMethod: c.BurnMethod,
			TokenType: c.TokenType, Decimals: c.Decimals},
		Wallet: c.Wallet, Digest: c.Digest, Faults: faultForms,
		Confirmations: c.Confirmations, BlockTime: c.BlockTime, Tokens: *c.Tokens,
		AuthorizeRPC: c.AuthorizeRPC,
		Listener:     c.Standalone.Listener, PublicURL: c.Standalone.PublicURL,
		ControlToken: c.Standalone.ControlToken,
		Keys:         c.Standalone.Keys, Secrets: c.Standalone.Secrets, Speed: c.Standalone.Speed,
		KeepOrders: c.Standalone.KeepOrders,
		OnEvent:    c.Standalone.OnEvent, OtherKey: c.Standalone.OtherKey,
	}
	if c.Standalone.State != nil {
		config.State = c.Standalone.State.file
	}
	return config
}
