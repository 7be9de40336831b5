package ramp_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
)

// Nothing of a body is read before its HMAC holds, and the answer to each error is at hand.
func TestReadingACallOfTheService(t *testing.T) {
	validate, result := validateCall(), resultCall()
	with := func(name string, values ...string) func(http.Header) {
		return func(h http.Header) { h[name] = values }
	}
	const missing, wrong, noToken = "401 HMAC_MISSING", "401 HMAC_INVALID", "401 ACCESS_TOKEN_MISSING"
	const swapped, misplaced = "500 INVALID_RECEIPT_STATUS", "500 INVALID_USER_SIG"
	short := validate.With("digest", testDigest[:64]).Bytes(t)
	elsewhere := with("x-hmac-signature", testKey(t).Sign(nil))
	for name, c := range map[string]struct {
		body     []byte
		header   func(http.Header)
		validate string // the answer of ReadValidate
		result   string // the answer of ReadResult
	}{
		"a validate call":            {body: validate.Bytes(t), validate: "ok", result: swapped},
		"a result":                   {body: result.Bytes(t), validate: misplaced, result: "ok"},
		"no HMAC":                    {validate.Bytes(t), with("x-hmac-signature"), missing, missing},
		"two HMACs":                  {validate.Bytes(t), with("x-hmac-signature", "a", "b"), wrong, wrong},
		"the HMAC of another body":   {[]byte("{}"), elsewhere, wrong, wrong},
		"a body that is not read":    {[]byte("?"), elsewhere, wrong, wrong},
		"no JSON":                    {body: []byte("?"), validate: "400 INVALID_BODY", result: "400 INVALID_BODY"},
		"a digest of 31 bytes":       {short, nil, "400 INVALID_DIGEST", "400 INVALID_RECEIPT_STATUS"},
		"no session":                 {validate.Bytes(t), with("x-dapp-sessionid"), "401 SESSION_MISSING", swapped},
		"no token":                   {validate.Bytes(t), with("x-dapp-authorization"), noToken, swapped},
		"a result without a session": {result.Bytes(t), with("x-dapp-sessionid"), misplaced, "ok"},
		"a result without a token":   {result.Bytes(t), with("x-dapp-authorization"), misplaced, "ok"},
		"another session's header":   {result.Bytes(t), with("x-dapp-sessionid", "session-2"), misplaced, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			header := signed(t, c.body)
			if c.header != nil {
				c.header(header)
			}
			answer := func(err error) string {
				if err == nil {
					return "ok"
				}
				rejection := ramp.RejectionOf(err)
				assert.ErrorIs(t, rejection, err)
				return fmt.Sprint(rejection.Status, " ", rejection.Code)
			}
			request, session, err := ramp.ReadValidate(testKey(t), header, c.body)
			assert.Equal(t, c.validate, answer(err))
			claimed := session.ID + " " + session.Token.Reveal()
			assert.Equal(t, err == nil, request != nil && claimed == "session-1 secret-token")

			outcome, session, err := ramp.ReadResult(testKey(t), header, c.body)
			assert.Equal(t, c.result, answer(err))
			assert.Equal(t, err == nil, outcome != nil && session.ID == "session-1", "that of the signed body")
		})
	}
	body := result.Without("session_id").Bytes(t)
	_, session, err := ramp.ReadResult(testKey(t), signed(t, body), body)
	require.NoError(t, err)
	assert.Equal(t, "session-1", session.ID, "that of the header, if the body has none")

	body = validate.Bytes(t)
	request, _, err := ramp.ReadValidate(testKey(t), signed(t, body), body)
	require.NoError(t, err)
	clear(body)
	assert.Equal(t, string(validate.Bytes(t)), string(request.Raw), "the body is copied")
	_, _, err = ramp.ReadValidate(ramp.HMACKey{}, signed(t, body), body)
	assert.ErrorIs(t, err, ramp.ErrHMACKey)
	assert.Equal(t, 500, ramp.RejectionOf(err).Status)
}

