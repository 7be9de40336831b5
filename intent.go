package ramp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/wire"
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

// Direction is the direction of an intent: [Mint] or [Burn].
type Direction string

// The directions. An empty Direction is unknown.
const (
	Mint Direction = "mint" // assets become tokens
	Burn Direction = "burn" // tokens become assets
)

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
	Amount Amount    `json:"amount"` // greater than 0
}

// assetList is one side of an intent.
type assetList []IntentAsset

func (l *assetList) read(x *wire.Reader) {
	*l = wire.ReadList(x, 1, wire.MaxIntentAssets, (*IntentAsset).read)
}

func (a *IntentAsset) read(x *wire.Reader) {
	x.Members("type", (*string)(&a.Type), "id", &a.ID, "amount", &a.Amount)
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
	return slices.SortedFunc(slices.Values(list), func(x, y AssetAmount) int {
		return strings.Compare(x.ID, y.ID)
	})
}
