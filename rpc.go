package ramp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// RPC is a JSON-RPC client for a node of the chain (interface 2.8, 4.4). Make one with
// [NewRPC] and share it: it is safe for concurrent use. Methods that read are named after
// what they return, such as [RPC.Balance]. [RPC.Call] and [RPC.Batch] call any other
// method of the node.
//
// Reads are retried after a failure that may be temporary; see [RPCConfig].Retries.
// Sends are not, because the first attempt may have arrived. Redirects are not
// followed.
//
// An error is an [*RPCError] if the node rejected the call, or an [*HTTPError] if
// the answer is not that of a node. It wraps [ErrNotFound] if the node does not
// know the block, transaction or receipt, and [ErrWrongChain] if the node is not on
// the chain of [RPCConfig].ChainID.
//
// No error text, log record or String of an RPC shows a secret of at least 4 bytes: the
// user, the password and the query values of the URL, its path segments of 16 characters
// or more, and the header values. In foreign text, they are replaced by [redacted]; only
// [RPCError].Data is unchanged.
type RPC struct {
	watch
	http      *transport.Transport
	endpoints []*endpoint // pointers, so that printing an RPC shows at most addresses
	secrets   *redact.Redactor
	limit     int64
	batch     atomic.Int64 // calls in one request
	poll      time.Duration
	chainID   uint64 // 0 accepts any chain
	lastID    atomic.Uint64
}

// The limits of an [RPC], about as large as those of nodes and providers.
const (
	maxAnswerBytes = 32 << 20
	maxBatchCalls  = 100 // in one request
)

