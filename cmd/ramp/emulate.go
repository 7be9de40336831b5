package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/typed"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// desk is the emulator of one run of emulate, as its flags configure it.
type desk struct {
	ramptest.Config

	hmac                                   keyFlags
	listen, key, validator, state          string
	public, json, quiet, retry5xx, retry20 bool

	network                ramp.Network        // of the printed lines
	token                  string              // likewise
	file                   *ramptest.StateFile // nil without -state
	printer                *printer
	out                    *aside // of printer
	madeKey, madeValidator string // keys that were generated because none were given
}

const emulateUsage = `usage: ramp emulate -game URL [flags]

Plays the service for a game's server that runs on this machine, written in any
language. It answers the server's initialize calls, serves the pages to its players,
and calls its endpoints. The commands trigger, orders, resend and advance drive it;
docs/control.md describes the API that they use.

Example: ramp emulate -game http://127.0.0.1:8080

The lines that it prints for the game's environment name a project and a token: those of RAMP_PROJECT
(or -project), RAMP_NETWORK and RAMP_TOKEN, or placeholders.
`

// keptOrders is how many finished orders an emulator keeps. It is limited because an
// emulator may run for weeks.
const keptOrders = 10_000

// memoryPercent is how much memory an emulator may use beyond what it keeps, before it
// collects garbage. It runs beside a game's server for days, mostly idle.
const memoryPercent = 25

// emulate runs the service until ctx is done, and returns the exit status.
func emulate(ctx context.Context, c *call) (int, error) {
	d, err := parseEmulate(c)
	if err != nil {
		return 0, err
	}
	if d.Standalone.Listener, err = listen(d.listen, d.public); err != nil {
		return 0, misuse{err}
	}
	service, err := d.begin(c.out)
	if err != nil {
		_ = d.Standalone.Listener.Close() // it is unused
		return 0, misuse{flagError(err)}
	}
	debug.SetGCPercent(memoryPercent)
	debug.FreeOSMemory() // what reading the state file has left
	d.printer.welcome(d, service)
	says := &aside{out: c.errs, gap: "%d lines were not printed, because nobody read them\n"}
	d.await(ctx, says)
	waiting := time.AfterFunc(time.Second, func() {
		fmt.Fprintln(says, "ramp emulate: waiting for calls in progress; Ctrl+C again ends at once")
	})
	service.Close()
	waiting.Stop()
	_ = says.close()
	status := 0
	if d.file != nil {
		if err := d.file.Close(); err != nil {
			fmt.Fprintln(c.errs, "ramp emulate: -state:", ofState(err))
			status = 1
		}
	}
	if err := d.out.close(); err != nil {
		fmt.Fprintln(c.errs, "ramp emulate: the output could not be written:", err)
		status = 1
	}
	return status, nil
}

// ofState returns the text of an error of the state file.
func ofState(err error) string { return strings.TrimPrefix(err.Error(), "ramptest: state: ") }

// await waits until ctx is done. If the state file cannot be written, it says so at once.
func (d *desk) await(ctx context.Context, says io.Writer) {
	if d.file != nil {
		select {
		case <-d.file.Failed():
			fmt.Fprintf(says, "ramp emulate: -state: %s\n"+
				"Nothing that happens from now on is kept for a restart. Make room, and restart.\n",
				ofState(d.file.Err()))
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
}

// begin starts the service. It restores the state from the file if there is one.
func (d *desk) begin(out io.Writer) (service *ramptest.Service, err error) {
	if d.state != "" {
		if d.file, err = ramptest.OpenState(d.state); err != nil {
			return nil,
				fmt.Errorf("-state %s: %s", d.state, ofState(err))
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, d.file.Close())
			}
		}()
		d.Standalone.State = d.file
	}
	if err := d.keys(); err != nil {
		return nil, err
	}
	if d.public {
		token, err := environment("RAMP_CONTROL_TOKEN")
		if err != nil {
			return nil, err
		}
		d.Standalone.ControlToken = cmp.Or(token, rand.Text())
	}
	d.out = &aside{out: out, gap: "%d events were not printed, because nobody read the output\n"}
	if d.json {
		d.out.gap = "{\"skipped\":%d}\n"
	}
	d.printer = &printer{out: d.out, json: d.json, quiet: d.quiet}
	d.Standalone.OnEvent, d.Standalone.Pages = d.printer.event, pages.New()
	return ramptest.New(d.Config)
}

