package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

const connectUsage = `usage: ramp connect -url URL -key-file FILE -project ID -token ADDRESS [flags]

Calls initialize with both readings of the HMAC key, says which one the service accepts,
and what to do next. With -game, it calls that server as the service does, about an order
that does not exist. It moves nothing, shows no secret, and asks before it calls a mainnet.
$RAMP_VALIDATOR_KEY has the validator key, and $RAMP_ACCESS_TOKEN the token of -session.

Exit status: 0 if all is well, 1 if something is wrong, 2 if nothing was called.
`

// contact is a first contact with a service, a node and a game's server.
type contact struct {
	out                            io.Writer
	key, project, token, network   string
	page, session, access, rpc     string
	game, assets, validate, result string
	status                         int
	next                           []string
}

// firstContact is the command connect.
func firstContact(ctx context.Context, args []string, std stdio) int {
	c := &contact{out: std.out, access: os.Getenv("RAMP_ACCESS_TOKEN")}
	set := newFlags("connect", connectUsage)
	url := set.String("url", "", "`URL` of the service's API (required)")
	keyFile := set.String("key-file", "", "`file` with the console's HMAC key (required)")
	set.StringVar(&c.project, "project", "", "project `ID` of the console (required)")
	set.StringVar(&c.token, "token", "", "contract `address` of a token of the project (required)")
	set.StringVar(&c.network, "network", "testnet", "`network`: testnet or mainnet")
	set.StringVar(&c.page, "page", "", "`URL` of the service's pages, to print that of an order")
	set.StringVar(&c.session, "session", "session", "session `ID` of a player, for the page and the assets call")
	set.StringVar(&c.rpc, "rpc", "", "`URL` of a node, to ask for its chain ID")
	set.StringVar(&c.game, "game", "", "base `URL` of the game's server")
	endpointFlags(set, &c.assets, &c.validate, &c.result)
	if _, status, ok := parse(set, args, 0, 0, std); !ok {
		return status
	}
	key, err := os.ReadFile(*keyFile)
	if err != nil {
		return complain(std, "connect", fmt.Errorf("-key-file: %w", err))
	}
	c.key = strings.TrimRight(string(key), "\r\n")
	if c.network == string(ramp.Mainnet) {
		fmt.Fprint(std.out, "This calls a mainnet, and moves nothing. Type yes to go on: ")
		if answer, _ := bufio.NewReader(std.in).ReadString('\n'); strings.TrimSpace(answer) != "yes" {
			return complain(std, "connect", errors.New("nothing was called"))
		}
	}
	accepted, err := c.initialize(ctx, *url)
	if err != nil {
		return complain(std, "connect", flagError(err))
	}
	if signer, err := ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")); err != nil {
		c.say("-", "validator", "$RAMP_VALIDATOR_KEY: "+err.Error())
	} else {
		c.say("ok", "validator", signer.Address().Hex(), "Register the validator's address in the console.")
	}
	if c.rpc != "" {
		var id *big.Int
		node, err := ramp.NewRPC(ramp.RPCConfig{URL: c.rpc})
		if err == nil {
			id, err = node.ChainID(ctx)
		}
		c.report("node", "its chain ID is "+id.String(), err, "Is that the chain of the "+c.network+"? Set RPCConfig.ChainID to it.")
	}
	if c.game != "" {
		c.call(ctx, http.MethodGet, c.assets, "", "")
		for _, path := range []string{c.validate, c.result} {
			body := `{"session_id":"ramp-connect","uuid":"` + uuid.NewString() + `"}`
			c.call(ctx, http.MethodPost, path, body, accepted.Sign([]byte(body)))
		}
	}
	fmt.Fprintln(std.out, "\nNext:")
	for _, step := range append(c.next, "Judge a test server: ramp check. Then mint the smallest amount on the testnet.") {
		fmt.Fprintln(std.out, "-", step)
	}
	return c.status
}

// say prints a line, and remembers what to do next. Foreign text must be redacted.
func (c *contact) say(word, subject, text string, next ...string) {
	if c.next = append(c.next, next...); word == "WRONG" {
		c.status = 1
	}
	fmt.Fprintf(c.out, "%-5s  %-9s  %s\n", word, subject, strings.ReplaceAll(text, "ramp: ", ""))
}