// NewRPC returns a client for the node at c.URL.
func NewRPC(c RPCConfig) (*RPC, error) {
	var p problems
	r := &RPC{
		endpoints: []*endpoint{newEndpoint(&p, "RPCConfig.", c.URL, c.Header, c.InsecureHTTP)},
		watch:     watch{c.Observer, time.Now},
		http: transport.New(c.HTTPClient, transport.Transport{
			Timeout: c.Timeout, Retries: c.Retries, Log: c.Logger,
		}, p.of("RPCConfig")),
		limit:   maxAnswerBytes,
		poll:    cmp.Or(c.PollInterval, time.Second),
		chainID: c.ChainID,
	}
	if c.FallbackURL != "" || c.FallbackHeader != nil {
		fallback := newEndpoint(&p, "RPCConfig.Fallback", c.FallbackURL, c.FallbackHeader, c.InsecureHTTP)
		r.endpoints = append(r.endpoints, fallback)
	}
	r.batch.Store(int64(cmp.Or(c.BatchSize, maxBatchCalls)))
	if c.PollInterval < 0 {
		p.add("RPCConfig.PollInterval", "must not be negative")
	}
	if c.BatchSize < 0 {
		p.add("RPCConfig.BatchSize", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	var secrets []string
	for _, e := range r.endpoints { // each may quote the other
		secrets = append(secrets, e.target().secrets...)
	}
	r.secrets = redact.New(secrets...)
	return r, nil
}

// made returns an error for a client that NewRPC has not made, such as new(RPC).
func (r *RPC) made() error {
	if r.http == nil {
		return errors.New("ramp: the RPC was not made by NewRPC")
	}
	return nil
}

// String returns the scheme and host of the node.
func (r *RPC) String() string {
	if r.http == nil {
		return ""
	}
	return r.endpoints[0].shown
}

// Call calls any method of the node, and decodes the result into a non-nil pointer as
// encoding/json does; if into is nil, it is dropped. Use a [*Quantity] for a hex number
// and a *hexutil.Bytes for hex bytes. A null result is [ErrNotFound] for a [*Receipt], a
// [*Transaction] or a [*Block], and an error for a *[]Log. A call is retried only if its
// method is known to be a read.
func (r *RPC) Call(ctx context.Context, into any, method string, params ...any) error {
	if err := r.made(); err != nil {
		return err
	}
	if err := checkInto(into); err != nil {
		return withMethod(method, err)
	}
	ctx, op := r.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, method, repeatable(method), func(ctx context.Context, e *endpoint) error {
		return r.exchange(ctx, e, into, method, params)
	})
	r.record(ctx, op, err)
	return err
}

// exchange is one request to an endpoint and its answer. Errors that may pass are
// marked retryable.
type exchange func(ctx context.Context, e *endpoint) error

// attempts makes an exchange once, or if again is true until its failure is not
// retryable. The chain is checked first; that is always retried.
func (r *RPC) attempts(ctx context.Context, name string, again bool, do exchange) error {
	if again {
		return r.http.Retry(ctx, func() error { return r.ask(ctx, name, do) })
	}
	var chosen *endpoint
	if err := r.http.Retry(ctx, func() error {
		return r.askInOrder(ctx, func(e *endpoint) error {
			chosen = e
			return r.checkChain(ctx, e)
		})
	}); err != nil {
		return err
	}
	err := r.attempt(ctx, chosen, name, r.http.Timeout, do)
	if ctx.Err() == nil {
		chosen.note(r.now(), err)
	}
	return transport.Unmarked(err)
}

// ask makes an exchange with the first endpoint that works and is on the chain.
func (r *RPC) ask(ctx context.Context, name string, do exchange) error {
	return r.askInOrder(ctx, func(e *endpoint) error {
		if err := r.checkChain(ctx, e); err != nil {
			return err
		}
		return r.attempt(ctx, e, name, r.http.Timeout, do)
	})
}

// askInOrder calls try with the first endpoint, and with the fallback if that failed
// as a node. If it failed a short time ago, it is asked last.
func (r *RPC) askInOrder(ctx context.Context, try func(*endpoint) error) (err error) {
	order := r.endpoints
	if len(order) > 1 && order[0].resting(r.now()) {
		order = []*endpoint{order[1], order[0]}
	}
	for n, e := range order {
		if err = try(e); ctx.Err() != nil { // nothing is known about the node
			break
		}
		if e.note(r.now(), err); !failedAsNode(err) {
			break
		}
		if n < len(order)-1 {
			r.http.Log.LogAttrs(ctx, slog.LevelWarn, "ramp: asking the other node",
				slog.String("failed", e.shown), slog.Any("error", transport.Unmarked(err)))
		}
	}
	return err
}

// attempt makes an exchange in limited time.
func (r *RPC) attempt(ctx context.Context, e *endpoint, name string, timeout time.Duration,
	do exchange) error {
	ctx, op := r.begin(ctx, OperationAttempt, name)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := do(limited, e)
	r.http.Leave(err)
	r.end(ctx, op, transport.Unmarked(err))
	return err
}

// Check returns an error for each configured node that cannot be reached, and
// [ErrWrongChain] for one that is not on the chain of [RPCConfig].ChainID.
func (r *RPC) Check(ctx context.Context) error {
	if err := r.made(); err != nil {
		return err
	}
	ctx, op := r.begin(ctx, OperationRPC, "check")
	var found []error
	for _, e := range r.endpoints {
		if err := r.http.Retry(ctx, func() error { return r.askChain(ctx, e) }); err != nil {
			found = append(found, redact.Bounded(fmt.Errorf("ramp: check %s: %w", e.shown, err)))
		}
	}
	err := errors.Join(found...)
	r.record(ctx, op, err)
	return err
}

// RequiredChainID returns [RPCConfig].ChainID, which is 0 if any chain is accepted.
func (r *RPC) RequiredChainID() uint64 { return r.chainID }

// checkChain returns nil if an endpoint is on the configured chain, or none is
// configured. It asks until one check has succeeded.
func (r *RPC) checkChain(ctx context.Context, e *endpoint) error {
	if r.chainID == 0 || e.checked.Load() {
		return nil
	}
	return r.askChain(ctx, e)
}

func (r *RPC) askChain(ctx context.Context, e *endpoint) error {
	const method = "eth_chainId"
	var id Quantity
	err := r.attempt(ctx, e, method, r.http.Timeout, func(ctx context.Context, e *endpoint) error {
		return r.exchange(ctx, e, &id, method, nil)
	})
	if err == nil {
		err = withMethod(method, r.compareChain(id))
	}
	e.checked.Store(err == nil)
	return err
}

// compareChain compares the chain ID of a node with the configured one.
func (r *RPC) compareChain(id Quantity) error {
	switch actual := id.Big(); {
	case actual == nil:
		return errNullResult
	case r.chainID != 0 && actual.Cmp(new(big.Int).SetUint64(r.chainID)) != 0:
		return fmt.Errorf("%w: its chain ID is %s, but RPCConfig.ChainID is %d", ErrWrongChain,
			actual, r.chainID)
	}
	return nil
}

// repeatable reports whether a method only reads. Unknown methods may send.
func repeatable(method string) bool {
	switch method {
	case "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_createAccessList",
		"eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee", "eth_feeHistory",
		"eth_syncing", "eth_accounts":
		return true
	case "eth_getFilterChanges": // returns each change only once
		return false
	default:
		return strings.HasPrefix(method, "eth_get") || strings.HasPrefix(method, "net_") ||
			strings.HasPrefix(method, "web3_")
	}
}

// exchange sends one request to an endpoint and reads its answer.
func (r *RPC) exchange(ctx context.Context, e *endpoint, into any, method string, params []any) error {
	id := r.lastID.Add(1)
	a, err := r.post(ctx, e, newRequest(id, method, params))
	if err != nil {
		return withMethod(method, err)
	}
	x, ok := r.readAnswer(a.Body)
	if !ok {
		return withMethod(method, r.failure(a, nil))
	}
	switch {
	case a.Status/100 != 2, x.failure.err == nil && x.result == nil:
		return withMethod(method, r.failure(a, x.failure.err))
	case x.id.Absent() && x.failure.err != nil: // the node could not read the id
	case !bytes.Equal(x.id, strconv.AppendUint(make([]byte, 0, 20), id, 10)):
		return withMethod(method, errWrongID)
	}
	if x.failure.err != nil {
		return withMethod(method, r.mark(x.failure.err, x.failure.err, a))
	}
	return withMethod(method, r.read(x.result, into, params))
}

// post sends a request, or a slice of them, and reads the answer.
func (r *RPC) post(ctx context.Context, e *endpoint, message any) (*transport.Answer, error) {
	body, err := wire.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the parameters: %w", err)
	}
	to := e.target()
	a, err := r.http.Post(ctx, to.address, maps.Clone(to.header), body, r.limit)
	switch {
	case errors.Is(err, transport.ErrTooLarge):
		return nil, fmt.Errorf("%w: the limit is %d bytes", ErrAnswerTooLarge, r.limit)
	case err != nil:
		return nil, &transport.Retryable{Err: r.secrets.Error(err)}
	}
	return a, nil
}

