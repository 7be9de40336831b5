package ramp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// Network names a chain of the service (interface 2.1, 2.2).
type Network string

// The networks of the interface.
const (
	Mainnet Network = "mainnet"
	Testnet Network = "testnet"
)

// Method is the contract method of an intent (interface 2.2, 2.5).
type Method string

// The methods of the interface. The service sends MethodBurnPermit for a burn. The
// interface also describes MethodBurn, which is accepted too.
const (
	MethodMint       Method = "mint"
	MethodBurnPermit Method = "burn-permit"
	MethodBurn       Method = "burn"
)

// IntentType is the type of an intent (interface 3).
type IntentType string

// The intent types of the interface.
const (
	Assemble    IntentType = "assemble"    // mint
	Disassemble IntentType = "disassemble" // burn
)

// AssetType is the type of an entry of an intent (interface 2.5).
type AssetType string

// The asset types of the interface. TypeAsset is a game asset, the others are
// tokens. Older messages have erc20 instead of ERC20. Unknown types are kept
// unchanged.
const (
	TypeAsset AssetType = "asset"
	TypeERC20 AssetType = "ERC20"
	TypeNFT   AssetType = "NFT"
)

// InitializeRequest asks the service for a UUID (interface 2.2). Send it with
// [Client.Initialize].
type InitializeRequest struct {
	PlayerID      string `json:"player_id,omitempty"`      // player ID in the game
	Name          string `json:"name,omitempty"`           // character name
	WalletAddress string `json:"wallet_address,omitempty"` // player wallet address
	Server        string `json:"server,omitempty"`         // game server identifier

	Intent InitializeIntent `json:"intent"` // required, unless Product is set

	// Product is the name of a product of [ClientConfig].Terms, whose intent is sent
	// instead of Intent.
	Product string `json:"-"`
}

// InitializeIntent says what a player may mint and burn (interface 2.2). Its JSON also
// has the fields that the interface fixes: burn_fee_bps, mint_method and burn_method.
type InitializeIntent struct {
	Network    Network `json:"network"`      // Mainnet or Testnet
	ProjectID  string  `json:"project_id"`   // from the console
	Token      string  `json:"token"`        // token contract address, 0x and 40 hex digits
	MintFeeBps int     `json:"mint_fee_bps"` // basis points, 0 to 10000: 100 is 1%
	Materials  []Item  `json:"materials"`    // game currency consumed in minting; nil is written as []
	Outputs    []Item  `json:"outputs"`      // game currency provided in burning; nil is written as []
}

// MarshalJSON writes all fields of the interface.
func (i InitializeIntent) MarshalJSON() ([]byte, error) {
	type plain InitializeIntent
	return marshal(struct {
		plain
		BurnFeeBps int    `json:"burn_fee_bps"`
		MintMethod Method `json:"mint_method"`
		BurnMethod Method `json:"burn_method"`
		Materials  []Item `json:"materials"`
		Outputs    []Item `json:"outputs"`
	}{plain(i), 0, MethodMint, MethodBurnPermit, append([]Item{}, i.Materials...), append([]Item{}, i.Outputs...)})
}

// Item is a game asset that an [InitializeIntent] consumes or provides (interface
// 2.2).
type Item struct {
	ID            string `json:"id"`              // item ID
	Amount        Amount `json:"amount"`          // quantity consumed or provided, greater than 0
	IconURL       string `json:"icon_url"`        // image
	IsNonFungible bool   `json:"is_non_fungible"` // true for an NFT, false for an FT
}

// Player is what the service shows of a user (interface 2.4, data.v1).
type Player struct {
	PlayerID      string  `json:"player_id,omitempty"`      // character unique ID
	Name          string  `json:"name,omitempty"`           // character name
	WalletAddress string  `json:"wallet_address,omitempty"` // user wallet address
	Server        string  `json:"server,omitempty"`         // server the character is connected to
	Assets        []Asset `json:"assets"`                   // held by the user; nil is written as []
}

// MarshalJSON writes nil Assets as an empty array.
func (p Player) MarshalJSON() ([]byte, error) {
	type plain Player
	if p.Assets == nil {
		p.Assets = []Asset{}
	}
	return marshal(plain(p))
}

