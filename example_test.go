package ramp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

func ExampleHMACKey_Verify() {
	key := ramp.Must(ramp.TextKey("key from the console"))
	body := []byte(`{"uuid":"7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"}`)
	signature := key.Sign(body)
	fmt.Println(key.Verify(body, signature))
	fmt.Println(key.Verify([]byte("{}"), signature))
	fmt.Println(errors.Is(key.Verify(body, ""), ramp.ErrHMACMissing))
	// Output:
	// <nil>
	// ramp: X-HMAC-SIGNATURE is not valid: it was made for another body or with another key
	// true
}

func ExampleBase64URLKey() {
	_, err := ramp.Base64URLKey("my!secret_salt")
	fmt.Println(err)
	key, err := ramp.Base64URLKey("my_secret_salt_value")
	fmt.Println(key, err)
	// Output:
	// ramp: HMAC key is unusable: it is not unpadded base64url
	// [redacted] <nil>
}

func ExampleHMACKey_WithPrevious() {
	older := ramp.Must(ramp.TextKey("the key of last year"))
	newer := ramp.Must(ramp.TextKey("the key of this year"))
	key := newer.WithPrevious(older)
	body := []byte("{}")
	fmt.Println(key.Verify(body, older.Sign(body)) == nil, key.Verify(body, newer.Sign(body)) == nil)
	fmt.Println(key.Sign(body) == newer.Sign(body))
	// Output:
	// true true
	// true
}

func ExampleCatalogURL() {
	address, err := ramp.CatalogURL("https://ramp.example.com", ramp.CatalogParams{
		ProjectID:   "project-1",
		SessionID:   "session 1",
		AccessToken: ramp.NewAccessToken("a+b/c="),
		Network:     ramp.Testnet,
		Lang:        ramp.LangEnglish,
	})
	fmt.Println(address, err)
	// Output:
	// https://ramp.example.com/catalog?projectId=project-1&sessionId=session%201&accessToken=a%2Bb%2Fc%3D&platform=web&network=testnet&lang=en <nil>
}

func ExampleExchangeURL() {
	address, err := ramp.ExchangeURL("https://ramp.example.com/v1/", ramp.ExchangeParams{
		UUID:        uuid.MustParse("7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"),
		AccessToken: ramp.NewAccessToken("token"),
		SessionID:   "session-1",
		Network:     ramp.Mainnet,
	})
	fmt.Println(address, err)

	_, err = ramp.ExchangeURL("http://ramp.example.com", ramp.ExchangeParams{Network: "moon"})
	var wrong *ramp.InvalidError
	if errors.As(err, &wrong) {
		for _, field := range wrong.Fields {
			fmt.Println(field.Path, field.Problem)
		}
	}
	// Output:
	// https://ramp.example.com/v1/exchange?uuid=7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10&accessToken=token&sessionId=session-1&network=mainnet <nil>
	// rampURL must be https, unless the host is on a private network
	// uuid is required
	// accessToken is required
	// sessionId is required
	// network must be mainnet or testnet
}

