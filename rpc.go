package ramp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// RPC speaks JSON-RPC with a node of the chain (interface 2.8, 4.4). Make one
// with [NewRPC] and share it: it is safe for concurrent use. Its methods are
// named after what they return; [RPC.Call] and [RPC.Batch] reach every other
// method of the node.
//
// Reads are retried after a failure that may be temporary; see
// [RPCConfig].Retries. Sends are not, because nobody could say whether the first
// attempt arrived; see [RPCConfig].Resend. Redirects are not followed.
//
// Errors are an [*RPCError] where the node refused, an [*HTTPError] where the
// answer was not that of a node, [ErrNotFound] where the node knows no such
// block, transaction or receipt, and [ErrWrongChain] where it is on another chain
// than [RPCConfig].ChainID.
//
// No text of an error, log record or String of an RPC shows a secret: the user
// info and the query values of the URL, its path segments of 16 characters or
// more, and the header values. Foreign text that quotes one, in any common
// encoding, is shown with [redacted] in its place. Pieces of fewer than 4 bytes
// are not taken for secrets. Data is for programs and never redacted: see
// [RPCError].Data.
type RPC struct {
	transport *transport
	endpoint  *endpoint // a pointer, so that printing an RPC shows an address at most
	limit     int64
	batch     int
	poll      time.Duration
	resend    bool
	pin       chainPin
	lastID    atomic.Uint64
}