// check returns an error if the player must not be sent.
func (p *Player) check() error {
	if p == nil {
		return errors.New("ramp: Players.Assets returned a nil player and no error")
	}
	var wrong problems
	wrong.requireText(p.PlayerID, "player_id")
	wrong.requireText(p.Name, "name")
	wrong.requireText(p.WalletAddress, "wallet_address")
	wrong.requireText(p.Server, "server")
	for i, a := range p.Assets {
		at := fmt.Sprintf("assets[%d]", i)
		wrong.require(a.ID != "", at+".id")
		wrong.requireText(a.ID, at+".id")
		if a.Balance.Sign() < 0 {
			wrong.add(at+".balance", "must not be negative")
		}
	}
	if err := wrong.err(); err != nil {
		return fmt.Errorf("ramp: player returned by Players.Assets: %w", err)
	}
	return nil
}

// Asset is a balance of a [Player] (interface 2.4).
type Asset struct {
	ID      string // asset ID, as registered in the service console
	Balance Amount // quantity held; written as a decimal string
}

type assetJSON struct {
	ID      string `json:"id"`
	Balance string `json:"balance"`
}

// MarshalJSON writes the balance as a decimal string.
func (a Asset) MarshalJSON() ([]byte, error) {
	return marshal(assetJSON{ID: a.ID, Balance: a.Balance.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Asset) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "asset", a) }

func (a *Asset) read(x *reader) {
	var balance string
	x.members("id", &a.ID, "balance", &balance)
	var err error
	if a.Balance, err = ParseAmount(balance); err != nil {
		x.fault("must have a balance that is a decimal string")
	}
}

// ValidateRequest asks whether a mint or a burn may proceed (interface 2.5).
// [ParseValidate] reads and checks it.
type ValidateRequest struct {
	// UserSig is hex with or without 0x, and returned unchanged. The interface does not
	// say what it signs.
	UserSig string `json:"user_sig"`

	// UserAddress is the user's wallet address, 0x and 40 hex digits; see
	// [HandlerConfig].Wallet.
	UserAddress string `json:"user_address"`

	ProjectID string    `json:"project_id"` // from the console
	Digest    Digest    `json:"digest"`     // what the validator key signs
	UUID      uuid.UUID `json:"uuid"`       // identifies the order
	Intent    Intent    `json:"intent"`     // what the user wants to exchange

	// Product and Tokens are what [HandlerConfig].Terms match: the name of the
	// product, and the number of tokens. They are zero with [TermsConfig].Any.
	Product string `json:"-"`
	Tokens  Amount `json:"-"`

	// Raw is the unchanged body, including the fields that this type does not have.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a request and keeps its bytes in Raw. It checks types only;
// [ParseValidate] also checks required fields. The error is an [*InvalidError].
func (r *ValidateRequest) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "body", r) }

func (r *ValidateRequest) read(x *reader) {
	r.Raw = x.text
	x.members("user_sig", &r.UserSig, "user_address", &r.UserAddress, "project_id", &r.ProjectID,
		"digest", &r.Digest, "uuid", &r.UUID, "intent", &r.Intent)
}

