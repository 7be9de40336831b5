package ramptest_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/ownledger"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// newStub joins a shop and a service that knows its project, over HTTP. Nobody audits it.
func newStub(t *testing.T, options ...func(*ramptest.Config)) (*counter, *shop) {
	t.Helper()
	c := newCounter(t, append(options, served(t), auditOff, func(c *ramptest.Config) {
		c.ProjectID, c.Networks = "project-1", map[ramp.Network]uint64{ramp.Testnet: 7002}
	})...)
	return c, c.shop
}

func request() ramp.InitializeRequest {
	item := ramp.Item{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		MintFeeBps: 2000, Materials: []ramp.Item{item}, Outputs: []ramp.Item{item},
	}}
}

func TestInitializeFailsAsTheInterfaceSays(t *testing.T) {
	c, _ := newStub(t)
	other := must.Get(ramp.TextKey("another key"))(t)
	_, err := clientOf(t, c.service, other).Initialize(t.Context(), request())
	assert.ErrorIs(t, err, ramp.ErrHMACInvalid)

	elsewhere := newCounter(t, func(c *ramptest.Config) { c.ProjectID, c.FailureStatus = "other", 200 })
	_, err = elsewhere.client.Initialize(t.Context(), request())
	assert.ErrorIs(t, err, ramp.ErrUnknownProject)
	var failure *ramp.APIError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 200, failure.Status, "it is a switch")

	wrong := request()
	wrong.Intent.Network = ramp.Mainnet // this service has testnet only
	_, err = c.client.Initialize(t.Context(), wrong)
	assert.ErrorIs(t, err, ramp.ErrUnknownNetwork)

	// What a Client never sends: the exact bytes of section 7.1.
	for _, test := range []struct {
		body   string
		signed bool
		status int
		want   string
	}{
		{`{}`, false, 400, `{"code":400,"message":"Bad Request","data":"X-HMAC-Signature is required"}`},
		{`{"intent":{"network":"testnet"}}`, true, 500,
			`{"code":500,"message":"Internal Server Error","data":"ramp not found"}`},
		{`{"intent":{"project_id":"project-1"}}`, true, 500,
			`{"code":500,"message":"Internal Server Error","data":"ramp not exists"}`},
		{`{"Intent":{"network":"testnet","project_id":"project-1"}}`, true, 500,
			`{"code":500,"message":"Internal Server Error","data":"ramp not found"}`},
		{`[]`, true, 400, `{"code":400,"message":"Bad Request","data":"the body is not an initialize request"}`},
		{`{}{}`, true, 400, `{"code":400,"message":"Bad Request","data":"the body is not an initialize request"}`},
	} {
		headers := []string{"Content-Type", "application/json"}
		if test.signed {
			headers = append(headers, "X-HMAC-SIGNATURE", c.key.Sign([]byte(test.body)))
		}
		response := c.send(t, "POST", "/api/v2/initialize", test.body, headers...)
		assert.Equal(t, test.status, response.StatusCode)
		assert.Equal(t, test.want, strings.TrimSpace(whole(t, response)))
	}
}

