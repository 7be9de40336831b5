package ramp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

var sentinels = []error{
	ErrHMACMissing, ErrHMACInvalid, ErrHMACKey, ErrUnknownProject, ErrUnknownNetwork, ErrValidatorKey, ErrSignature,
	ErrOrderUnknown, ErrOrderConflict, ErrOrderFinished, ErrNotFound,
}

func TestSentinelsAreToldApart(t *testing.T) {
	texts := map[string]bool{}
	for i, a := range sentinels {
		assert.False(t, texts[a.Error()], a)
		texts[a.Error()] = true
		for j, b := range sentinels {
			assert.Equal(t, i == j, errors.Is(fmt.Errorf("ramp: %w", a), b))
		}
	}
}

func TestInvalidErrorText(t *testing.T) {
	var p problems
	require.NoError(t, p.err(), "no problem is no error, not even a typed nil")
	p.require(true, "uuid")
	require.NoError(t, p.err())
	p.require(false, "uuid")
	assert.EqualError(t, p.err(), "ramp: uuid is required")
	p.add("intent.from[1].amount", "must be %s", "a number")
	assert.EqualError(t, p.err(), "ramp: uuid is required; intent.from[1].amount must be a number")
	p.addAll(invalid("intent.to", "is required"))
	p.addAll(errors.New("another family adds nothing"))
	p.addAll(nil)
	assert.EqualError(t, p.err(),
		"ramp: uuid is required; intent.from[1].amount must be a number; intent.to is required")

	p.requireKey(false, "HandlerConfig.Key", ErrHMACKey)
	var wrong *InvalidError
	require.ErrorAs(t, p.err(), &wrong)
	assert.Equal(t, []error{ErrHMACKey}, wrong.Unwrap(), "a field without a sentinel adds none, not even nil")
	p = p[:3]

	for range 97 {
		p.require(false, "digest")
	}
	text := p.err().Error()
	assert.Equal(t, 17, strings.Count(text, "digest"))
	assert.True(t, strings.HasSuffix(text, "; and 80 more"), text)
}

func TestCodeNamesTheFirstWrongField(t *testing.T) {
	for path, want := range map[string]Code{
		"body":                    "INVALID_BODY",
		"uuid":                    "INVALID_UUID",
		"digest":                  "INVALID_DIGEST",
		"user_sig":                "INVALID_USER_SIG",
		"intent":                  "INVALID_INTENT",
		"intent.method":           "INVALID_INTENT_METHOD",
		"intent.from.amount":      "INVALID_INTENT_FROM_AMOUNT",
		"intent.from[0].amount":   "INVALID_INTENT_FROM_AMOUNT",
		"intent.to[12].type":      "INVALID_INTENT_TO_TYPE",
		"receipt.status":          "INVALID_RECEIPT_STATUS",
		"receipt.logs[1].topics":  "INVALID_RECEIPT_LOGS_TOPICS",
		"receipt.transactionHash": "INVALID_RECEIPT_TRANSACTIONHASH",
	} {
		var wrong *InvalidError
		require.ErrorAs(t, invalid(path, "is required"), &wrong)
		wrong.Fields = append(wrong.Fields, FieldError{Path: "other"})
		assert.Equal(t, want, invalidCode(wrong))
		assert.Equal(t, want, RejectionOf(wrong).Code)
	}
	assert.Equal(t, Code("INVALID_BODY"), invalidCode(&InvalidError{}))
}

func TestEveryErrorOfAGameHasStatusAndCode(t *testing.T) {
	cause := errors.New("database is down")
	for name, tt := range map[string]struct {
		err    error
		status int
		code   Code
	}{
		"an error is an internal one":           {cause, 500, CodeInternal},
		"a rejection has the endpoint's status": {Reject("INVALID_BALANCE"), 418, "INVALID_BALANCE"},
		"a wrapped rejection is one": {fmt.Errorf("order: %w", Reject("INVALID_USER")), 418,
			"INVALID_USER"},
		"custom rejection":                       {&Rejection{Status: 409, Code: "BUSY"}, 409, "BUSY"},
		"a rejection without a code":             {Reject(""), 418, CodeInternal},
		"our sentinel from a game is not ours":   {ErrHMACInvalid, 500, CodeInternal},
		"our field error from a game is not his": {invalid("digest", "is required"), 500, CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, &Rejection{Status: tt.status, Code: tt.code, Err: tt.err}, gameRejection(tt.err, 418))
		})
	}
	rejection := &Rejection{Code: "INVALID_USER"}
	_ = gameRejection(rejection, 418)
	assert.Equal(t, &Rejection{Code: "INVALID_USER"}, rejection, "a rejection that a game shares is left alone")
}

func TestRejectionText(t *testing.T) {
	cause := errors.New("database is down")
	assert.EqualError(t, Reject("INVALID_USER"), "ramp: rejected: INVALID_USER")
	assert.NoError(t, errors.Unwrap(Reject("INVALID_USER")))
	caused := &Rejection{Code: "BUSY", Err: cause}
	assert.EqualError(t, caused, "ramp: rejected: BUSY: database is down")
	assert.Equal(t, cause, errors.Unwrap(caused))
}

// encoding/json writes invalid UTF-8 differently under each of its versions.
func TestCodeIsWrittenAsUTF8(t *testing.T) {
	b := must.Get(json.Marshal(Response[struct{}]{ErrorCode: "BAD_\xff"}))(t)
	assert.Equal(t, "{\"success\":false,\"errorCode\":\"BAD_\ufffd\",\"data\":null}", string(b))
}

func TestMustPanicsWithTheError(t *testing.T) {
	assert.Equal(t, 7, Must(7, nil))
	_, err := NewTerms(TermsConfig{})
	assert.PanicsWithError(t, err.Error(), func() { Must(NewTerms(TermsConfig{})) })
}
