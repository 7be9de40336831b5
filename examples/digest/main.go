// Digest signs only digests that it has computed itself.
//
// The service says in a validate call what the player trades, and which 32 bytes the validator key
// shall sign for it. The interface does not say how the two belong together. So whoever has the HMAC
// key can order next to nothing, and send the digest of a million tokens. If you know the contract
// of your ramp, compute the digest of each order, and refuse all others: contract.go has the
// HandlerConfig.Policy.
//
// The example lets the emulated service, whose contract it knows, mint ten tokens. Then a thief with
// the HMAC key asks for a signature of another digest. It exits with status 1 if that is signed.
//
//	go run ./examples/digest
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

const token = "0x00000000000000000000000000000000000070c3"

var contract = &Contract{Name: "Ramp", Version: "1", ChainID: 7002,
	Address: common.HexToAddress("0xb41d"), Decimals: map[common.Address]int{common.HexToAddress(token): 18}}

var price = []ramp.Item{
	{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"},
}

var products = []ramp.Product{{
	Name: "gold", Token: token, MintFeeBps: 100, Materials: price, Outputs: price,
}}

// players owns enough of everything, and knows everybody.
type players struct{}

func (players) Authenticate(context.Context, ramp.Session) error { return nil }

func (players) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	gold := ramp.Asset{ID: "item_gold", Balance: ramp.NewAmount(1_000_000)}
	return &ramp.Player{Assets: []ramp.Asset{gold}}, nil
}

func newHandler(key ramp.HMACKey, signer *ramp.Signer, terms *ramp.Terms) *ramp.Handler {
	apply := func(context.Context, ramp.Step) error { return nil }
	return ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Key:     key,
		Signer:  signer,
		Terms:   terms,
		Players: players{},
		Store:   &ramp.MemoryStore{Apply: apply},
		Policy:  contract.Policy,
		Logger:  slog.New(slog.DiscardHandler),
	}))
}

func main() {
	ctx := context.Background()
	key := ramp.Must(ramp.TextKey("key of the console"))
	signer := ramp.Must(ramp.NewKeySigner(
		"0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1", Network: ramp.Testnet, Products: products}))
	handler := newHandler(key, signer, terms)

	// The service computes the digests of the contract, too.
	service := ramp.Must(ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Handler: handler,
		Digest: func(r *ramp.ValidateRequest) ramp.Digest { return ramp.Must(contract.Digest(r)) }}))
	defer service.Close()
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{
		URL: service.URL(), Key: key, Terms: terms, HTTPClient: service.Client()}))
	started := ramp.Must(client.Initialize(ctx, ramp.InitializeRequest{Product: "gold"}))
	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	order := ramp.Must(service.Mint(ctx, started.UUID, session, ramp.NewAmount(10)))
	fmt.Println("signed the digest of ten tokens:", order.Request.Digest)

	// A thief with the HMAC key orders one token, and sends the digest of a million.
	r := order.Request
	r.UUID = uuid.New()
	r.Intent.To = []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1_000_000)}}
	r.Digest = ramp.Must(contract.Digest(&r))
	r.Intent.To = []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}
	r.Intent.From = []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}}
	answer := validate(ctx, handler, key, session, &r)
	if answer.Success {
		log.Fatal("signed a digest that means something else than its order")
	}
	fmt.Println("refused the digest of a million, with", answer.ErrorCode)
}

// validate makes a validate call.
func validate(
	ctx context.Context, h *ramp.Handler, key ramp.HMACKey, s ramp.Session, r *ramp.ValidateRequest,
) (answer ramp.Response[ramp.Approval]) {
	body := ramp.Must(json.Marshal(r))
	header := http.Header{}
	header.Set(ramp.HeaderHMAC, key.Sign(body))
	header.Set(ramp.HeaderAuthorization, "Bearer "+s.Token.Reveal())
	header.Set(ramp.HeaderSession, s.ID)
	reply := h.Answer(ctx, http.MethodPost, ramp.PathValidate, header, body)
	if err := json.Unmarshal(reply.Body, &answer); err != nil {
		log.Fatal(err)
	}
	return answer
}
