package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// desk is what the flags of emulate say.
type desk struct {
	config    ramptest.Config
	listen    string
	public    bool
	json      bool
	key       string
	encoding  string
	validator string
	retry5xx  bool
}

// emulate runs the service until ctx is done, and returns the exit status.
func emulate(ctx context.Context, args []string, out io.Writer) int {
	d, status, ok := parse(args, out)
	if !ok {
		return status
	}
	fail := func(err error) int {
		fmt.Fprintln(out, "ramp emulate:", err)
		return 1
	}
	made, err := d.keys()
	if err != nil {
		return fail(err)
	}
	if d.config.Listener, err = listen(d.listen, d.public); err != nil {
		return fail(err)
	}
	p := &printer{out: out, json: json.NewEncoder(out)}
	d.config.OnEvent = p.event
	if d.json {
		d.config.OnEvent = p.eventJSON
	}
	service, err := ramptest.New(d.config)
	if err != nil {
		_ = d.config.Listener.Close() // nobody uses it
		return fail(err)
	}
	defer service.Close()
	p.welcome(d, service, made)
	<-ctx.Done()
	return 0
}

// parse reads the flags. ok is false if there is nothing to run.
func parse(args []string, out io.Writer) (d *desk, status int, ok bool) {
	d = &desk{}
	c := &d.config
	flags := flag.NewFlagSet("ramp emulate", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&c.Game, "game", "", "base `URL` of the game's server (required)")
	flags.StringVar(&c.AssetsPath, "assets", ramp.PathAssets, "`path` of the Get Assets endpoint below -game")
	flags.StringVar(&c.ValidatePath, "validate", ramp.PathValidate, "`path` of the Validate Order endpoint below -game")
	flags.StringVar(&c.ResultPath, "result", ramp.PathResult, "`path` of the result endpoint below -game")
	flags.StringVar(&c.ProjectID, "project", "", "the one project `ID` that the service knows (default any)")
	flags.StringVar(&d.key, "key", "", "the console's HMAC key as `text` (default $RAMP_HMAC_KEY, else one is made and printed)")
	flags.StringVar(&d.encoding, "key-encoding", "text", "how the HMAC key becomes bytes: text or base64url")
	flags.StringVar(&d.validator, "validator", "", "`address` of the game's validator key (default that of $RAMP_VALIDATOR_KEY, else a key is made and printed)")
	flags.StringVar(&d.listen, "listen", "127.0.0.1:8090", "`address` to listen on")
	flags.StringVar(&c.PublicURL, "url", "", "the `URL` that others reach the service by (default that of -listen)")
	flags.BoolVar(&d.public, "public", false, "allow -listen on an address that other machines reach, and any host name; an order's page needs only its UUID")
	flags.Float64Var(&c.Speed, "speed", 1, "how fast the clock runs: 60 is a minute in a second, 0 stands still")
	flags.BoolVar(&d.retry5xx, "retry-5xx", false, "repeat a result after any HTTP 5xx, not after 500 alone")
	flags.BoolVar(&c.AcceptExpired, "accept-expired", false, "let a UUID be used after its 5 minutes")
	flags.BoolVar(&c.PerToken, "per-token", false, "take materials and outputs for each token, not for the whole order")
	flags.IntVar(&c.FailureStatus, "failure-status", 0, "HTTP `status` of a failed initialize call (default the code of its envelope)")
	flags.BoolVar(&d.json, "json", false, "print lines of JSON: where the service is, and then each event")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, 0, false
	case err != nil:
		return nil, 2, false
	case c.Game == "", flags.NArg() > 0:
		fmt.Fprintln(out, "ramp emulate: -game is required, and nothing but flags")
		return nil, 2, false
	}
	c.AnyHost, c.Books = d.public, ramptest.BooksReport
	if d.retry5xx {
		c.Retry = func(status int) bool { return status >= 500 }
	}
	return d, 0, true
}

// made are the keys that were made because none were given.
type made struct{ hmac, validator string }