// The limits of an [RPC]: nodes and providers have some of their own, about as
// large.
const (
	mostAnswerBytes = 32 << 20
	mostBatchCalls  = 100 // in one request
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

// NewRPC returns a client for the node at c.URL. The error is an [*InvalidError]
// that lists every field of c that is missing or wrong.
func NewRPC(c RPCConfig) (*RPC, error) {
	var p problems
	r := &RPC{
		endpoint:  newEndpoint(&p, c),
		transport: newTransport(&p, "RPCConfig", transportConfig{c.HTTPClient, c.Timeout, c.Retries, c.Logger, time.Now, c.Observer}),
		limit:     mostAnswerBytes,
		batch:     mostBatchCalls,
		poll:      cmp.Or(c.PollInterval, time.Second),
		resend:    c.Resend,
		pin:       chainPin{id: c.ChainID},
	}
	if c.PollInterval < 0 {
		p.add("RPCConfig.PollInterval", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return r, nil
}

// String returns scheme and host of the node.
func (r *RPC) String() string { return r.endpoint.shown }

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

// Call calls any method of the node with its parameters, and reads the result
// into a pointer as encoding/json does; nil drops the result. For a hex number
// use a [*Quantity], for hex bytes a *hexutil.Bytes. Nothing is sent if into is
// not a pointer, or a nil pointer of some type.
//
// null is [ErrNotFound] for a [*Receipt], a [*Transaction] and a [*Block], an
// error for a *[]Log, and otherwise what encoding/json makes of it. A call is
// repeated only if its method is known to do nothing but read; see [RPC].
func (r *RPC) Call(ctx context.Context, into any, method string, params ...any) error {
	if err := checkInto(into); err != nil {
		return within(method, err)
	}
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, repeatable(method), func() error { return r.once(ctx, into, method, params) })
	r.record(ctx, op, err)
	return err
}

// attempts runs attempt once, or again as long as its failure is transient. The
// chain is checked before, and that may always be repeated.
func (r *RPC) attempts(ctx context.Context, again bool, attempt func() error) error {
	switch {
	case again && r.pin.open():
		return r.transport.retry(ctx, r.afterCheck(ctx, attempt))
	case again:
		return r.transport.retry(ctx, attempt)
	case r.pin.open():
		if err := r.transport.retry(ctx, func() error { return r.checkChain(ctx) }); err != nil {
			return err
		}
	}
	return unmarked(attempt())
}

// repeatable says whether a method only reads. One that is not known may send.
func repeatable(method string) bool {
	switch method {
	case "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_createAccessList",
		"eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee", "eth_feeHistory", "eth_syncing", "eth_accounts":
		return true
	case "eth_getFilterChanges": // hands each change out once
		return false
	default:
		return strings.HasPrefix(method, "eth_get") || strings.HasPrefix(method, "net_") || strings.HasPrefix(method, "web3_")
	}
}

// once makes one attempt. A failure that may pass is marked as transient.
func (r *RPC) once(ctx context.Context, into any, method string, params []any) error {
	ctx, op := r.transport.begin(ctx, OperationAttempt, method)
	err := r.exchange(ctx, into, method, params)
	r.transport.end(ctx, op, unmarked(err))
	return err
}

// exchange sends one request and reads the answer to it.
func (r *RPC) exchange(ctx context.Context, into any, method string, params []any) error {
	id := r.lastID.Add(1)
	a, err := r.post(ctx, newRequest(id, method, params))
	if err != nil {
		return within(method, err)
	}
	e, ok := r.readAnswer(a.body)
	if !ok {
		return within(method, r.failure(a, nil))
	}
	switch {
	case a.status/100 != 2, e.Error == nil && e.Result == nil:
		return within(method, r.failure(a, e.Error))
	case e.ID.form == idAbsent && e.Error != nil: // the node could not read the id
	case e.ID != answerID{idNumber, id}:
		return within(method, errWrongID)
	}
	if e.Error != nil {
		return within(method, r.passing(e.Error, a))
	}
	return within(method, r.read(e.Result, into, params))
}

var errNullResult = errors.New("the result is null")

var errWrongID = errors.New("the answer has the id of another request")

// within says which method failed, and leaves the mark of a transient error
// outermost.
func within(method string, err error) error {
	if err == nil {
		return nil
	}
	if passing, ok := err.(*transient); ok {
		return &transient{error: within(method, passing.error), after: passing.after}
	}
	return fmt.Errorf("ramp: %s: %w", method, err)
}

// request is what goes out (interface 2.8).
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

// envelope is what comes back (interface 2.8). Result is nil where there was
// none, and null where the node said so.
type envelope struct {
	ID     answerID
	Result json.RawMessage
	Error  *RPCError // "error":null is none
}

// readEnvelope takes one answer apart. It reports whether it is an object in
// which no name occurs twice.
func (r *RPC) readEnvelope(x *reader) (e envelope, ok bool) {
	faults := x.faults
	for name := range x.members("jsonrpc", "id", "result", "error") {
		switch name {
		case "id":
			e.ID = readAnswerID(x.raw())
		case "result":
			e.Result = x.raw()
		case "error":
			if x.kind() != 'n' {
				e.Error = readRPCError(x, r.endpoint.secrets)
			}
		}
	}
	return e, x.faults == faults
}

// readAnswer takes the one answer in a body apart.
func (r *RPC) readAnswer(body []byte) (envelope, bool) {
	if !json.Valid(body) {
		return envelope{}, false
	}
	x := newReader(body, "answer")
	return r.readEnvelope(&x)
}

// answerID is the id of an answer. Ours are numbers.
type answerID struct {
	form   idForm
	number uint64
}

type idForm uint8

const (
	idAbsent idForm = iota // or null
	idNumber
	idOther
)

func readAnswerID(b []byte) answerID {
	if string(b) == "null" {
		return answerID{}
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return answerID{form: idOther}
	}
	return answerID{idNumber, n}
}

// post sends a request, or a slice of them, and reads the answer.
func (r *RPC) post(ctx context.Context, message any) (*answer, error) {
	body, err := marshal(message)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be written: %w", err)
	}
	a, err := r.transport.post(ctx, r.endpoint.address, maps.Clone(r.endpoint.header), body, r.limit)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return nil, fmt.Errorf("%w: its limit is %d bytes", err, r.limit)
	case err != nil:
		return nil, &transient{error: r.endpoint.secrets.Error(err)}
	}
	return a, nil
}

// failure is an answer that is no success of HTTP, or not JSON-RPC at all.
func (r *RPC) failure(a *answer, inside *RPCError) error {
	failure := &HTTPError{Status: a.status, RetryAfter: a.retryAfter(r.transport.now()), refused: inside}
	if inside == nil {
		failure.Excerpt = excerpt(r.endpoint.secrets.Beginning(string(a.body), maxExcerptSource))
	}
	if retryable(a.status, inside) {
		return &transient{error: failure, after: failure.RetryAfter}
	}
	return failure
}

