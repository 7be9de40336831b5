package ramp

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// RPCConfig configures an [RPC]. URL is required. The zero value of every other
// field stands for its default. URL and Header can hold credentials, so a config
// prints and logs as scheme and host of its URL. Do not print it inside an
// unexported field: fmt cannot call its methods there.
type RPCConfig struct {
	// URL is the address of the node, the {rpc_mainnet_url} or
	// {rpc_testnet_url} of the interface. A user and password, a path and a
	// query, which may hold the key of a provider, are sent as they are. The
	// package never shows them; where the other side quotes them, see [RPC] for
	// what is redacted. Required.
	//
	// The URL must be https, as 5.4 of the interface advises for public
	// networks. http is accepted for a host on a private network: a loopback,
	// private or link-local address, a name without a dot, or one that ends in
	// .localhost, .local or .internal. [ClientConfig], [CatalogURL] and
	// [ExchangeURL] follow the same rule.
	URL string

	// Header is sent with every request, such as the API key of a provider. It
	// is copied, and never shown. Idempotency-Key and X-Idempotency-Key are
	// refused, because net/http would send a transaction twice. By default only
	// Content-Type and a User-Agent of the package are sent.
	Header http.Header

	// HTTPClient supplies the transport, the cookies and the timeout. It is
	// copied and never changed. Redirects are not followed. The default is a
	// client with a connection pool of its own: a clone of
	// [http.DefaultTransport] that keeps up to 100 idle connections to the node
	// instead of 2. So share one RPC, and if you set a transport for a server
	// under load, raise its MaxIdleConnsPerHost.
	HTTPClient *http.Client

	// Timeout bounds each attempt, from the connection to the last byte of the
	// answer. The default is 10 seconds. The context of a call bounds all of
	// its attempts together.
	Timeout time.Duration

	// Retries is how often a read is repeated after a failure that may be
	// temporary: the connection failed, or the answer was HTTP 408, 425, 429 or
	// 5xx, or a JSON-RPC error whose code is -32005 or one of these statuses.
	// The delays are those of [ClientConfig].Retries. The default is 2; -1 means
	// none.
	//
	// A JSON-RPC error with any other code, such as a revert, is final under
	// every HTTP status. The exceptions are -32603 and the server errors, -32000
	// to -32099, under HTTP 429 and 503: they are repeated, because providers
	// report their limits that way.
	Retries int

	// ChainID is the ID of the chain that the node must be on. It is asked for
	// with eth_chainId before the first call and, once it matched, not again. If
	// it differs, or cannot be asked for, every call fails and nothing else is
	// sent; a difference is [ErrWrongChain], with both IDs in its text. Set it
	// wherever money depends on the answers: the URL of a testnet would
	// otherwise confirm transactions that cost nothing. By default any chain is
	// accepted.
	ChainID uint64

	// PollInterval is how long [RPC.WaitReceipt] and [RPC.Confirm] pause
	// between two requests for the same. The default is 1 second.
	PollInterval time.Duration

	// Resend lets [RPC.SendRawTransaction] be retried as reads are. The bytes
	// are signed, nonce included, so a chain executes them once however often
	// they arrive. A refusal then counts only if the node does not have the
	// transaction: "already known" is a success. Off by default.
	Resend bool

	// InsecureHTTP accepts an http URL for any host. Whoever is on the way can
	// then forge what is read, such as the receipt that [RPC.Confirm] believes.
	// Off by default.
	InsecureHTTP bool

	// Logger gets one record for each call: the method, the duration, and the
	// cause of a failure; and one for each retry. A call that succeeded is
	// logged at level Debug. No record holds a credential or the data of a
	// call. By default nothing is logged.
	Logger *slog.Logger

	// Observer is told about every call and every attempt, for metrics and
	// traces. By default nobody is.
	Observer Observer
}

// String returns scheme and host of the URL.
func (c RPCConfig) String() string {
	u, problem := parseURL(c.URL, true)
	if problem != "" {
		return redacted
	}
	return u.Scheme + "://" + u.Host
}

// Format writes what String returns under every verb.
func (c RPCConfig) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalText writes what String returns.
func (c RPCConfig) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue logs what String returns.
func (c RPCConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

// endpoint is where requests go, and what must not be seen of it.
type endpoint struct {
	address string // without user and password, which are in header
	shown   string // scheme and host
	header  http.Header
	secrets *redact.Redactor
}

// newEndpoint returns nil if the URL cannot be used.
func newEndpoint(p *problems, c RPCConfig) *endpoint {
	e := &endpoint{shown: c.String(), header: http.Header{}}
	for name, values := range c.Header {
		switch name := http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
		case "":
			p.add("RPCConfig.Header", "must not have an empty name")
		case "Idempotency-Key", "X-Idempotency-Key":
			// With it net/http itself repeats a request whose answer was lost.
			p.add("RPCConfig.Header", "must not have %s, which would let a transaction be sent twice", name)
		default:
			e.header[name] = append(e.header[name], values...)
		}
	}
	u, problem := parseURL(c.URL, c.InsecureHTTP)
	switch {
	case problem != "":
	case strings.Contains(c.URL, "#"):
		problem = "must not have a fragment"
	case u.User != nil && e.header["Authorization"] != nil:
		problem = "must not have a user beside the Authorization of Header"
	}
	if problem != "" {
		p.add("RPCConfig.URL", "%s", problem)
		return nil
	}
	if u.User != nil {
		user := u.User.Username()
		password, _ := u.User.Password()
		e.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		u.User = nil
	}
	e.address = u.String()
	e.secrets = redact.New(secretsOf(u, e.header)...)

	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": userAgent} {
		if e.header[name] == nil {
			e.header.Set(name, value) // once, not with every request
		}
	}
	return e
}

// secretsOf returns what must not be seen of a request: header values, user and
// password among them; query values; and path segments that are long enough to
// be a key, unlike "data" or "eth-mainnet".
func secretsOf(u *url.URL, header http.Header) []string {
	const minSegment = 16 // characters
	var secrets []string
	for name, values := range header {
		if name != "Content-Type" {
			for _, value := range values {
				secrets = append(secrets, redact.Header(value)...)
			}
		}
	}
	for _, parameter := range strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		_, value, named := strings.Cut(parameter, "=")
		if !named {
			value = parameter
		}
		secrets = append(secrets, value)
	}
	for _, segment := range strings.Split(u.EscapedPath(), "/") {
		if plain, _ := url.PathUnescape(segment); utf8.RuneCountInString(plain) >= minSegment {
			secrets = append(secrets, segment)
		}
	}
	return secrets
}