// checkInto checks that a result can be stored in into, before a call whose result
// would be lost.
func checkInto(into any) error {
	if v := reflect.ValueOf(into); into != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("the result must go into a non-nil pointer, not a %T", into)
	}
	return nil
}

// record ends and logs one call. Success is logged at level Debug, because a client
// that waits makes many calls.
func (r *RPC) record(ctx context.Context, op Operation, err error) {
	took := r.end(ctx, op, err)
	level := slog.LevelDebug
	if err != nil && !errors.Is(err, ErrNotFound) {
		level = slog.LevelError
	}
	if !r.http.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("method", op.Name), slog.Duration("duration", took)}
	text := "ramp: rpc"
	if err != nil {
		text, attrs = "ramp: rpc failed", append(attrs, slog.Any("error", err))
	}
	r.http.Log.LogAttrs(ctx, level, text, attrs...)
}

// request is a JSON-RPC request (interface 2.8).
type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func newRequest(id uint64, method string, params []any) request {
	if params == nil {
		params = []any{}
	}
	return request{Version: "2.0", ID: id, Method: method, Params: params}
}

// envelope is a JSON-RPC answer (interface 2.8).
type envelope struct {
	version, id wire.Unread
	result      wire.Unread // nil if it is missing, null if the node sent null
	failure     rpcFailure
}

// readEnvelope reads one answer. ok is false unless it is an object without
// duplicate names.
func (r *RPC) readEnvelope(x *wire.Reader) (e *envelope, ok bool) {
	faults := x.Faults()
	e = &envelope{failure: rpcFailure{secrets: r.secrets}}
	x.Members("jsonrpc", &e.version, "id", &e.id, "result", &e.result, "error", &e.failure)
	return e, x.Faults() == faults
}

// readAnswer reads a body that is one answer.
func (r *RPC) readAnswer(body []byte) (e *envelope, ok bool) {
	x := newReader(body, "answer")
	if e, ok = r.readEnvelope(&x); !x.Whole() {
		return new(envelope), false
	}
	return e, ok
}

// read calls readResult, and adds to [ErrNotFound] what was not found and on which
// chain.
func (r *RPC) read(raw []byte, into any, params []any) error {
	err := readResult(raw, into, r.secrets)
	if err != ErrNotFound {
		return err
	}
	if r.chainID != 0 {
		err = fmt.Errorf("%w (chain ID %d)", err, r.chainID)
	} else {
		err = fmt.Errorf("%w; if it should exist, the node may be on another network: "+
			"set RPCConfig.ChainID to detect that", err)
	}
	if len(params) > 0 {
		switch subject := params[0].(type) { // other types may not be fit for a log
		case common.Hash:
			err = fmt.Errorf("%s: %w", subject, err)
		case BlockRef:
			err = fmt.Errorf("%s: %w", cmp.Or(subject, Latest), err)
		}
	}
	return err
}

