package ramp

import (
	"bytes"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"

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

// The methods of the interface. The service sends MethodBurnPermit for a burn;
// MethodBurn is in its description too, and is accepted.
const (
	MethodMint       Method = "mint"
	MethodBurnPermit Method = "burn-permit"
	MethodBurn       Method = "burn"
)

// IntentType is the kind of an intent (interface 3): assemble is the mint
// direction, disassemble the burn direction.
type IntentType string

// The intent types of the interface.
const (
	Assemble    IntentType = "assemble"
	Disassemble IntentType = "disassemble"
)

// AssetType says what an entry of an intent counts (interface 2.5).
type AssetType string

// The asset types of the interface. TypeAsset is an asset of the game, the
// others are tokens; older messages write erc20. A type that is new is kept as
// it came.
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
	WalletAddress string `json:"wallet_address,omitempty"` // player wallet address, 0x and 40 hex digits
	Server        string `json:"server,omitempty"`         // game server identifier

	Intent InitializeIntent `json:"intent"` // required
}

// InitializeIntent is what a player may mint and burn (interface 2.2). All its
// fields are required; the fixed ones may be left empty and are filled in.
type InitializeIntent struct {
	Network    Network `json:"network"`      // Mainnet or Testnet
	ProjectID  string  `json:"project_id"`   // from the console
	Token      string  `json:"token"`        // token contract address, 0x and 40 hex digits
	MintFeeBps int     `json:"mint_fee_bps"` // basis points, 0 to 10000: 100 is 1%
	BurnFeeBps int     `json:"burn_fee_bps"` // basis points; fixed 0
	MintMethod Method  `json:"mint_method"`  // fixed MethodMint; empty is filled in
	BurnMethod Method  `json:"burn_method"`  // fixed MethodBurnPermit; empty is filled in
	Materials  []Item  `json:"materials"`    // game currency consumed in minting
	Outputs    []Item  `json:"outputs"`      // game currency provided in burning
}

// Item is game currency of an [InitializeIntent] (interface 2.2).
type Item struct {
	ID            string `json:"id"`              // item ID
	Amount        Amount `json:"amount"`          // items consumed or provided, above 0
	IconURL       string `json:"icon_url"`        // image, an absolute http or https URL
	IsNonFungible bool   `json:"is_non_fungible"` // true for an NFT, false for an FT
}

// Player is what the service shows of a user (interface 2.4, data.v1).
type Player struct {
	PlayerID      string  `json:"player_id,omitempty"`      // character unique ID
	Name          string  `json:"name,omitempty"`           // character name
	WalletAddress string  `json:"wallet_address,omitempty"` // user wallet address
	Server        string  `json:"server,omitempty"`         // server the character is connected to
	Assets        []Asset `json:"assets"`                   // game assets held by the user; nil is written as []
}

// MarshalJSON writes assets as an array, never as null.
func (p Player) MarshalJSON() ([]byte, error) {
	type plain Player
	if p.Assets == nil {
		p.Assets = []Asset{}
	}
	return marshal(plain(p))
}