// retryable reports whether a call that failed may succeed later. The error of
// the node decides, whatever the HTTP status around it: some nodes send a revert
// inside HTTP 500.
func retryable(status int, refused *RPCError) bool {
	if refused == nil || refused.Code == 0 {
		return retryableStatus(status)
	}
	switch code := refused.Code; {
	case code == rpcLimitExceeded, retryableStatus(int(code)): // proxies repeat the HTTP status there
		return true
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		// Providers have codes of their own for their limits, such as -32007.
		return code.ofServer() || code == RPCInternalError
	default:
		return false
	}
}

func retryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500 && status < 600
	}
}

// passing marks the refusals of a node that may pass: too many requests.
func (r *RPC) passing(refused *RPCError, a *answer) error {
	if retryable(a.status, refused) {
		return &transient{error: refused, after: a.retryAfter(r.transport.now())}
	}
	return refused
}

// checkInto reports whether a result can be read into something, before a call
// is sent whose result would be lost.
func checkInto(into any) error {
	if v := reflect.ValueOf(into); into != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("the result must go into a pointer that is not nil, not into a %T", into)
	}
	return nil
}

// read is readResult, with an error that says what was not found, and on which
// chain.
func (r *RPC) read(raw json.RawMessage, into any, params []any) error {
	err := readResult(raw, into, r.endpoint.secrets)
	if err != ErrNotFound {
		return err
	}
	if r.pin.id != 0 {
		err = fmt.Errorf("%w (chain ID %d)", err, r.pin.id)
	} else {
		err = fmt.Errorf("%w; if it should exist, the node may be on another network, which RPCConfig.ChainID would detect", err)
	}
	if len(params) > 0 {
		switch subject := params[0].(type) { // nothing else is known to be fit for a log
		case common.Hash:
			err = fmt.Errorf("%s: %w", subject, err)
		case BlockRef:
			err = fmt.Errorf("%s: %w", cmp.Or(subject, Latest), err)
		}
	}
	return err
}

// readResult reads a result, which is valid JSON, into a pointer. The error of a
// caller's own type may quote the result, and so is redacted.
func readResult(raw json.RawMessage, into any, secrets *redact.Redactor) error {
	var err error
	switch into := into.(type) {
	case nil:
		return nil
	case *[]Log:
		if string(raw) == "null" {
			return errNullResult // no logs would be []
		}
		x := newReader(raw, "logs") // logs keep none of their bytes
		*into = readList(&x, 1, maxListEntries, (*Log).read)
		err = x.wrong.err()
	case readable:
		switch into.(type) {
		case *Receipt, *Transaction, *Block:
			if string(raw) == "null" {
				return ErrNotFound
			}
		}
		err = readWire(raw, "result", into)
	default:
		err = secrets.Error(json.Unmarshal(raw, into))
	}
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	return nil
}

// record ends one call and logs it. Success is for debugging only: a client that
// waits makes many.
func (r *RPC) record(ctx context.Context, op Operation, err error) {
	took := r.transport.end(ctx, op, err)
	level := slog.LevelDebug
	if err != nil && !errors.Is(err, ErrNotFound) {
		level = slog.LevelError
	}
	if !r.transport.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("method", op.Name), slog.Duration("duration", took)}
	text := "ramp: rpc"
	if err != nil {
		text, attrs = "ramp: rpc failed", append(attrs, slog.Any("error", err))
	}
	r.transport.log.LogAttrs(ctx, level, text, attrs...)
}

// BatchCall is one call of a [RPC.Batch].
type BatchCall struct {
	Method string
	Params []any
	Into   any   // where the result goes, as in [RPC.Call]; a call that has no place for it is not sent
	Err    error // set by Batch: nil if the result was read
}

// Batch makes many calls, up to 100 in one request, and sets the Err of each. It
// returns an error when the node did not answer a request at all, or answered it
// as a whole with an error; calls that were to follow are then not sent, and
// have an Err that says so.
//
// Reads that were turned away because there were too many are repeated alone. A
// request of reads only is repeated as [RPC.Call] is, and cut in halves when it
// or its answer is too large.
func (r *RPC) Batch(ctx context.Context, calls []BatchCall) error {
	ctx, op := r.transport.begin(ctx, OperationRPC, "batch")
	rest := make([]*BatchCall, 0, len(calls))
	for i := range calls {
		call := &calls[i]
		if call.Err = within(call.Method, checkInto(call.Into)); call.Err == nil {
			rest = append(rest, call)
		}
	}
	err := r.parts(ctx, slices.Collect(slices.Chunk(rest, r.batch))...)
	r.record(ctx, op, err)
	return err
}

