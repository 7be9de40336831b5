package ramp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

// newVault returns a handler with a store in memory, whose session-1 has 1000 gold.
func newVault(t *testing.T, change func(*ramp.HandlerConfig)) (caller, *oneorder.Vault) {
	t.Helper()
	v := &oneorder.Vault{Gold: map[string]int64{"session-1": 1000}}
	store := &ramp.MemoryStore{Apply: v.Apply}
	config := ramp.HandlerConfig{Terms: anyTerms, Players: noPlayers{}, Store: store}
	if change != nil {
		change(&config)
	}
	return newCaller(t, config), v
}

// answer returns the answer of a handler to an error of a game.
func answerTo(err error) string {
	var rejection *ramp.Rejection
	switch {
	case err == nil:
		return "200"
	case errors.As(err, &rejection) && rejection.Status == 400 && rejection.Code == ramp.CodeOrderConflict:
		return "400"
	case errors.As(err, &rejection) && rejection.Code != ramp.CodeInternal:
		return string(rejection.Code)
	default:
		return "500"
	}
}

func TestWhatAHandlerWithAStoreAnswersToAValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*ramp.ValidateRequest)
		want   string
	}{
		"a repeat":      {func(*ramp.ValidateRequest) {}, "200"},
		"another order": {func(r *ramp.ValidateRequest) { r.Digest[0]++ }, "ORDER_CONFLICT"},
		"a new one above the gold": {func(
			r *ramp.ValidateRequest) {
			r.UUID = uuid.New()
			r.Intent.From[0].Amount = ramp.NewAmount(901)
		}, "INVALID_BALANCE"},
		"another project": {func(r *ramp.ValidateRequest) { r.UUID = uuid.New(); r.ProjectID = "project-2" },
			"INVALID_PROJECT_ID"},
		"what no database can hold": {func(r *ramp.ValidateRequest) { r.UUID = uuid.New(); r.UserAddress = "\x00" },
			"INVALID_USER_ADDRESS"},
		"an intent that is none": {func(r *ramp.ValidateRequest) { r.UUID = uuid.New(); r.Intent.From = nil },
			"INVALID_INTENT_FROM"},
	} {
		t.Run(name, func(t *testing.T) {
			game, v := newVault(t, func(c *ramp.HandlerConfig) { c.Terms = anyOf(t, "project-1", "") })
			require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))
			r := mintRequest(t)
			tt.change(r)
			assert.Equal(t, tt.want, answerTo(game.Validate(t, t.Context(), player, r)))
			assert.EqualValues(t, 900, v.Gold["session-1"])
		})
	}
	game, v := newVault(t, nil)
	require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))
	require.NoError(t, game.Result(t, t.Context(), ramp.Session{}, reported(accepted(t, mintRequest(t)), 0)))
	assert.Equal(t, "ORDER_FINISHED", answerTo(game.Validate(t, t.Context(), player, mintRequest(t))))
	assert.EqualValues(t, 1000, v.Gold["session-1"])

	// An error of the studio is not an error of the call, whatever it wraps.
	v.Fail = func() error {
		return &ramp.InvalidError{Fields: []ramp.FieldError{{Path: "digest", Problem: "is required"}}}
	}
	r := mintRequest(t)
	r.UUID = uuid.New()
	assert.Equal(t, "500", answerTo(game.Validate(t, t.Context(), player, r)))
}

