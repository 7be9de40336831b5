package game

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
)

// Answer is what the game's server said.
type Answer struct {
	Status int
	body   []byte
	exact  func() (json.RawMessage, error) // the body, without misnamed fields
	is     string                          // what the body is instead of JSON, as far as that is known
}

// FieldNames returns the names of the fields that the service reads: in the
// game's answers (interface 2.4, 2.6, 7.2) and in initialize calls (2.2).
func FieldNames() []string {
	return strings.Fields(`success errorCode data v1 player_id name wallet_address server assets id balance
		userSig validatorSig intent network project_id token mint_fee_bps burn_fee_bps mint_method burn_method
		materials outputs amount icon_url is_non_fungible`)
}

// broken returns an error that describes how an answer breaks the interface.
func broken(format string, args ...any) error {
	return fmt.Errorf("ramptest: the game's answer breaks the interface: "+format, args...)
}

// open checks the envelope (interface 7.2) and returns its data as JSON. For a
// well-formed failure, the error is a [*Rejection].
func open(a *Answer) (json.RawMessage, error) {
	var envelope map[string]json.RawMessage
	if body, err := a.exact(); err != nil || json.Unmarshal(body, &envelope) != nil {
		what := "a body that is no JSON object"
		if a.is != "" {
			what += ": " + a.is
		}
		return nil, broken("HTTP %d with %s", a.Status, what)
	}
	for _, name := range []string{"success", "errorCode", "data"} {
		if _, ok := envelope[name]; !ok {
			return nil, broken("HTTP %d without %s (7.2)", a.Status, name)
		}
	}
	var success bool
	if err := json.Unmarshal(envelope["success"], &success); err != nil || isNull(envelope["success"]) {
		return nil, broken("success is no boolean (7.2)")
	}
	if !success {
		var code string
		if err := json.Unmarshal(envelope["errorCode"], &code); err != nil || code == "" {
			return nil, broken("a failure without a string as errorCode (7.2)")
		}
		if !isNull(envelope["data"]) {
			return nil, broken("a failure whose data is not null (7.2)")
		}
		return nil, &Rejection{Status: a.Status, Code: ramp.Code(code)}
	}
	if a.Status != http.StatusOK {
		return nil, broken("success with HTTP %d instead of 200 (4.3)", a.Status)
	}
	if !isNull(envelope["errorCode"]) {
		return nil, broken("success whose errorCode is not null (7.2)")
	}
	return envelope["data"], nil
}

func isNull(b json.RawMessage) bool { return string(bytes.TrimSpace(b)) == "null" }