func TestTheAnswerToAnError(t *testing.T) {
	order := accepted(t, mintRequest(t))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a stored order that differs":  {&ramp.ConflictError{Order: order, Field: "digest"}, "200 ORDER_CONFLICT"},
		"an order that has ended":      {fmt.Errorf("a: %w", ramp.ErrOrderFinished), "200 ORDER_FINISHED"},
		"an order that nobody knows":   {ramp.ErrOrderUnknown, "500 INTERNAL_ERROR"},
		"an order of another network":  {ramp.ErrOrderForeign, "500 INTERNAL_ERROR"},
		"no product":                   {new(ramp.Terms).Match(mintRequest(t)), "200 INVALID_MESSAGE"},
		"another project":              {anyOf(t, "project-2", "").Match(mintRequest(t)), "400 INVALID_PROJECT_ID"},
		"a rejection":                  {ramp.Reject("BANNED"), "200 BANNED"},
		"a rejection with a status":    {&ramp.Rejection{Status: 409, Code: "BUSY"}, "409 BUSY"},
		"a rejection without a code":   {ramp.Reject(""), "200 INTERNAL_ERROR"},
		"a wrapped rejection":          {fmt.Errorf("a: %w", ramp.Reject("BANNED")), "200 BANNED"},
		"what is not of this package":  {errors.New("down"), "500 INTERNAL_ERROR"},
		"a signature that is not sent": {ramp.ErrSignature, "500 INTERNAL_ERROR"},
	} {
		rejection := ramp.RejectionOf(c.err)
		assert.Equal(t, c.want, fmt.Sprint(rejection.Status, " ", rejection.Code), name)
	}
}

// The rule that lets a call see only orders of its project and network.
func TestOnlyOrdersOfAProjectOnANetwork(t *testing.T) {
	order := accepted(t, mintRequest(t)) // of project-1
	order.Network = ramp.Testnet
	unnamed := order
	unnamed.Network = ""
	finish := ramp.Finish(reported(order, 0), time.Now())
	for name, c := range map[string]struct {
		stored   *ramp.Order
		projects []string
		network  ramp.Network
		want     string // of the error
	}{
		"its own":           {&order, []string{"project-1"}, ramp.Testnet, ""},
		"of any":            {&order, nil, "", ""},
		"of any network":    {&order, []string{"project-1"}, "", ""},
		"without a network": {&unnamed, []string{"project-1"}, ramp.Mainnet, ""},
		"of one of them":    {&order, []string{"project-2", "project-1"}, "", ""},
		"of another project": {&order, []string{"project-2", "project-3"}, ramp.Testnet,
			`project "project-1", and not "project-2, project-3"`},
		"of another network":     {&order, []string{"project-1"}, ramp.Mainnet, "network: testnet, and not mainnet"},
		"of neither":             {&unnamed, []string{"project-2"}, ramp.Mainnet, "project"},
		"one that nobody stored": {nil, []string{"project-2"}, ramp.Mainnet, ramp.ErrOrderUnknown.Error()},
	} {
		step, err := ramp.OnlyOf(c.projects, c.network, finish)(c.stored)
		if c.want == "" {
			require.NoError(t, err, name)
			assert.Equal(t, ramp.OrderFailed, step.Order.State, name)
			assert.Equal(t, c.stored.Network, step.Order.Network, name)
			continue
		}
		assert.ErrorContains(t, err, c.want, name)
		assert.Equal(t, c.stored != nil, errors.Is(err, ramp.ErrOrderForeign), name)
		assert.False(t, strings.Contains(err.Error(), player.ID), name)
	}
	step, err := ramp.OnlyOf([]string{"project-1"}, ramp.Mainnet, ramp.Accept(player, mintRequest(t), time.Now()))(nil)
	require.NoError(t, err)
	assert.Equal(t, ramp.Mainnet, step.Order.Network, "a new order is stored with the network")
}
