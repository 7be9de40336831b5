package ramp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/typed"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// Sentinels, for [errors.Is]; docs/security.md says what errors show. A [Handler] rejects
// a call with [ErrHMACMissing] or [ErrHMACInvalid]. If the service reports one of four
// failures, a [Client] returns it: [ErrHMACMissing], [ErrHMACInvalid],
// [ErrUnknownProject] or [ErrUnknownNetwork].
var (
	// ErrHMACMissing means that a call has no X-HMAC-SIGNATURE header (interface 7.1, 5.2).
	ErrHMACMissing = errors.New("X-HMAC-SIGNATURE is missing")
	// ErrHMACInvalid means that this header does not match the body and the key (interface 7.1,
	// "invalid mac").
	ErrHMACInvalid = errors.New("X-HMAC-SIGNATURE is not valid")
	// ErrHMACKey means that an HMAC key is empty, blank, or not in the expected encoding.
	ErrHMACKey = errors.New("HMAC key is unusable")
	// ErrUnknownProject means that the project is missing, or that the service does not know it
	// (interface 7.1: "ramp not found").
	ErrUnknownProject = errors.New("the service does not know the project")
	// ErrUnknownNetwork means that the service does not serve the network (interface 7.1: "ramp not exists").
	ErrUnknownNetwork = errors.New("the service does not serve the network")
	// ErrValidatorKey means that a validator key, public key or address is unusable (interface 5.3).
	ErrValidatorKey = errors.New("validator key is unusable")
	// ErrSignature means that bytes are not a signature, or that the expected key did not sign this
	// digest.
	ErrSignature = errors.New("signature is not valid")

	// ErrOrderUnknown means that no order has the UUID. Answer a result for an unknown order with HTTP
	// 500, so that the service delivers it again: if your database is being restored, the order may
	// come back.
	ErrOrderUnknown = errors.New("unknown order")
	// ErrOrderConflict means that a call contradicts the stored order; see [*ConflictError].
	ErrOrderConflict = errors.New("the call contradicts the stored order")
	// ErrOrderForeign means that an order is of another project or network than the call; see [OnlyOf].
	ErrOrderForeign = errors.New("the order is of another project or network")
	// ErrOrderFinished means that an order has ended: it cannot be accepted, nor abandoned if its
	// transaction has succeeded or failed.
	ErrOrderFinished = errors.New("the order is finished")

	// ErrNotFound means that the node answered null: it does not know the block, transaction or
	// receipt (yet). If it never does, it may be on another network; see [RPCConfig].ChainID. Or it has
	// pruned or not indexed it, or a reorganization has removed it: ask another node before you call it
	// invented.
	ErrNotFound = errors.New("the node does not know it (yet)")
	// ErrAnswerTooLarge means that an answer was not read to its end: 1 MiB of initialize, or 32 MiB of
	// a node. Ask for less, such as for the logs of fewer blocks.
	ErrAnswerTooLarge = errors.New("the answer is too large")
	// ErrWrongChain means that the node is not on the chain of [RPCConfig].ChainID.
	ErrWrongChain = errors.New("the node is on another chain")
)

// Must returns value, and panics if err is not nil. It is for what a program cannot start
// without, such as ramp.Must(ramp.NewTerms(config)).
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// InvalidError lists every missing or wrong field of a message or a config. It shows no
// values, with two exceptions: a mistyped text of a config and, from [Terms.Match], what
// was expected and what came.
type InvalidError struct {
	Fields []FieldError // at least one, in the order of the message or config
}

// FieldError describes one wrong field of an [InvalidError].
type FieldError struct {
	// Path names the field as the interface does, with the index of an array element if it is known:
	// "intent.materials[1].icon_url". A config field has its Go name: "HandlerConfig.Store".
	Path    string
	Problem string // completes the sentence that Path begins, such as "is required"

	sentinel error // for errors.Is, or nil
}

