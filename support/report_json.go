package support

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// The forms of this file are for programs in other languages: an amount is a text of digits, because many
// readers round numbers, a list is never null, and a member has one type. What an order's target_candidate
// holds can be of any type, so it is a text of JSON.

type (
	orderForm struct {
		plainOrder
		Direction ramp.Direction `json:"direction"`
		Intent    intentForm     `json:"intent"`
		Assets    []assetForm    `json:"assets"`
	}
	plainOrder ramp.Order // without its methods

	intentForm struct {
		Method          ramp.Method     `json:"method"`
		Type            ramp.IntentType `json:"type"`
		From            []sideForm      `json:"from"`
		To              []sideForm      `json:"to"`
		TargetCandidate string          `json:"target_candidate,omitempty"`
		FeeRate         string          `json:"fee_rate,omitempty"`
		Actual          string          `json:"actual,omitempty"`
	}
	sideForm struct {
		Type ramp.AssetType `json:"type"`
		assetForm
	}
	assetForm struct {
		ID     string           `json:"id"`
		Amount rampbooks.Amount `json:"amount"`
	}
)

func formOf(o *ramp.Order) orderForm {
	return orderForm{plainOrder(*o), o.Direction, intentForm{
		o.Intent.Method, o.Intent.Type, each(o.Intent.From, formOfSide), each(o.Intent.To, formOfSide),
		string(o.Intent.TargetCandidate), o.Intent.FeeRate.String(), o.Intent.Actual,
	}, each(o.Assets, formOfAsset)}
}

func formOfAsset(a ramp.AssetAmount) assetForm {
	return assetForm{a.ID, rampbooks.Amount{Amount: a.Amount}}
}

func formOfSide(a ramp.IntentAsset) sideForm {
	return sideForm{a.Type, formOfAsset(ramp.AssetAmount{ID: a.ID, Amount: a.Amount})}
}

func (f *orderForm) order() ramp.Order {
	o := ramp.Order(f.plainOrder)
	o.Direction = f.Direction
	o.Intent = ramp.Intent{Method: f.Intent.Method, Type: f.Intent.Type,
		From: some(f.Intent.From, sideForm.side), To: some(f.Intent.To, sideForm.side),
		TargetCandidate: json.RawMessage(f.Intent.TargetCandidate), FeeRate: json.Number(f.Intent.FeeRate),
		Actual: f.Intent.Actual}
	if f.Intent.TargetCandidate == "" {
		o.Intent.TargetCandidate = nil
	}
	o.Assets = some(f.Assets, assetForm.asset)
	return o
}

func (f assetForm) asset() ramp.AssetAmount {
	return ramp.AssetAmount{ID: f.ID, Amount: f.Amount.Amount}
}

func (f sideForm) side() ramp.IntentAsset {
	return ramp.IntentAsset{Type: f.Type, ID: f.ID, Amount: f.Amount.Amount}
}

type (
	reportForm struct {
		plainReport
		Order      orderForm       `json:"order"`
		Candidates []candidateForm `json:"candidates"`
	}
	plainReport Report // without its methods

	candidateForm struct {
		Candidate
		Evidence  evidenceForm   `json:"evidence"`
		Transfers []transferForm `json:"transfers"`
	}
	evidenceForm struct {
		ramp.Evidence
		To       *common.Address `json:"to,omitempty"`
		Units    *integer        `json:"units,omitempty"`
		TokenIDs []*integer      `json:"token_ids,omitempty"`
	}
	transferForm struct {
		ramp.Transfer
		Value    *integer `json:"value,omitempty"`
		TokenID  *integer `json:"token_id,omitempty"`
		LogIndex *uint64  `json:"log_index,omitempty"`
	}
)

// integer is a whole number that is a text in JSON.
type integer big.Int

func (i *integer) MarshalText() ([]byte, error) { return (*big.Int)(i).MarshalText() }

func (i *integer) UnmarshalText(text []byte) error { return (*big.Int)(i).UnmarshalText(text) }

// MarshalJSON writes a report for a program in any language: amounts are texts of digits, as in the books, a
// list is never null, and target_candidate is a text of JSON. What a newer release has stored with the order
// is left out. The commands list and find write orders in the same form.
func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(reportForm{plainReport(r), formOf(&r.Order), each(r.Candidates, formOfCandidate)})
}

func formOfCandidate(c Candidate) candidateForm {
	return candidateForm{c, evidenceForm{c.Evidence, c.Evidence.To, (*integer)(c.Evidence.Units),
		some(c.Evidence.TokenIDs, func(id *big.Int) *integer { return (*integer)(id) })},
		each(c.Transfers, formOfTransfer)}
}

func formOfTransfer(t ramp.Transfer) transferForm {
	f := transferForm{t, (*integer)(t.Value), (*integer)(t.TokenID), nil}
	if index, err := t.LogIndex.Uint64(); err == nil {
		f.LogIndex = &index
	}
	return f
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Report) UnmarshalJSON(b []byte) error {
	var f reportForm
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*r = Report(f.plainReport)
	r.Order, r.Candidates = f.Order.order(), some(f.Candidates, candidateForm.candidate)
	return nil
}

func (f candidateForm) candidate() Candidate {
	c := f.Candidate
	c.Evidence = f.Evidence.Evidence
	c.Evidence.To, c.Evidence.Units = f.Evidence.To, (*big.Int)(f.Evidence.Units)
	c.Evidence.TokenIDs = some(f.Evidence.TokenIDs, func(id *integer) *big.Int { return (*big.Int)(id) })
	c.Transfers = some(f.Transfers, transferForm.transfer)
	return c
}

func (f transferForm) transfer() ramp.Transfer {
	t := f.Transfer
	t.Value, t.TokenID = (*big.Int)(f.Value), (*big.Int)(f.TokenID)
	if f.LogIndex != nil {
		t.LogIndex = ramp.NewQuantity(*f.LogIndex)
	}
	return t
}

// each returns what f makes of each element, and no nil list.
func each[A, B any](list []A, f func(A) B) []B { return append([]B{}, some(list, f)...) }

// some returns what f makes of each element, and nil if there is none.
func some[A, B any](list []A, f func(A) B) (made []B) {
	for _, element := range list {
		made = append(made, f(element))
	}
	return made
}
