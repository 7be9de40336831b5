package ramp

import (
	"errors"
	"net/http"
	"strings"
)

// Code is an errorCode of the envelope that answers the service (interface
// 7.2). The interface does not say which values there are, so these are ours; set
// [HandlerConfig].TranslateCode to send others. A wrong field of a body is
// answered with INVALID_ and the path of the field in capitals, such as
// INVALID_DIGEST or INVALID_INTENT_FROM_AMOUNT, and a body that is no JSON object
// with INVALID_BODY. A code of your own comes from [Reject].
type Code string

// The codes that a [Handler] answers with by itself.
const (
	CodeHMACMissing      Code = "HMAC_MISSING"         // 401: no X-HMAC-SIGNATURE
	CodeHMACInvalid      Code = "HMAC_INVALID"         // 401: not the signature of this body
	CodeSessionMissing   Code = "SESSION_MISSING"      // 401: no X-Dapp-SessionID
	CodeSessionMismatch  Code = "SESSION_MISMATCH"     // 500: the header of a result contradicts its signed body
	CodeTokenMissing     Code = "ACCESS_TOKEN_MISSING" // 401: no bearer token
	CodeNotFound         Code = "NOT_FOUND"            // 404: no such path, from [Handler.ServeHTTP]
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"   // 405: not GET for assets, not POST for the others
	CodeBodyTooLarge     Code = "BODY_TOO_LARGE"       // 413: above the limit, see [HandlerConfig].MaxBody
	CodePermanent        Code = "REFUSED"              // 400: the game called the failure [Permanent]
	CodeInternal         Code = "INTERNAL_ERROR"       // 500: internal error; the cause is in the log
)

// codeInvalidBody is the code of the path "body".
const codeInvalidBody Code = "INVALID_BODY"

// MarshalJSON writes the empty code, which stands for success, as null.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return marshal(strings.ToValidUTF8(string(c), "\ufffd"))
}

// Refusal is an answer to the service other than success: what the wire says,
// and the cause, which only the log sees.
type Refusal struct {
	// Status is the HTTP status. Zero stands for the status of a declined
	// order, which [HandlerConfig].DeclineStatus sets.
	Status int

	// Code is the errorCode of the envelope.
	Code Code

	// Err is the cause. It may be nil.
	Err error
}

func (r *Refusal) Error() string {
	if r.Err == nil {
		return "ramp: refused: " + string(r.Code)
	}
	return "ramp: refused: " + string(r.Code) + ": " + strings.TrimPrefix(r.Err.Error(), "ramp: ")
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Reject is how a [Game] says no: the service is answered with success false
// and code as its errorCode. From [Game.Authenticate] the HTTP status is 401,
// from [Game.Assets] and [Game.Validate] it is the DeclineStatus of
// [HandlerConfig]. A [Game.Result] has nothing to decline: there, it counts as
// any other error.
//
// The interface does not show the set of codes (7.2). The service's public
// guide uses INVALID_USER, INVALID_BALANCE and INVALID_MESSAGE.
func Reject(code Code) error { return &Refusal{Code: code} }

// Permanent is how [Game.Result] says that no redelivery can help: the service
// is answered with HTTP 400, which it does not retry, and err goes to the log.
// Use it when a person has to look, because after it nobody asks again.
func Permanent(err error) error {
	return &Refusal{Status: http.StatusBadRequest, Code: CodePermanent, Err: err}
}

// refusalOf says how an error of our own checks is answered. An error of the
// game never comes here: whatever it wraps, [gameRefusal] judges it.
func refusalOf(err error) *Refusal {
	var wrong *InvalidError
	refusal := func(status int, code Code) *Refusal {
		return &Refusal{Status: status, Code: code, Err: err}
	}
	switch {
	case errors.Is(err, ErrHMACMissing):
		return refusal(http.StatusUnauthorized, CodeHMACMissing)
	case errors.Is(err, ErrHMACInvalid):
		return refusal(http.StatusUnauthorized, CodeHMACInvalid)
	case errors.Is(err, ErrSessionMissing):
		return refusal(http.StatusUnauthorized, CodeSessionMissing)
	case errors.Is(err, ErrTokenMissing):
		return refusal(http.StatusUnauthorized, CodeTokenMissing)
	case errors.Is(err, ErrBodyTooLarge):
		return refusal(http.StatusRequestEntityTooLarge, CodeBodyTooLarge)
	case errors.As(err, &wrong):
		return refusal(http.StatusBadRequest, wrong.code())
	default:
		return refusal(http.StatusInternalServerError, CodeInternal)
	}
}

// gameRefusal says how an error of the game is answered: as the [Refusal] in
// it, with status where that leaves it open, and else as ours to blame.
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
