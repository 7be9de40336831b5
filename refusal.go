package ramp

import (
	"errors"
	"net/http"
	"strings"
)

// Code is an errorCode of the envelope that answers the service (interface 7.2).
// The interface does not list the codes, so these are this package's own; set
// [HandlerConfig].TranslateCode to send others. For a wrong field of a body, the
// code is INVALID_ and the path of the field in capitals, such as INVALID_DIGEST or
// INVALID_INTENT_FROM_AMOUNT. For a body that is not a JSON object it is
// INVALID_BODY. [Reject] takes a code of your own.
type Code string

// The codes that a [Handler] answers with by itself.
const (
	CodeHMACMissing      Code = "HMAC_MISSING"         // 401: no X-HMAC-SIGNATURE
	CodeHMACInvalid      Code = "HMAC_INVALID"         // 401: the signature does not match the body
	CodeSessionMissing   Code = "SESSION_MISSING"      // 401: no usable X-Dapp-SessionID
	CodeSessionMismatch  Code = "SESSION_MISMATCH"     // 500: the header of a result contradicts its signed body
	CodeTokenMissing     Code = "ACCESS_TOKEN_MISSING" // 401: no usable bearer token in X-Dapp-Authorization
	CodeNotFound         Code = "NOT_FOUND"            // 404: unknown path, from [Handler.ServeHTTP]
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"   // 405: not GET for assets, not POST for the others
	CodeBodyTooLarge     Code = "BODY_TOO_LARGE"       // 413: larger than [HandlerConfig].MaxBody
	CodePermanent        Code = "REFUSED"              // 400: the game returned [Permanent]
	CodeInternal         Code = "INTERNAL_ERROR"       // 500: internal error; the cause is logged
)

// codeInvalidBody is the code of the path "body".
const codeInvalidBody Code = "INVALID_BODY"

// MarshalJSON writes the empty code, which means success, as null.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return marshal(strings.ToValidUTF8(string(c), "\ufffd"))
}

// Refusal is an answer other than success: the status and code that the service
// sees, and the cause, which is only logged.
type Refusal struct {
	// Status is the HTTP status. Zero means the default for a declined order,
	// [HandlerConfig].DeclineStatus.
	Status int

	// Code is the errorCode of the envelope.
	Code Code

	// Err is the cause, which may be nil.
	Err error
}

// Error returns the code and the cause.
func (r *Refusal) Error() string {
	if r.Err == nil {
		return "ramp: refused: " + string(r.Code)
	}
	return "ramp: refused: " + string(r.Code) + ": " + strings.TrimPrefix(r.Err.Error(), "ramp: ")
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Reject returns an error with which a [Game] declines: the service gets success
// false with code as its errorCode. The HTTP status is 401 from
// [Game.Authenticate], and [HandlerConfig].DeclineStatus from [Game.Assets] and
// [Game.Validate]. A result cannot be declined: [Game.Result] must not return it,
// and if it does, it counts as any other error.
//
// The interface does not list the codes (7.2). The service's public guide uses
// INVALID_USER, INVALID_BALANCE and INVALID_MESSAGE.
func Reject(code Code) error { return &Refusal{Code: code} }

// Permanent returns an error with which [Game.Result] says that redelivery cannot
// help. The service gets HTTP 400, which it does not retry, and err is logged. The
// result is not delivered again, so make sure that a person looks at it.
func Permanent(err error) error {
	return &Refusal{Status: http.StatusBadRequest, Code: CodePermanent, Err: err}
}

// refusalOf returns the answer to an error of this package's own checks. Errors of
// the game go to [gameRefusal] instead, whatever they wrap.
func refusalOf(err error) *Refusal {
	var refusal *Refusal
	var wrong *InvalidError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, ErrHMACMissing):
		return &Refusal{Status: http.StatusUnauthorized, Code: CodeHMACMissing, Err: err}
	case errors.Is(err, ErrHMACInvalid):
		return &Refusal{Status: http.StatusUnauthorized, Code: CodeHMACInvalid, Err: err}
	case errors.As(err, &wrong):
		return &Refusal{Status: http.StatusBadRequest, Code: wrong.code(), Err: err}
	default:
		return &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
	}
}

// gameRefusal returns the answer to an error of the game: the [Refusal] that it
// wraps, with status as the default, or else an internal error.
func gameRefusal(err error, status int) *Refusal {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
	}
	answer := &Refusal{Status: refusal.Status, Code: refusal.Code, Err: err}
	if answer.Status == 0 {
		answer.Status = status
	}
	if answer.Code == "" {
		answer.Code = CodeInternal
	}
	return answer
}