// A result that contradicts its order is rejected permanently only after OnConflict
// succeeded.
func TestWhatAHandlerWithAStoreAnswersToAResult(t *testing.T) {
	order := accepted(t, mintRequest(t))
	another := reported(order, 1)
	another.TxHash = "0x" + strings.Repeat("cd", 32)
	unnamed := reported(order, 1)
	unnamed.TxHash = ""
	elsewhere := reported(order, 0)
	elsewhere.SessionID = "session-2"
	of := func(intent ramp.Intent) *ramp.Result {
		r := reported(order, 0)
		r.Intent = intent
		return r
	}
	down := errors.New("the desk is closed")
	for name, tt := range map[string]struct {
		first, then *ramp.Result // after the order's validate
		project     string
		hook        error // of OnConflict
		noHook      bool
		want        string
		conflict    string // the field of the one that OnConflict got
	}{
		"the outcome":       {then: reported(order, 1), want: "200"},
		"the outcome again": {first: reported(order, 1), then: reported(order, 1), want: "200"},
		"another outcome": {first: reported(order, 1), then: reported(order, 0), want: "400",
			conflict: "receipt.status"},
		"another outcome that nobody takes": {first: reported(order, 1), then: reported(order, 0), noHook: true,
			want: "500"},
		"another outcome, whose hook fails": {first: reported(order, 1), then: reported(order, 0), hook: down,
			want: "500", conflict: "receipt.status"},
		"another, whose hook answers 400": {first: reported(order, 1), then: reported(order, 0),
			hook: &ramp.Rejection{Status: 400}, want: "500", conflict: "receipt.status"},
		"another, whose hook rejects": {first: reported(order, 1), then: reported(order, 0),
			hook: ramp.Reject("DOWN"), want: "500", conflict: "receipt.status"},
		"another, whose hook is a conflict": {first: reported(order, 1), then: reported(order, 0),
			hook: &ramp.ConflictError{}, want: "500", conflict: "receipt.status"},
		"another session": {then: elsewhere, want: "500", conflict: "session_id"},
		"another intent":  {then: of(burnRequest(t).Intent), want: "500", conflict: "intent"},
		"another session and outcome": {first: reported(order, 1), then: elsewhere, want: "500",
			conflict: "session_id"},
		"another transaction": {first: reported(order, 1), then: another, want: "200",
			conflict: "tx_hash"},
		"another transaction without a hook": {first: reported(order, 1), then: another, noHook: true,
			want: "200"},
		"another transaction, whose hook fails": {first: reported(order, 1), then: another, hook: down, want: "500",
			conflict: "tx_hash"},
		"the outcome of an order of this project": {then: reported(order, 0), project: "project-1", want: "200"},
		"an unknown order of a project": {then: &ramp.Result{UUID: uuid.New(),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}, project: "project-1", want: "500"},
		"a transaction after none was named": {first: unnamed, then: reported(order, 1), want: "200"},
		"an order of another project":        {then: reported(order, 0), project: "project-2", want: "500"},
		"an unknown order": {then: &ramp.Result{UUID: uuid.New(),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}, want: "500"},
		"a transaction whose hash is not one": {first: reported(order, 1),
			then: &ramp.Result{UUID: order.UUID, TxHash: "0x1", Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}},
			want: "200"},
		"the transaction in capitals": {first: reported(order, 1),
			then: &ramp.Result{UUID: order.UUID, TxHash: "0X" + strings.Repeat("AB", 32),
				Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}}, want: "200"},
	} {
		t.Run(name, func(t *testing.T) {
			field := ""
			var store ramp.Store
			game, v := newVault(t, func(c *ramp.HandlerConfig) { store = c.Store })
			require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))
			if tt.first != nil {
				require.NoError(t, game.Result(t, t.Context(), ramp.Session{}, tt.first))
			}
			before := v.Gold["session-1"]
			config := ramp.HandlerConfig{Terms: anyOf(t, tt.project, ""), Players: noPlayers{}, Store: store}
			if !tt.noHook {
				config.OnConflict = func(_ context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
					field = conflict.Field
					assert.Equal(t, order.UUID, conflict.Order.UUID)
					assert.Equal(t, tt.then.UUID, r.UUID)
					return tt.hook
				}
			}
			game = newCaller(t, config)
			err := game.Result(t, t.Context(), ramp.Session{}, tt.then)
			assert.Equal(t, tt.want, answerTo(err))
			assert.Equal(t, tt.conflict, field)
			if tt.want != "200" && tt.conflict != "" {
				assert.ErrorIs(t, err, ramp.ErrOrderConflict)
			}
			if tt.first != nil || tt.want != "200" {
				assert.Equal(t, before, v.Gold["session-1"], "neither a repeat nor a contradiction moves anything")
			}
			if tt.hook != nil {
				assert.ErrorIs(t, err, tt.hook)
			}
		})
	}
}

// Two networks can share a store. A call of one must not touch an order of the other.
func TestAnOrderOfAnotherNetwork(t *testing.T) {
	for name, tt := range map[string]struct {
		opened, called ramp.Network
		validate       string
		result         string
	}{
		"the same":             {ramp.Testnet, ramp.Testnet, "200", "200"},
		"another":              {ramp.Testnet, ramp.Mainnet, "500", "500"},
		"none configured":      {ramp.Testnet, "", "200", "200"},
		"accepted before then": {"", ramp.Mainnet, "200", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			var store ramp.Store
			opened, v := newVault(t, func(c *ramp.HandlerConfig) { store, c.Terms = c.Store, anyOf(t, "", tt.opened) })
			require.NoError(t, opened.Validate(t, t.Context(), player, mintRequest(t)))
			called := newCaller(t, ramp.HandlerConfig{Players: noPlayers{}, Store: store,
				Terms: anyOf(t, "", tt.called),
				OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error {
					t.Error("a wrong place is not a wrong outcome")
					return nil
				}})
			assert.Equal(t, tt.validate, answerTo(called.Validate(t, t.Context(), player, mintRequest(t))))
			order := accepted(t, mintRequest(t))
			assert.Equal(t, tt.result, answerTo(called.Result(t, t.Context(), ramp.Session{}, reported(order, 0))))
			if tt.result == "500" {
				assert.EqualValues(t, 900, v.Gold["session-1"])
				return
			}
			step := must.Get(store.Update(t.Context(), order.UUID,
				func(stored *ramp.Order) (ramp.Step, error) { return ramp.Step{Order: *stored}, nil }))(t)
			assert.Equal(t, tt.opened, step.Order.Network)
		})
	}
}

