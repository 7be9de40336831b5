package ramp

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/typed"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// Network names a chain of the service (interface 2.1, 2.2).
type Network string

// The networks of the interface.
const (
	Mainnet Network = "mainnet"
	Testnet Network = "testnet"
)

// UUIDValidity is how long a UUID of [Client.Initialize] is valid (interface 8).
const UUIDValidity = 5 * time.Minute

// ResultWindow is how long the service may repeat a result, counted from the first
// delivery of that result (interface 8). Until it has passed, keep the order, and remember
// who owns its session.
const ResultWindow = 12 * time.Hour

// InitializeRequest is what [Client.Initialize] sends (interface 2.2).
type InitializeRequest struct {
	// The fields of the interface; only Intent is required, or Product: the name of a product of
	// [ClientConfig].Terms, whose intent is sent instead.
	PlayerID      string           `json:"player_id,omitempty"`
	Name          string           `json:"name,omitempty"`
	WalletAddress string           `json:"wallet_address,omitempty"`
	Server        string           `json:"server,omitempty"`
	Intent        InitializeIntent `json:"intent"`
	Product       string           `json:"-"`
}

// InitializeIntent says what a player may mint and burn (interface 2.2). Its JSON also
// has burn_fee_bps, mint_method and burn_method, which are fixed.
type InitializeIntent struct {
	// The fields of the interface; a fee of 100 is 1%, and nil lists are written as [].
	Network    Network `json:"network"`
	ProjectID  string  `json:"project_id"`
	Token      string  `json:"token"`
	MintFeeBps int     `json:"mint_fee_bps"`
	Materials  []Item  `json:"materials"`
	Outputs    []Item  `json:"outputs"`
}

// MarshalJSON writes all fields of the interface.
func (i InitializeIntent) MarshalJSON() ([]byte, error) {
	type plain InitializeIntent
	return wire.Marshal(struct {
		plain
		BurnFeeBps int    `json:"burn_fee_bps"`
		MintMethod Method `json:"mint_method"`
		BurnMethod Method `json:"burn_method"`
		Materials  []Item `json:"materials"`
		Outputs    []Item `json:"outputs"`
	}{plain(i), 0, MethodMint, MethodBurnPermit, append([]Item{}, i.Materials...),
		append([]Item{}, i.Outputs...)})
}

// Item is a game asset of an [InitializeIntent] (interface 2.2).
type Item struct {
	// The fields of the interface. Amount, in whole units of the game, is greater than 0. It is for one
	// token, or for the order with [TermsConfig].PerOrder. IconURL is an https URL; http is for a
	// private host only, as in development.
	ID            string `json:"id"`
	Amount        Amount `json:"amount"`
	IconURL       string `json:"icon_url"`
	IsNonFungible bool   `json:"is_non_fungible"`
}

func checkOffer(p *problems, tokenPath, token, feePath string, fee int) {
	if problem := typed.Address(token); problem != "" {
		p.add(tokenPath, "%s", problem)
	}
	if fee < 0 || fee > 10_000 {
		p.add(feePath, "must be 0 to 10000 basis points")
	}
}

func checkItems(p *problems, path string, items []Item) {
	for n, item := range items {
		at := fmt.Sprintf("%s[%d]", path, n)
		p.requireTyped(item.ID, at+".id")
		if slices.ContainsFunc(items[:n], func(other Item) bool { return other.ID == item.ID }) {
			p.add(at+".id", "occurs twice")
		}
		if item.Amount.Sign() <= 0 || item.IsNonFungible && !item.Amount.Rat().IsInt() {
			p.add(at+".amount", "is required and must be greater than 0, and whole for a non-fungible item")
		}
		if problem := transport.Icon(item.IconURL); problem != "" {
			p.add(at+".icon_url", "%s", problem)
		}
	}
}

// The headers of the service's calls (interface 4.3, 5).
const (
	HeaderSession       = "X-Dapp-Sessionid"     // the session
	HeaderAuthorization = "X-Dapp-Authorization" // "Bearer " and the access token
	HeaderHMAC          = "X-Hmac-Signature"     // HMAC-SHA256 of the raw body, in hex
)

