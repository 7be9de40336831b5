package ramp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Code is an errorCode of the envelope that answers the service (interface 7.2).
// The interface does not list the codes, so these are this package's own; set
// [HandlerConfig].TranslateCode to send others. For a wrong field of a body, the
// code is INVALID_ and the path of the field in capitals, such as INVALID_DIGEST or
// INVALID_INTENT_FROM_AMOUNT. For a body that is not a JSON object it is
// INVALID_BODY. [Reject] takes a code of your own.
type Code string

// Codes that a [Handler] answers with by itself; docs/errors.md has all. Of a result, the status
// is 500, unless the comment says otherwise.
const (
	CodeHMACMissing      Code = "HMAC_MISSING"       // 401: no X-HMAC-SIGNATURE
	CodeHMACInvalid      Code = "HMAC_INVALID"       // 401: the signature does not match the body
	CodeNotFound         Code = "NOT_FOUND"          // 404: unknown path
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED" // 405: not GET for assets, or not POST for the others
	CodeBodyTooLarge     Code = "BODY_TOO_LARGE"     // 413: larger than [HandlerConfig].MaxBody
	CodeInvalidMessage   Code = "INVALID_MESSAGE"    // the order is for no product of [HandlerConfig].Terms
	CodeOrderConflict    Code = "ORDER_CONFLICT"     // a call contradicts the stored order; of a result 400
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

// Reject returns an error with which the game says no: the service gets success
// false with code as its errorCode. The HTTP status is 401 from
// [Players.Authenticate], and [HandlerConfig].RejectStatus from [Players.Assets],
// [HandlerConfig].Policy and the Apply of a store. To set the status or a cause, return a
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

// RejectionOf returns the HTTP status and the errorCode for an error of this package's functions, for
// a server without a [Handler]: 401 without a valid HMAC or session, 400 and INVALID_ with the path
// of the first field for an [*InvalidError], 200 for what [Reject], [Terms] or the stored order
// decline, and 500 for everything else. Answer an error of a result with its code, but always with 500.
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
	answer := &Rejection{Status: rejection.Status, Code: rejection.Code, Err: err}
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
		if !isDigits(step) { // not an index
			code += "_" + strings.ToUpper(step)
		}
	}
	return Code(code)
}