// parseEmulate reads the flags.
func parseEmulate(flags *call) (*desk, error) {
	d, proxied := &desk{}, false
	c := &d.Config
	flags.group("The game")
	flags.StringVar(&c.Game, "game", "", "base `URL` of the game's server (required)")
	flags.endpointFlags(&c.AssetsPath, &c.ValidatePath, &c.ResultPath)
	flags.StringVar(&c.ProjectID, "project", "",
		"the only project `ID` that the service accepts (default any)")
	flags.keyFileFlag(&d.hmac, ", else one is generated and printed")
	flags.encodingFlag(&d.hmac)
	flags.StringVar(&d.validator, "validator", "", "`address` of the game's validator key "+
		"(default that of $RAMP_VALIDATOR_KEY, else a key is generated and printed)")
	flags.group("The emulator")
	flags.StringVar(&d.listen, "listen", "127.0.0.1:8090", "`address` to listen on")
	flags.StringVar(&c.Standalone.PublicURL, "url", "",
		"the `URL` under which others reach the service (default that of -listen)")
	flags.BoolVar(&d.public, "public", false, "allow -listen on an address that other machines can reach, "+
		"and any host name; the control API then requires a token,\n"+
		"$RAMP_CONTROL_TOKEN or one that is generated and printed. An order's page needs only its UUID")
	flags.Float64Var(&c.Standalone.Speed, "speed", 1,
		"speed of the clock: at 60 a minute passes per second, 0 stops the clock")
	flags.StringVar(&d.state, "state", "",
		"`file` in which orders, chains, clock and generated keys survive "+
			"a restart; it holds secrets, and only you may read it")
	flags.group("Output")
	flags.BoolVar(&d.json, "json", false,
		"print one JSON object per line: first the service's addresses, then each event")
	flags.BoolVar(&d.quiet, "q", false, "print only failures, after the addresses and keys")
	flags.group("How it calls the game")
	flags.BoolVar(&proxied, "proxy", false,
		"reach the game through the proxy of $HTTP_PROXY or $HTTPS_PROXY; by default without one")
	flags.DurationVar(&c.Timeout, "timeout", 10*time.Second,
		"how long the game may take to answer; longer, to stop it in a debugger")
	flags.BoolVar(&c.NoThief, "no-thief", false,
		"do not ask for assets with half of a session in GET /control/check")
	flags.BoolVar(&c.Incomplete, "incomplete", false,
		"accept in GET /control/check that the game was not asked about the end of an order")
	flags.repeated(&c.Regenerating, "regenerating",
		"`asset` that moves by itself, such as energy")

	flags.group("What the interface leaves open (docs/interface.md)")
	flags.BoolVar(&d.retry5xx, "retry-5xx", false,
		"redeliver a result after any HTTP 5xx, not only after 500")
	flags.BoolVar(&d.retry20, "retry-20", false,
		"redeliver a result up to 20 times, as the interface says, not 19 times, as its schedule lists")
	flags.BoolVar(&c.AcceptExpired, "accept-expired", false,
		"accept a UUID that has expired after its 5 minutes")
	flags.BoolVar(&c.PerOrder, "per-order", false,
		"take materials and outputs for the price of a whole order instead of one token")
	flags.BoolVar(&c.NetAmounts, "net", false,
		"state the number of tokens of a mint after its fee, not before it")
	flags.BoolVar(&c.UUIDDigits, "uuid-digits", false, "write a UUID as 32 hex digits, without hyphens")
	flags.StringVar(&c.ResultType, "result-type", "",
		"Content-`type` of a result, such as text/plain, or none for no header (default application/json)")
	flags.IntVar(&c.FailureStatus, "failure-status", 0,
		"HTTP `status` of a failed initialize call (default the code of its envelope)")
	if _, err := flags.parse(0, 0); err != nil {
		return nil, err
	}
	if err := need([2]string{"-game", ifEmpty(c.Game, "the base URL of your server")}); err != nil {
		return nil, err
	}
	if proxied {
		c.Client = &http.Client{} // whose transport reads the environment
	}
	network, err := environment("RAMP_NETWORK")
	if err != nil {
		return nil, err
	}
	if d.token, err = environment("RAMP_TOKEN"); err != nil {
		return nil, err
	}
	if proxied && !slices.ContainsFunc([]string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"},
		func(name string) bool { return os.Getenv(name) != "" }) {
		return nil, misuse{errors.New("-proxy means nothing without $HTTP_PROXY or $HTTPS_PROXY")}
	}
	d.network = ramp.Network(cmp.Or(network, string(ramp.Testnet)))
	if chainIDs[d.network] == 0 {
		return nil, misuse{errors.New("RAMP_NETWORK must be testnet or mainnet")}
	}
	d.hmac.encoding = cmp.Or(d.hmac.encoding, "text")
	c.Audit, c.Standalone.KeepOrders = ramptest.AuditReport, keptOrders
	c.Standalone.Keys = "copy their lines from the terminal of ramp emulate, " +
		"or take the keys that you gave it"
	if d.retry20 {
		c.Schedule = append([]time.Duration{5 * time.Minute}, ramptest.Schedule()...)
	}
	if d.retry5xx {
		c.Retry = func(status int) bool { return status >= 500 }
	}
	return d, nil
}

