package ramp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

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
func (a *Asset) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "asset", a) }

func (a *Asset) read(x *wire.Reader) {
	var balance string
	x.Members("id", &a.ID, "balance", &balance)
	var err error
	if a.Balance, err = ParseAmount(balance); err != nil {
		x.Fault("must have a balance that is a decimal string")
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
	x, problem := wire.OfBody(body, readValue)
	if problem != "" {
		return nil, invalid("body", "%s", problem)
	}
	var r ValidateRequest
	r.read(&x)
	var p problems
	p.require(r.UserSig != "", "user_sig")
	if digits := strings.TrimPrefix(r.UserSig, "0x"); !wire.IsHex(digits) || len(digits)%2 != 0 {
		p.add("user_sig", "must be hex")
	}
	if !isAddress(r.UserAddress) || common.HexToAddress(r.UserAddress) == (common.Address{}) {
		p.add("user_address", "is required and must be 0x followed by 40 hex digits, not zero")
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
	Transaction *Transaction    `json:"-"` // as the chain has it, with a [Confirmer]
	Raw         json.RawMessage `json:"-"` // the unchanged body, with all of its fields
}

// UnmarshalJSON checks less than [ParseResult], and keeps the bytes in Raw.
func (r *Result) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "body", r) }

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
	x, problem := wire.OfBody(body, readValue)
	if problem != "" {
		return nil, invalid("body", "%s", problem)
	}
	var r Result
	r.read(&x)
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
	"tx_hash", "receipt", "intent", "method", "type", "root", "status", "cumulativeGasUsed", "logsBloom", "logs",
	"address", "topics", "data", "from", "to", "id", "amount",
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