// failure returns the error of an answer without HTTP success or JSON-RPC.
func (r *RPC) failure(a *transport.Answer, inside *RPCError) error {
	failure := &HTTPError{Status: a.Status, RetryAfter: a.RetryAfter(r.now()), inside: inside}
	if inside == nil {
		failure.Excerpt = r.secrets.Line(string(a.Body[:min(len(a.Body), maxMessage)]), redact.MaxExcerpt)
		encoding := a.Header.Get("Content-Encoding")
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			failure.encoding = r.secrets.Line(encoding, maxEncoding)
		}
	}
	return r.mark(failure, inside, a)
}

const maxEncoding = 20 // bytes that are shown

// mark marks the error of an answer, which holds the node's, if it is retryable, such as
// a rate limit.
func (r *RPC) mark(err error, inside *RPCError, a *transport.Answer) error {
	if isRetryable(a.Status, inside) {
		return &transport.Retryable{Err: err, After: a.RetryAfter(r.now()),
			Answered: inside != nil || a.Status == http.StatusTooManyRequests}
	}
	return err
}

// readResult decodes a result, which is valid JSON, into a pointer. The error of a
// caller's type may quote the result, and so is redacted.
func readResult(raw []byte, into any, secrets *redact.Redactor) error {
	var err error
	switch into := into.(type) {
	case nil:
		return nil
	case *[]Log:
		if string(raw) == "null" {
			return errNullResult // no logs are []
		}
		x := wire.NewOfNode(raw, "logs", readValue) // logs keep none of their bytes
		*into = wire.ReadList(&x, 1, wire.MaxListEntries, (*Log).read)
		err = wrongFields(x.Wrong).err()
	case *Receipt, *Transaction, *Block:
		if string(raw) == "null" {
			return ErrNotFound
		}
		err = readOfNode(raw, "result", into.(readable))
	case readable:
		err = readWire(raw, "result", into)
	default:
		err = secrets.Error(json.Unmarshal(raw, into))
	}
	if err != nil {
		return fmt.Errorf("cannot decode the result: %w", err)
	}
	return nil
}

var errNullResult = errors.New("the result is null")

var errWrongID = errors.New("the answer has the id of another request")

// RPCConfig configures an [RPC]; zero fields mean their defaults. A
// config prints and logs as the scheme and host of its URL, except in an unexported
// field, where fmt cannot call its methods.
type RPCConfig struct {
	// URL is the {rpc_mainnet_url} or {rpc_testnet_url} of the interface. It may have credentials, a path
	// and a query, which are not shown: see [RPC]. It must be https (interface 5.4), except for a host on
	// a private network: a loopback, private or link-local address, a name without a dot, or one that
	// ends in .localhost, .local or .internal. Required.
	URL string

	// Header is sent with every request, for example with an API key. It is copied and never shown.
	// Three headers are rejected. With Idempotency-Key or X-Idempotency-Key, net/http would send
	// requests again by itself. With Accept-Encoding, it would leave answers compressed.
	Header http.Header

	// HTTPClient and its default are as in [ClientConfig]. So share one RPC.
	HTTPClient *http.Client
	Timeout    time.Duration // limits each attempt, as in [ClientConfig]; 10 seconds by default

	// Retries is how often a read is retried, with the backoff of [ClientConfig]. The default is 2; -1
	// means none. It is retried after:
	//
	//	a failed connection
	//	HTTP 408, 425, 429 or 5xx, if the answer is no JSON-RPC error
	//	JSON-RPC error 408, 425, 429 or 5xx, or a rate limit: -32005, -32007, -32016 or -32029
	//	HTTP 429 with any JSON-RPC error except a revert (code 3)
	//	HTTP 503 with JSON-RPC error -32603, or -32000 to -32099
	//
	// Every other JSON-RPC error is final.
	Retries int

	// FallbackURL is a second node. By default there is none. It is asked if the first node:
	//
	//   - cannot be reached or does not answer in time
	//   - gives an answer that is not JSON-RPC
	//   - answers HTTP 408, 425, 429 or 5xx, unless the answer has a final JSON-RPC error (see Retries)
	//
	// For the next 30 seconds, the second node is asked first. A send goes to one node only.
	FallbackURL    string
	FallbackHeader http.Header // sent to the second node, in place of Header

	// ChainID is the chain that each node must be on, or calls fail with [ErrWrongChain]. It is
	// checked with eth_chainId before the first call to a node, and again by [RPC.Check],
	// [RPC.WaitReceipt] and [RPC.WaitTransaction]. Set it wherever money depends on the answers:
	// otherwise a testnet would confirm transactions that cost nothing. By default any chain is
	// accepted.
	ChainID      uint64
	BatchSize    int           // how many calls [RPC.Batch] puts into one request; 100 by default
	PollInterval time.Duration // of [RPC.WaitReceipt] and [RPC.WaitTransaction]; 1 second by default
	InsecureHTTP bool          // accepts http for any host: anyone on the path can then forge receipts

	// Logger gets one record per call with the method, the duration and the cause of a failure, and
	// one per retry; if a call succeeds, at level Debug. By default nothing is logged.
	Logger   *slog.Logger
	Observer Observer // observes every call and every attempt
}

