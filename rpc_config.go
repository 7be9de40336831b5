package ramp

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// RPCConfig configures an [RPC]. URL is required. Every other field may be zero,
// which means its default. URL and Header can hold credentials, so a config prints
// and logs as the scheme and host of its URL. Do not print a config that is in an
// unexported field: fmt cannot call its methods there.
type RPCConfig struct {
	// URL is the address of the node, the {rpc_mainnet_url} or {rpc_testnet_url} of
	// the interface. It may have a user and password, a path and a query, which may
	// hold the key of a provider. The package never shows them; see [RPC] for
	// redaction. Required.
	//
	// The URL must be https, as section 5.4 of the interface advises for public
	// networks. http is accepted for a host on a private network: a loopback,
	// private or link-local address, a name without a dot, or one that ends in
	// .localhost, .local or .internal. [ClientConfig], [CatalogURL] and
	// [ExchangeURL] follow the same rule.
	URL string

	// Header is sent with every request, for example with the API key of a
	// provider. It is copied and never shown. Idempotency-Key and X-Idempotency-Key
	// are rejected, because they make net/http resend requests, and a transaction
	// must not be sent twice. By default only Content-Type and a User-Agent are
	// sent.
	Header http.Header

	// HTTPClient supplies the transport, the cookies and the timeout. It is copied
	// and not modified. The default is as for [ClientConfig].HTTPClient: a client
	// with its own pool of up to 100 idle connections. So share one RPC.
	HTTPClient *http.Client

	// Timeout limits each attempt, as in [ClientConfig]. The default is 10 seconds.
	Timeout time.Duration

	// Retries is how often a read is retried after a failure that may be temporary:
	// the connection failed, or the answer was HTTP 408, 425, 429 or 5xx, or a
	// JSON-RPC error whose code is -32005 or one of these statuses. The backoff is
	// that of [ClientConfig].Retries. The default is 2; -1 means none.
	//
	// A JSON-RPC error with any other code, such as a revert, is final under every
	// HTTP status. The exceptions are -32603 and -32000 to -32099 under HTTP 429
	// and 503: they are retried, because providers report rate limits that way.
	Retries int

	// ChainID is the ID of the chain that the node must be on. It is checked with
	// eth_chainId before the first call, and not again once it matched. If the
	// check fails, every call fails and nothing else is sent; a different ID is
	// [ErrWrongChain]. Set ChainID wherever money depends on the answers: otherwise
	// the URL of a testnet would confirm transactions that cost nothing. By default
	// any chain is accepted.
	ChainID uint64

	// PollInterval is how long [RPC.WaitReceipt] and [RPC.Confirm] wait between
	// polls. The default is 1 second.
	PollInterval time.Duration

	// InsecureHTTP accepts an http URL for any host. Anyone on the network path can
	// then forge answers, such as the receipt that [RPC.Confirm] trusts. Off by
	// default.
	InsecureHTTP bool

	// Logger gets one record per call with the method, the duration and the cause
	// of a failure, and one per retry. A successful call is logged at level Debug.
	// No record holds a credential or the data of a call. By default nothing is
	// logged.
	Logger *slog.Logger

	// Observer observes every call and every attempt, for metrics and traces. By
	// default nothing is observed.
	Observer Observer
}

// String returns the scheme and host of the URL.
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

// endpoint is where requests go, and which parts of it are secret.
type endpoint struct {
	address string // without user and password, which are in header
	shown   string // scheme and host
	header  http.Header
	secrets *redact.Redactor
}

// newEndpoint returns nil if the URL is unusable.
func newEndpoint(p *problems, c RPCConfig) *endpoint {
	e := &endpoint{shown: c.String(), header: http.Header{}}
	for name, values := range c.Header {
		switch name := http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
		case "":
			p.add("RPCConfig.Header", "must not have an empty name")
		case "Idempotency-Key", "X-Idempotency-Key":
			// With it, net/http resends a request whose answer was lost.
			p.add("RPCConfig.Header", "must not have %s, with which a transaction could be sent twice", name)
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
		problem = "must not have a user if Header has Authorization"
	}
	if problem != "" {
		p.add("RPCConfig.URL", "%s", problem)
		return nil
	}
	secrets := secretsOf(u)
	if u.User != nil {
		password, _ := u.User.Password()
		e.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		u.User = nil
	}
	e.address = u.String()
	for name, values := range e.header {
		for _, value := range values {
			if name != "Content-Type" {
				secrets = append(secrets, redact.Header(value)...)
			}
		}
	}
	e.secrets = redact.New(secrets...)
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": userAgent} {
		if e.header[name] == nil {
			e.header.Set(name, value) // once, instead of for every request
		}
	}
	return e
}
