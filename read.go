package ramp

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// ReadValidate verifies and reads a validate call (interface 2.5, 5), so that nothing of its body is
// read before the HMAC holds. body is the raw body, which ReadValidate copies. The session is what
// the headers claim: check its token, and the order with [Terms.Match]. [RejectionOf] says how to
// answer the error. A [Handler] does all of this by itself.
func ReadValidate(key HMACKey, header http.Header, body []byte) (*ValidateRequest, Session, error) {
	if err := verify(key, header, body); err != nil {
		return nil, Session{}, err
	}
	r, _, err := readValidateCall(bytes.Clone(body))
	if err != nil {
		return nil, Session{}, err
	}
	s, err := ParseSession(header)
	if err != nil {
		return nil, Session{}, err
	}
	return r, s, nil
}

// ReadResult verifies and reads a result (interface 6, 5), as [ReadValidate] does. The session is that
// of the signed body or, if it has none, that of the header. Its token may be missing or have
// expired, because a result can arrive 12 hours after its validate call.
//
// Whatever the error is, answer HTTP 500: the service then delivers the result again.
func ReadResult(key HMACKey, header http.Header, body []byte) (*Result, Session, error) {
	if err := verify(key, header, body); err != nil {
		return nil, Session{}, err
	}
	r, _, err := readResultCall(bytes.Clone(body))
	if err != nil {
		return nil, Session{}, err
	}
	s, _ := resultSession(header, r)
	return r, s, nil
}

// verify checks the HMAC of a body.
func verify(key HMACKey, header http.Header, body []byte) error {
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	return key.Verify(body, signature)
}

// hmacHeader returns a well-formed signature.
func hmacHeader(header http.Header) (string, error) {
	signature, err := singleHeader(header, HeaderHMAC)
	if err != nil {
		return "", fmt.Errorf("ramp: %w: it occurs more than once", ErrHMACInvalid)
	}
	_, err = decodeHMAC(signature)
	return signature, err
}

// readValidateCall reads the body of an authentic validate call. id is its UUID, or that of a result
// that came to the address of validate calls.
func readValidateCall(body []byte) (r *ValidateRequest, id uuid.UUID, err error) {
	if r, err = parseValidate(body); err == nil {
		return r, r.UUID, nil
	}
	if result, _ := parseResult(body); result != nil {
		return nil, result.UUID, misplaced("a result", "validate calls", err)
	}
	return nil, uuid.Nil, err
}

// readResultCall reads the body of an authentic result, as readValidateCall does.
func readResultCall(body []byte) (r *Result, id uuid.UUID, err error) {
	if r, err = parseResult(body); err == nil {
		return r, r.UUID, nil
	}
	if request, _ := parseValidate(body); request != nil {
		return nil, request.UUID, misplaced("a validate call", "results", err)
	}
	return nil, uuid.Nil, err
}

// misplaced returns the error of an authentic call that came to the address of the others.
// HTTP 500 leaves 12 hours to correct the console.
func misplaced(call, others string, err error) error {
	answer := internalError(fmt.Errorf("ramp: %s came to the address of %s: in the console, the address of "+
		"validate calls must end in %s and that of results in %s, or be where you mounted "+
		"Handler.Validate and Handler.Result (%w)", call, others, PathValidate, PathResult, err))
	answer.Code = rejectionOf(err, 0).Code
	return answer
}

// resultSession takes the session of a result from its body, which is signed. The headers are not,
// and may be missing. unsigned is the session of the header if it is another one.
func resultSession(header http.Header, r *Result) (s Session, unsigned string) {
	unsigned, _ = sessionID(header)
	s.ID = cmp.Or(strings.TrimSpace(r.SessionID), unsigned)
	s.Token, _ = bearerToken(header)
	if unsigned == s.ID {
		unsigned = ""
	}
	return s, unsigned
}

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP] serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)