// TestWhatIsWrongWithAnInitializeRequestIsNamed changes a correct request in one place
// each time (interface 2.2).
func TestWhatIsWrongWithAnInitializeRequestIsNamed(t *testing.T) {
	const right = `{"player_id":"p","intent":{"network":"testnet","project_id":"project-1",` +
		`"token":"0x00000000000000000000000000000000000070c3",` +
		`"mint_fee_bps":100,"burn_fee_bps":0,"mint_method":"mint","burn_method":"burn-permit",` +
		`"materials":[{"id":"item_gold","amount":10,"icon_url":"https://example.com/gold.png",` +
		`"is_non_fungible":false}],"outputs":[]}}`
	for _, test := range []struct{ old, new, want string }{ // want is "" if nothing is wrong
		{"", "", ""},
		{`:100,`, `:100.0,`, ""},
		{`:100,`, `:1e2,`, ""},
		{`"burn_fee_bps":0`, `"burn_fee_bps":0.0`, ""},
		{`"amount":10`, `"amount":0.5`, ""},
		{`"player_id":"p"`, `"player_id":7`, "player_id has the wrong type"},
		{`"0x`, `"0y`, "intent.token must be 20 bytes in hex with 0x"},
		{`"mint_fee_bps":100,`, ``, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`"mint_fee_bps"`, `"Mint_Fee_Bps"`, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`:100,`, `:10001,`, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`:100,`, `:-1,`, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`:100,`, `:0.5,`, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`:100,`, `:"100",`, "intent.mint_fee_bps must be a whole number from 0 to 10000"},
		{`"burn_fee_bps":0`, `"burn_fee_bps":1`, "intent.burn_fee_bps is fixed to 0"},
		{`"burn_fee_bps":0,`, ``, "intent.burn_fee_bps is fixed to 0"},
		{`"mint_method":"mint"`, `"mint_method":"steal"`, "intent.mint_method is fixed to mint"},
		{`"burn_method":"burn-permit",`, ``, "intent.burn_method is fixed to burn-permit"},
		{`"materials"`, `"material"`, "intent.materials is required"},
		{`"outputs":[]`, `"outputs":null`, "intent.outputs is required"},
		{`"id":"item_gold",`, ``, "intent.materials[0].id is required"},
		{`"amount":10,`, ``, "intent.materials[0].amount must be a number above 0"},
		{`"amount":10`, `"amount":0`, "intent.materials[0].amount must be a number above 0"},
		{`"amount":10`, `"amount":"10"`, "intent.materials[0].amount must be a number above 0"},
		{`https://example.com/gold.png`, ``, "intent.materials[0].icon_url is required"},
		{`,"is_non_fungible":false`, ``, "intent.materials[0].is_non_fungible is required"},
	} {
		t.Run(test.old+" becomes "+test.new, func(t *testing.T) {
			c := newCounter(t)
			require.Contains(t, right, test.old)
			body := strings.Replace(right, test.old, test.new, 1)
			response := c.send(t, "POST", "/api/v2/initialize", body, "Content-Type", "application/json",
				"X-HMAC-SIGNATURE", c.key.Sign([]byte(body)))
			if answer := whole(t, response); test.want == "" {
				assert.Equal(t, 200, response.StatusCode, answer)
			} else {
				assert.Equal(t, 400, response.StatusCode)
				assert.Equal(t, `{"code":400,"message":"Bad Request","data":"`+test.want+`"}`, answer)
			}
		})
	}
}

// A token must not reach an address that the console does not have.
func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	c, _ := newStub(t, before(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	_, err := c.service.Assets(t.Context(), c.session)
	assert.ErrorContains(t, err, "HTTP 307 with a body that is no JSON object")
}

func TestAMintIsDrivenFromAssetsToResult(t *testing.T) {
	c, game := newStub(t)
	player := must.Get(c.service.Assets(t.Context(), c.session))(t)
	assert.Equal(t, "1000", player.Assets[0].Balance.String())

	order := must.Get(c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1)))(t)
	assert.Equal(t, order.Request.UserSig, order.Approval.UserSig)
	assert.NotZero(t, order.Approval.ValidatorSig)

	for range 2 {
		require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded))
	}
	require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Failed))
	require.Len(t, game.results, 3)
	assert.Equal(t, game.results[0].Raw, game.results[1].Raw, "a redelivery is the same bytes")
	assert.True(t, game.results[0].Succeeded())
	assert.False(t, game.results[2].Succeeded())

	got := game.results[0]
	assert.Equal(t, "session-1", got.SessionID)
	assert.Equal(t, got.TxHash, got.Receipt.TransactionHash.Hex())
	assert.Equal(t, json.Number("2000"), got.Intent.FeeRate)
	assert.Equal(t, "0.8", got.Intent.Actual)
	require.Len(t, got.Receipt.Logs, 2, "what the player gets, and the fee")
	assert.Contains(t, string(got.Raw), `"blockTimestamp":0`)

	// It has every field that the interface has.
	example := must.Get(os.ReadFile("../testdata/6-result-mint.json"))(t)
	var fields func(text []byte, at string, found map[string]bool)
	fields = func(text []byte, at string, found map[string]bool) {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(text, &object) == nil:
			for name, value := range object {
				found[at+name] = true
				fields(value, at+name+".", found)
			}
		case json.Unmarshal(text, &list) == nil:
			for _, entry := range list {
				fields(entry, at, found)
			}
		}
	}
	want, has := map[string]bool{}, map[string]bool{}
	fields(example, "", want)
	fields(got.Raw, "", has)
	assert.Greater(t, len(want), 35)
	assert.Equal(t, want, has)

	order = must.Get(c.service.Burn(t.Context(), c.initialize(t), c.session, ramp.NewAmount(3)))(t)
	require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded))
	assert.Equal(t, json.Number("0"), game.results[3].Intent.FeeRate, "a burn has no fee")
	assert.Equal(t, "100", game.results[3].Intent.Actual)
}