// String returns the scheme and host of the URL.
func (c RPCConfig) String() string { return transport.Shown(c.URL) }

// Format writes what String returns under every verb but %p.
func (c RPCConfig) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalText writes what String returns.
func (c RPCConfig) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// endpoint is where requests go, and which parts of it are secret.
type endpoint struct {
	shown  string        // scheme and host
	target func() target // a function, because a failed assertion prints hidden fields

	checked atomic.Bool  // it was on the configured chain
	failed  atomic.Int64 // Unix time in nanoseconds when it failed as a node; 0 if it did not
}

// target is where requests go, and with what.
type target struct {
	address string // without user and password, which are in header
	header  http.Header
	secrets []string
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

// newEndpoint returns nil if the URL is unusable. Before the names of the fields, errors
// have the prefix.
func newEndpoint(p *problems, prefix, address string, header http.Header, insecure bool) *endpoint {
	to := target{header: http.Header{}}
	for key, values := range header {
		switch key := http.CanonicalHeaderKey(strings.TrimSpace(key)); key {
		case "":
			p.add(prefix+"Header", "must not have an empty name")
		case "Accept-Encoding":
			p.add(prefix+"Header", "must not have Accept-Encoding: net/http would not decompress the answers")
		case "Idempotency-Key", "X-Idempotency-Key":
			// With it, net/http resends a request whose answer was lost.
			p.add(prefix+"Header", "must not have %s, with which a transaction could be sent twice", key)
		default:
			to.header[key] = append(to.header[key], values...)
		}
	}
	u, problem := transport.ParseURL(address, insecure)
	switch {
	case strings.HasPrefix(address, "ws://"), strings.HasPrefix(address, "wss://"):
		problem = "must be an https URL; use the node's HTTP address instead of its WebSocket address"
	case problem != "":
	case strings.Contains(address, "#"):
		problem = "must not have a fragment"
	case u.User != nil && to.header["Authorization"] != nil:
		problem = "must not have a user if Header has Authorization"
	}
	if problem != "" {
		p.add(prefix+"URL", "%s", problem)
		return nil
	}
	to.secrets = transport.Secrets(u)
	if u.User != nil {
		password, _ := u.User.Password()
		pair := []byte(u.User.Username() + ":" + password)
		to.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString(pair))
		u.User = nil
	}
	to.address = u.String()
	for key, values := range to.header {
		for _, value := range values {
			if key != "Content-Type" {
				to.secrets = append(to.secrets, redact.Header(value)...)
			}
		}
	}
	for key, value := range map[string]string{"Content-Type": "application/json",
		"User-Agent": transport.UserAgent} {
		if to.header[key] == nil {
			to.header.Set(key, value) // once, instead of for every request
		}
	}
	return &endpoint{shown: RPCConfig{URL: address}.String(), target: func() target { return to }}
}

// BlockNumber returns the number of the most recent block: eth_blockNumber.
func (r *RPC) BlockNumber(ctx context.Context) (uint64, error) {
	return r.callUint64(ctx, "eth_blockNumber")
}

// ChainID returns the chain ID for which transactions are signed: eth_chainId.
func (r *RPC) ChainID(ctx context.Context) (*big.Int, error) {
	return r.callBig(ctx, "eth_chainId")
}

// networkID is a text; some nodes send a number.
type networkID string

func (n *networkID) read(x *wire.Reader) { *n = networkID(x.Loose()) }

// NetVersion returns the network ID, usually a decimal number: net_version.
func (r *RPC) NetVersion(ctx context.Context) (string, error) {
	var id networkID
	err := r.Call(ctx, &id, "net_version")
	if err == nil && id == "" {
		err = errors.New("ramp: net_version: the result is neither a string nor a number")
	}
	return string(id), err
}