func ExampleClient_Initialize() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"code":500,"message":"Internal Server Error","data":"invalid mac"}`)
	}))
	defer service.Close()
	key := ramp.Must(ramp.TextKey("key from the console"))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL, Key: key}))

	_, err := client.Initialize(context.Background(), ramp.InitializeRequest{})
	fmt.Println(err)

	item := ramp.Item{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}
	_, err = client.Initialize(context.Background(), ramp.InitializeRequest{
		PlayerID: "player-1",
		Intent: ramp.InitializeIntent{
			Network:    ramp.Testnet,
			ProjectID:  "project-1",
			Token:      "0x00000000000000000000000000000000000070c3",
			MintFeeBps: 100,
			Materials:  []ramp.Item{item},
			Outputs:    []ramp.Item{item},
		},
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, ramp.ErrHMACInvalid))
	// Output:
	// ramp: intent.network must be mainnet or testnet; intent.project_id is required; intent.token is required and must be 0x followed by 40 hex digits
	// ramp: initialize: the service answered HTTP 200, code 500: Internal Server Error: invalid mac (the key was read as text: compare it with the console's, or try Base64URLKey)
	// true
}

func ExampleNewKeySigner() {
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	fmt.Println("register in the console:", signer.Address())

	digest := ramp.Must(ramp.ParseDigest("0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85"))
	signature, _ := signer.Sign(context.Background(), digest)
	by, err := ramp.Recover(digest, signature)
	fmt.Println(len(signature), signature[64], by == signer.Address(), err)
	// Output:
	// register in the console: 0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb
	// 65 28 true <nil>
}

func ExampleNewFuncSigner() {
	local := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	// A real function calls a key service with ctx; see the documentation.
	signer := ramp.Must(ramp.NewFuncSigner(local.Address(), func(ctx context.Context, digest []byte) ([]byte, error) {
		signature, err := local.Sign(ctx, ramp.Digest(digest))
		return signature[:64], err // r||s: v is found by recovery
	}))
	signature, err := signer.Sign(context.Background(), ramp.Digest{31: 1})
	fmt.Println(signature[64], err)
	// Output:
	// 28 <nil>
}

// An *ecdsa.PrivateKey is a crypto.Signer, as the key of an HSM is.
func ExampleNewCryptoSigner() {
	key := ramp.Must(crypto.HexToECDSA("1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	signer := ramp.Must(ramp.NewCryptoSigner(key))
	digest := ramp.Digest{31: 1}
	signature, err := signer.Sign(context.Background(), digest) // that of an HSM is another one each time
	fmt.Println(err)
	by, err := ramp.Recover(digest, signature)
	fmt.Println(by == signer.Address(), err)
	// Output:
	// <nil>
	// true <nil>
}

func ExampleRecover() {
	digest := ramp.Must(ramp.ParseDigest("0x0000000000000000000000000000000000000000000000000000000000000001"))
	signature, _ := ramp.ParseSignature("0xa5c1b7e2783955e2bfd91b736e64a5986a077c9bcb885f596e72b5feabbd386f" +
		"0a8c56208627cec5b0f765aee22c066bc1c7984eccf81adae4d3a11a55916eb31c")
	fmt.Println(ramp.Recover(digest, signature))

	signature[64] = 1 // v must be 27 or 28
	_, err := ramp.Recover(digest, signature)
	fmt.Println(err)
	// Output:
	// 0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb <nil>
	// ramp: signature is not valid: r, s or v is out of range
}

// What a key service shows as the public key is enough to find the address.
func ExamplePublicKeyAddress() {
	fmt.Println(ramp.PublicKeyAddress([]byte(`-----BEGIN PUBLIC KEY-----
MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEu1Di2JpO1wZj0IBln+CtS5vD4GwXoidD
OWbLWc7uAg3s3b9uABkgEWSNE7HACvdwwMG7YJ1NOlyYpDdy4OGO9A==
-----END PUBLIC KEY-----`)))
	// Output:
	// 0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb <nil>
}

func ExampleHandlerConfig_translateCode() {
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	bank := &game{}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: bank, Store: bank.store(), Terms: anyTerms, Key: key, Signer: signer,
		TranslateCode: func(c ramp.Code) ramp.Code {
			if strings.HasPrefix(string(c), "HMAC_") {
				return "INVALID_MESSAGE"
			}
			return c
		},
	}))
	reply := handler.Answer(context.Background(), http.MethodPost, ramp.PathResult, http.Header{}, []byte("{}"))
	fmt.Println(reply.Status, string(reply.Body))
	// Output:
	// 500 {"success":false,"errorCode":"INVALID_MESSAGE","data":null}
}

func ExampleNewHandler() {
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	bank := &game{gold: 1000}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: bank, Store: bank.store(), Terms: anyTerms, Key: key, Signer: signer}))
	mux := http.NewServeMux()
	mux.HandleFunc("/api/assets", handler.Assets)
	mux.HandleFunc("/api/validate", handler.Validate)
	mux.HandleFunc("/api/result", handler.Result)

	// What the service does:
	server := httptest.NewServer(mux)
	defer server.Close()
	service := ramp.Must(ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: server.URL}))
	defer service.Close()
	player, err := service.Assets(context.Background(),
		ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token")})
	fmt.Println(player.Assets[0].ID, player.Assets[0].Balance, err)
	// Output:
	// item_gold 1000 <nil>
}

// A handler with a store and terms, and the service that calls it. A failed mint gives
// back, and an order at another price is rejected.
func ExampleNewHandler_store() {
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	bank := &game{gold: 1000}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ // a token costs 100 gold
		ProjectID: "project-1", Network: ramp.Testnet, Products: products}))
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: bank, Store: bank.store(), Terms: terms, Key: key, Signer: signer,
		Logger: slog.New(slog.DiscardHandler)}))

	service := ramp.Must(ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Handler: handler}))
	defer service.Close()
	ctx, session := context.Background(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token")}
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms,
		HTTPClient: service.Client()}))
	for _, fault := range []ramptest.Fault{ramptest.ResultTwice(), ramptest.TransactionFails(),
		ramptest.ValidateOtherRate()} {
		started, err := client.Initialize(ctx, ramp.InitializeRequest{Product: "gold"})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = service.Mint(ctx, started.UUID, session, ramp.NewAmount(3), fault)
		service.Advance(time.Hour)
		fmt.Println(fault, bank.gold, err)
	}
	// Output:
	// result-twice 700 <nil>
	// transaction-fails 700 <nil>
	// validate-other-rate 400 <nil>
}

// A token of gold costs 100 gold and is worth 80, so an order of three tokens must take 300.
func ExampleTerms_Match() {
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products}))
	order := func(gold, tokens int64) *ramp.ValidateRequest {
		return &ramp.ValidateRequest{ProjectID: "project-1",
			Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
				From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(gold)}},
				To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenContract, Amount: ramp.NewAmount(tokens)}}}}
	}
	r := order(300, 3)
	fmt.Println(terms.Match(r), r.Product, r.Tokens)
	fmt.Println(terms.Match(order(1, 3)))
	// Output:
	// <nil> gold 3
	// ramp: rejected: INVALID_MESSAGE: intent.from must be 100 item_gold for each token, as for product "gold", not 1 item_gold for 3 of the token
}

// A chest of three tokens costs 250 gold. With PerOrder, the product names the number of tokens.
func ExampleTermsConfig_perOrder() {
	price := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(250), IconURL: "https://example.com/gold.png"}}
	chest := ramp.Product{Name: "chest", Token: tokenContract, Materials: price, Tokens: ramp.NewAmount(3)}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		PerOrder: true, Products: []ramp.Product{chest}}))
	order := func(tokens int64) *ramp.ValidateRequest {
		return &ramp.ValidateRequest{ProjectID: "project-1",
			Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
				From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(250)}},
				To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenContract, Amount: ramp.NewAmount(tokens)}}}}
	}
	r := order(3)
	fmt.Println(terms.Match(r), r.Product, r.Tokens)
	fmt.Println(terms.Match(order(1_000_000)))
	// Output:
	// <nil> chest 3
	// ramp: rejected: INVALID_MESSAGE: intent.to[0].amount must be 3, as for product "chest", not 1000000
}

// game has one player, who has gold.
type game struct{ gold int64 }

func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token" {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(g.gold)}}}, nil
}

// store keeps the orders of the game. On a database, it is made by rampsql.New.
func (g *game) store() ramp.Store { return &ramp.MemoryStore{Apply: g.apply} }

// apply moves the assets of a step.
func (g *game) apply(_ context.Context, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one, because the only product has one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		if step.Effect.Kind == ramp.Take && g.gold+delta < 0 { // only a mint may be refused
			return ramp.Reject("INVALID_BALANCE")
		}
		g.gold += delta
	}
	return nil
}

// A framework that does not use net/http hands every call over, whatever its method and path.
func ExampleHandler_Answer() {
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	bank := &game{}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: bank, Store: bank.store(), Terms: anyTerms, Key: key, Signer: signer}))

	header := http.Header{"x-hmac-signature": {strings.Repeat("00", 32)}}
	reply := handler.Answer(context.Background(), http.MethodPost, ramp.PathValidate, header, []byte("{}"))
	fmt.Println(reply.Status, string(reply.Body))
	fmt.Println(reply.Err)
	// Output:
	// 401 {"success":false,"errorCode":"HMAC_INVALID","data":null}
	// ramp: rejected: HMAC_INVALID: X-HMAC-SIGNATURE is not valid: it was made for another body or with another key
}

// A game that answers from a queue verifies now and reads later.
func ExampleParseResult() {
	body := []byte(`{
		"session_id": "session-1", "uuid": "7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10", "tx_hash": "0x51",
		"receipt": {"status": "0x0"},
		"intent": {
			"method": "mint", "type": "assemble", "target_candidate": {},
			"from": [{"type": "asset", "id": "item_gold", "amount": 100},
				{"type": "asset", "id": "item_gold", "amount": 0.5}],
			"to": [{"type": "ERC20", "id": "0x00000000000000000000000000000000000070c3", "amount": 10}]
		}
	}`)
	result, err := ramp.ParseResult(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	effect, err := result.Intent.Effect(result.Outcome())
	fmt.Println(result.Succeeded(), effect.Kind, effect.Assets[0].ID, effect.Assets[0].Amount, err)

	_, err = ramp.ParseResult([]byte(`{"receipt": {"status": null}}`))
	fmt.Println(strings.SplitN(err.Error(), ";", 3)[:2])
	// Output:
	// false give back item_gold 100.5 <nil>
	// [ramp: uuid is required and must not be zero  receipt.status is required]
}

func ExampleParseValidate() {
	_, err := ramp.ParseValidate([]byte(
		`{"digest": 7, "intent": {"from": [{"type": "asset", "id": "gold", "amount": "100"}]}}`))
	var wrong *ramp.InvalidError
	if errors.As(err, &wrong) {
		for _, field := range wrong.Fields {
			fmt.Println(field.Path, field.Problem)
		}
	}
	// Output:
	// user_sig is required
	// user_address is required and must be 0x followed by 40 hex digits, not zero
	// project_id is required
	// digest must be 0x followed by 64 hex digits, not a number
	// uuid is required and must not be zero
	// intent.method is required
	// intent.type is required
	// intent.from[0].amount must be a number, not a string of 3 characters
	// intent.to is required and must not be empty
}

func ExampleParseAmount() {
	large, _ := ramp.ParseAmount("9007199254740993") // 2^53+1, which a float64 cannot hold
	half := ramp.Must(ramp.ParseAmount("0.5"))
	sum, _ := large.Add(half)
	fmt.Println(sum)
	_, err := sum.Int64()
	fmt.Println(err)
	_, err = ramp.ParseAmount("1e999999999")
	fmt.Println(err)
	// Output:
	// 9007199254740993.5
	// ramp: the amount is not a whole number that fits an int64
	// ramp: the amount has too many digits
}

func ExampleReject() {
	err := fmt.Errorf("inventory: %w", ramp.Reject("INVALID_BALANCE"))
	var rejection *ramp.Rejection
	fmt.Println(errors.As(err, &rejection), rejection.Code)
	// Output:
	// true INVALID_BALANCE
}

// exampleNode answers each request with the next of some results.
func exampleNode(answers ...string) *httptest.Server {
	next := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, answers[next], next+1)
		next++
	}))
}

func ExampleNewRPC() {
	node := exampleNode(`{"jsonrpc":"2.0","id":%d,"result":"0x458"}`, `{"jsonrpc":"2.0","id":%d,"result":"0x1b4"}`)
	defer node.Close()

	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{
		URL:     node.URL + "/v3/the-key-of-a-provider",
		ChainID: 1112, // a node of another network is rejected with ErrWrongChain
	}))
	number, err := chain.BlockNumber(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("block", number)
	fmt.Println("key shown:", strings.Contains(chain.String(), "the-key"))
	// Output:
	// block 436
	// key shown: false
}

// A typed call, one of any method, one of a contract, and several in one request.
func ExampleRPC() {
	node := exampleNode(
		`{"jsonrpc":"2.0","id":%d,"result":"0x14d1120d7b160000"}`,
		`{"jsonrpc":"2.0","id":%d,"result":"0x174876e800"}`,
		`{"jsonrpc":"2.0","id":%d,"error":{"code":3,"message":"execution reverted: not enough gold","data":"0x"}}`,
		`[{"jsonrpc":"2.0","id":5,"result":null},{"jsonrpc":"2.0","id":%d,"result":"0x10"}]`)
	defer node.Close()
	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: node.URL}))
	ctx := context.Background()

	wei, err := chain.Balance(ctx, common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"), ramp.Latest)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("coins:", new(big.Rat).SetFrac(wei, big.NewInt(1e18)).FloatString(2))

	var price ramp.Quantity
	if err := chain.Call(ctx, &price, "eth_gasPrice"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(price, "wei for a unit of gas")

	token := common.HexToAddress("0x70c3")
	_, err = chain.CallContract(ctx, ramp.TransactionRequest{To: &token, Data: hexutil.MustDecode("0x18160ddd")},
		ramp.Latest)
	var failed *ramp.RPCError
	if errors.As(err, &failed) {
		fmt.Println("code", int(failed.Code), "because of:", failed.Message)
	}

	var number ramp.Quantity
	var receipt ramp.Receipt
	calls := []ramp.BatchCall{
		{Method: "eth_blockNumber", Into: &number},
		{Method: "eth_getTransactionReceipt", Params: []any{common.HexToHash("0x01")}, Into: &receipt},
	}
	if err := chain.Batch(ctx, calls); err != nil {
		log.Fatal(err)
	}
	fmt.Println("block", number, "no receipt:", errors.Is(calls[1].Err, ramp.ErrNotFound))
	// Output:
	// coins: 1.50
	// 100000000000 wei for a unit of gas
	// code 3 because of: execution reverted: not enough gold
	// block 16 no receipt: true
}

func ExampleRPC_WaitReceipt() {
	node := exampleNode(`[{"jsonrpc":"2.0","id":%d,"result":{"status":"0x1","type":"0x7","blockNumber":"0x1b4",` +
		`"blockHash":"0x00000000000000000000000000000000000000000000000000000000000000aa",` +
		`"feePayer":"0x000000000000000000000000000000000000fEe0","logs":[]}},` +
		`{"jsonrpc":"2.0","id":2,"result":"0x1b5"}]`) // the newest block
	defer node.Close()

	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: node.URL}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	receipt, err := chain.WaitReceipt(ctx, common.HexToHash("0x01"), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("succeeded:", receipt.Succeeded(), "in block", receipt.BlockNumber, "gas paid by", receipt.FeePayer)
	// Output: succeeded: true in block 436 gas paid by 0x000000000000000000000000000000000000FEE0
}

const tokenContract = "0x00000000000000000000000000000000000070c3"

// A token costs 100 gold and is worth 80.
var products = []ramp.Product{{
	Name: "gold", Token: tokenContract, MintFeeBps: 100, // 1%
	Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
	Outputs:   []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80), IconURL: "https://example.com/gold.png"}},
}}