func TestAUUIDIsGoodForFiveMinutes(t *testing.T) {
	c, _ := newStub(t)
	id := c.initialize(t)
	c.service.Advance(5*time.Minute - time.Nanosecond)
	_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1))
	assert.NoError(t, err)
	c.service.Advance(time.Nanosecond)
	_, err = c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1))
	assert.ErrorIs(t, err, ramptest.ErrExpiredUUID)
	_, err = c.service.Burn(t.Context(), uuid.New(), c.session, ramp.NewAmount(1))
	assert.ErrorIs(t, err, ramptest.ErrUnknownUUID)
	_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1), ramptest.ExpiredUUID())
	assert.ErrorIs(t, err, ramptest.ErrExpiredUUID)

	c = newCounter(t, func(c *ramptest.Config) { c.AcceptExpired = true })
	c.mint(t, ramptest.ExpiredUUID())
	id = c.initialize(t)
	c.service.Advance(time.Hour)
	_, err = c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1))
	assert.NoError(t, err)
}

// Each point that the interface leaves open, and where the service could differ, is a switch.
// A game whose terms do not depend on it passes in every position.
func TestEveryReadingOfTheInterfaceCanBePlayed(t *testing.T) {
	after5xx := func(status int) bool { return status >= 500 }
	for name, test := range map[string]struct {
		change func(*ramptest.Config)
		stated string // the number of tokens in the intent of the mint
	}{
		"as it is likely":      {func(*ramptest.Config) {}, "10"},
		"tokens after the fee": {func(c *ramptest.Config) { c.NetAmounts = true }, "8"},
		"a UUID of 32 digits":  {func(c *ramptest.Config) { c.UUIDDigits = true }, "10"},
		"a key as base64url":   {func(c *ramptest.Config) { c.Key = must.Get(ramp.Base64URLKey("c2FsdA"))(t) }, "10"},
		"a price of a token":   {func(c *ramptest.Config) { c.PerOrder = false }, "10"},
		"the method burn":      {func(c *ramptest.Config) { c.BurnMethod = ramp.MethodBurn }, "10"},
		"retries after 5xx":    {func(c *ramptest.Config) { c.Retry = after5xx }, "10"},
		"a result of no type":  {func(c *ramptest.Config) { c.ResultType = "none" }, "10"},
		"a result of octets":   {func(c *ramptest.Config) { c.ResultType = "application/octet-stream" }, "10"},
		"a result of text":     {func(c *ramptest.Config) { c.ResultType = "text/plain" }, "10"},
		"failures are 200":     {func(c *ramptest.Config) { c.FailureStatus = 200 }, "10"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t, test.change, func(config *ramptest.Config) {
				_, signer := console(t)
				config.Handler = must.Get(ownledger.Handler(
					ramp.HandlerConfig{Logger: ramptest.Logger(t), Terms: anyTerms, Key: config.Key, Signer: signer},
					newShop()))(t)
			})
			c.client = clientOf(t, c.service, c.config.Key)
			started, err := c.client.Initialize(t.Context(), request())
			require.NoError(t, err)
			assert.Equal(t, c.config.UUIDDigits, len(started.Text) == 32, started.Text)
			minted, err := c.service.Mint(t.Context(), started.UUID, c.session, ramp.NewAmount(10))
			require.NoError(t, err)
			assert.Equal(t, test.stated, minted.Request.Intent.To[0].Amount.String())
			sent := c.service.Advance(time.Second)
			require.Len(t, sent, 1)
			assert.NoError(t, sent[0].Err)
			for _, e := range c.service.Events() {
				if want := cmp.Or(c.config.ResultType, "application/json"); e.Kind == control.KindResult {
					assert.Equal(t, want, cmp.Or(e.Request.Header.Get("Content-Type"), "none"))
				}
			}

			assert.Equal(t, "1008.00", c.holds(t, minted.Request.UserAddress), "8 are left after the fee")
			started, err = c.client.Initialize(t.Context(), request())
			require.NoError(t, err)
			_, err = c.service.Burn(t.Context(), started.UUID, c.session, ramp.NewAmount(8))
			require.NoError(t, err)
			c.service.Advance(time.Second)
		})
	}
}