// Balance returns the balance of an address in wei: eth_getBalance.
func (r *RPC) Balance(ctx context.Context, address common.Address, at BlockRef) (*big.Int, error) {
	return r.callBig(ctx, "eth_getBalance", address, at)
}

// TransactionCount returns the number of transactions from an address, which is its
// next nonce: eth_getTransactionCount.
func (r *RPC) TransactionCount(ctx context.Context, address common.Address, at BlockRef) (uint64, error) {
	return r.callUint64(ctx, "eth_getTransactionCount", address, at)
}

// BlockByNumber returns a block, with its transactions if full, and otherwise with
// their hashes only: eth_getBlockByNumber. See [ErrNotFound].
func (r *RPC) BlockByNumber(ctx context.Context, at BlockRef, full bool) (*Block, error) {
	return fetch[Block](ctx, r, "eth_getBlockByNumber", at, full)
}

// BlockByHash is like [RPC.BlockByNumber] with a hash: eth_getBlockByHash.
func (r *RPC) BlockByHash(ctx context.Context, hash common.Hash, full bool) (*Block, error) {
	return fetch[Block](ctx, r, "eth_getBlockByHash", hash, full)
}

// Transaction returns a transaction, whether or not it is in a block:
// eth_getTransactionByHash. See [ErrNotFound].
func (r *RPC) Transaction(ctx context.Context, hash common.Hash) (*Transaction, error) {
	return fetch[Transaction](ctx, r, "eth_getTransactionByHash", hash)
}

// Receipt returns the outcome of a transaction: eth_getTransactionReceipt. The error is
// [ErrNotFound] until it is in a block; see [RPC.WaitReceipt].
func (r *RPC) Receipt(ctx context.Context, hash common.Hash) (*Receipt, error) {
	return fetch[Receipt](ctx, r, "eth_getTransactionReceipt", hash)
}

// SendRawTransaction submits a signed transaction and returns its hash from the
// node: eth_sendRawTransaction. It is never retried. After any error but [ErrWrongChain],
// the transaction may have arrived: also after an [*RPCError], such as "already known",
// "nonce too low", or the timeout of a sequencer. So compute the hash yourself, and check
// with [RPC.Transaction] before you sign another.
func (r *RPC) SendRawTransaction(ctx context.Context, raw []byte) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
	return hash, err
}

// SendTransaction makes the node sign and submit a transaction from one of its own
// accounts: eth_sendTransaction. Errors are as in [RPC.SendRawTransaction].
func (r *RPC) SendTransaction(ctx context.Context, t TransactionRequest) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendTransaction", t)
	return hash, err
}

// CallContract calls a function of a contract without a transaction, and returns
// its result: eth_call. A revert is an [*RPCError].
func (r *RPC) CallContract(ctx context.Context, t TransactionRequest, at BlockRef) ([]byte, error) {
	var returned hexutil.Bytes
	err := r.Call(ctx, &returned, "eth_call", t, at)
	return returned, err
}

// EstimateGas returns how much gas a transaction would need on top of a block:
// eth_estimateGas. If the contract would revert, the error is an
// [*RPCError].
func (r *RPC) EstimateGas(ctx context.Context, t TransactionRequest, at BlockRef) (uint64, error) {
	return r.callUint64(ctx, "eth_estimateGas", t, at)
}

// fetch calls a method whose result may be null.
func fetch[T Block | Transaction | Receipt](ctx context.Context, r *RPC, method string,
	params ...any) (*T, error) {
	result := new(T)
	if err := r.Call(ctx, result, method, params...); err != nil {
		return nil, err
	}
	return result, nil
}

func (r *RPC) callBig(ctx context.Context, method string, params ...any) (*big.Int, error) {
	q, err := r.requireQuantity(ctx, method, params)
	return q.Big(), err
}

func (r *RPC) callUint64(ctx context.Context, method string, params ...any) (uint64, error) {
	q, err := r.requireQuantity(ctx, method, params)
	if err != nil {
		return 0, err
	}
	n, err := q.Uint64()
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: the result needs more than 64 bits", method)
	}
	return n, nil
}

func (r *RPC) requireQuantity(ctx context.Context, method string, params []any) (q Quantity, err error) {
	err = r.Call(ctx, &q, method, params...)
	if err == nil && !q.Present() {
		err = withMethod(method, errNullResult)
	}
	return q, err
}