// keys reads the keys, or generates them. Generated ones are kept in the state file.
func (d *desk) keys() (err error) {
	if d.key, err = d.hmac.text(); err != nil {
		return err
	}
	if d.key == "" {
		// 24 letters and digits are a key in each encoding.
		if d.madeKey, err = d.kept("HMAC key in "+d.hmac.encoding, rand.Text()[:24]); err != nil {
			return err
		}
		d.key = d.madeKey
	}
	if d.Key, err = readKey(d.key, d.hmac.encoding); err != nil {
		return err
	}
	d.Standalone.Secrets = append(d.Standalone.Secrets, d.key)
	d.Standalone.OtherKey, _ = ramp.Base64URLKey(d.key) // zero if the text is not base64url
	if d.hmac.encoding == "base64url" {
		d.Standalone.OtherKey, _ = ramp.TextKey(d.key)
	}
	inHex := os.Getenv("RAMP_VALIDATOR_KEY")
	defer func() {
		d.Standalone.Secrets = append(d.Standalone.Secrets, inHex, strings.TrimPrefix(inHex,
			"0x"))
	}()
	switch {
	case d.validator != "":
		if d.Validator, err = typed.ParseAddress(d.validator); err != nil {
			return fmt.Errorf("-validator %w", err)
		}
		return nil
	case inHex == "":
		key, err := crypto.GenerateKey()
		if err != nil {
			return err
		}
		if d.madeValidator, err = d.kept("validator key", hexutil.Encode(crypto.FromECDSA(key))); err != nil {
			return err
		}
		inHex = d.madeValidator
	}
	signer, err := ramp.NewKeySigner(inHex)
	if err != nil {
		return fmt.Errorf("RAMP_VALIDATOR_KEY: %w", err)
	}
	d.Validator = signer.Address()
	return nil
}

// kept returns a text from the state file. If there is none, it keeps fresh there. Without
// a file it returns fresh.
func (d *desk) kept(name, fresh string) (string, error) {
	if d.file == nil {
		return fresh, nil
	}
	text, err := d.file.Note(name)
	if err == nil && text == "" {
		text, err = fresh, d.file.SetNote(name, fresh)
	}
	return text, err
}

// listen opens a listener. An address that other machines can reach requires -public,
// because whoever reaches the service can move the assets of its players.
func listen(address string, public bool) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !public && (!ok || !at.IP.IsLoopback()) {
		_ = listener.Close() // it is unused
		return nil,
			fmt.Errorf("-listen %s can be reached by other machines; add -public to allow that", address)
	}
	return listener, nil
}

// chainIDs are the default of ramptest.Config.Networks.
var chainIDs = map[ramp.Network]uint64{ramp.Mainnet: 7001, ramp.Testnet: 7002}

// placeholderToken is the contract address of a token for a game that has none yet.
const placeholderToken = "0x00000000000000000000000000000000000070c3"

// started is the first line that -json prints.
type started struct {
	API          string         `json:"ramp_api_url"`
	Front        string         `json:"ramp_url"`
	Mainnet      string         `json:"rpc_mainnet_url"`
	Testnet      string         `json:"rpc_testnet_url"`
	Assets       string         `json:"assets_url"` // of the game, like the next two
	Validate     string         `json:"validate_url"`
	Result       string         `json:"result_url"`
	Validator    common.Address `json:"validator"`
	Payer        common.Address `json:"payer"`
	Fingerprint  string         `json:"hmac_key_fingerprint"`    // see ramp.HMACKey.Fingerprint
	HMACKey      string         `json:"hmac_key,omitempty"`      // only if it was generated
	ValidatorKey string         `json:"validator_key,omitempty"` // only if it was generated
	ControlToken string         `json:"control_token,omitempty"` // only with -public
}

