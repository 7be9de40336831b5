package support_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonshape"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// A program in a typed language, and one that reads numbers as floating point, lose nothing of what is printed.
func TestTheJSONOfACommandIsReadWithoutLoss(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 3)
	mint := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
	burn := s.Place(t, s.Service.Burn, 2, ramptest.ResultNever())
	failed := s.Place(t, s.Service.Mint, 1, ramptest.TransactionFails())
	none := s.Place(t, s.Service.Burn, 7, ramptest.StaysPending())
	s.Service.Advance(14 * time.Hour)
	large := must.Get(ramp.ParseAmount("9007199254740993.5"))(t)
	s.Change(failed.UUID, func(o *ramp.Order) {
		o.Intent.From[0].Amount, o.Assets = large, []ramp.AssetAmount{{ID: "item_gold", Amount: large}}
		o.Intent.TargetCandidate, o.Intent.FeeRate = json.RawMessage(`{"a":[1,null]}`), "100.5"
	})

	orders, reports := jsonshape.Shapes{}, jsonshape.Shapes{}
	run := func(name string, args ...string) []byte {
		return []byte(must.Get(rig.RunCommand(t, s.Office, name, append([]string{"-json"}, args...)...))(t))
	}
	for _, args := range [][]string{
		{"list"}, {"list", "-session", "session-1"}, {"list", "-session", "nobody"}, {"find", failed.UUID.String()},
	} {
		assert.Empty(t, orders.Add(run(args[0], args[1:]...)), args)
	}
	for _, o := range []*ramptest.PlacedOrder{mint, burn, failed, none} {
		assert.Empty(t, reports.Add(run("show", o.UUID.String())))
	}
	s.Service.FailRPC(503)
	printed, err := rig.RunCommand(t, s.Office, "show", "-json", mint.UUID.String())
	require.Error(t, err)
	assert.Empty(t, reports.Add([]byte(printed)), "without the chain")

	for path, kind := range orders {
		if path != "" && path != "[]" {
			assert.Equal(t, kind, reports[".order"+path[len("[]"):]], "an order has one form: %s", path)
		}
	}
	var list []struct {
		Direction string
		Intent    struct {
			From            []struct{ Amount string }
			TargetCandidate string `json:"target_candidate"`
			FeeRate         string `json:"fee_rate"`
		}
		Assets []struct{ Amount string }
	}
	require.NoError(t, json.Unmarshal(run("find", failed.UUID.String()), &list))
	assert.Equal(t, "mint", list[0].Direction)
	assert.Equal(t, "9007199254740993.5", list[0].Intent.From[0].Amount)
	assert.Equal(t, "9007199254740993.5", list[0].Assets[0].Amount)
	assert.Equal(t, []string{`{"a":[1,null]}`, "100.5"},
		[]string{list[0].Intent.TargetCandidate, list[0].Intent.FeeRate})
}

// Whatever a report holds, its JSON has one form, and Go reads it back.
func TestAReportIsReadAsItWasWritten(t *testing.T) {
	moved, _ := new(big.Int).SetString("4000000000000000001", 10)
	unit, piece := big.NewInt(1), big.NewInt(0)
	order := rig.OrderOf(ramp.Mint, 5, rig.Now)
	to, other := common.Address{7}, order.UUID
	hours := 3
	full := support.Report{
		Order: order, Refusal: &ramp.Refusal{UUID: order.UUID, First: rig.Now, Last: rig.Now, Count: 1, Reason: "why"},
		Candidates: []support.Candidate{{Evidence: ramp.Evidence{Succeeded: true, To: &to, Units: moved,
			TokenIDs: []*big.Int{moved, piece}}, EndedOther: &other, Transfers: []ramp.Transfer{
			{Value: unit, LogIndex: ramp.NewQuantity(3)}, {TokenID: piece}}}, {}},
		Decimals: map[common.Address]int{rig.Token: 18}, ChainHours: &hours,
	}
	shapes := jsonshape.Shapes{}
	for _, report := range []support.Report{full, {Order: order}, {}} {
		text := must.Get(json.Marshal(report))(t)
		assert.Empty(t, shapes.Add(text))
		var read support.Report
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, report, read)
		assert.Equal(t, string(text), string(must.Get(json.Marshal(&read))(t)))
	}
	assert.Equal(t, "string", shapes[".candidates[].evidence.units"])
	for _, wrong := range []string{`{"order":{"assets":[{"amount":"x"}]}}`,
		`{"candidates":[{"evidence":{"units":"x"}}]}`,
		`{"candidates":[{"evidence":{"units":5}}]}`} {
		assert.Error(t, json.Unmarshal([]byte(wrong), new(support.Report)), wrong)
	}
}