// keys reads the keys, or makes them.
func (d *desk) keys() (made, error) {
	var m made
	if d.key == "" {
		d.key = os.Getenv("RAMP_HMAC_KEY")
	}
	if d.key == "" {
		d.key = rand.Text()
		m.hmac = d.key
	}
	var err error
	switch d.encoding {
	case "text":
		d.config.Key, err = ramp.TextKey(d.key)
	case "base64url":
		d.config.Key, err = ramp.Base64URLKey(d.key)
	default:
		err = errors.New("-key-encoding must be text or base64url")
	}
	inHex := os.Getenv("RAMP_VALIDATOR_KEY")
	switch {
	case err != nil:
		return made{}, err
	case d.validator == "" && inHex != "":
		signer, err := ramp.NewKeySigner(inHex)
		if err != nil {
			return made{}, fmt.Errorf("RAMP_VALIDATOR_KEY: %w", err)
		}
		d.config.Validator = signer.Address()
	case d.validator == "":
		key, err := crypto.GenerateKey()
		if err != nil {
			return made{}, err
		}
		m.validator = hexutil.Encode(crypto.FromECDSA(key))
		d.config.Validator = crypto.PubkeyToAddress(key.PublicKey)
	case !common.IsHexAddress(d.validator):
		return made{}, errors.New("-validator must be an address of 20 bytes in hex")
	default:
		d.config.Validator = common.HexToAddress(d.validator)
	}
	return m, nil
}

// listen opens an address. One that other machines reach must be asked for:
// whoever reaches the service can move the assets of its players.
func listen(address string, public bool) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !public && (!ok || !at.IP.IsLoopback()) {
		_ = listener.Close() // nobody has used it
		return nil, fmt.Errorf("-listen %s can be reached by other machines: add -public if that is meant", address)
	}
	return listener, nil
}

// printer writes what happens, one line at a time.
type printer struct {
	mu   sync.Mutex
	out  io.Writer
	json *json.Encoder
}

func (p *printer) event(e ramptest.Event) {
	if e.Routine() {
		return // there are many, and nobody looks for them
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, e.Time.Format("15:04:05"), e)
}

func (p *printer) eventJSON(e ramptest.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.json.Encode(e) // nobody reads: then nobody is told
}

// started is the first line of -json.
type started struct {
	API          string         `json:"ramp_api_url"`
	Front        string         `json:"ramp_url"`
	Mainnet      string         `json:"rpc_mainnet_url"`
	Testnet      string         `json:"rpc_testnet_url"`
	Validator    common.Address `json:"validator"`
	HMACKey      string         `json:"hmac_key,omitempty"`      // only if it was made
	ValidatorKey string         `json:"validator_key,omitempty"` // only if it was made
}

// welcome says where the service is, and which keys it made.
func (p *printer) welcome(d *desk, service *ramptest.Service, m made) {
	url := service.URL()
	s := started{API: url, Front: url, Mainnet: service.RPCURL(ramp.Mainnet), Testnet: service.RPCURL(ramp.Testnet),
		Validator: d.config.Validator, HMACKey: m.hmac, ValidatorKey: m.validator}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.json {
		_ = p.json.Encode(s) // nobody reads: then nobody is told
		return
	}
	fmt.Fprintf(p.out, "the service is at   %s\n", s.API)
	fmt.Fprintf(p.out, "its chains are at   %s\n                    %s\n", s.Mainnet, s.Testnet)
	fmt.Fprintf(p.out, "it calls            %s\n", d.config.Game)
	fmt.Fprintf(p.out, "validator address   %s\n", s.Validator)
	if s.HMACKey != "" || s.ValidatorKey != "" {
		fmt.Fprintf(p.out, "\nkeys for the game, made for this run:\n")
	}
	if s.HMACKey != "" {
		fmt.Fprintf(p.out, "RAMP_HMAC_KEY=%s\n", s.HMACKey)
	}
	if s.ValidatorKey != "" {
		fmt.Fprintf(p.out, "RAMP_VALIDATOR_KEY=%s\n", s.ValidatorKey)
	}
	fmt.Fprintln(p.out)
}