// If order 1 was ended by the transaction of order 2, by a thief or by mistake, the
// result of order 2 is not lost: it is delivered again until a person has corrected
// order 1.
func TestATransactionThatHasEndedAnotherOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		noHook bool
		hook   error
	}{"with OnConflict": {}, "without OnConflict": {noHook: true}, "OnConflict fails": {hook: errors.New("down")}} {
		t.Run(name, func(t *testing.T) {
			var conflicts []*ramp.ConflictError
			game, v := newVault(t, func(c *ramp.HandlerConfig) {
				if !tt.noHook {
					c.OnConflict = func(_ context.Context, conflict *ramp.ConflictError, _ *ramp.Result) error {
						conflicts = append(conflicts, conflict)
						return tt.hook
					}
				}
			})
			first, second := burnRequest(t), burnRequest(t)
			second.UUID = uuid.New()
			require.NoError(t, game.Validate(t, t.Context(), player, first))
			require.NoError(t, game.Validate(t, t.Context(), player, second))
			one, two := reported(accepted(t, first), 1), reported(accepted(t, second), 1)
			two.TxHash = strings.ToUpper(one.TxHash)
			require.NoError(t, game.Result(t, t.Context(), ramp.Session{}, one))
			for range 2 {
				err := game.Result(t, t.Context(), ramp.Session{}, two)
				assert.Equal(t, "500", answerTo(err))
				assert.ErrorContains(t, err,
					"order "+second.UUID.String()+
						" (accepted): the call contradicts the stored order: tx_hash has ended order "+
						first.UUID.String())
			}
			assert.EqualValues(t, 1100, v.Gold["session-1"])
			if tt.noHook {
				return
			}
			require.Len(t, conflicts, 2, "at each delivery")
			assert.Equal(t, []any{second.UUID, ramp.OrderAccepted, "tx_hash", first.UUID, ramp.OrderSucceeded},
				[]any{conflicts[0].Order.UUID, conflicts[0].Order.State, conflicts[0].Field, conflicts[0].Other.UUID,
					conflicts[0].Other.State})
		})
	}
}

// A server on fasthttp reads the next request into the memory of the last one, header
// values and body included.
func TestNothingOfACallIsKept(t *testing.T) {
	var players []ramp.Session
	var bodies []json.RawMessage
	game, v := newVault(t, func(c *ramp.HandlerConfig) {
		c.Policy = func(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
			players, bodies = append(players, s), append(bodies, r.Raw)
			return nil
		}
		c.OnConflict = func(_ context.Context, _ *ramp.ConflictError, r *ramp.Result) error {
			bodies = append(bodies, r.Raw)
			return nil
		}
	})
	body := validateCall().With("intent.target_candidate", map[string]any{"a": 1}).Bytes(t)
	header := signed(t, body)
	var memory [][]byte
	for name, values := range header {
		memory = append(memory, []byte(values[0]))
		header[name] = []string{unsafe.String(&memory[len(memory)-1][0], len(values[0]))}
	}
	first := must.Get(ramp.ParseValidate(body))(t)
	require.NoError(t, toValidate(game.handler)(t.Context(), header, body).Err)
	contradiction := resultCall().With("session_id", "session-2").Bytes(t)
	require.Equal(t, 500, toResult(game.handler)(t.Context(), signed(t, contradiction), contradiction).Status)
	texts := []string{string(body), string(contradiction)}
	for _, used := range append(memory, body, contradiction) {
		clear(used)
	}

	require.Len(t, bodies, 2)
	assert.Equal(t, texts, []string{string(bodies[0]), string(bodies[1])})
	require.Len(t, players, 1)
	assert.Equal(t, "session-1", players[0].ID)
	assert.Equal(t, "secret-token", players[0].Token.Reveal())
	require.NoError(t, game.Validate(t, t.Context(), player, first), "a repeat of the stored order")
	require.NoError(t,
		game.Result(t, t.Context(), ramp.Session{},
			&ramp.Result{UUID: first.UUID, Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}))
	assert.Equal(t, map[string]int64{"session-1": 1000}, v.Gold)
}