// Unwrap returns [ErrHMACKey] and [ErrValidatorKey] for missing keys of a config.
func (e *InvalidError) Unwrap() []error {
	var sentinels []error
	for _, f := range e.Fields {
		if f.sentinel != nil {
			sentinels = append(sentinels, f.sentinel)
		}
	}
	return sentinels
}

// Error describes the first twenty fields.
func (e *InvalidError) Error() string {
	const maxFields = 20
	var problems []string
	for _, f := range e.Fields[:min(maxFields, len(e.Fields))] {
		problems = append(problems, f.Path+" "+f.Problem)
	}
	if more := len(e.Fields) - maxFields; more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return "ramp: " + strings.Join(problems, "; ")
}

// maxProblems bounds the work for a message with thousands of wrong elements.
const maxProblems = 1000

// problems collects the errors of a message or a config.
type problems []FieldError

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// of returns what adds the problem of a field of a config.
func (p *problems) of(config string) func(field, problem string) {
	return func(field, problem string) { p.add(config+"."+field, "%s", problem) }
}

func (p *problems) require(ok bool, path string) {
	if !ok {
		p.add(path, "is required")
	}
}

// requireText rejects text that the versions of encoding/json write differently.
func (p *problems) requireText(text, path string) {
	if !utf8.ValidString(text) {
		p.add(path, "must be valid UTF-8")
	}
}

// requireTyped requires a text that a person has typed, or copied from a console, a file or a
// spreadsheet. What nobody sees in it is no part of it, and is shown escaped.
func (p *problems) requireTyped(text, path string) {
	const most = 100 // that are shown
	p.require(text != "", path)
	if problem := typed.Problem(text); problem != "" && utf8.ValidString(text) {
		p.add(path, "%s, as in %s", problem, strconv.QuoteToASCII(text[:min(most, len(text))]))
	} else {
		p.requireText(text, path)
	}
}

// requireFilled requires text, as requireText does.
func (p *problems) requireFilled(text, path string) {
	p.require(text != "", path)
	p.requireText(text, path)
}

// requireValue requires a value in an interface, such as one that dependency injection supplies: a nil
// pointer in it is what a failed constructor has returned. It reports whether there is one.
func (p *problems) requireValue(value any, path string) bool {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		p.require(false, path)
	case v.Kind() == reflect.Pointer && v.IsNil():
		p.add(path, "must not be a nil %T", value)
	default:
		return true
	}
	return false
}

// requireKey requires a key of a config, and lets errors.Is find sentinel.
func (p *problems) requireKey(ok bool, path string, sentinel error) {
	if !ok {
		*p = append(*p, FieldError{Path: path, Problem: "is required", sentinel: sentinel})
	}
}

func (p *problems) requireNonZero(ok bool, path string) {
	if !ok {
		p.add(path, "is required and must not be zero")
	}
}

// addAll adds the fields of another check's error, which must not be wrapped.
func (p *problems) addAll(err error) {
	if wrong, ok := err.(*InvalidError); ok { // errors.As would allocate without an error too
		*p = append(*p, wrong.Fields...)
	}
}

// err returns nil, and not a nil *InvalidError, if there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Fields: p}
}

func invalid(path, format string, args ...any) error {
	var p problems
	p.add(path, format, args...)
	return p.err()
}

// readable is a type that a reader fills. It is zero before.
type readable interface{ read(*wire.Reader) }

// readValue reads a value of this package.
func readValue(x *wire.Reader, into any) { into.(readable).read(x) }

func newReader(text []byte, root string) wire.Reader { return wire.New(text, root, readValue) }

// wrongFields are what a reader found.
func wrongFields(found []wire.Problem) (p problems) {
	for _, f := range found {
		p = append(p, FieldError{Path: f.Path, Problem: f.Text})
	}
	return p
}

