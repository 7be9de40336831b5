package ramp

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
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
	// JSON-RPC error whose code is one of these statuses or that of a rate limit
	// (-32005, -32007, -32016, -32029). The backoff is that of [ClientConfig].Retries.
	// The default is 2; -1 means none.
	//
	// A JSON-RPC error with any other code is final under every HTTP status, except
	// under 429, and -32603 and -32000 to -32099 under 503. A revert (3) is always final.
	Retries int

	// Fallback is a second node, which is asked when the first one fails as a node:
	// it cannot be reached, does not answer in time, or answers HTTP 408, 429, 5xx or
	// what is not JSON-RPC. An error of the call is not such a failure. The first
	// node is tried again after 30 seconds. A send goes to one node only. By default
	// there is none.
	Fallback RPCEndpoint

	// ChainID is the ID of the chain that each node must be on. It is checked with
	// eth_chainId before the first call to a node, and again by [RPC.Check],
	// [RPC.WaitReceipt] and [RPC.Confirm]. If the check fails, the call fails and
	// nothing else is sent; a different ID is [ErrWrongChain]. Set ChainID wherever
	// money depends on the answers: otherwise the URL of a testnet would confirm
	// transactions that cost nothing. By default any chain is accepted.
	ChainID uint64

	// BatchSize is the maximum number of calls that [RPC.Batch] puts into one
	// request. If a node takes fewer, Batch finds that out. The default is 100.
	BatchSize int

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

// RPCEndpoint is a node. It prints and logs as the scheme and host of its URL.
type RPCEndpoint struct {
	URL    string      // as [RPCConfig].URL
	Header http.Header // as [RPCConfig].Header; headers of one node are not sent to another
}

// String returns the scheme and host of the URL.
func (e RPCEndpoint) String() string { return RPCConfig{URL: e.URL}.String() }

// Format writes what String returns under every verb.
func (e RPCEndpoint) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// MarshalText writes what String returns.
func (e RPCEndpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// endpoint is where requests go, and which parts of it are secret.
type endpoint struct {
	address string // without user and password, which are in header
	shown   string // scheme and host
	header  http.Header
	secrets []string

	checked atomic.Bool  // it was on the configured chain
	failed  atomic.Int64 // Unix time in nanoseconds when it failed as a node; 0 if it did not
}

// nodeRest is how long a node that failed is asked last.
const nodeRest = 30 * time.Second

// note remembers whether the endpoint failed as a node.
func (e *endpoint) note(now time.Time, err error) {
	if failedAsNode(err) {
		e.failed.Store(now.UnixNano())
	} else {
		e.failed.Store(0)
	}
}

// resting reports whether the endpoint failed a short time ago.
func (e *endpoint) resting(now time.Time) bool {
	return now.Sub(time.Unix(0, e.failed.Load())) < nodeRest
}

// newEndpoint returns nil if the URL is unusable. name is the name of the config in
// errors.
func newEndpoint(p *problems, name string, c RPCEndpoint, insecure bool) *endpoint {
	e := &endpoint{shown: c.String(), header: http.Header{}}
	for key, values := range c.Header {
		switch key := http.CanonicalHeaderKey(strings.TrimSpace(key)); key {
		case "":
			p.add(name+".Header", "must not have an empty name")
		case "Idempotency-Key", "X-Idempotency-Key":
			// With it, net/http resends a request whose answer was lost.
			p.add(name+".Header", "must not have %s, with which a transaction could be sent twice", key)
		default:
			e.header[key] = append(e.header[key], values...)
		}
	}
	u, problem := parseURL(c.URL, insecure)
	switch {
	case strings.HasPrefix(c.URL, "ws://"), strings.HasPrefix(c.URL, "wss://"):
		problem = "must be an https URL; use the node's HTTP address instead of its WebSocket address"
	case problem != "":
	case strings.Contains(c.URL, "#"):
		problem = "must not have a fragment"
	case u.User != nil && e.header["Authorization"] != nil:
		problem = "must not have a user if Header has Authorization"
	}
	if problem != "" {
		p.add(name+".URL", "%s", problem)
		return nil
	}
	e.secrets = secretsOf(u)
	if u.User != nil {
		password, _ := u.User.Password()
		pair := []byte(u.User.Username() + ":" + password)
		e.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString(pair))
		u.User = nil
	}
	e.address = u.String()
	for key, values := range e.header {
		for _, value := range values {
			if key != "Content-Type" {
				e.secrets = append(e.secrets, redact.Header(value)...)
			}
		}
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "User-Agent": userAgent} {
		if e.header[key] == nil {
			e.header.Set(key, value) // once, instead of for every request
		}
	}
	return e
}