// ParseValidate reads the body of a validate call and checks its form and
// consistency (interface 2.5). Verify the HMAC first, with [HMACKey.Verify]. The
// error is an [*InvalidError] that lists everything that is wrong, in the order of
// the interface. Duplicate names in an object are an error, as are more than 1,000
// entries on one side of the intent.
func ParseValidate(body []byte) (*ValidateRequest, error) {
	x, err := bodyReader(body)
	if err != nil {
		return nil, err
	}
	var r ValidateRequest
	r.read(&x)
	var p problems
	p.require(r.UserSig != "", "user_sig")
	if digits := strings.TrimPrefix(r.UserSig, "0x"); !isHex(digits) || len(digits)%2 != 0 {
		p.add("user_sig", "must be hex")
	}
	if !isAddress(r.UserAddress) || common.HexToAddress(r.UserAddress) == (common.Address{}) {
		p.add("user_address", "is required and must be 0x followed by 40 hex digits, not zero")
	}
	p.require(r.ProjectID != "", "project_id")
	p.requireNonZero(r.Digest != Digest{}, "digest")
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	r.Intent.check(&p)
	if err := x.wrong.complete(p).err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Result reports the outcome of a transaction (interface 6). [ParseResult] reads
// and checks it.
type Result struct {
	SessionID string    `json:"session_id"` // session identifier
	UUID      uuid.UUID `json:"uuid"`       // identifies the order
	TxHash    string    `json:"tx_hash"`    // transaction hash
	Receipt   Receipt   `json:"receipt"`    // outcome of the transaction
	Intent    Intent    `json:"intent"`     // what was exchanged, as the service reports it

	// Unreadable lists the fields that have an unexpected form or occur more than
	// once. They are zero here, and so is the whole list that one is in. An
	// authentic result is accepted all the same, because its UUID and status
	// decide.
	Unreadable []FieldError `json:"-"`

	// Transaction is the transaction as the chain has it, if the handler confirmed the
	// result; see [HandlerConfig].Chain.
	Transaction *Transaction `json:"-"`

	// Raw is the unchanged body, including the fields that this type does not have.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a result and keeps its bytes in Raw. [ParseResult] also
// checks required fields. The error is an [*InvalidError] about uuid, receipt or
// receipt.status.
func (r *Result) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "body", r) }

func (r *Result) read(x *reader) {
	r.Raw = x.text
	x.zeroing = true
	x.members("session_id", &r.SessionID, "uuid", (*anyUUID)(&r.UUID),
		"tx_hash", (*looseText)(&r.TxHash), "receipt", &r.Receipt, "intent", &r.Intent)
	var decisive problems
	for _, f := range x.wrong {
		switch f.Path {
		case x.root, "uuid", "receipt", "receipt.status":
			decisive = append(decisive, f)
		default:
			r.Unreadable = append(r.Unreadable, f)
		}
	}
	x.wrong = decisive
}

// ParseResult reads the body of a result call (interface 6). Verify the HMAC first,
// with [HMACKey.Verify]. The error is an [*InvalidError] if the body is not a JSON
// object, or if uuid or receipt.status cannot be read.
//
// Nothing else is required (see [Result.Unreadable]): the service does not
// redeliver a rejected result, and the player's assets would be stranded. What the
// result changes is decided by the order that was stored at validate.
func ParseResult(body []byte) (*Result, error) {
	x, err := bodyReader(body)
	if err != nil {
		return nil, err
	}
	var r Result
	r.read(&x)
	var p problems
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	p.require(r.Receipt.Status.Present(), "receipt.status")
	if err := x.wrong.complete(p).err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Succeeded reports whether the transaction succeeded: whether receipt.status is 1
// (interface 3).
func (r *Result) Succeeded() bool { return r.Receipt.Succeeded() }

// Outcome returns how the order ends: [OrderSucceeded] if the transaction succeeded,
// [OrderFailed] if it failed, and "" without a status, because giving back for a
// field that is merely missing would pay twice.
func (r *Result) Outcome() OrderState {
	switch {
	case !r.Receipt.Status.Present():
		return ""
	case r.Succeeded():
		return OrderSucceeded
	default:
		return OrderFailed
	}
}

// Response is the envelope of an answer to the service (interface 2.4, 2.6, 6 and
// 7.2). On success Data is set, on failure ErrorCode; the other is null.
type Response[T any] struct {
	Success   bool `json:"success"`   // whether the call succeeded
	ErrorCode Code `json:"errorCode"` // why it failed
	Data      *T   `json:"data"`      // the answer
}

// assetsData is the data of an answer to an assets call (interface 2.4, 9).
type assetsData struct {
	V1 Player `json:"v1"` // version 1 data
}

// Approval is the data of the answer to a validate call (interface 2.6).
type Approval struct {
	UserSig      string    `json:"userSig"`      // user_sig of the request, unchanged
	ValidatorSig Signature `json:"validatorSig"` // the signature of the digest
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, 512)) // room for an answer or a request
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