// readWire reads JSON into a value, as UnmarshalJSON of every wire type. The value is zeroed first, and
// stays as it was if the text is no JSON. Raw fields are slices of a copy, so the caller may reuse
// the text.
func readWire(text []byte, root string, into readable) error {
	return readFrom(newReader(bytes.Clone(text), root), into)
}

// readOfNode reads what a node sent like readWire, and forgives.
func readOfNode(text []byte, root string, into readable) error {
	return readFrom(wire.NewOfNode(bytes.Clone(text), root, readValue), into)
}

func readFrom(x wire.Reader, into readable) error {
	value := reflect.ValueOf(into).Elem()
	old := reflect.Zero(value.Type())
	if !value.IsZero() {
		old = reflect.New(value.Type()).Elem()
		old.Set(value)
		value.SetZero()
	}
	into.read(&x)
	if !x.Whole() {
		value.Set(old)
		return invalid(x.Root(), "must be valid JSON")
	}
	return wrongFields(x.Wrong).err()
}

// Code is an errorCode of the envelope that answers the service (interface 7.2).
// The interface does not list the codes, so these are this package's own; set
// [HandlerConfig].TranslateCode to send others. For a wrong field of a body, the
// code is INVALID_ and the path of the field in capitals, such as INVALID_DIGEST or
// INVALID_INTENT_FROM_AMOUNT. For a body that is not a JSON object it is
// INVALID_BODY. [Reject] takes a code of your own.
type Code string

// Codes that a [Handler] answers with by itself; docs/errors.md has all. The number is the HTTP
// status; without one, it is [HandlerConfig].RejectStatus. For a result it is 500 instead,
// except in the one case of [CodeOrderConflict] that [HandlerConfig].OnConflict describes.
const (
	CodeHMACMissing      Code = "HMAC_MISSING"       // 401: no X-HMAC-SIGNATURE
	CodeHMACInvalid      Code = "HMAC_INVALID"       // 401: the signature does not match the body
	CodeNotFound         Code = "NOT_FOUND"          // 404: unknown path
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED" // 405: not GET for assets, or not POST for the others
	CodeBodyTooLarge     Code = "BODY_TOO_LARGE"     // 413: larger than [HandlerConfig].MaxBody
	CodeInvalidMessage   Code = "INVALID_MESSAGE"    // the order is for no product of [HandlerConfig].Terms
	CodeOrderConflict    Code = "ORDER_CONFLICT"     // contradicts the stored order
	CodeOrderFinished    Code = "ORDER_FINISHED"     // a validate call is for an order that has ended
	CodeInternal         Code = "INTERNAL_ERROR"     // 500: internal error; the cause is logged

	codeSessionMissing Code = "SESSION_MISSING"      // 401: no usable X-Dapp-SessionID
	codeTokenMissing   Code = "ACCESS_TOKEN_MISSING" // 401: no usable bearer token in X-Dapp-Authorization
)

// MarshalJSON writes the empty code, which means success, as null.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return wire.Marshal(strings.ToValidUTF8(string(c), "\ufffd"))
}

// Rejection is an answer other than success: the status and code that the service
// sees, and the cause, which is only logged.
type Rejection struct {
	Status int   // HTTP status; zero means that of [Reject]
	Code   Code  // errorCode of the envelope
	Err    error // the cause, or nil

	// Repeats makes [HandlerConfig].Policy and [HandlerConfig].Wallet reject repeats, too. By default, a
	// validate call passes although they reject it if it repeats an order that was accepted and waits: the
	// player has paid, and the answer may have been lost. If such a repeat is rejected, its order
	// goes on waiting, and the assets of a mint stay taken until its result comes, or until a person ends
	// the order.
	Repeats bool
}

// Error returns the code and the cause.
func (r *Rejection) Error() string {
	if r.Err == nil {
		return "ramp: rejected: " + string(r.Code)
	}
	return "ramp: rejected: " + string(r.Code) + ": " + strings.TrimPrefix(r.Err.Error(), "ramp: ")
}

// Unwrap returns the cause.
func (r *Rejection) Unwrap() error { return r.Err }