// Session identifies the user whom a call of the service is about (interface 4.3,
// 5.1). The X-Dapp headers carry it. It is not for storing: see [AccessToken].
type Session struct {
	ID    string      // X-Dapp-SessionID: the user's session or game character
	Token AccessToken // X-Dapp-Authorization, without "Bearer "
}

// AccessToken is the token of a player's session in the game (interface 5.1). It prints, logs and
// marshals as [redacted], also inside of a [Session]. So a program that has to send a session, such
// as a login server, must send the text that Reveal returns. Store only a hash of that text. The
// zero value is no token. Compare tokens with Equal.
type AccessToken struct {
	secret
	_    [0]func() // forbids ==, which would compare addresses
	text *string   // masked; a pointer, so that printing an enclosing struct shows at most an address
}

// NewAccessToken returns text as a token.
func NewAccessToken(text string) AccessToken {
	if text == "" {
		return AccessToken{}
	}
	text = masked(text)
	return AccessToken{text: &text}
}

// masked masks a text and unmasks it. It is no encryption: it keeps a token from being read where a
// failed assertion has printed hidden fields. Equal tokens have equal fields, for reflect.DeepEqual.
func masked(text string) string {
	bytes := []byte(text)
	for i := range bytes {
		bytes[i] ^= 0xA5 // what is ASCII becomes no UTF-8, and is printed escaped
	}
	return string(bytes)
}

const redacted = redact.Mark

// Reveal returns the token's text. It is a credential: do not log it.
func (t AccessToken) Reveal() string {
	if t.text == nil {
		return ""
	}
	return masked(*t.text)
}

// Equal compares two tokens, in constant time for texts of the same length.
func (t AccessToken) Equal(u AccessToken) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(u.Reveal())) == 1
}

// secret is embedded in types that must not show their value.
type secret struct{}

// String returns "[redacted]".
func (secret) String() string { return redacted }

