package ramp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// ErrNotFound means that the node answered null: it does not know the block,
// transaction or receipt. It may know it a moment later. If it never does, the node
// may be on another network; see [RPCConfig].ChainID.
var ErrNotFound = errors.New("not found on the node's chain, or not yet")

// RPCCode is the code of an [RPCError]. It is an error, so that errors.Is(err,
// ramp.RPCMethodNotFound) works.
type RPCCode int

// The codes of the interface (7.3). [RPCServerError] stands for all codes from
// -32099 to -32000.
const (
	RPCParseError     RPCCode = -32700 // invalid JSON
	RPCInvalidRequest RPCCode = -32600 // not a valid request
	RPCMethodNotFound RPCCode = -32601 // the method does not exist
	RPCInvalidParams  RPCCode = -32602 // invalid parameters
	RPCInternalError  RPCCode = -32603 // internal JSON-RPC error
	RPCServerError    RPCCode = -32000 // generic server-side errors
)

const (
	lowestServerError   RPCCode = -32099
	rpcReverted         RPCCode = 3      // with a text of the contract
	rpcLimitExceeded    RPCCode = -32005 // a rate limit, or the size of what was asked for
	rpcResponseTooLarge RPCCode = -32003 // go-ethereum
	rpcAnswerTooLarge   RPCCode = -32008 // reth
)

// Error returns the meaning of the code, such as "method not found".
func (c RPCCode) Error() string {
	meaning := map[RPCCode]string{
		RPCParseError: "parse error", RPCInvalidRequest: "invalid request", RPCMethodNotFound: "method not found",
		RPCInvalidParams: "invalid params", RPCInternalError: "internal error",
	}[c]
	if c.ofServer() {
		meaning = "server error"
	}
	return cmp.Or(meaning, "error "+strconv.Itoa(int(c)))
}

func (c RPCCode) ofServer() bool { return lowestServerError <= c && c <= RPCServerError }

// RPCError is an error that a node returned (interface 2.8, 7.3).
type RPCError struct {
	// Code is the code that the node sent, or 0. errors.Is matches it, and matches
	// [RPCServerError] for every code of that range.
	Code RPCCode

	// Message is the text that the node sent, up to 64 KiB, with the secrets of the
	// [RPCConfig] replaced by [redacted]. It may quote the call. If the error is a
	// string instead of an object, Message holds it.
	Message string

	// Data is what the node sent, unchanged, or nil. The interface specifies a
	// string; nodes also send objects. If a contract reverted a call, it has what the
	// contract returned, which abi.UnpackRevert of go-ethereum decodes. Data can
	// quote a credential of the request, so do not log it. The text of the error is
	// safe to log.
	Data json.RawMessage
}

// Error returns the code and the message in less than 500 bytes on one line.
func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", int(e.Code), cmp.Or(excerpt(e.Message), e.Code.Error()))
}

// Is reports whether target is the [RPCCode] of e.
func (e *RPCError) Is(target error) bool {
	code, ok := target.(RPCCode)
	return ok && (e.Code == code || code == RPCServerError && e.Code.ofServer())
}

// maxMessage limits how much of a foreign text is kept in a field.
const maxMessage = 64 << 10

// rpcFailure is an error of any shape, or null. Its text is redacted, but not its
// data.
type rpcFailure struct {
	err     *RPCError // nil for null
	secrets *redact.Redactor
}

func (f *rpcFailure) read(x *reader) {
	switch x.kind() {
	case 'n':
		x.skip()
		return
	case '{':
	default:
		f.err = &RPCError{Message: f.secrets.Beginning(textOf(x.raw()), maxMessage)}
		return
	}
	var code, message, data unread
	x.members("code", &code, "message", &message, "data", &data)
	e := &RPCError{Message: f.secrets.Beginning(textOf(message), maxMessage)}
	if n, err := strconv.Atoi(textOf(code)); err == nil {
		e.Code = RPCCode(n)
	}
	if !data.absent() {
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
// the error page of a proxy. [errors.As] finds the [*RPCError] of the body, if it
// had one.
type HTTPError struct {
	Status     int           // HTTP status
	RetryAfter time.Duration // the delay that the answer asked for, or 0

	// Excerpt is the beginning of a body that is not JSON-RPC, on one line, with the
	// secrets of the [RPCConfig] replaced by [redacted]. It may quote the call.
	Excerpt string

	inside *RPCError
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
	return text + `, not JSON-RPC: "` + e.Excerpt + `"`
}

// Unwrap returns the [*RPCError] of the body, if it had one.
func (e *HTTPError) Unwrap() error {
	if e.inside == nil {
		return nil
	}
	return e.inside
}

// failure returns the error of an answer without HTTP success or JSON-RPC.
func (r *RPC) failure(a *answer, inside *RPCError) error {
	failure := &HTTPError{Status: a.status, RetryAfter: a.retryAfter(r.transport.now()), inside: inside}
	if inside == nil {
		failure.Excerpt = r.secrets.Line(string(a.body[:min(len(a.body), maxMessage)]), maxExcerpt)
	}
	return r.mark(failure, inside, a)
}

// isRetryable reports whether a failed call may succeed later. The error of the
// node decides, whatever the HTTP status: some nodes send a revert with HTTP 500.
func isRetryable(status int, failed *RPCError) bool {
	if failed == nil || failed.Code == 0 {
		return retryableStatus(status)
	}
	code := failed.Code
	return isRateLimit(status, code) || code == rpcLimitExceeded || retryableStatus(int(code)) || // which proxies put there
		status == http.StatusServiceUnavailable && (code.ofServer() || code == RPCInternalError)
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

// mark marks the error of an answer, which holds the node's, if it is retryable, such as
// a rate limit.
func (r *RPC) mark(err error, inside *RPCError, a *answer) error {
	if isRetryable(a.status, inside) {
		return &retryableError{error: err, after: a.retryAfter(r.transport.now())}
	}
	return err
}

// failedAsNode reports whether another node may answer: this one could not be
// reached, is overloaded, or is no node. An error of the call is not such a failure.
func failedAsNode(err error) bool {
	if err == nil {
		return false // without the allocations below
	}
	var status *HTTPError
	var failed *RPCError
	var retryable *retryableError
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

// withMethod adds the method to an error, and keeps a retryable mark outermost.
func withMethod(method string, err error) error {
	if err == nil {
		return nil
	}
	if retryable, ok := err.(*retryableError); ok {
		return &retryableError{error: withMethod(method, retryable.error), after: retryable.after}
	}
	return bounded(fmt.Errorf("ramp: %s: %w", method, err))
}