// Reject returns an error with which the game says no: the service gets success false
// with code as its errorCode. The HTTP status is 401 from [Players.Authenticate], and
// [HandlerConfig].RejectStatus from [Players.Assets], [HandlerConfig].Policy,
// [HandlerConfig].Wallet and the Apply of a store. To set the status or a cause, return a
// [*Rejection]. A result cannot be rejected: there, it counts as any other error.
//
// The public guide uses INVALID_USER, INVALID_BALANCE, INVALID_MESSAGE.
func Reject(code Code) error { return &Rejection{Code: code} }

func internalError(err error) *Rejection {
	return &Rejection{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
}

func unauthorized(code Code, err error) *Rejection {
	return &Rejection{Status: http.StatusUnauthorized, Code: code, Err: err}
}

// RejectionOf returns the HTTP status and the errorCode with which a server without a [Handler] answers
// an error of this package:
//
//	401                 the HMAC is missing or wrong, or the headers of the session are
//	400, INVALID_…      an *InvalidError; the code names the first field
//	200                 declined by Reject, by Terms or by the stored order
//	500                 everything else, nil too
//
// A [*Rejection] keeps its own status. [Reject] has none: to refuse a session, return a Rejection with 401.
// If the call is a result, use only the code, and answer HTTP 500: otherwise the service does not send
// the result again.
func RejectionOf(err error) *Rejection {
	switch {
	case errors.Is(err, ErrOrderConflict):
		return &Rejection{Status: http.StatusOK, Code: CodeOrderConflict, Err: err}
	case errors.Is(err, ErrOrderFinished):
		return &Rejection{Status: http.StatusOK, Code: CodeOrderFinished, Err: err}
	default:
		return rejectionOf(err, http.StatusOK)
	}
}

// rejectionOf returns the answer to an error of this package's own checks, with status as that of a
// [Rejection] without one. Errors of the game go to [gameRejection] instead, whatever they wrap.
func rejectionOf(err error, status int) *Rejection {
	var rejection *Rejection
	var wrong *InvalidError
	switch {
	case errors.As(err, &rejection) && rejection.Status == 0:
		return gameRejection(err, status)
	case errors.As(err, &rejection):
		return rejection
	case errors.Is(err, ErrHMACMissing):
		return unauthorized(CodeHMACMissing, err)
	case errors.Is(err, ErrHMACInvalid):
		return unauthorized(CodeHMACInvalid, err)
	case errors.As(err, &wrong):
		return &Rejection{Status: http.StatusBadRequest, Code: invalidCode(wrong), Err: err}
	default:
		return internalError(err)
	}
}

// gameRejection returns the answer to an error of the game or its store: the
// [Rejection] that it wraps, with status as the default, or else an internal error.
func gameRejection(err error, status int) *Rejection {
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		return internalError(err)
	}
	answer := &Rejection{Status: rejection.Status, Code: rejection.Code, Err: err, Repeats: rejection.Repeats}
	if answer.Status == 0 {
		answer.Status = status
	}
	if answer.Code == "" {
		answer.Code = CodeInternal
	}
	return answer
}

// invalidCode names the first wrong field. For intent.from[0].amount it is
// INVALID_INTENT_FROM_AMOUNT.
func invalidCode(e *InvalidError) Code {
	path := "body"
	if len(e.Fields) > 0 {
		path = e.Fields[0].Path
	}
	code := "INVALID"
	for _, step := range wire.PathSteps(path) {
		if !wire.IsDigits(step) { // not an index
			code += "_" + strings.ToUpper(step)
		}
	}
	return Code(code)
}

// RPCCode is the code of an [RPCError], and an error: errors.Is(err, RPCCode(-32700)) finds a
// parse error (interface 7.3).
type RPCCode int

// The codes of a node that does not have what was asked for.
const (
	RPCMethodNotFound RPCCode = -32601 // the method does not exist
	RPCInvalidParams  RPCCode = -32602 // invalid parameters
)

