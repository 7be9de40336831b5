package ramp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// UUIDValidity is how long a UUID of [Client.Initialize] is valid (interface 8).
const UUIDValidity = 5 * time.Minute

func checkOffer(p *problems, tokenPath, token, feePath string, fee int) {
	if !isAddress(token) {
		p.add(tokenPath, "is required and must be 0x followed by 40 hex digits")
	}
	if fee < 0 || fee > 10_000 {
		p.add(feePath, "must be 0 to 10000 basis points")
	}
}

func checkItems(p *problems, path string, items []Item) {
	for n, item := range items {
		at := fmt.Sprintf("%s[%d]", path, n)
		p.requireFilled(item.ID, at+".id")
		if slices.ContainsFunc(items[:n], func(other Item) bool { return other.ID == item.ID }) {
			p.add(at+".id", "occurs twice")
		}
		if item.Amount.Sign() <= 0 || item.IsNonFungible && !item.Amount.Rat().IsInt() {
			p.add(at+".amount", "is required and must be greater than 0, and whole for a non-fungible item")
		}
		p.requireFilled(item.IconURL, at+".icon_url")
	}
}

func isAddress(s string) bool { return strings.HasPrefix(s, "0x") && common.IsHexAddress(s) }

// AssetAmount is a quantity of a game asset.
type AssetAmount struct {
	ID     string `json:"id"`     // asset ID
	Amount Amount `json:"amount"` // greater than 0
}

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
// tokens. Older messages have erc20. Unknown types are kept unchanged.
const (
	TypeAsset AssetType = "asset"
	TypeERC20 AssetType = "ERC20"
	TypeNFT   AssetType = "NFT"
)

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
	return marshal(struct {
		plain
		BurnFeeBps int    `json:"burn_fee_bps"`
		MintMethod Method `json:"mint_method"`
		BurnMethod Method `json:"burn_method"`
		Materials  []Item `json:"materials"`
		Outputs    []Item `json:"outputs"`
	}{plain(i), 0, MethodMint, MethodBurnPermit, append([]Item{}, i.Materials...), append([]Item{}, i.Outputs...)})
}

// Item is a game asset of an [InitializeIntent] (interface 2.2).
type Item struct {
	// The fields of the interface; Amount is greater than 0.
	ID            string `json:"id"`
	Amount        Amount `json:"amount"`
	IconURL       string `json:"icon_url"`
	IsNonFungible bool   `json:"is_non_fungible"`
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

// ValidateRequest asks for a mint or a burn (interface 2.5); see [ParseValidate].
type ValidateRequest struct {
	// The fields of the interface. UserSig is hex, and returned unchanged; it does not say what it
	// signs. UserAddress has 0x and 40 hex digits; see [HandlerConfig].Wallet. Product and Tokens are
	// those of [HandlerConfig].Terms, and zero with [TermsConfig].Any. Raw is the unchanged body.
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
func ParseValidate(body []byte) (*ValidateRequest, error) { return parseValidate(bytes.Clone(body)) }

// parseValidate keeps the body.
func parseValidate(body []byte) (*ValidateRequest, error) {
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

// Result reports the outcome of a transaction (interface 6); see [ParseResult].
type Result struct {
	SessionID string    `json:"session_id"` // session identifier
	UUID      uuid.UUID `json:"uuid"`       // identifies the order
	TxHash    string    `json:"tx_hash"`    // transaction hash
	Receipt   Receipt   `json:"receipt"`    // outcome of the transaction
	Intent    Intent    `json:"intent"`     // what was exchanged, as the service reports it

	// Unreadable lists the fields that have an unexpected form or occur more than once. They are zero
	// here, and so is the whole list that one is in. An authentic result is accepted anyway,
	// because its UUID and status decide.
	Unreadable  []FieldError    `json:"-"`
	Transaction *Transaction    `json:"-"` // as the chain has it, with [HandlerConfig].Chain
	Raw         json.RawMessage `json:"-"` // the unchanged body, with all of its fields
}

// UnmarshalJSON checks less than [ParseResult], and keeps the bytes in Raw.
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
func ParseResult(body []byte) (*Result, error) { return parseResult(bytes.Clone(body)) }

// parseResult keeps the body.
func parseResult(body []byte) (*Result, error) {
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

// Succeeded reports whether receipt.status is 1 (interface 3).
func (r *Result) Succeeded() bool { return r.Receipt.Succeeded() }

// Intent describes a mint or a burn (interface 2.5, 6).
type Intent struct {
	// The fields of the interface. The options of TargetCandidate are unknown; it was empty so far.
	// FeeRate, in basis points, and Actual, the number of tokens after fees, are in some results only.
	Method          Method          `json:"method"`
	Type            IntentType      `json:"type"`
	From            []IntentAsset   `json:"from"`
	To              []IntentAsset   `json:"to"`
	TargetCandidate json.RawMessage `json:"target_candidate,omitempty"`
	FeeRate         json.Number     `json:"fee_rate,omitempty"`
	Actual          string          `json:"actual,omitempty"`
}

// UnmarshalJSON checks types only; FeeRate and Actual may be left empty.
func (i *Intent) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "intent", i) }

func (i *Intent) read(x *reader) {
	x.members("method", (*string)(&i.Method), "type", (*string)(&i.Type), "from", (*assetList)(&i.From), "to", (*assetList)(&i.To),
		"target_candidate", &i.TargetCandidate, "fee_rate", (*feeRate)(&i.FeeRate),
		"actual", (*looseText)(&i.Actual))
}

// feeRate is a number, or a string that holds one.
type feeRate json.Number

func (f *feeRate) read(x *reader) {
	rate := x.loose()
	if _, err := canonicalAmount(rate); err == nil {
		*f = feeRate(rate)
	}
}

// IntentAsset is an asset or a token of an [Intent] (interface 2.5, 6).
type IntentAsset struct {
	Type   AssetType `json:"type"`   // TypeAsset for a game asset, otherwise a token type
	ID     string    `json:"id"`     // game asset ID, or token contract address
	Amount Amount    `json:"amount"` // greater than 0
}

// assetList is one side of an intent.
type assetList []IntentAsset

func (l *assetList) read(x *reader) {
	*l = readList(x, 1, maxIntentAssets, (*IntentAsset).read)
}

func (a *IntentAsset) read(x *reader) {
	x.members("type", (*string)(&a.Type), "id", &a.ID, "amount", &a.Amount)
}

// Direction is the direction of an intent: [Mint] or [Burn].
type Direction string

// The directions. An empty Direction is unknown.
const (
	Mint Direction = "mint" // assets become tokens
	Burn Direction = "burn" // tokens become assets
)

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