// Format writes "[redacted]" for every verb except %p, for which fmt calls no method.
func (secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText writes "[redacted]".
func (secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// ParseSession reads the X-Dapp headers (interface 5.1), whose names may have any case.
// The error is a [*Rejection] with HTTP 401 and the code SESSION_MISSING or
// ACCESS_TOKEN_MISSING, if one is missing, occurs twice or has a wrong form. The values
// are copied, because fasthttp reuses the memory of headers.
func ParseSession(header http.Header) (Session, error) {
	id, err := sessionID(header)
	if err != nil {
		return Session{}, err
	}
	token, err := bearerToken(header)
	return Session{ID: id, Token: token}, err
}

func sessionID(header http.Header) (string, error) {
	id, err := singleHeader(header, HeaderSession)
	if err == nil && !isHeaderText(id) {
		err = errors.New("ramp: X-Dapp-SessionID is missing, or not UTF-8 without control characters")
	}
	if err != nil {
		return "", unauthorized(codeSessionMissing, err)
	}
	return strings.Clone(id), nil
}

func bearerToken(header http.Header) (AccessToken, error) {
	authorization, err := singleHeader(header, HeaderAuthorization)
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	if err == nil && (!strings.EqualFold(scheme, "Bearer") || token == "") {
		err = errors.New("ramp: X-Dapp-Authorization with a bearer token is missing")
	}
	if err != nil {
		return AccessToken{}, unauthorized(codeTokenMissing, err)
	}
	return NewAccessToken(strings.Clone(token)), nil
}

// singleHeader returns the value of a header whose name may have any case. One that
// occurs more than once is an error, because its value would be ambiguous.
func singleHeader(header http.Header, name string) (value string, err error) {
	seen := 0
	for key, values := range header {
		if len(key) == len(name) && strings.EqualFold(key, name) && len(values) > 0 {
			value = strings.TrimSpace(values[0])
			seen += len(values)
		}
	}
	if seen > 1 {
		return "", fmt.Errorf("ramp: %s occurs more than once", name)
	}
	return value, nil
}

// isHeaderText reports whether text can be the value of a header.
func isHeaderText(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Player is what the service shows of a user (interface 2.4, data.v1).
type Player struct {
	// The fields of the interface; nil Assets are written as [].
	PlayerID      string  `json:"player_id,omitempty"`
	Name          string  `json:"name,omitempty"`
	WalletAddress string  `json:"wallet_address,omitempty"`
	Server        string  `json:"server,omitempty"`
	Assets        []Asset `json:"assets"`
}

// MarshalJSON writes nil Assets as an empty array.
func (p Player) MarshalJSON() ([]byte, error) {
	type plain Player
	if p.Assets == nil {
		p.Assets = []Asset{}
	}
	return wire.Marshal(plain(p))
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
		wrong.requireFilled(a.ID, at+".id")
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
	return wire.Marshal(assetJSON{ID: a.ID, Balance: a.Balance.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Asset) UnmarshalJSON(b []byte) error { return readWire(b, "asset", a) }

func (a *Asset) read(x *wire.Reader) {
	var balance string
	x.Members("id", &a.ID, "balance", &balance)
	var err error
	if a.Balance, err = ParseAmount(balance); err != nil {
		x.Fault("must have a balance that is a decimal string")
	}
}

// Response is the envelope of an answer to the service (interface 2.4, 2.6, 6 and 7.2).
// On success, Data is set, except for a result, and ErrorCode is null. On failure,
// ErrorCode is set and Data is null.
type Response[T any] struct {
	Success   bool `json:"success"`   // whether the call succeeded
	ErrorCode Code `json:"errorCode"` // why it failed
	Data      *T   `json:"data"`      // the answer
}

// AssetsData is the data of an answer to an assets call (interface 2.4, 9).
type AssetsData struct {
	V1 Player `json:"v1"` // version 1 data
}

// ValidateRequest asks for a mint or a burn (interface 2.5); see [ParseValidate].
type ValidateRequest struct {
	// The fields of the interface. UserSig is hex, and returned unchanged. The interface does not say
	// what it signs. UserAddress has 0x and 40 hex digits; see [HandlerConfig].Wallet. [Terms.Match]
	// sets Product to the name of the product, and Tokens to the number of tokens in the order; both
	// are zero with [TermsConfig].Any. Raw is the unchanged body.
	UserSig     string          `json:"user_sig"`
	UserAddress string          `json:"user_address"`
	ProjectID   string          `json:"project_id"`
	Digest      Digest          `json:"digest"` // what the validator key signs
	UUID        uuid.UUID       `json:"uuid"`
	Intent      Intent          `json:"intent"`
	Product     string          `json:"-"`
	Tokens      Amount          `json:"-"`
	Raw         json.RawMessage `json:"-"`
}

// UnmarshalJSON checks less than [ParseValidate], and keeps the bytes in Raw.
func (r *ValidateRequest) UnmarshalJSON(b []byte) error { return readWire(b, "body", r) }

func (r *ValidateRequest) read(x *wire.Reader) {
	r.Raw = x.Text()
	x.Members("user_sig", &r.UserSig, "user_address", &r.UserAddress, "project_id", &r.ProjectID,
		"digest", &r.Digest, "uuid", &r.UUID, "intent", &r.Intent)
}

func isAddress(s string) bool { return strings.HasPrefix(s, "0x") && common.IsHexAddress(s) }

// ParseValidate reads the body of a validate call and checks its form and
// consistency (interface 2.5). Verify the HMAC first, with [HMACKey.Verify]. The
// error is an [*InvalidError] that lists everything that is wrong, in the order of
// the interface. Duplicate names in an object are an error, as are more than 1,000
// entries on one side of the intent.
func ParseValidate(body []byte) (*ValidateRequest, error) { return parseValidate(bytes.Clone(body)) }

// parseValidate keeps the body.
func parseValidate(body []byte) (*ValidateRequest, error) {
	x := wire.OfBody(body, readValue)
	var r ValidateRequest
	r.read(&x)
	if problem := x.WholeObject(); problem != "" {
		return nil, invalid("body", "%s", problem)
	}
	var p problems
	p.require(r.UserSig != "", "user_sig")
	if digits := strings.TrimPrefix(r.UserSig, "0x"); !wire.IsHex(digits) || len(digits)%2 != 0 {
		p.add("user_sig", "must be hex")
	}
	switch user := common.HexToAddress(r.UserAddress); {
	case !isAddress(r.UserAddress) || user == (common.Address{}):
		p.add("user_address", "is required and must be 0x followed by 40 hex digits, not zero")
	case typed.HasNoKey(user) || r.Intent.names(r.UserAddress):
		p.add("user_address",
			"must be a wallet that somebody can have, not a precompiled contract, a burn address or the "+
				"token")
	}
	p.require(r.ProjectID != "", "project_id")
	p.requireNonZero(r.Digest != Digest{}, "digest")
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	r.Intent.check(&p)
	if err := wrongFields(x.Wrong).complete(p).err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Approval is the data of the answer to a validate call (interface 2.6).
type Approval struct {
	UserSig      string    `json:"userSig"`      // user_sig of the request, unchanged
	ValidatorSig Signature `json:"validatorSig"` // the signature of the digest
}

// Digest is the 32-byte hash that the validator key signs (interface 5.3). The
// interface does not say what it is a hash of.
type Digest [32]byte

// ParseDigest reads a digest: 0x and 64 hex digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if !parseHex(d[:], s) {
		return Digest{}, invalid("digest", "must be 0x followed by 64 hex digits")
	}
	return d, nil
}

// String returns the digest as 0x and 64 hex digits.
func (d Digest) String() string { return hexutil.Encode(d[:]) }

// MarshalText writes what String returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}

func (d *Digest) read(x *wire.Reader) {
	value := x.Raw()
	if value[0] != '"' || d.UnmarshalText(x.Unquoted(value)) != nil {
		x.Mismatch("0x followed by 64 hex digits", value)
	}
}

// Signature is an ECDSA signature on secp256k1 (interface 5.3): r and s of 32 bytes
// each, and v, which is 27 or 28. Those of a [Signer] have a low s.
type Signature [65]byte

// ParseSignature reads a signature: 0x and 130 hex digits. It checks the form only;
// [Recover] checks the values. The error wraps [ErrSignature].
func ParseSignature(s string) (Signature, error) {
	var parsed Signature
	if !parseHex(parsed[:], s) {
		return Signature{}, fmt.Errorf("ramp: %w: it must be 0x followed by 130 hex digits", ErrSignature)
	}
	return parsed, nil
}

// String returns the signature as 0x and 130 hex digits, the form of the wire.
func (s Signature) String() string { return hexutil.Encode(s[:]) }

// MarshalText writes what String returns.
func (s Signature) MarshalText() ([]byte, error) { return hexutil.Bytes(s[:]).MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (s *Signature) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSignature(string(b))
	return err
}

// parseHex decodes 0x and hex digits, which fill into.
func parseHex(into []byte, text string) bool {
	digits, ok := strings.CutPrefix(text, "0x")
	return ok && len(digits) == 2*len(into) && wire.DecodeHex(into, []byte(digits))
}

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
// tokens. Older messages have erc20. Unknown types are kept unchanged.
const (
	TypeAsset AssetType = "asset"
	TypeERC20 AssetType = "ERC20"
	TypeNFT   AssetType = "NFT"
)

// Direction is the direction of an intent: [Mint] or [Burn].
type Direction string

// The directions. An empty Direction is unknown.
const (
	Mint Direction = "mint" // assets become tokens
	Burn Direction = "burn" // tokens become assets
)

// Intent describes a mint or a burn (interface 2.5, 6).
type Intent struct {
	// The fields of the interface. The interface does not say what TargetCandidate may hold.
	// FeeRate, in basis points, and Actual, the number of tokens after fees, are in some results only.
	Method          Method          `json:"method"`
	Type            IntentType      `json:"type"`
	From            []IntentAsset   `json:"from"`
	To              []IntentAsset   `json:"to"`
	TargetCandidate json.RawMessage `json:"target_candidate,omitempty"`
	FeeRate         json.Number     `json:"fee_rate,omitempty"`
	Actual          string          `json:"actual,omitempty"`
}

// MarshalJSON writes what the interface shows, also with encoding/json/v2, whose omitempty differs.
func (i Intent) MarshalJSON() ([]byte, error) {
	type plain Intent
	return wire.Marshal(plain(i))
}

// UnmarshalJSON checks types only. A FeeRate or an Actual that cannot be read becomes
// empty.
func (i *Intent) UnmarshalJSON(b []byte) error { return readWire(b, "intent", i) }

func (i *Intent) read(x *wire.Reader) {
	x.Members("method", (*string)(&i.Method), "type", (*string)(&i.Type),
		"from", (*assetList)(&i.From), "to", (*assetList)(&i.To),
		"target_candidate", &i.TargetCandidate, "fee_rate", (*feeRate)(&i.FeeRate),
		"actual", (*wire.LooseText)(&i.Actual))
}

// feeRate is a number, or a string that holds one.
type feeRate json.Number

func (f *feeRate) read(x *wire.Reader) {
	rate := x.Loose()
	if _, err := canonicalAmount(rate); err == nil {
		*f = feeRate(rate)
	}
}

// IntentAsset is an asset or a token of an [Intent] (interface 2.5, 6).
type IntentAsset struct {
	Type   AssetType `json:"type"`   // TypeAsset for a game asset, otherwise a token type
	ID     string    `json:"id"`     // game asset ID, or token contract address
	Amount Amount    `json:"amount"` // of the whole order, greater than 0; of a token, in tokens
}

// assetList is one side of an intent.
type assetList []IntentAsset

func (l *assetList) read(x *wire.Reader) {
	*l = wire.ReadList(x, 1, wire.MaxIntentAssets, (*IntentAsset).read)
}

func (a *IntentAsset) read(x *wire.Reader) {
	x.Members("type", (*string)(&a.Type), "id", &a.ID, "amount", &a.Amount)
}

// Net returns Actual as an amount: the number of tokens after fees (interface 6). The error is an
// [*InvalidError] if a result has none, or one that is no number.
func (i *Intent) Net() (Amount, error) {
	net, err := ParseAmount(i.Actual)
	if err != nil {
		return Amount{}, invalid("intent.actual", "is missing, or not a decimal number")
	}
	return net, nil
}

// Direction derives the direction from method and type together (interface 2.5, 3).
// The error is an [*InvalidError] if they contradict each other.
func (i *Intent) Direction() (Direction, error) {
	switch {
	case i.Method == MethodMint && i.Type == Assemble:
		return Mint, nil
	case (i.Method == MethodBurnPermit || i.Method == MethodBurn) && i.Type == Disassemble:
		return Burn, nil
	default:
		return "", invalid("intent.method",
			"and intent.type must be mint and assemble, or burn-permit (or burn) and disassemble")
	}
}

// names reports whether one of the tokens has an address.
func (i *Intent) names(address string) bool {
	is := func(a IntentAsset) bool { return a.Type != TypeAsset && strings.EqualFold(a.ID, address) }
	return slices.ContainsFunc(i.From, is) || slices.ContainsFunc(i.To, is)
}

// check adds what is wrong with the intent to p, and returns its direction, or ""
// if it has none.
func (i *Intent) check(p *problems) Direction {
	p.require(i.Method != "", "intent.method")
	p.require(i.Type != "", "intent.type")
	direction, err := i.Direction()
	if i.Method != "" && i.Type != "" {
		p.addAll(err)
	}
	checkIntentAssets(p, "intent.from", i.From, direction == Mint, direction == Burn)
	checkIntentAssets(p, "intent.to", i.To, direction == Burn, direction == Mint)
	return direction
}

// checkIntentAssets checks one side of an intent. The direction makes it the game's
// side, the chain's side, or neither.
func checkIntentAssets(p *problems, path string, list []IntentAsset, ofGame, ofChain bool) {
	if len(list) == 0 {
		p.add(path, "is required and must not be empty")
	}
	for i := range list {
		if len(*p) >= maxProblems {
			return
		}
		asset := &list[i]
		add := func(field, problem string) {
			p.add(fmt.Sprintf("%s[%d].%s", path, i, field), "%s", problem)
		}
		switch {
		case asset.Type == "":
			add("type", "is required")
		case ofGame && asset.Type != TypeAsset:
			add("type", "must be asset on this side")
		case ofChain && strings.EqualFold(string(asset.Type), string(TypeAsset)):
			add("type", "must be a token type on this side")
		}
		if asset.ID == "" {
			add("id", "is required")
		}
		if asset.Amount.Sign() <= 0 {
			add("amount", "is required and must be greater than 0")
		}
	}
}

// side is one side of an intent: what the game moves, or what the chain moves.
type side struct {
	path   string // in the intent's message
	assets []IntentAsset
}

// sides returns the side of the game and that of the chain.
func (i *Intent) sides(d Direction) (game, chain side) {
	from, to := side{"intent.from", i.From}, side{"intent.to", i.To}
	switch d {
	case Mint:
		return from, to
	case Burn:
		return to, from
	default:
		return side{}, side{}
	}
}

// trade is what an intent exchanges.
type trade struct {
	direction   Direction
	game, chain side
	assets      []AssetAmount // what the game moves: the sum of its side, one entry per ID
}

// trade returns what the intent exchanges. The error is an [*InvalidError] if the
// intent is malformed.
func (i *Intent) trade() (t trade, err error) {
	var p problems
	t.direction = i.check(&p)
	t.game, t.chain = i.sides(t.direction)
	if err = p.err(); err == nil {
		t.assets, err = t.game.sum()
	}
	if err != nil {
		return trade{}, err
	}
	return t, nil
}

// tokens returns a copy of the entries that can be compared: sorted, in lower case,
// because the case of an address is only a checksum, and without types, because an NFT
// may come as ERC20 (2.5).
func (s side) tokens() []IntentAsset {
	list := make([]IntentAsset, len(s.assets))
	for n, asset := range s.assets {
		list[n] = IntentAsset{ID: strings.ToLower(asset.ID), Amount: asset.Amount}
	}
	slices.SortFunc(list, func(a, b IntentAsset) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), a.Amount.Cmp(b.Amount))
	})
	return list
}

// sum adds up the entries of each asset ID, in the order of the intent.
func (s side) sum() ([]AssetAmount, error) {
	sums := make([]AssetAmount, 0, len(s.assets))
	at := map[string]int{} // a small one is not allocated
	for _, asset := range s.assets {
		n, seen := at[asset.ID]
		if !seen {
			at[asset.ID] = len(sums)
			sums = append(sums, AssetAmount{ID: asset.ID, Amount: asset.Amount})
			continue
		}
		sum, err := sums[n].Amount.Add(asset.Amount)
		if err != nil {
			return nil, invalid(s.path, "adds up to more digits than an amount can have")
		}
		sums[n].Amount = sum
	}
	return sums, nil
}

// AssetAmount is a quantity of a game asset.
type AssetAmount struct {
	ID     string `json:"id"`     // asset ID
	Amount Amount `json:"amount"` // greater than 0
}

// byID returns a list sorted by asset ID.
func byID(list []AssetAmount) []AssetAmount {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(x, y AssetAmount) int { return strings.Compare(x.ID, y.ID) })
	return sorted
}

