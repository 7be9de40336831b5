package support_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

func newStudio(t *testing.T) *rig.Studio {
	t.Helper()
	s := &rig.Studio{Gold: 1000, Session: "session-1"}
	s.Open(t, time.Second)
	s.Proof = rampproof.Config{Contracts: []common.Address{rig.Token}, Payers: []common.Address{s.Service.Payer()},
		Decimals: map[common.Address]int{rig.Token: 18}}
	s.OpenOffice(t)
	return s
}

func TestSupportShowsTheTransactionsThatMayBeTheOrders(t *testing.T) {
	d := newStudio(t)
	d.Service.Advance(3 * time.Hour)
	d.Mint(t) // of the same player, an hour ago
	lost := d.Mint(t, ramptest.ResultNever())
	for _, fault := range []ramptest.Fault{ramptest.TransactionFails(), ramptest.StaysPending()} {
		report := must.Get(d.Show(t.Context(), d.Mint(t, fault)))(t)
		assert.Empty(t, report.Candidates, "it moved nothing")
	}
	report := must.Get(d.Show(t.Context(), lost))(t)
	require.Len(t, report.Candidates, 1)
	c := report.Candidates[0]
	assert.Equal(t, "", c.Unproven)
	assert.WithinDuration(t, report.Order.AcceptedAt, c.Time, time.Minute)
	assert.True(t, report.FirstBlock <= c.Block && c.Block <= report.LastBlock)
	assert.Contains(t, report.Text(), "\nchain     blocks ")
	assert.Equal(t, d.Service.Payer(), c.Evidence.FeePayer)
	assert.WithinDuration(t, d.Service.Now(), report.LastTime, time.Second)

	text := must.Get(json.Marshal(report))(t)
	var read support.Report
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, report, &read, "Go can read it back")
	assert.Contains(t, string(text), `"session_id":"session-1"`)
}

func TestADecisionIsLoggedWithWhoAndWhy(t *testing.T) {
	d := newStudio(t)
	d.Witness(t)
	waits := d.Mint(t, ramptest.StaysPending())
	for _, missing := range [][2]string{
		{"", "why"}, {"alice", ""}, {" ", "why"}, {"alice", "\n"},
		{"alice", "a\x00b"}, {"alice\xff", "why"}, {"alice", strings.Repeat("x", 4096-len("alice: ")+1)},
	} {
		decided := support.Decision{Who: missing[0], Reason: missing[1]}
		_, err := d.Abandon(t.Context(), waits, decided)
		var wrong *ramp.InvalidError
		assert.ErrorAs(t, err, &wrong)
		_, err = d.Finish(t.Context(), waits, common.Hash{1}, decided)
		assert.ErrorAs(t, err, &wrong)
	}
	assert.Empty(t, d.Log.String())
	before := d.Gold
	d.Service.Advance(13 * time.Hour)

	step := must.Get(d.Abandon(t.Context(), waits,
		support.Decision{Who: "alice@studio", Reason: "case 17: nothing on the chain after a day"}))(t)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	assert.Equal(t, "alice@studio: case 17: nothing on the chain after a day", step.Order.Reason)
	assert.Greater(t, d.Gold, before)
	record := d.Record(t)
	assert.Equal(t,
		[]any{"WARN", "ramp: order abandoned", waits.String(), "alice@studio",
			"case 17: nothing on the chain after a day", "mint", "give back +100 item_gold", true},
		[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"],
			record["effect"], record["new"]})

	_, err := d.Abandon(t.Context(), d.Mint(t), support.Decision{Who: "bob", Reason: "a mistake"})
	assert.ErrorIs(t, err, ramp.ErrOrderFinished)
	record = d.Record(t)
	assert.Equal(t, []any{"ERROR", "ramp: order not abandoned", "bob"},
		[]any{record["level"], record["msg"], record["who"]})

	_, err = rig.NewOffice(rig.Config{})
	assert.EqualError(t, err, "ramp: Config.Store is required")
}

func TestFinishDemandsADecisionAChainAndATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStudio(t)
		id, decided := d.Mint(t, ramptest.ResultNever()), support.Decision{Who: "alice", Reason: "case 19"}
		_, err := d.Finish(t.Context(), id, common.Hash{1}, support.Decision{Who: " ", Reason: "case 19"})
		assert.EqualError(t, err, "ramp: Decision.Who is required")
		_, err = d.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.ErrorIs(t, err, ramp.ErrNotFound, "no such transaction")
		blind := must.Get(rig.NewOffice(rig.Config{Store: d.Store, Logger: rig.Quiet}))(t)
		_, err = blind.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.EqualError(t, err, "ramp: Config.Proof is required")

		report := must.Get(d.Show(t.Context(), id))(t)
		deep := d.Proof
		deep.Confirmations = 1_000_000
		strict := must.Get(rig.NewOffice(rig.Config{Store: d.Store, Logger: rig.Quiet,
			Proof: rig.ProofOn(t, d.Chain, &deep)}))(t)
		_, err = strict.Finish(t.Context(), id, report.Candidates[0].Hash, decided)
		assert.ErrorContains(t, err, "of 1000000 confirmations")
		assert.EqualValues(t, 900, d.Gold)
	})
}

// Two projects with keys of their own can share a store.
func TestSupportOfOneProjectLeavesTheOthersAlone(t *testing.T) {
	d := newStudio(t)
	id := d.Mint(t, ramptest.ResultNever())
	other := must.Get(rig.NewOffice(rig.Config{Store: d.Store, Projects: []string{"project-2"}, Logger: rig.Quiet}))(t)
	_, err := other.Show(t.Context(), id)
	assert.ErrorIs(t, err, ramp.ErrOrderForeign)
	_, err = other.Abandon(t.Context(), id, support.Decision{Who: "alice", Reason: "case 20"})
	assert.ErrorIs(t, err, ramp.ErrOrderForeign)
	live := must.Get(rig.NewOffice(rig.Config{Store: networked{d.Store}, Network: ramp.Mainnet}))(t)
	_, err = live.Show(t.Context(), id)
	assert.ErrorContains(t, err, "network")
	// it names no network
	must.Get(must.Get(rig.NewOffice(rig.Config{Store: d.Store, Network: ramp.Mainnet}))(t).Show(t.Context(), id))(t)
	assert.NotContains(t, must.Get(rig.RunCommand(t, other, "list", "-older", "0s"))(t), id.String())
	assert.EqualValues(t, 900, d.Gold)
	missing := uuid.New()
	lost, err := other.Lost(t.Context(), strings.NewReader(fmt.Sprintf(`{"msg":"ramp: call","uuid":%q,"state":"failed"}
{"msg":"ramp: call","uuid":%q,"state":"accepted"}`, id, missing)))
	assert.NoError(t, err, "the log is of both")
	assert.Equal(t, []support.Logged{{UUID: missing, State: ramp.OrderAccepted, Missing: true}}, lost)
}

// networked is a store whose orders are of the testnet.
type networked struct{ ramp.Store }

func (s networked) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	return s.Store.Update(ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		order := *stored
		order.Network = ramp.Testnet
		return next(&order)
	})
}

// refuses asserts that an order is not abandoned because of a transaction.
func refuses(t *testing.T, err error, hash common.Hash) {
	t.Helper()
	var candidate *support.CandidateError
	require.ErrorAs(t, err, &candidate)
	assert.Equal(t, hash, candidate.Candidate.Hash)
}

// A typed nil is no books: they would panic when a player is erased.
func TestBooksThatAreNilAreRefused(t *testing.T) {
	_, err := support.New(support.Config{Store: new(ramp.MemoryStore), Books: (*rampbooks.Reconciler)(nil)})
	assert.EqualError(t, err, "ramp: Config.Books must not be a nil *rampbooks.Reconciler")
	_, err = rampbooks.New(rampbooks.Config{Store: (*rig.Store)(nil)})
	assert.EqualError(t, err, "ramp: Config.Store must not be a nil *rig.Store")
	_, err = rampbooks.New(rampbooks.Config{})
	assert.EqualError(t, err, "ramp: Config.Store is required")
}