// checkAssets checks an answer to an assets call (interface 2.4).
func checkAssets(a *Answer) (*ramp.Player, error) {
	raw, err := open(a)
	if err != nil {
		return nil, err
	}
	var data struct {
		V1 *struct {
			Assets *[]map[string]json.RawMessage `json:"assets"`
		} `json:"v1"`
	}
	if err := json.Unmarshal(raw, &data); err != nil || data.V1 == nil || data.V1.Assets == nil {
		return nil, broken("data.v1.assets is not an array of objects (2.4)")
	}
	var whole struct {
		V1 ramp.Player `json:"v1"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil,
			broken("data.v1 is not of the form of 2.4: a balance is a decimal string, the rest are strings")
	}
	for i, asset := range whole.V1.Assets {
		if asset.ID == "" || asset.Balance.Sign() < 0 {
			return nil, broken("data.v1.assets[%d] has no id, or a balance below 0 (2.4)", i)
		}
	}
	return &whole.V1, nil
}

// CheckApproval checks an answer to a validate call (interface 2.6) and its
// signature (5.3).
func CheckApproval(a *Answer, asked *ramp.ValidateRequest, validator common.Address) (*ramp.Approval, error) {
	raw, err := open(a)
	if err != nil {
		return nil, err
	}
	var approval ramp.Approval
	if err := json.Unmarshal(raw, &approval); err != nil || isNull(raw) {
		return nil, broken("data.validatorSig is not 65 bytes in hex with 0x (5.3)")
	}
	if approval.UserSig != asked.UserSig {
		return nil, broken("data.userSig is not user_sig as it was sent (2.6)")
	}
	signer, err := ramp.Recover(asked.Digest, approval.ValidatorSig)
	if err != nil {
		return nil, broken("data.validatorSig is no signature with v 27 or 28 and a low s (5.3)")
	}
	if signer != validator {
		return nil,
			broken("data.validatorSig was made by %s, not by the registered %s (5.3)", signer, validator)
	}
	return &approval, nil
}

// CheckResult checks an answer to a result call (interface 4.3).
func CheckResult(a *Answer) error {
	raw, err := open(a)
	if err != nil {
		return err
	}
	if !isNull(raw) {
		return broken("data of a result's answer is not null (4.3)")
	}
	return nil
}

// wrongAnswer is an answer that breaks the interface and after which the service does not send
// the call again, or would not if the answer had not been lost on purpose.
type wrongAnswer struct {
	confirmed bool   // the game has confirmed a result, with this answer or with an earlier one
	what      string // is wrong
	cause     error
}

func (w *wrongAnswer) Error() string {
	if w.confirmed {
		return "ramptest: confirmed, but its answer breaks the interface: " + w.what
	}
	return broken("%s", w.what).Error()
}

func (w *wrongAnswer) Unwrap() error { return w.cause }

// wrongly describes what is wrong with an answer to a call that the game has not rejected.
func wrongly(err error) string { return strings.TrimPrefix(err.Error(), broken("").Error()) }

// wronglyConfirmed describes an answer to a result that the game has confirmed, and what is
// wrong with it.
func wronglyConfirmed(a *Answer, err error) error {
	w := &wrongAnswer{confirmed: true, what: wrongly(err), cause: err}
	switch r := RejectionOf(err); {
	case r != nil && r.Status == http.StatusOK:
		w.what = fmt.Sprintf("success is false (4.3), with %q", string(r.Code))
	case r != nil:
		w.what = fmt.Sprintf("HTTP %d and %q, after it had confirmed (6)", r.Status, string(r.Code))
	case a.Status != http.StatusOK:
		w.what += ", after it had confirmed (6)"
	}
	return w
}

// turnedDown describes an answer after which the service would not send a result again.
func turnedDown(err error) error {
	w := &wrongAnswer{what: wrongly(err), cause: err}
	if r := RejectionOf(err); r != nil {
		w.what = fmt.Sprintf("HTTP %d and %q", r.Status, string(r.Code))
	}
	w.what += order.NotSentAgain
	return w
}

// WrongOf returns what is wrong with an answer that has this error, if it is a wrongAnswer.
func WrongOf(err error) string {
	var w *wrongAnswer
	if errors.As(err, &w) {
		return w.what
	}
	return ""
}

// Rejection is the game's answer with success false (interface 7.2).
type Rejection struct {
	Status int       // HTTP status
	Code   ramp.Code // errorCode
}

// Error names the status and the errorCode.
func (r *Rejection) Error() string {
	did, why := "rejected the call with", ""
	switch {
	case r.Code == ramp.CodeHMACInvalid, r.Code == ramp.CodeHMACMissing:
		why = ": it has another HMAC key or reads it in another encoding, or verifies a body that was " +
			"parsed and written anew"
	case r.Status >= http.StatusInternalServerError:
		did, why = "answered", ": its log may say why"
	}
	return fmt.Sprintf("ramptest: the game %s HTTP %d and %q%s", did, r.Status, string(r.Code), why)
}

// RejectionOf returns the rejection in an error, or nil.
func RejectionOf(err error) (rejected *Rejection) {
	errors.As(err, &rejected)
	return rejected
}

func IsRejection(err error) bool { return RejectionOf(err) != nil }

// NamesSession reports whether an errorCode is about the session or its token.
func NamesSession(code ramp.Code) bool { return Names(code, "USER", "SESSION", "TOKEN") }

// names reports whether an errorCode has one of these words.
func Names(code ramp.Code, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.Contains(strings.ToUpper(string(code)), word)
	})
}

// isMissing reports whether an answer means that the game does not have the endpoint.
func isMissing(status int, err error) bool {
	if r := RejectionOf(err); r != nil && r.Code != ramp.CodeNotFound && r.Code != ramp.CodeMethodNotAllowed {
		return false
	}
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// mayLack reports whether an answer to a validate call may be about what the player owns. Its
// code, if it has one, is then the game's own.
func mayLack(status int, code string) bool {
	switch ramp.Code(code) {
	case ramp.CodeOrderConflict, ramp.CodeOrderFinished, ramp.CodeBodyTooLarge, ramp.CodeNotFound,
		ramp.CodeMethodNotAllowed:
		return false
	}
	field := strings.HasPrefix(code, "INVALID_") && !strings.Contains(code, "BALANCE")
	return status != http.StatusUnauthorized && status < 500 && !field && !strings.HasPrefix(code, "HMAC_")
}

// redactError removes secrets from an error.
func redactError(err error, known history.Secrets) error {
	var wrong *wrongAnswer
	if errors.As(err, &wrong) { // all that it shows
		wrong.what, wrong.cause = known.Line(wrong.what), redactError(wrong.cause, known)
		return err
	}
	if rejected := RejectionOf(err); rejected != nil {
		rejected.Code = ramp.Code(known.Text(string(rejected.Code)))
		return err
	}
	return known.Err(err)
}

// Outcome returns the outcome that an answer of the game states.
func Outcome(a *Answer) string {
	var said struct {
		Success   bool `json:"success"`
		ErrorCode any  `json:"errorCode"`
	}
	switch body, err := a.exact(); {
	case err != nil, json.Unmarshal(body, &said) != nil:
		return "not the envelope of 7.2"
	case said.Success:
		return "success"
	default:
		return fmt.Sprint(said.ErrorCode)
	}
}