// parts makes requests one after the other, until one fails.
func (r *RPC) parts(ctx context.Context, parts ...[]*BatchCall) (err error) {
	for _, calls := range parts {
		if err == nil {
			err = r.part(ctx, calls)
			continue
		}
		for _, call := range calls {
			call.Err = fmt.Errorf("ramp: %s: not sent: %w", call.Method, err)
		}
	}
	return err
}

// part makes the calls of one request.
func (r *RPC) part(ctx context.Context, calls []*BatchCall) error {
	reads := !slices.ContainsFunc(calls, func(c *BatchCall) bool { return !repeatable(c.Method) })
	answered := false // the request, perhaps with calls in it that failed
	err := r.attempts(ctx, reads, func() error {
		again, after, err := r.onceBatch(ctx, calls)
		answered = err == nil
		if len(again) == 0 {
			return err
		}
		calls = again
		return &transient{error: calls[0].Err, after: after}
	})
	if answered {
		return nil
	}
	var status *HTTPError
	if large := errors.Is(err, errAnswerTooLarge) ||
		errors.As(err, &status) && status.Status == http.StatusRequestEntityTooLarge; large && reads && len(calls) > 1 {
		half := len(calls) / 2
		return r.parts(ctx, calls[:half], calls[half:])
	}
	for _, call := range calls {
		call.Err = err
	}
	return err
}

// onceBatch makes one attempt. It returns the calls that were turned away and
// may be repeated, with how long to wait before that at least.
func (r *RPC) onceBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	ctx, op := r.transport.begin(ctx, OperationAttempt, "batch")
	again, after, err := r.exchangeBatch(ctx, calls)
	r.transport.end(ctx, op, unmarked(err))
	return again, after, err
}

// exchangeBatch sends one request and reads the answers to it.
func (r *RPC) exchangeBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	requests := make([]request, len(calls))
	first := r.lastID.Add(uint64(len(calls))) - uint64(len(calls)) + 1
	for i, call := range calls {
		requests[i] = newRequest(first+uint64(i), call.Method, call.Params)
		call.Err = errNoAnswer
	}
	a, err := r.post(ctx, requests)
	if err != nil {
		return nil, 0, within("batch", err)
	}
	if a.status/100 != 2 || !json.Valid(a.body) {
		return nil, 0, within("batch", r.wholeFailure(a))
	}
	x := newReader(a.body, "answer")
	if x.kind() != '[' {
		return nil, 0, within("batch", r.wholeFailure(a))
	}
	var again []*BatchCall
	answered := make([]bool, len(calls))
	for range x.elements(maxListEntries) {
		e, ok := r.readEnvelope(&x)
		at := e.ID.number - first // wraps round below first, far out of range
		if !ok || at >= uint64(len(calls)) {
			continue // nobody's, and who waits for it keeps errNoAnswer
		}
		call := calls[at]
		if answered[at] {
			call.Err = fmt.Errorf("ramp: %s: the call was answered twice", call.Method)
			continue
		}
		answered[at] = true
		switch {
		case e.Error != nil:
			call.Err = within(call.Method, e.Error)
			if _, ok := r.passing(e.Error, a).(*transient); ok {
				again = append(again, call)
			}
		case e.Result != nil:
			call.Err = within(call.Method, r.read(e.Result, call.Into, call.Params))
		}
	}
	for _, call := range calls {
		if call.Err == errNoAnswer {
			call.Err = within(call.Method, errNoAnswer)
		}
	}
	return again, a.retryAfter(r.transport.now()), nil
}

var errNoAnswer = errors.New("the batch came back without an answer to this call")

// wholeFailure is the one answer to a whole batch.
func (r *RPC) wholeFailure(a *answer) error {
	e, ok := r.readAnswer(a.body)
	switch {
	case !ok:
		return r.failure(a, nil)
	case e.Error == nil, a.status/100 != 2:
		return r.failure(a, e.Error)
	default:
		return r.passing(e.Error, a)
	}
}