func TestAGameThatRejectsIsHeard(t *testing.T) {
	c, game := newStub(t)
	game.reject = ramp.Reject("INVALID_BALANCE")
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	var rejected *ramptest.Rejection
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, ramp.Code("INVALID_BALANCE"), rejected.Code)
	assert.Equal(t, 200, rejected.Status)
	assert.EqualError(t, err, `ramptest: the game rejected the call with HTTP 200 and "INVALID_BALANCE"`)
	assert.IsType(t, rejected, err, "it needs no errors.As")

	game.reject = ramp.Reject("INVALID_MESSAGE") // perhaps of a game that reads prices as those of an order
	_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(2))
	assert.ErrorAs(t, err, &rejected)
	assert.ErrorContains(t, err, "Config.PerOrder is true")
	_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	assert.NotContains(t, err.Error(), "PerOrder")

	game.reject = errors.New("no database")
	_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	assert.EqualError(t, err, `ramptest: the game answered HTTP 500 and "INTERNAL_ERROR": its log may say why`)
}

// TestAnAnswerThatBreaksTheInterfaceIsFound breaks a correct answer in one place each
// time.
func TestAnAnswerThatBreaksTheInterfaceIsFound(t *testing.T) {
	const highS = "the same signature with the other s"
	assets := func(c *counter) error {
		_, err := c.service.Assets(t.Context(), c.session)
		return err
	}
	mint := func(c *counter) error {
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		return err
	}
	result := func(c *counter) error {
		return c.service.Deliver(t.Context(),
			&ramptest.PlacedOrder{Session: c.session, UUID: uuid.New(), Request: ramp.ValidateRequest{
				Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
					From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(1)}},
					To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3",
						Amount: ramp.NewAmount(1)}},
				}}}, ramptest.Succeeded)
	}
	for _, test := range []struct {
		name     string
		call     func(*counter) error
		old, new string // in the answer
		status   int    // instead of 200
		want     string
	}{
		{"HTTP 201", assets, "", "", 201, "success with HTTP 201"},
		{"no JSON", assets, "{", "<", 0, "no JSON object"},
		{"no success", assets, `"success":true,`, "", 0, "without success"},
		{"no errorCode", assets, `"errorCode":null,`, "", 0, "without errorCode"},
		{"success of text", assets, `true`, `"true"`, 0, "success is no boolean"},
		{"success of null", assets, `true`, `null`, 0, "success is no boolean"},
		{"an errorCode on success", assets, `"errorCode":null`, `"errorCode":""`, 0, "errorCode is not null"},
		{"a failure without a code", assets, `"success":true`, `"success":false`, 0, "a failure without a string"},
		{"a failure with data", assets, `"success":true,"errorCode":null`, `"success":false,"errorCode":"NO"`, 0,
			"data is not null"},
		{"DATA", assets, `"data"`, `"DATA"`, 0, "without data"},
		{"V1", assets, `"v1"`, `"V1"`, 0, "data.v1.assets"},
		{"ID", assets, `"id"`, `"ID"`, 0, "has no id"},
		{"validatorsig", mint, `"validatorSig"`, `"validatorsig"`, 0, "no signature"},
		{"a balance that is a number", assets, `"1000"`, `1000`, 0, "a balance is a decimal string"},
		{"a balance below 0", assets, `"1000"`, `"-1000"`, 0, "balance below 0"},
		{"null for data", mint, `"data":{`, `"data":null,"x":{`, 0, "data.validatorSig"},
		{"another userSig", mint, `"userSig":"0x`, `"userSig":"0xff`, 0, "not user_sig as it was sent"},
		{"a short validatorSig", mint, `"validatorSig":"0x`, `"validatorSig":"`, 0, "not 65 bytes"},
		{"v of 0 or 1", mint, `1b"}`, `00"}`, 0, "v 27 or 28"},
		{"a high s", mint, highS, highS, 0, "low s"},
		{"the signature of another digest", mint, `"validatorSig":"0x`,
			`"validatorSig":"0x` + strings.Repeat("11", 64) + `1b","y":"`, 0, "data.validatorSig"},
		{"data on a result", result, `"data":null`, `"data":{}`, 0, "data of a result"},
		{"a result that is rejected", result, `"success":true,"errorCode":null`, `"success":false,"errorCode":"NO"`,
			500, `HTTP 500 and "NO"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := newStub(t, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
				answer := httptest.NewRecorder()
				inner.ServeHTTP(answer, r)
				body := answer.Body.String()
				switch {
				case test.old == highS:
					body = withHighS(t, body)
				case test.old == `1b"}`: // whichever v it has
					body = strings.NewReplacer(`1b"}`, `00"}`, `1c"}`, `01"}`).Replace(body)
				case test.old != "":
					require.Contains(t, body, test.old)
					body = strings.Replace(body, test.old, test.new, 1)
				}
				w.WriteHeader(max(test.status, 200))
				_, _ = io.WriteString(w, body)
			}))
			assert.ErrorContains(t, test.call(c), test.want)
		})
	}
}