// Result reports the outcome of a transaction (interface 6); see [ParseResult].
type Result struct {
	SessionID string    `json:"session_id"` // session identifier
	UUID      uuid.UUID `json:"uuid"`       // identifies the order
	TxHash    string    `json:"tx_hash"`    // transaction hash, as it was sent: any text, or empty
	Receipt   Receipt   `json:"receipt"`    // outcome of the transaction
	Intent    Intent    `json:"intent"`     // what was exchanged, as the service reports it

	// Unreadable lists the fields that have an unexpected form or occur more than once. In this
	// Result, such a field is zero. If it is in a list, the whole list is zero. An authentic result
	// is accepted anyway, because its UUID and status decide.
	Unreadable  []FieldError    `json:"-"`
	Transaction *Transaction    `json:"-"` // as the chain has it, with a [Confirmer]
	Raw         json.RawMessage `json:"-"` // the unchanged body, with all of its fields
}

// UnmarshalJSON checks less than [ParseResult], and keeps the bytes in Raw.
func (r *Result) UnmarshalJSON(b []byte) error { return readWire(b, "body", r) }

func (r *Result) read(x *wire.Reader) {
	r.Raw = x.Text()
	x.Zero()
	x.Members("session_id", &r.SessionID, "uuid", &r.UUID,
		"tx_hash", (*wire.LooseText)(&r.TxHash), "receipt", &r.Receipt, "intent", &r.Intent)
	var decisive []wire.Problem
	for _, p := range x.Wrong {
		switch p.Path {
		case x.Root(), "uuid", "receipt", "receipt.status":
			decisive = append(decisive, p)
		default:
			r.Unreadable = append(r.Unreadable, FieldError{Path: p.Path, Problem: p.Text})
		}
	}
	x.Wrong = decisive
}