func TestAMemoryStoreHandsOutCopies(t *testing.T) {
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	body := validateCall().With("intent.target_candidate", map[string]any{"a": 1}).Bytes(t)
	written := must.Get(json.Marshal(accepted(t, must.Get(ramp.ParseValidate(body))(t))))(t)
	for range 3 {
		r := must.Get(ramp.ParseValidate(body))(t)
		step := must.Get(store.Update(t.Context(), r.UUID, ramp.Accept(player, r, atValidate)))(t)
		got := must.Get(json.Marshal(step.Order))(t)
		assert.Equal(t, string(written), string(got))
		assert.Equal(t, "item_gold", step.Order.Assets[0].ID)
		if !step.New { // which is a copy; that of a new step is the transition's
			step.Order.Assets[0].ID = "item_gem"
			step.Order.Intent.From[0].ID = "item_gem"
			step.Order.Intent.To[0].ID = "0x2"
			step.Order.Intent.TargetCandidate[2] = 'b'
		}
		r.Intent.From[0].Amount = ramp.NewAmount(1_000_000) // which is the caller's
	}
}

// A step that a store could not take says nothing about the order.
func TestAStoreThatFailsReportsNoConflict(t *testing.T) {
	down := errors.New("down")
	order := ended(t, accepted(t, mintRequest(t)), 1)
	game := newCaller(t, ramp.HandlerConfig{Terms: anyTerms, Players: noPlayers{},
		Store: failingStore{ramp.Step{Order: order}, down},
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error {
			t.Error("there is no conflict")
			return nil
		}})
	r := reported(order, 1)
	r.TxHash = "0x" + strings.Repeat("cd", 32)
	assert.ErrorIs(t, game.Result(t, t.Context(), player, r), down)
}

type failingStore struct {
	step ramp.Step
	err  error
}

func (s failingStore) Update(context.Context, uuid.UUID, ramp.Transition) (ramp.Step, error) {
	return s.step, s.err
}

// inMemory returns a config with a store in memory that applies nothing.
func inMemory(c ramp.HandlerConfig) ramp.HandlerConfig {
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	c.Players, c.Store = noPlayers{}, store
	return c
}

// The game gets a new project in the console while an order waits. It ends as it was accepted.
func TestAGameThatMovesToANewProject(t *testing.T) {
	terms := func(project string, former ...string) *ramp.Terms {
		return must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: project, Former: former,
			Network: ramp.Testnet}))(t)
	}
	var store ramp.Store
	before, v := newVault(t, func(c *ramp.HandlerConfig) { c.Terms, store = terms("project-1"), c.Store })
	require.NoError(t, before.Validate(t, t.Context(), player, mintRequest(t)))
	moved := func(former ...string) caller {
		return newCaller(t, ramp.HandlerConfig{Terms: terms("project-3", former...), Players: noPlayers{},
			Store: store})
	}
	failed := reported(accepted(t, mintRequest(t)), 0)
	lost, game := moved(), moved("project-2", "project-1")
	assert.Equal(t, "500", answerTo(lost.Result(t, t.Context(), ramp.Session{}, failed)))
	assert.Equal(t, "INVALID_PROJECT_ID", answerTo(lost.Validate(t, t.Context(), player, mintRequest(t))))

	assert.Equal(t, "200", answerTo(game.Validate(t, t.Context(), player, mintRequest(t))), "a repeat")
	for project, want := range map[string]string{"project-1": "INVALID_MESSAGE", "project-2": "INVALID_MESSAGE",
		"project-3": "200", "project-4": "INVALID_PROJECT_ID"} {
		r := mintRequest(t)
		r.UUID, r.ProjectID = uuid.New(), project
		assert.Equal(t, want, answerTo(game.Validate(t, t.Context(), player, r)), project)
	}
	assert.EqualValues(t, 800, v.Gold["session-1"], "one order of each project")
	assert.Equal(t, "200", answerTo(game.Result(t, t.Context(), ramp.Session{}, failed)))
	assert.EqualValues(t, 900, v.Gold["session-1"])

	for want, c := range map[string]ramp.TermsConfig{
		"TermsConfig.Former[1] must be another project": {ProjectID: "p", Former: []string{"q", "p"}, Any: true},
		"TermsConfig.Former[0] is required":             {ProjectID: "p", Former: []string{""}, Any: true},
		"TermsConfig.ProjectID is required with Former": {Former: []string{"q"}, Any: true},
	} {
		_, err := ramp.NewTerms(c)
		assert.ErrorContains(t, err, want)
	}
}
