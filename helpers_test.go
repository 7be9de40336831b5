package ramp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// anyOf are terms that accept every order of a project on a network.
func anyOf(t testing.TB, project string, network ramp.Network) *ramp.Terms {
	return must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: project, Network: network}))(t)
}

// The signing vectors were made with an independent implementation for this key,
// which is worth nothing.
const vectorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"

var vectorAddress = common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")

type signingVector struct{ name, digestText, signatureText string }

var vectors = []signingVector{
	{
		"a digest",
		"0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85",
		"0xb17272739fcb2452e6775a892259513cfd733f3c2dcf3c4f2772ff55514e49d62d88f1" +
			"296329f3642793e186858daf49ffd6518cc9c6fe86886209689019aaa91c",
	},
	{
		"keccak256 of test",
		"0x9c22ff5f21f0b81b113e63f7db6da94fedef11b2119b4088b89664fb9a3cb658",
		"0x0500150743918328e67a0b096f2b0b85b44c08b68eb655fa275f4e56cec7cc7b502ebb" +
			"b27735ea0a41aee5da645d5bc51f0da580755ab6ae00c33766484181c31b",
	},
	{
		"the digest 1",
		"0x0000000000000000000000000000000000000000000000000000000000000001",
		"0xa5c1b7e2783955e2bfd91b736e64a5986a077c9bcb885f596e72b5feabbd386f0a8c56" +
			"208627cec5b0f765aee22c066bc1c7984eccf81adae4d3a11a55916eb31c",
	},
	{
		"a digest of ones, above the order of the curve",
		"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0xc38e58b524cf625603f92e15e7ea155ae0ab7f310946832ee6022573e02245041fcad4" +
			"c50fa3de75f41f5863b7bec082db1948ffaf1a9fcbf5ed7520f93346291b",
	},
}

func (v signingVector) digest(t testing.TB) ramp.Digest {
	return must.Get(ramp.ParseDigest(v.digestText))(t)
}
func (v signingVector) signature(t testing.TB) ramp.Signature {
	return must.Get(ramp.ParseSignature(v.signatureText))(t)
}

// The HMAC vectors are of a body with letters that take three bytes in UTF-8.
const (
	hmacBody = `{"userId":1234,"username":"홍길동","email":"user@example.com","role":"admin","createdAt":1234567890}`

	hmacText          = "my_secret_salt_value_!@#$%^&*"
	hmacTextSignature = "f96cf60394f6b8ad3c6de2d5b2b1d1a540f9529082a8eb9cee405bfbdd9f37a1"

	hmacBase64          = "my_secret_salt_value"
	hmacBase64Signature = "04f6008e6664944dd06565d3edf5fe2c8f92c8633f2947f6378ac651c9229098"
)

func testKey(t testing.TB) ramp.HMACKey         { return must.Get(ramp.TextKey(hmacText))(t) }
func testSigner(t testing.TB) *ramp.Signer      { return must.Get(ramp.NewKeySigner(vectorKey))(t) }
func vectorBase64Key(t testing.TB) ramp.HMACKey { return must.Get(ramp.Base64URLKey(hmacBase64))(t) }

// assertFields checks that err is an InvalidError about exactly these fields.
// Each is a path and the beginning of the problem: "uuid is required".
func assertFields(t *testing.T, err error, want ...string) {
	t.Helper()
	wrong := as[*ramp.InvalidError](t, err)
	var got []string
	for _, f := range wrong.Fields {
		got = append(got, f.Path+" "+f.Problem)
	}
	require.Len(t, got, len(want), "%q", got)
	for i := range want {
		assert.True(t, len(got[i]) >= len(want[i]) && got[i][:len(want[i])] == want[i], "got %q, want %q…",
			got[i], want[i])
	}
}

// wrong is a change of a config, and what is wrong with it then.
type wrong[Config any] struct {
	want   string
	change func(*Config)
}

// assertCannotWork checks that nothing is made of a config with any of these changes.
func assertCannotWork[Config, Made any](t *testing.T, config Config, make func(Config) (*Made, error),
	changes []wrong[Config]) {
	t.Helper()
	for _, test := range changes {
		c := config
		test.change(&c)
		made, err := make(c)
		assert.EqualError(t, err, "ramp: "+test.want)
		assert.Nil(t, made)
	}
}