// ParseResult reads the body of a result call (interface 6). Verify the HMAC first, with
// [HMACKey.Verify]. The error is an [*InvalidError] if the body is not a JSON object, or if uuid or
// receipt.status is missing or cannot be read.
//
// Nothing else is required, so that no fault in a minor field can keep a player's assets
// from moving. [Result.Unreadable] lists the fields that could not be read. What the
// result changes is decided by the order that was stored at validate.
func ParseResult(body []byte) (*Result, error) { return parseResult(bytes.Clone(body)) }

// parseResult keeps the body.
func parseResult(body []byte) (*Result, error) {
	x := wire.OfBody(body, readValue)
	var r Result
	r.read(&x)
	if problem := x.WholeObject(); problem != "" {
		return nil, invalid("body", "%s", problem)
	}
	var p problems
	p.requireNonZero(r.UUID != uuid.Nil, "uuid")
	p.require(r.Receipt.Status.Present(), "receipt.status")
	if err := wrongFields(x.Wrong).complete(p).err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// Succeeded reports whether receipt.status is 1 (interface 3).
func (r *Result) Succeeded() bool { return r.Receipt.Succeeded() }

// wireOrder lists the names of 2.5 and 6 in an order that is right for every object
// in which a wrong field gets a code.
var wireOrder = []string{
	"body", "session_id", "user_sig", "user_address", "project_id", "digest", "uuid",
	"tx_hash", "receipt", "intent", "method", "type", "root", "status", "cumulativeGasUsed",
	"logsBloom", "logs", "address", "topics", "data", "from", "to", "id", "amount",
	"target_candidate", "fee_rate", "actual",
}

// complete adds what a check found to what reading found, in the order of the
// interface and once per field. A field that could not be read, or whose object
// could not be, is not reported as missing too.
func (p problems) complete(found problems) problems {
	for _, f := range found {
		if !slices.ContainsFunc(p, func(read FieldError) bool { return covers(read.Path, f.Path) }) {
			p = append(p, f)
		}
	}
	slices.SortStableFunc(p, func(a, b FieldError) int {
		return slices.Compare(wirePosition(a.Path), wirePosition(b.Path))
	})
	return p
}

// wirePosition returns where a path is in the message.
func wirePosition(path string) (position []int) {
	for _, step := range wire.PathSteps(path) {
		n, err := strconv.Atoi(step)
		if err != nil {
			n = slices.Index(wireOrder, step)
		}
		position = append(position, n)
	}
	return position
}

// covers reports whether path is outer or lies inside it.
func covers(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