// report prints text, or the error.
func (c *contact) report(subject, text string, err error, next string) {
	if err != nil {
		c.say("WRONG", subject, err.Error())
		return
	}
	c.say("ok", subject, text, next)
}

// initialize calls the service with each reading of the key, and returns the one that it
// accepts, or the zero key. The error is that of a flag.
func (c *contact) initialize(ctx context.Context, url string) (accepted ramp.HMACKey, err error) {
	item := []ramp.Item{{ID: "ramp-connect", Amount: ramp.NewAmount(1), IconURL: "https://example.com/icon.png"}}
	both := 0
	for _, reading := range [][2]string{{"text", "ramp.TextKey"}, {"base64url", "ramp.Base64URLKey"}} {
		key, err := readKey(c.key, reading[0])
		if err != nil {
			c.say("-", "key", reading[1]+": "+err.Error())
			continue
		}
		client, err := ramp.NewClient(ramp.ClientConfig{URL: url, Key: key, Retries: -1})
		if err != nil {
			return accepted, err
		}
		started, err := client.Initialize(ctx, ramp.InitializeRequest{Intent: ramp.InitializeIntent{
			Network: ramp.Network(c.network), ProjectID: c.project, Token: c.token, Materials: item, Outputs: item}})
		switch invalid := (*ramp.InvalidError)(nil); {
		case errors.As(err, &invalid):
			return accepted, err
		case err == nil:
			c.say("ok", "key", reading[1]+": the service accepts it", "Read the HMAC key with "+reading[1]+".")
			if c.page != "" { // without a token
				page, err := started.ExchangeURL(c.page, ramp.Session{ID: c.session, Token: ramp.NewAccessToken("ACCESS_TOKEN")})
				c.report("page", page, err, "Open the page within 5 minutes, with the player's token instead of ACCESS_TOKEN.")
			}
		case errors.Is(err, ramp.ErrRampNotFound), errors.Is(err, ramp.ErrRampNotExists):
			c.say("WRONG", "project", reading[1]+": "+err.Error(), "Correct -project or -network, and repeat this.")
		default:
			c.say("-", "key", reading[1]+": "+err.Error())
			continue
		}
		accepted, both = key, both+1
	}
	switch both {
	case 0:
		c.say("WRONG", "key", "the service accepts no reading of it", "Compare -key-file and -url with the console, and repeat this.")
	case 2:
		c.say("WRONG", "key", "the service answers both readings alike, so it did not verify the HMAC")
		return ramp.HMACKey{}, nil
	}
	return accepted, nil
}

// call makes a call of the service. The server must reject it, except an assets call with
// a token.
func (c *contact) call(ctx context.Context, method, path, body, mac string) {
	secrets := redact.New(c.key, c.access, mac)
	client := http.Client{Timeout: 10 * time.Second, // and no redirects
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.game, "/")+path, strings.NewReader(body))
	var response *http.Response
	if err == nil {
		request.Header = http.Header{"Content-Type": {"application/json"}, "X-Dapp-Sessionid": {c.session},
			"X-Dapp-Authorization": {"Bearer " + cmp.Or(c.access, "ramp-connect")}}
		if mac != "" {
			request.Header.Set(ramp.HeaderHMAC, mac)
		}
		response, err = client.Do(request)
	}
	if err != nil {
		c.say("WRONG", "game", secrets.Line(err.Error(), redact.MaxError))
		return
	}
	defer response.Body.Close()
	var answer ramp.Response[json.RawMessage]
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer)
	accept, word, advice := mac == "" && c.access != "", "WRONG", ""
	switch {
	case err != nil, !answer.Success && answer.ErrorCode == "", response.StatusCode == http.StatusNotFound:
		advice = ": is this the path? It must answer with the envelope"
	case accept && !answer.Success:
		advice = ": is -session the session of $RAMP_ACCESS_TOKEN?"
	case answer.Success && !accept:
		advice = ": it accepts what it must reject"
	case mac != "" && (response.StatusCode == http.StatusUnauthorized || strings.Contains(string(answer.ErrorCode), "HMAC")):
		advice = ": does the server read the HMAC key as the service does?"
	default:
		word = "ok"
	}
	c.say(word, "game", fmt.Sprintf("%s %s: HTTP %d %s%s", method, path, response.StatusCode, secrets.Line(string(answer.ErrorCode), 100), advice))
}