const (
	rpcParseError       RPCCode = -32700
	rpcInvalidRequest   RPCCode = -32600
	rpcInternalError    RPCCode = -32603
	lowestServerError   RPCCode = -32099
	highestServerError  RPCCode = -32000
	rpcReverted         RPCCode = 3      // with a text of the contract
	rpcLimitExceeded    RPCCode = -32005 // a rate limit, or the size of what was asked for
	rpcResponseTooLarge RPCCode = -32003 // go-ethereum
	rpcAnswerTooLarge   RPCCode = -32008 // reth
)

// Error returns the meaning of the code, such as "method not found".
func (c RPCCode) Error() string {
	meaning := map[RPCCode]string{
		rpcParseError: "parse error", rpcInvalidRequest: "invalid request",
		RPCMethodNotFound: "method not found", RPCInvalidParams: "invalid params",
		rpcInternalError: "internal error",
	}[c]
	if c.ofServer() {
		meaning = "server error"
	}
	return cmp.Or(meaning, "error "+strconv.Itoa(int(c)))
}

func (c RPCCode) ofServer() bool { return lowestServerError <= c && c <= highestServerError }

// RPCError is an error that a node returned (interface 2.8, 7.3).
type RPCError struct {
	Code RPCCode // as the node sent it, or 0; errors.Is matches it

	// Message is the text that the node sent, redacted, up to 64 KiB. It may quote the call.
	Message string

	// Data is what the node sent, unchanged, or nil. The interface specifies a string; nodes also send
	// objects. If a contract reverted a call, it has what the contract returned, for abi.UnpackRevert
	// of go-ethereum. It can quote a credential of the request, so do not log it.
	Data json.RawMessage
}

// Error returns the code and the message in less than 500 bytes on one line.
func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", int(e.Code),
		cmp.Or(redact.Excerpt(e.Message), e.Code.Error()))
}

// Is reports whether target is the [RPCCode] of e.
func (e *RPCError) Is(target error) bool {
	code, ok := target.(RPCCode)
	return ok && e.Code == code
}

// maxMessage limits how much of a foreign text is kept in a field.
const maxMessage = 64 << 10

// rpcFailure is an error of any shape, or null. Its text is redacted, but not its
// data.
type rpcFailure struct {
	err     *RPCError // nil for null
	secrets *redact.Redactor
}

func (f *rpcFailure) read(x *wire.Reader) {
	switch x.Kind() {
	case 'n':
		x.Skip()
		return
	case '{':
	default:
		f.err = &RPCError{Message: f.secrets.Beginning(textOf(x.Raw()), maxMessage)}
		return
	}
	var code, message, data wire.Unread
	x.Members("code", &code, "message", &message, "data", &data)
	e := &RPCError{Message: f.secrets.Beginning(textOf(message), maxMessage)}
	if n, err := strconv.Atoi(textOf(code)); err == nil {
		e.Code = RPCCode(n)
	}
	if !data.Absent() {
		e.Data = bytes.Clone(data)
	}
	f.err = e
}