// welcome prints the addresses of the service, the endpoints that it calls, and the
// keys that it generated.
func (p *printer) welcome(d *desk, service *ramptest.Service) {
	c, address := &d.Config, service.URL()
	at, _ := url.Parse(strings.TrimRight(d.Game, "/")) // the service has accepted it
	at.User = nil
	game := at.String()
	s := started{API: address, Front: address, Mainnet: service.RPCURL(ramp.Mainnet),
		Testnet: service.RPCURL(ramp.Testnet),
		Assets:  game + c.AssetsPath, Validate: game + c.ValidatePath, Result: game + c.ResultPath,
		Validator: c.Validator, Payer: service.Payer(), Fingerprint: c.Key.Fingerprint(),
		HMACKey: d.madeKey, ValidatorKey: d.madeValidator,
		ControlToken: c.Standalone.ControlToken}
	var text strings.Builder
	defer func() { _, _ = io.WriteString(p.out, text.String()) }() // which keeps what fails
	if d.json {
		printJSON(&text, s)
		return
	}
	open := s.Front
	if s.ControlToken != "" {
		open += "/?token=" + url.QueryEscape(s.ControlToken)
	}
	fmt.Fprintf(&text, "Open %s (Ctrl+C stops)\n", open)
	fmt.Fprintf(&text, "Calls GET %s, POST %s, POST %s at %s\n",
		c.AssetsPath, c.ValidatePath, c.ResultPath, game)
	fmt.Fprintf(&text, "Chains %s (ID %d), %s (ID %d)\n", s.Mainnet, chainIDs[ramp.Mainnet], s.Testnet,
		chainIDs[ramp.Testnet])
	fmt.Fprintf(&text, "Validator %s, payer of sponsored transactions %s\n", s.Validator, s.Payer)
	fmt.Fprintf(&text, "HMAC key with the fingerprint %s; if the game has another key, ramp.Handler logs "+
		"its fingerprint as hmac_key\n", s.Fingerprint)
	fmt.Fprintf(&text, "\nFor the environment of the game, and of the other commands:\n")
	fmt.Fprintf(&text, "export RAMP_API_URL=%s RAMP_FRONTEND_URL=%s\n", s.API, s.Front)
	project := cmp.Or(d.ProjectID, "project-1")
	token := cmp.Or(d.token, placeholderToken)
	fmt.Fprintf(&text, "export RAMP_PROJECT=%s RAMP_NETWORK=%s RAMP_TOKEN=%s\n", shell(project),
		d.network, shell(token))
	if s.ControlToken != "" {
		fmt.Fprintf(&text,
			"export RAMP_CONTROL_TOKEN=%s # for ramp trigger, orders, resend and advance, not for the game\n",
			shell(s.ControlToken))
	}
	switch {
	case s.HMACKey == "":
		fmt.Fprintf(&text, "export RAMP_HMAC_KEY_ENCODING=%s # RAMP_HMAC_KEY is the one that you gave\n",
			d.hmac.encoding)
	default:
		fmt.Fprintf(&text, "export RAMP_HMAC_KEY=%s RAMP_HMAC_KEY_ENCODING=%s\n", s.HMACKey, d.hmac.encoding)
	}
	if s.ValidatorKey == "" {
		fmt.Fprintf(&text, "export RAMP_VALIDATOR=%s # RAMP_VALIDATOR_KEY is its key\n", s.Validator)
	} else {
		fmt.Fprintf(&text, "export RAMP_VALIDATOR_KEY=%s\n", s.ValidatorKey)
	}
	fmt.Fprintln(&text,
		"# RAMP_ACCESS_TOKEN, for ramp trigger -session, is the token of the page: with -page, its "+
			"URL has it")
	fmt.Fprintf(&text,
		"\nFor a game that confirms results on the chain (but not for ramp check, whose results are "+
			"on no chain):\n")
	fmt.Fprintf(&text, "export RAMP_RPC_URL=%s RAMP_CHAIN_ID=%d RAMP_PAYERS=%s RAMP_CONTRACTS=%s\n\n",
		service.RPCURL(d.network), chainIDs[d.network], s.Payer, shell(token))
}

// shell quotes a word for a shell.
func shell(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