// withHighS replaces the signature by the one with n-s and the other v, which
// recovers to the same address but is not what a contract takes.
func withHighS(t *testing.T, body string) string {
	var answer ramp.Response[ramp.Approval]
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	sig := answer.Data.ValidatorSig
	n := crypto.S256().Params().N
	new(big.Int).Sub(n, new(big.Int).SetBytes(sig[32:64])).FillBytes(sig[32:64])
	sig[64] ^= 27 ^ 28
	return strings.Replace(body, answer.Data.ValidatorSig.String(), sig.String(), 1)
}

func TestAServiceThatCannotWorkIsNotStarted(t *testing.T) {
	c := newCounter(t)
	for want, change := range map[string]func(*ramptest.Config){
		"Key is required":                    func(c *ramptest.Config) { c.Key = ramp.HMACKey{} },
		"Validator is required":              func(c *ramptest.Config) { c.Validator = common.Address{} },
		"excludes Config.Handler":            func(c *ramptest.Config) { c.Game = "http://127.0.0.1:1" },
		"Game must be":                       func(c *ramptest.Config) { c.Handler, c.Game = nil, "localhost" },
		"Standalone.PublicURL must be":       func(c *ramptest.Config) { c.Standalone.PublicURL = "localhost:8090" },
		"AssetsPath must begin with":         func(c *ramptest.Config) { c.AssetsPath = "api/assets" },
		"ValidatePath must begin":            func(c *ramptest.Config) { c.ValidatePath = "api/validate" },
		"ResultPath must begin with":         func(c *ramptest.Config) { c.ResultPath = "api/result" },
		"Standalone.Speed must be from 0":    func(c *ramptest.Config) { c.Standalone.Speed = -1 },
		"Standalone.Speed must be":           func(c *ramptest.Config) { c.Standalone.Speed = math.NaN() },
		"Standalone.Speed must be from 0 to": func(c *ramptest.Config) { c.Standalone.Speed = 1e12 },
		"Audit must be AuditFail":            func(c *ramptest.Config) { c.Audit = 3 },
		"Audit must be":                      func(c *ramptest.Config) { c.Audit = -1 },
		"BlockTime must not be below":        func(c *ramptest.Config) { c.BlockTime = -1 },
		"Decimals must be from":              func(c *ramptest.Config) { c.Decimals = -1 },
		"Decimals must be from 0":            func(c *ramptest.Config) { c.Decimals = 100_000 },
		"Confirmations must not be":          func(c *ramptest.Config) { c.Confirmations = -1 },
		"Timeout must not be":                func(c *ramptest.Config) { c.Timeout = -1 },
		"MaxBody must not be":                func(c *ramptest.Config) { c.MaxBody = -1 },
		"FailureStatus must be":              func(c *ramptest.Config) { c.FailureStatus = 42 },
	} {
		config := ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler}
		change(&config)
		_, err := ramptest.New(config)
		assert.ErrorContains(t, err, want)
	}
}

// An order can be made by hand, if it has the required fields.
func TestAnOrderOfNobodyIsNotDelivered(t *testing.T) {
	c, other := newCounter(t), newCounter(t)
	for want, order := range map[string]*ramptest.PlacedOrder{
		"no intent":       {},
		"another service": other.mint(t),
	} {
		assert.ErrorContains(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded), want)
		assert.ErrorContains(t, c.service.Resend(t.Context(), order), want)
	}
}