// match returns the product that an order of project-1 is for, and the number of tokens.
func match(terms *ramp.Terms, order ramp.Intent) (product string, tokens ramp.Amount, err error) {
	r := &ramp.ValidateRequest{ProjectID: "project-1", Intent: order}
	err = terms.Match(r)
	return r.Product, r.Tokens, err
}

// caller calls a handler as the service does, and returns the Err of the reply.
type caller struct{ handler *ramp.Handler }

// newCaller returns a caller of a new handler.
func newCaller(t testing.TB, c ramp.HandlerConfig) caller { return caller{newHandler(t, c)} }

// newHandler returns a handler that, unless c says otherwise, accepts every order and every
// result, and logs nothing.
func newHandler(t testing.TB, c ramp.HandlerConfig) *ramp.Handler {
	if c.Players == nil {
		game := &recorder{}
		c.Players, c.Store = game, game
	}
	if c.Terms == nil {
		c.Terms = anyTerms
	}
	if c.Key.IsZero() {
		c.Key = testKey(t)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Signer == nil {
		c.Signer = testSigner(t)
	}
	return must.Get(ramp.NewHandler(c))(t)
}

// signed are the headers of a call whose HMAC is right.
func signed(t testing.TB, body []byte) http.Header {
	return http.Header{
		"x-dapp-authorization": {"Bearer secret-token"},
		"x-dapp-sessionid":     {"session-1"},
		"x-hmac-signature":     {testKey(t).Sign(body)},
	}
}

func (c caller) Validate(t testing.TB, ctx context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	body, header := c.signed(t, s, r)
	return toValidate(c.handler)(ctx, header, body).Err
}

func (c caller) Result(t testing.TB, ctx context.Context, s ramp.Session, r *ramp.Result) error {
	body, header := c.signed(t, s, r)
	return toResult(c.handler)(ctx, header, body).Err
}

// toAssets returns how a handler answers calls to the path of assets.
func toAssets(h *ramp.Handler) func(context.Context, http.Header) ramp.Reply {
	return func(ctx context.Context, header http.Header) ramp.Reply {
		return h.Answer(ctx, http.MethodGet, ramp.PathAssets, header, nil)
	}
}

// answering is how a handler answers the calls to a path.
type answering func(context.Context, http.Header, []byte) ramp.Reply

func toValidate(h *ramp.Handler) answering { return posted(h, ramp.PathValidate) }
func toResult(h *ramp.Handler) answering   { return posted(h, ramp.PathResult) }

func posted(h *ramp.Handler, path string) answering {
	return func(ctx context.Context, header http.Header, body []byte) ramp.Reply {
		return h.Answer(ctx, http.MethodPost, path, header, body)
	}
}

func (c caller) signed(t testing.TB, s ramp.Session, message any) ([]byte, http.Header) {
	body := must.Get(json.Marshal(message))(t)
	header := http.Header{ramp.HeaderHMAC: {testKey(t).Sign(body)}, ramp.HeaderAuthorization: {"Bearer token-1"}}
	if s.ID != "" {
		header.Set(ramp.HeaderSession, s.ID)
	}
	return body, header
}

// assertCode checks that err is a Rejection with this code.
func assertCode(t *testing.T, err error, want ramp.Code) {
	t.Helper()
	rejection := as[*ramp.Rejection](t, err)
	assert.Equal(t, want, rejection.Code)
}

// inBubble runs a subtest in a bubble, whose time passes by itself.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// within returns a context that ends after some time.
func within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// as returns the error of a type within err.
func as[E error](t testing.TB, err error) (found E) {
	t.Helper()
	require.ErrorAs(t, err, &found)
	return found
}

// rpcOver returns a client of a node on a network in memory.
func rpcOver(t testing.TB, network http.RoundTripper, c ramp.RPCConfig) *ramp.RPC {
	c.URL, c.HTTPClient = "https://node.example.com", &http.Client{Transport: network}
	return must.Get(ramp.NewRPC(c))(t)
}