// Asset is a balance of a [Player] (interface 2.4).
type Asset struct {
	ID      string // game asset ID; must equal the one in the service console
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
func (a *Asset) UnmarshalJSON(b []byte) error {
	var plain assetJSON
	if err := json.Unmarshal(b, &plain); err != nil {
		return err
	}
	balance, err := ParseAmount(plain.Balance)
	if err != nil {
		return &json.UnmarshalTypeError{Value: "no decimal string", Type: reflect.TypeFor[Amount](), Field: "balance"}
	}
	*a = Asset{ID: plain.ID, Balance: balance}
	return nil
}

// ValidateRequest asks whether a mint or a burn may happen (interface 2.5).
// [ParseValidate] reads and checks it.
type ValidateRequest struct {
	UserSig     string    `json:"user_sig"`     // 0x-prefixed or bare hex, returned as received; over what, the interface does not show
	UserAddress string    `json:"user_address"` // the user's wallet address, as it came: its form is not checked
	ProjectID   string    `json:"project_id"`   // from the console
	Digest      Digest    `json:"digest"`       // what the validator key signs
	UUID        uuid.UUID `json:"uuid"`         // identifies the request
	Intent      Intent    `json:"intent"`       // what is asked for

	// Raw is the body as it came, with the fields that this type does not know.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a request and keeps its bytes in Raw. It checks types,
// not sense; [ParseValidate] does both.
func (r *ValidateRequest) UnmarshalJSON(b []byte) error {
	type plain ValidateRequest
	wire := struct {
		*plain
		UUID wireUUID `json:"uuid"`
	}{plain: (*plain)(r)}
	err := decode(b, &wire)
	r.UUID, r.Raw = uuid.UUID(wire.UUID), bytes.Clone(b)
	return err
}

// ParseValidate reads the body of a validate call and checks its form and its
// consistency (interface 2.5). Verify the HMAC first, with [HMACKey.Verify].
// The error is an [*InvalidError] that lists what is wrong.
func ParseValidate(body []byte) (*ValidateRequest, error) {
	var r ValidateRequest
	if err := parseObject(body, &r); err != nil {
		return nil, err
	}
	var p problems
	p.require(r.UserSig != "", "user_sig")
	if digits := strings.TrimPrefix(r.UserSig, "0x"); r.UserSig != "" && (!isHex(digits) || len(digits)%2 != 0) {
		p.add("user_sig", "must be hex")
	}
	p.require(r.UserAddress != "", "user_address")
	p.require(r.ProjectID != "", "project_id")
	p.requireNonZero(r.Digest != Digest{}, "digest")
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	r.Intent.check(&p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Effect says what an approval means for the game's assets: Take for a mint,
// Nothing for a burn.
func (r *ValidateRequest) Effect() (Effect, error) {
	return r.Intent.effect(Take, Nothing)
}

// Result reports a transaction that is over (interface 6). [ParseResult] reads
// and checks it.
type Result struct {
	SessionID string    `json:"session_id"` // session identifier
	UUID      uuid.UUID `json:"uuid"`       // identifies the request
	TxHash    string    `json:"tx_hash"`    // keep it for later lookups
	Receipt   Receipt   `json:"receipt"`    // says whether the transaction succeeded
	Intent    Intent    `json:"intent"`     // what was asked for

	// Raw is the body as it came, with the fields that this type does not know.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a result and keeps its bytes in Raw. It checks types, not
// sense; [ParseResult] does both.
func (r *Result) UnmarshalJSON(b []byte) error {
	type plain Result
	wire := struct {
		*plain
		UUID    wireUUID        `json:"uuid"`
		TxHash  loose           `json:"tx_hash"`
		Receipt reportedReceipt `json:"receipt"`
	}{plain: (*plain)(r)}
	err := decode(b, &wire)
	r.UUID, r.TxHash, r.Receipt = uuid.UUID(wire.UUID), string(wire.TxHash), Receipt(wire.Receipt)
	r.Raw = bytes.Clone(b)
	return err
}

// ParseResult reads the body of a result call and checks its form and its
// consistency (interface 6). Verify the HMAC first, with [HMACKey.Verify]. The
// error is an [*InvalidError] that lists what is wrong.
//
// Of the receipt only the status decides anything. A receipt in which something
// else has a form that is new keeps its Status and its Raw, and nothing else: to
// refuse it would strand the player's assets.
func ParseResult(body []byte) (*Result, error) {
	var r Result
	if err := parseObject(body, &r); err != nil {
		return nil, err
	}
	var p problems
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	p.require(r.Receipt.Status.Present(), "receipt.status")
	r.Intent.check(&p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Succeeded says whether the transaction did what it was to do: its
// receipt.status is 1 (interface 3).
func (r *Result) Succeeded() bool { return r.Receipt.Succeeded() }

// Effect says what the outcome means for the game's assets: GiveBack for a
// failed mint, Grant for a successful burn, else Nothing. It fails for a result
// without a status, because giving back for a field that is merely missing
// would pay twice.
//
// It speaks of the intent that the service reported. Where the order was stored
// at validate, what was stored counts.
func (r *Result) Effect() (Effect, error) {
	switch {
	case !r.Receipt.Status.Present():
		return Effect{}, invalid("receipt.status", "is required")
	case r.Succeeded():
		return r.Intent.effect(Nothing, Grant)
	default:
		return r.Intent.effect(GiveBack, Nothing)
	}
}

// Digest is the 32-byte hash that the validator key signs (interface 5.3). Over
// what it is taken, the interface does not show.
type Digest [32]byte

// ParseDigest reads a digest: 0x and 64 hex digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || len(digits) != 2*len(d) || !isHex(digits) {
		return Digest{}, invalid("digest", "must be 32 bytes in hex with 0x")
	}
	_, err := hex.Decode(d[:], []byte(digits))
	return d, err
}

// String returns the digest as 0x and 64 hex digits.
func (d Digest) String() string { return "0x" + hex.EncodeToString(d[:]) }

// MarshalText writes what String returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(b []byte) error {
	got, err := ParseDigest(string(b))
	if err == nil {
		*d = got
	}
	return err
}

// UnmarshalJSON reads a string of 0x and 64 hex digits.
func (d *Digest) UnmarshalJSON(b []byte) error {
	var s string
	if b[0] != '"' || json.Unmarshal(b, &s) != nil {
		return wrongType[Digest](describe(b))
	}
	got, err := ParseDigest(s)
	if err != nil {
		return wrongType[Digest](fmt.Sprintf("a string of %d characters", len(s)))
	}
	*d = got
	return nil
}

// wireUUID reads a UUID so that a bad one is reported with its path.
type wireUUID uuid.UUID

func (u *wireUUID) UnmarshalJSON(b []byte) error {
	var s string
	if string(b) == "null" {
		return nil // missing, to whoever requires it
	}
	if b[0] != '"' || json.Unmarshal(b, &s) != nil {
		return wrongType[uuid.UUID](describe(b))
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 { // it reads other ways to write one, too
		return wrongType[uuid.UUID](fmt.Sprintf("a string of %d characters", len(s)))
	}
	*u = wireUUID(id)
	return nil
}

// AccessToken is the token of a player's session in the game (interface 5.1).
// It prints, logs and marshals as [redacted]; Reveal returns its text. The zero
// value is no token. Compare tokens with Equal: there is no ==.
type AccessToken struct {
	_    [0]func() // == would compare addresses, and hold for copies alone
	text *string   // a pointer, so that printing a struct around it shows an address at most
}

// NewAccessToken returns text as a token.
func NewAccessToken(text string) AccessToken {
	if text == "" {
		return AccessToken{}
	}
	return AccessToken{text: &text}
}

const redacted = "[redacted]"

// Reveal returns the token's text. It is a credential: look it up, hash it,
// compare it, but do not log it.
func (t AccessToken) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Equal says whether two tokens have the same text, in a time that does not tell
// where they differ.
func (t AccessToken) Equal(u AccessToken) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(u.Reveal())) == 1
}

// String returns "[redacted]".
func (t AccessToken) String() string { return redacted }

// Format writes "[redacted]" under every verb.
func (t AccessToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText writes "[redacted]".
func (t AccessToken) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue logs "[redacted]".
func (t AccessToken) LogValue() slog.Value { return slog.StringValue(redacted) }

// Session is who a call of the service is about (interface 4.3, 5.1): what the
// X-Dapp headers carry.
type Session struct {
	ID    string      // X-Dapp-SessionID: the user's session or game character
	Token AccessToken // X-Dapp-Authorization, without "Bearer "
}

// Response is the envelope that answers the service (interface 2.4, 2.6, 6 and
// 7.2): Data on success, ErrorCode on failure, and null for the other.
type Response[T any] struct {
	Success   bool `json:"success"`
	ErrorCode Code `json:"errorCode"`
	Data      *T   `json:"data"`
}

// AssetsResponse answers an assets call (interface 2.4).
type AssetsResponse = Response[AssetsData]

// AssetsData is the data of an [AssetsResponse] (interface 2.4, 9).
type AssetsData struct {
	V1 Player `json:"v1"` // version 1 data
}

// ValidateResponse answers a validate call (interface 2.6).
type ValidateResponse = Response[Approval]

// Approval is the data of a [ValidateResponse] (interface 2.6).
type Approval struct {
	UserSig      string    `json:"userSig"`      // as received
	ValidatorSig Signature `json:"validatorSig"` // over the digest
}

// ResultResponse answers a result call (interface 4.3). It has no data.
type ResultResponse = Response[struct{}]
