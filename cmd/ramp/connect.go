package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
)

const connectUsage = `usage: ramp connect -url URL -key-file FILE -project ID -token ADDRESS [flags]

Says which reading of the HMAC key the service accepts, and what to do next. With -game,
calls that server about an order that does not exist. Moves nothing, shows no secret, asks
before a mainnet. Reads $RAMP_VALIDATOR_KEY, and $RAMP_ACCESS_TOKEN: the token of -session.

Example: ramp connect -url https://api.ramp.example -key-file key -project 7 -token 0x70c3…

Exit status: 0 if all is well, 1 if something is wrong, 2 if nothing was called.
`

// contact is a first contact with a service, a node and a game's server.
type contact struct {
	*call
	url, key, project, token, network, page              string
	session, access, rpc, game, assets, validate, result string
	next                                                 []string // what to do
	status                                               int
}

// firstContact is the command connect.
func firstContact(ctx context.Context, of *call) (int, error) {
	c := &contact{call: of}
	var keys keyFlags
	c.group("Required")
	c.keyFileFlag(&keys, "")
	c.StringVar(&c.url, "url", "", "`URL` of the service's API")
	c.StringVar(&c.project, "project", "", "project `ID` of the console")
	c.StringVar(&c.token, "token", "", "contract `address` of a token of the project")
	c.group("The service")
	c.StringVar(&c.network, "network", "testnet", "`network`: testnet or mainnet")
	c.StringVar(&c.page, "page", "", "`URL` of the service's pages, to print that of an order")
	c.StringVar(&c.session, "session", "session",
		"session `ID` of a player, for the page and the assets call")
	c.StringVar(&c.rpc, "rpc", "", "`URL` of a node, to ask for its chain ID")
	c.group("The game's server")
	c.StringVar(&c.game, "game", "", "base `URL` of the game's server")
	c.endpointFlags(&c.assets, &c.validate, &c.result)
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	var err error
	if c.access, err = environment("RAMP_ACCESS_TOKEN"); err != nil {
		return 0, err
	}
	if c.key, err = keys.text(); err != nil {
		return 0, err
	}
	if err := need([2]string{"-url", ifEmpty(c.url, "the service's API")},
		[2]string{"-key-file", ifEmpty(c.key, needKey)},
		[2]string{"-project", ifEmpty(c.project, "its ID in the console")},
		[2]string{"-token", ifEmpty(c.token, "the contract address of one of its tokens")}); err != nil {
		return 0, err
	}
	if _, problem := transport.Address(c.game); c.game != "" && problem != "" {
		return 0, misuse{errors.New("-game " + problem)}
	}
	c.warnOfKey()
	if c.network == string(ramp.Mainnet) {
		fmt.Fprint(c.out, "This calls a mainnet, and moves nothing. Type yes to go on: ")
		if _, err := fmt.Fscanf(c.in, "yes\n"); err != nil {
			return 0, misuse{errors.New("nothing was called")}
		}
	}
	accepted, err := c.initialize(ctx)
	if err != nil {
		return 0, misuse{flagError(err)}
	}
	if signer, err := ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")); err != nil {
		c.say("-", "validator", "$RAMP_VALIDATOR_KEY: "+err.Error(), nil)
	} else {
		c.say("ok", "validator", signer.Address().Hex(), nil,
			"Register the validator's address in the console.")
	}
	if c.rpc != "" {
		var id any
		node, err := ramp.NewRPC(ramp.RPCConfig{URL: c.rpc})
		if err == nil {
			id, err = node.ChainID(ctx)
		}
		c.say("ok", "node", fmt.Sprint("its chain ID is ", id), err,
			"Set RPCConfig.ChainID to the chain ID of the "+c.network+".")
	}
	if c.game != "" && len(accepted) == 1 {
		body := `{"session_id":"ramp-connect","uuid":"` + uuid.NewString() + `"}`
		c.callGame(ctx, http.MethodGet, c.assets, "")
		c.callGame(ctx, http.MethodPost, c.validate, body, accepted[0].Sign([]byte(body)))
		c.callGame(ctx, http.MethodPost, c.result, body, accepted[0].Sign([]byte(body)))
	}
	c.next = append(c.next, "Judge a test server: ramp check. Then mint the smallest amount on the testnet.")
	fmt.Fprintln(c.out, "\nNext:\n- "+strings.Join(c.next, "\n- "))
	return c.status, nil
}

// say prints text, or the error, and remembers what to do next. Foreign text must be redacted.
func (c *contact) say(word, subject, text string, err error, next ...string) {
	if err != nil {
		word, text, c.status = "WRONG", err.Error(), 1
	}
	c.next = append(c.next, next...)
	fmt.Fprintf(c.out, "%-5s  %-17s  %s\n", word, subject, strings.ReplaceAll(text, "ramp: ", ""))
}