// textOf returns the text of a JSON string, or any other JSON unchanged.
func textOf(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// HTTPError is an answer without HTTP success, or one that is not JSON-RPC, such as
// the error page of a proxy. [errors.As] also finds the [*RPCError] of its body.
type HTTPError struct {
	Status     int           // HTTP status
	RetryAfter time.Duration // the delay that the answer asked for, or 0
	Excerpt    string        // beginning of a body that is not JSON-RPC, on one line; may quote the call

	inside   *RPCError
	encoding string // with which the body is compressed, or ""
}

// Error returns the status, and the node's error or the excerpt.
func (e *HTTPError) Error() string {
	text := "HTTP " + strconv.Itoa(e.Status)
	if e.RetryAfter > 0 {
		text += " (retry after " + e.RetryAfter.String() + ")"
	}
	if e.inside != nil {
		return text + ": " + e.inside.Error()
	}
	if e.encoding != "" {
		return text + ", compressed as " + e.encoding + ", which was not asked for"
	}
	return text + `, not JSON-RPC: "` + e.Excerpt + `"`
}

// Unwrap returns the [*RPCError] of the body, if it had one.
func (e *HTTPError) Unwrap() error {
	if e.inside == nil {
		return nil
	}
	return e.inside
}

// isRetryable reports whether a failed call may succeed later. The error of the
// node decides, whatever the HTTP status: some nodes send a revert with HTTP 500.
func isRetryable(status int, failed *RPCError) bool {
	if failed == nil || failed.Code == 0 {
		return retryableStatus(status)
	}
	code := failed.Code
	// which proxies put there
	return isRateLimit(status, code) || code == rpcLimitExceeded || retryableStatus(int(code)) ||
		status == http.StatusServiceUnavailable && (code.ofServer() || code == rpcInternalError)
}

// isRateLimit reports whether a node limits how much is asked of it, which passes.
// QuickNode, Base, TheRPC and proxies have codes for that; -32005 has a second meaning.
func isRateLimit(status int, code RPCCode) bool {
	return code != rpcReverted && (status == http.StatusTooManyRequests ||
		slices.Contains([]RPCCode{-32007, -32016, -32029, http.StatusTooManyRequests}, code))
}

func retryableStatus(status int) bool {
	return status/100 == 5 || slices.Contains([]int{http.StatusRequestTimeout,
		http.StatusTooEarly, http.StatusTooManyRequests}, status)
}

// limitError is a rejection of a whole batch because of its size.
type limitError struct {
	error
	lasting bool // the number of calls is limited, and not the size of their answers
}

func (e *limitError) Unwrap() error { return e.error }

// failedAsNode reports whether another node may answer: this one could not be
// reached, is overloaded, or is no node. An error of the call is not such a failure.
func failedAsNode(err error) bool {
	if err == nil {
		return false // without the allocations below
	}
	var status *HTTPError
	var failed *RPCError
	var retryable *transport.Retryable
	var limit *limitError
	switch {
	case errors.As(err, &limit):
		return false
	case errors.As(err, &status) && status.inside == nil:
		return status.Status != http.StatusRequestEntityTooLarge
	case !errors.As(err, &status) && errors.As(err, &failed):
		return false
	default:
		return errors.As(err, &retryable)
	}
}

// isOutage reports whether the error of a check may pass without anybody's help: the node
// could not be reached or did not answer in time, or it or a proxy turned the call away.
func isOutage(err error) bool {
	var status *HTTPError
	var failed *RPCError
	var name *net.DNSError
	var connection *net.OpError
	switch {
	case errors.As(err, &status):
		return status.Status/100 == 5 || status.Status == http.StatusTooManyRequests
	case errors.As(err, &failed):
		return isRateLimit(0, failed.Code) || failed.Code == rpcLimitExceeded
	case errors.As(err, &name):
		return !name.IsNotFound // a typo
	default:
		return errors.As(err, &connection) || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
}

// withMethod adds the method to an error, and keeps a retryable mark outermost.
func withMethod(method string, err error) error {
	if err == nil {
		return nil
	}
	if retryable, ok := err.(*transport.Retryable); ok {
		marked := *retryable
		marked.Err = withMethod(method, retryable.Err)
		return &marked
	}
	return redact.Bounded(fmt.Errorf("ramp: %s: %w", method, err))
}

// joined returns the beginning of a list.
func joined(texts []string) string {
	const most = 10
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// shown returns a text so that it can be told from any other: what may look like something else
// or like nothing is escaped.
func shown(text string) string {
	const most = 100
	text = text[:min(most, len(text))]
	ambiguous := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == ',' }
	if text == "" || strings.ContainsFunc(text, ambiguous) {
		return strconv.QuoteToASCII(text)
	}
	return text
}