// warnOfKey says what in a key is often not meant to be in it.
func (c *contact) warnOfKey() {
	for _, quote := range []string{`"`, "'", "`", "\u201c", "\u201d"} {
		if strings.HasPrefix(c.key, quote) || strings.HasSuffix(c.key, quote) {
			c.say("check", "key", "it has quotes around it, which count: does the console show them?", nil)
			break
		}
	}
	if regexp.MustCompile(`\$\{?\w`).MatchString(c.key) {
		c.say("check", "key",
			"it looks like the name of a variable, $NAME or ${NAME}, which nothing replaces here", nil)
	}
}

// initialize calls the service with each reading of the key, and returns those that it
// accepts. The error is that of a flag.
func (c *contact) initialize(ctx context.Context) (accepted []ramp.HMACKey, err error) {
	judged := false // whether the service has spoken about an HMAC
	item := []ramp.Item{{ID: "ramp-connect", Amount: ramp.NewAmount(1),
		IconURL: "https://example.com/icon.png"}}
	request := ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Network(c.network), ProjectID: c.project, Token: c.token, Materials: item,
		Outputs: item}}
	for i, name := range []string{"ramp.TextKey", "ramp.Base64URLKey"} {
		var started *ramp.Initialization
		key, unreadable := readKey(c.key, []string{"text", "base64url"}[i])
		client, err := ramp.NewClient(ramp.ClientConfig{URL: c.url, Key: key, Retries: -1})
		if err = cmp.Or(unreadable, err); err == nil {
			started, err = client.Initialize(ctx, request)
		}
		switch invalid := (*ramp.InvalidError)(nil); {
		case errors.As(err, &invalid):
			return nil, err
		case err == nil,
			// with the right HMAC
			errors.Is(err, ramp.ErrUnknownProject), errors.Is(err, ramp.ErrUnknownNetwork):
			accepted = append(accepted, key)
			c.say("ok", name, "the service accepts it", err, "Read the HMAC key with "+name+".")
			if c.page != "" && err == nil { // without a token
				page, err := started.ExchangeURL(c.page,
					ramp.Session{ID: c.session, Token: ramp.NewAccessToken("ACCESS_TOKEN")})
				c.say("ok", "page", page, err,
					"Open the page within 5 minutes, with the player's token instead of ACCESS_TOKEN.")
			}
		default:
			judged = judged || errors.Is(err, ramp.ErrHMACInvalid) || errors.Is(err, ramp.ErrHMACMissing) ||
				i == 0 && unreadable != nil // a key that no text can be
			c.say("-", name, err.Error(), nil)
		}
	}
	if len(accepted) == 0 && !judged {
		c.say("", "service", "",
			errors.New("nothing at -url answered as the service does, so nothing is known of the key"))
		return nil, nil
	}
	if wrong := [...]string{
		0: "the service accepts no reading of it: compare -key-file and -url with the console",
		2: "the service answers both readings alike, so it did not verify the HMAC"}[len(
		accepted)]; wrong != "" {
		c.say("", "key", "", errors.New(wrong))
	}
	return accepted, nil
}

// callGame makes a call of the service. The server must reject it, except an assets call,
// which has no HMAC, with a token.
func (c *contact) callGame(ctx context.Context, method, path, body string, mac ...string) {
	secrets := redact.New(append(mac, c.key, c.access)...)
	client := http.Client{Timeout: 10 * time.Second, CheckRedirect: noRedirects, Transport: &http.Transport{}}
	var response *http.Response
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.game, "/")+path,
		strings.NewReader(body))
	if err == nil {
		request.Header = http.Header{"Content-Type": {"application/json"}, ramp.HeaderSession: {c.session},
			ramp.HeaderAuthorization: {"Bearer " + cmp.Or(c.access, "ramp-connect")}, ramp.HeaderHMAC: mac}
		response, err = client.Do(request)
	}
	if err != nil {
		said := cmp.Or(reach.Why(ctx, c.game, err), secrets.Line(err.Error(), redact.MaxError))
		c.say("ok", "game", "", fmt.Errorf("%s %s: %s", method, path, said))
		return
	}
	defer response.Body.Close()
	var answer ramp.Response[json.RawMessage]
	err = json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<20)).Decode(&answer)
	text := fmt.Sprintf("%s %s: HTTP %d %s", method, path, response.StatusCode,
		secrets.Line(string(answer.ErrorCode), 100))
	switch accept := mac == nil && c.access != ""; {
	case err != nil, !answer.Success && answer.ErrorCode == "", response.StatusCode == http.StatusNotFound:
		err = errors.New(text + ": is this the path? It must answer with the envelope")
	case accept && !answer.Success:
		err = errors.New(text + ": is -session the session of $RAMP_ACCESS_TOKEN?")
	case answer.Success && !accept:
		err = errors.New(text + ": it accepts what it must reject")
	case mac != nil &&
		(response.StatusCode == http.StatusUnauthorized ||
			strings.Contains(string(answer.ErrorCode), "HMAC")):
		err = errors.New(text + ": does the server read the HMAC key as the service does?")
	}
	c.say("ok", "game", text, err)
}
