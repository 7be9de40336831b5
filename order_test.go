package ramp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

// The rules are pure functions, so they are tested without a store. internal/test/integration/dbtest
// tests stores on real databases.

var (
	atValidate = time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC)
	atResult   = atValidate.Add(time.Hour)
	player     = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("t")}
)

type noPlayers struct{}

func (noPlayers) Authenticate(context.Context, ramp.Session) error           { return nil }
func (noPlayers) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return nil, nil }

func mintRequest(t testing.TB) *ramp.ValidateRequest {
	return must.Get(ramp.ParseValidate(validateCall().Bytes(t)))(t)
}

func burnRequest(t testing.TB) *ramp.ValidateRequest {
	return must.Get(ramp.ParseValidate(validateCall().With("intent", oneorder.Burn()).Bytes(t)))(t)
}

// accepted returns the order that a request opens.
func accepted(t testing.TB, r *ramp.ValidateRequest) ramp.Order {
	return must.Get(ramp.Accept(player, r, atValidate)(nil))(t).Order
}

// reported returns the result of an order with a status.
func reported(o ramp.Order, status uint64) *ramp.Result {
	return &ramp.Result{SessionID: o.SessionID, UUID: o.UUID, TxHash: "0x" + strings.Repeat("ab", 32),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: o.Intent}
}

// ended returns the order after its result.
func ended(t testing.TB, o ramp.Order, status uint64) ramp.Order {
	return must.Get(ramp.Finish(reported(o, status), atResult)(&o))(t).Order
}

func TestAcceptOpensAnOrder(t *testing.T) {
	gold := []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(100)}}
	for name, tt := range map[string]struct {
		request   *ramp.ValidateRequest
		direction ramp.Direction
		effect    ramp.Effect
	}{
		"a mint takes": {mintRequest(t), ramp.Mint, ramp.Effect{Kind: ramp.Take, Assets: gold}},
		"a burn takes nothing, and says what it will grant": {burnRequest(t), ramp.Burn, ramp.Effect{}},
	} {
		t.Run(name, func(t *testing.T) {
			step := must.Get(ramp.Accept(player, tt.request, atValidate)(nil))(t)
			assert.True(t, step.New)
			assert.Equal(t, tt.effect, step.Effect)
			assert.Equal(t, ramp.Order{
				UUID: tt.request.UUID, State: ramp.OrderAccepted, ProjectID: "project-1", SessionID: "session-1",
				UserAddress: tt.request.UserAddress, Digest: tt.request.Digest, Intent: tt.request.Intent,
				Direction: tt.direction, Assets: gold, AcceptedAt: atValidate.Truncate(time.Millisecond),
			}, step.Order)
		})
	}
}

func TestTheSameValidateIsARepeat(t *testing.T) {
	stored := accepted(t, mintRequest(t))
	for name, body := range map[string]oneorder.Object{
		"in the same words": validateCall(),
		"1.00e2 for 100":    validateCall().With("intent.from.0.amount", json.Number("1.00e2")),
		"an asset in two parts": validateCall().With("intent.from",
			append(oneorder.Side("asset", "item_gold", 99), oneorder.Side("asset", "item_gold", 1)...)),
		"erc20 in lower case":     validateCall().With("intent.to.0.type", "erc20"),
		"an address in capitals":  validateCall().With("user_address", "0x1BE31A94361A391BBAFB2A4CCD704F57DC04D4BB"),
		"another user_sig":        validateCall().With("user_sig", "0xbb"),
		"no target_candidate":     validateCall().Without("intent.target_candidate"),
		"a null target_candidate": validateCall().With("intent.target_candidate", nil),
	} {
		t.Run(name, func(t *testing.T) {
			r := must.Get(ramp.ParseValidate(body.Bytes(t)))(t)
			step := must.Get(ramp.Accept(ramp.Session{ID: " session-1\u00a0"}, r, atResult)(&stored))(t)
			assert.Equal(t, ramp.Step{Order: stored}, step, "nothing moves, and nothing changes")
		})
	}
}

// The sequence of entries does not matter on either side.
func TestEntriesInAnotherOrderAreTheSame(t *testing.T) {
	intent := func(tokens, items []map[string]any) *ramp.ValidateRequest {
		burn := oneorder.Burn()
		burn["from"], burn["to"] = tokens, items
		return must.Get(ramp.ParseValidate(validateCall().With("intent", burn).Bytes(t)))(t)
	}
	entry := func(kind, id string, n int) map[string]any {
		return map[string]any{"type": kind, "id": id, "amount": n}
	}
	tokens := []map[string]any{entry("ERC20", "0x2", 1), entry("ERC20", "0x2", 2), entry("ERC20", "0x1", 3),
		entry("NFT", "0x3", 1)}
	items := []map[string]any{entry("asset", "item_gold", 100), entry("asset", "item_gem", 5)}
	stored := accepted(t, intent(tokens, items))
	slices.Reverse(tokens)
	slices.Reverse(items)
	again := intent(tokens, items)
	step := must.Get(ramp.Accept(player, again, atResult)(&stored))(t)
	assert.False(t, step.New)
	step = must.Get(ramp.Finish(reported(accepted(t, again), 1), atResult)(&stored))(t)
	assert.Equal(t, ramp.Grant, step.Effect.Kind)
}

func TestAnotherValidateUnderTheUUIDIsAConflict(t *testing.T) {
	stored := accepted(t, mintRequest(t))
	for name, tt := range map[string]struct {
		session string
		body    oneorder.Object
		field   string
	}{
		"another project": {"session-1", validateCall().With("project_id", "project-2"), "project_id"},
		"another session": {"session-2", validateCall(), "session_id"},
		"another address": {"session-1",
			validateCall().With("user_address", "0x00000000000000000000000000000000000a11ce"), "user_address"},
		"another digest":     {"session-1", validateCall().With("digest", vectors[1].digestText), "digest"},
		"another quantity":   {"session-1", validateCall().With("intent.from.0.amount", 101), "intent"},
		"another asset":      {"session-1", validateCall().With("intent.from.0.id", "item_gem"), "intent"},
		"another token":      {"session-1", validateCall().With("intent.to.0.id", "0x2"), "intent"},
		"more tokens":        {"session-1", validateCall().With("intent.to.0.amount", 11), "intent"},
		"a burn of the same": {"session-1", validateCall().With("intent", oneorder.Burn()), "intent"},
		"other options": {"session-1", validateCall().With("intent.target_candidate", oneorder.Object{"a": 1}),
			"intent.target_candidate"},
	} {
		t.Run(name, func(t *testing.T) {
			r := must.Get(ramp.ParseValidate(tt.body.Bytes(t)))(t)
			for _, order := range []ramp.Order{stored, ended(t, stored, 0)} {
				step, err := ramp.Accept(ramp.Session{ID: tt.session}, r, atResult)(&order)
				assert.Zero(t, step)
				conflict := as[*ramp.ConflictError](t, err)
				assert.Equal(t, ramp.ConflictError{Order: order, Field: tt.field}, *conflict)
				assert.EqualError(t, err,
					fmt.Sprintf("ramp: order %s (%s): the call contradicts the stored order: %s differs", order.UUID,
						order.State, tt.field))
				assert.ErrorIs(t, err, ramp.ErrOrderConflict)
			}
		})
	}
}

// Stores may write JSON in their own way.
func TestOptionsAreComparedAsJSON(t *testing.T) {
	request := func(options string) *ramp.ValidateRequest {
		return must.Get(ramp.ParseValidate(validateCall().With("intent.target_candidate",
			json.RawMessage(options)).Bytes(t)))(t)
	}
	stored := accepted(t, request(`{"a":[1,{"b":"<","c":null}],"n":100000000000000000001}`))
	for options, repeat := range map[string]bool{
		`{"n": 100000000000000000001, "a": [1, {"c":null, "b":"\u003c"}]}`: true,
		`{"n": 100000000000000000000, "a": [1, {"c":null, "b":"\u003c"}]}`: false,
		`{"a":[1,{"b":"<"}],"n":100000000000000000001}`:                    false,
		`{}`:   false,
		`null`: false,
		`[]`:   false,
	} {
		_, err := ramp.Accept(player, request(options), atResult)(&stored)
		assert.Equal(t, repeat, err == nil, options)
		result := reported(accepted(t, request(options)), 1)
		_, err = ramp.Finish(result, atResult)(&stored)
		assert.NoError(t, err, "the options of a result are never compared")
	}
}

func TestAValidateForAnOrderThatIsOverIsRejected(t *testing.T) {
	stored := accepted(t, mintRequest(t))
	abandoned := must.Get(ramp.Abandon("lost", atResult)(&stored))(t)
	for _, order := range []ramp.Order{ended(t, stored, 0), ended(t, stored, 1), abandoned.Order} {
		_, err := ramp.Accept(player, mintRequest(t), atResult)(&order)
		assert.ErrorIs(t, err, ramp.ErrOrderFinished, order.State)
	}
}

func TestAcceptRejectsWhatCannotBeStored(t *testing.T) {
	for path, change := range map[string]func(string) ramp.Transition{
		"session_id": func(text string) ramp.Transition {
			return ramp.Accept(ramp.Session{ID: text}, mintRequest(t), atValidate)
		},
		"project_id": func(text string) ramp.Transition {
			r := mintRequest(t)
			r.ProjectID = text
			return ramp.Accept(player, r, atValidate)
		},
		"user_address": func(text string) ramp.Transition {
			r := mintRequest(t)
			r.UserAddress = text
			return ramp.Accept(player, r, atValidate)
		},
		"reason": func(text string) ramp.Transition { return ramp.Abandon(text, atValidate) },
	} {
		limit := 1024
		if path == "reason" {
			limit = 4096
		}
		for text, problem := range map[string]string{
			strings.Repeat("quoted", limit): fmt.Sprintf("must be at most %d bytes", limit),
			"quoted\xff":                    "must be valid UTF-8",
			"quoted\x00":                    "must not contain a NUL character",
		} {
			_, err := change(text)(nil)
			assertFields(t, err, path+" "+problem)
			assert.NotContains(t, err.Error(), "quoted")
		}
		_, err := change(strings.Repeat("x", limit))(nil)
		var wrong *ramp.InvalidError
		assert.False(t, errors.As(err, &wrong), "the longest one is accepted")
	}
	_, err := ramp.Accept(ramp.Session{ID: " "}, mintRequest(t), atValidate)(nil)
	assertFields(t, err, "session_id is required")
	stored := accepted(t, mintRequest(t))
	for _, order := range []*ramp.Order{nil, &stored} {
		_, err = ramp.Accept(player, &ramp.ValidateRequest{}, atValidate)(order)
		assertFields(t, err, "intent.method", "intent.type", "intent.from", "intent.to")
	}
	_, err = ramp.Abandon(" \t", atValidate)(nil)
	assertFields(t, err, "reason is required")
}

// The longest texts, each character escaped, and the longest reasons still fit, however an order ends.
func TestNoOrderIsLargerThanItsBound(t *testing.T) {
	widest := mintRequest(t)
	request := func(size int) *ramp.ValidateRequest {
		r := *widest
		r.Intent.TargetCandidate = json.RawMessage(`{"a":"` + strings.Repeat("x", size) + `"}`)
		return &r
	}
	accept := func(size int) (ramp.Step, error) {
		return ramp.Accept(ramp.Session{ID: strings.Repeat("\x01", 1024)}, request(size), atValidate)(nil)
	}
	for _, name := range storedTexts(t) { // each as long as it may be, of characters that JSON escapes
		field := reflect.ValueOf(widest).Elem().FieldByName(name)
		tooLong := sort.Search(ramp.MaxOrder, func(size int) bool {
			field.SetString(strings.Repeat("\x01", size))
			_, err := accept(0)
			return err != nil
		})
		field.SetString(strings.Repeat("\x01", tooLong-1))
	}
	largest := sort.Search(ramp.MaxOrder, func(size int) bool { _, err := accept(size); return err != nil }) - 1
	assert.Greater(t, largest, 150<<10, "what an honest order needs")
	_, err := accept(largest + 1)
	assertFields(t, err, "intent must have at most ")
	assert.LessOrEqual(t, len(err.Error()), 300)
	stored := must.Get(accept(largest))(t).Order
	stored.Intent = request(largest + 1).Intent // as a release without this bound has accepted it
	repeat, err := ramp.Accept(ramp.Session{ID: stored.SessionID}, request(largest+1), atValidate)(&stored)
	assert.NoError(t, err, "the assets are taken: a repeat is not judged by the rules of today")
	assert.False(t, repeat.New)

	order := must.Get(accept(largest))(t).Order
	reason := strings.Repeat("\x01", 4096)
	ended := must.Get(ramp.Settled(reason, ramp.Abandon(reason, atResult))(&order))(t).Order
	size := len(must.Get(json.Marshal(ended))(t))
	assert.LessOrEqual(t, size, ramp.MaxOrder)
	assert.Greater(t, size, ramp.MaxOrder*9/10, "the bound is no larger than it must be")
}

// One table lists the effect of every outcome on an order in every state.
func TestFinishAndAbandon(t *testing.T) {
	mint, burn := accepted(t, mintRequest(t)), accepted(t, burnRequest(t))
	abandon := func(o ramp.Order) ramp.Order {
		step := must.Get(ramp.Abandon("lost", atResult)(&o))(t)
		return step.Order
	}
	succeed := func(o ramp.Order) ramp.Transition { return ramp.Finish(reported(o, 1), atResult) }
	fail := func(o ramp.Order) ramp.Transition { return ramp.Finish(reported(o, 0), atResult) }
	lose := func(ramp.Order) ramp.Transition { return ramp.Abandon("lost", atResult) }
	for _, tt := range []struct {
		name   string
		stored ramp.Order
		next   func(ramp.Order) ramp.Transition
		state  ramp.OrderState // of the step; "" for an error
		effect ramp.EffectKind
		repeat bool
		err    error
	}{
		{"a mint succeeds", mint, succeed, ramp.OrderSucceeded, ramp.Nothing, false, nil},
		{"a mint fails", mint, fail, ramp.OrderFailed, ramp.GiveBack, false, nil},
		{"a mint is abandoned", mint, lose, ramp.OrderAbandoned, ramp.GiveBack, false, nil},
		{"a burn succeeds", burn, succeed, ramp.OrderSucceeded, ramp.Grant, false, nil},
		{"a burn fails", burn, fail, ramp.OrderFailed, ramp.Nothing, false, nil},
		{"a burn is abandoned", burn, lose, ramp.OrderAbandoned, ramp.Nothing, false, nil},

		{"a success again", ended(t, burn, 1), succeed, ramp.OrderSucceeded, ramp.Nothing, true, nil},
		{"a failure again", ended(t, mint, 0), fail, ramp.OrderFailed, ramp.Nothing, true, nil},
		{"abandoned again", abandon(mint), lose, ramp.OrderAbandoned, ramp.Nothing, true, nil},
		{"a failure after abandon", abandon(mint), fail, ramp.OrderAbandoned, ramp.Nothing, true, nil},

		{"a success after abandon", abandon(mint), succeed, "", "", false, ramp.ErrOrderConflict},
		{"a failure after a success", ended(t, mint, 1), fail, "", "", false, ramp.ErrOrderConflict},
		{"a success after a failure", ended(t, burn, 0), succeed, "", "", false, ramp.ErrOrderConflict},
		{"abandoned after a success", ended(t, mint, 1), lose, "", "", false, ramp.ErrOrderFinished},
		{"abandoned after a failure", ended(t, mint, 0), lose, "", "", false, ramp.ErrOrderFinished},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.stored
			step, err := tt.next(tt.stored)(&tt.stored)
			assert.Equal(t, before, tt.stored, "a transition changes nothing")
			if tt.err != nil {
				assert.ErrorIs(t, err, tt.err)
				assert.Zero(t, step)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.state, step.Order.State)
			assert.Equal(t, tt.effect, step.Effect.Kind)
			assert.Equal(t, !tt.repeat, step.New)
			if tt.repeat {
				assert.Equal(t, ramp.Step{Order: before}, step)
				return
			}
			if tt.effect != ramp.Nothing {
				assert.Equal(t, before.Assets, step.Effect.Assets, "what was stored at validate says what moves")
			}
			assert.Equal(t, atResult.Truncate(time.Millisecond), step.Order.FinishedAt)
			if tt.state == ramp.OrderAbandoned {
				assert.Equal(t, "lost", step.Order.Reason)
				assert.Empty(t, step.Order.TxHash)
			} else {
				assert.Equal(t, "0x"+strings.Repeat("ab", 32), step.Order.TxHash)
			}
		})
	}
	for _, next := range []ramp.Transition{succeed(mint), fail(burn), ramp.Abandon("lost", atResult)} {
		_, err := next(nil)
		assert.ErrorIs(t, err, ramp.ErrOrderUnknown)
	}
	_, err := ramp.Finish(&ramp.Result{}, atResult)(&mint)
	assertFields(t, err, "receipt.status is required")

	// A store that lost the intent of an order must not end it without an effect.
	mint.Intent = ramp.Intent{}
	for _, next := range []ramp.Transition{fail(mint), lose(mint)} {
		_, err := next(&mint)
		assertFields(t, err, "intent.method", "intent.type", "intent.from", "intent.to")
	}
}

// A person ends an order whose assets were settled in another way: nothing moves, now or later.
func TestWhatWasSettledInAnotherWayMovesNothing(t *testing.T) {
	const how = "by mail, ticket 17"
	mint, burn := accepted(t, mintRequest(t)), accepted(t, burnRequest(t))
	lose := func(ramp.Order) ramp.Transition { return ramp.Abandon("alice: gone", atResult) }
	end := func(status uint64) func(ramp.Order) ramp.Transition {
		return func(o ramp.Order) ramp.Transition { return ramp.Finish(reported(o, status), atResult) }
	}
	for name, tt := range map[string]struct {
		stored ramp.Order
		next   func(ramp.Order) ramp.Transition
	}{
		"a mint that fails":        {mint, end(0)},
		"a mint that succeeds":     {mint, end(1)},
		"a mint that is abandoned": {mint, lose},
		"a burn that succeeds":     {burn, end(1)},
		"a burn that is abandoned": {burn, lose},
	} {
		t.Run(name, func(t *testing.T) {
			want := must.Get(tt.next(tt.stored)(&tt.stored))(t)
			step := must.Get(ramp.Settled(how, tt.next(tt.stored))(&tt.stored))(t)
			want.Order.Settled, want.Effect = how, ramp.Effect{}
			assert.Equal(t, want, step)
			assert.True(t, step.Settled())
			for _, again := range []ramp.Transition{tt.next(tt.stored), ramp.Settled(how, tt.next(tt.stored))} {
				repeat := must.Get(again(&step.Order))(t)
				assert.Equal(t, ramp.Step{Order: step.Order}, repeat)
				assert.False(t, repeat.Settled(), "a repeat settles nothing")
			}
			request := mintRequest(t)
			if tt.stored.Direction == ramp.Burn {
				request = burnRequest(t)
			}
			_, err := ramp.Accept(ramp.Session{ID: "session-1"}, request, atValidate)(&step.Order)
			require.ErrorIs(t, err, ramp.ErrOrderFinished, "it is not signed again")
			if step.Order.State == ramp.OrderAbandoned {
				_, err := end(1)(tt.stored)(&step.Order)
				require.ErrorIs(t, err, ramp.ErrOrderConflict, "a person decides about a success after all")
			}
			var read ramp.Order
			require.NoError(t, json.Unmarshal(must.Get(json.Marshal(step.Order))(t), &read))
			assert.Equal(t, step.Order, read)
		})
	}

	gaveBack, moved := ended(t, mint, 0), ended(t, mint, 1)
	_, err := ramp.Settled(how, end(0)(mint))(&gaveBack)
	var conflict *ramp.ConflictError
	require.ErrorAs(t, err, &conflict, "the game has given back before, so the player was paid twice")
	assert.Equal(t, "settled", conflict.Field)
	assert.False(t, must.Get(ramp.Settled(how, end(1)(mint))(&moved))(t).New, "a mint that succeeded has moved nothing")
	_, err = ramp.Settled(how, end(0)(mint))(&moved)
	assert.ErrorIs(t, err, ramp.ErrOrderConflict, "what is refused without it is refused")
	_, err = ramp.Settled(how, end(0)(mint))(nil)
	assert.ErrorIs(t, err, ramp.ErrOrderUnknown)

	session := ramp.Session{ID: "session-1"}
	_, err = ramp.Settled(how, ramp.Accept(session, mintRequest(t), atValidate))(nil)
	assertFields(t, err, "settled is for the end of an order")
	for wrong, problem := range map[string]string{
		" ": "settled is required", "a\x00": "settled must not contain a NUL character",
		strings.Repeat("x", 4097): "settled must be at most 4096 bytes",
	} {
		_, err := ramp.Settled(wrong, end(0)(mint))(&mint)
		assertFields(t, err, problem)
	}
}

// The stored order decides what moves. Only a readable contradiction stops a
// result, and a person must resolve it.
func TestWhatOfAResultContradictsAnOrder(t *testing.T) {
	mint, burn := accepted(t, mintRequest(t)), accepted(t, burnRequest(t))
	for _, tt := range []struct {
		name     string
		order    ramp.Order
		change   func(*ramp.Result)
		conflict string // "" for none
	}{
		{"nothing but a UUID and a status", mint,
			func(r *ramp.Result) { *r = ramp.Result{UUID: r.UUID, Receipt: r.Receipt} }, ""},
		{"no session", mint, func(r *ramp.Result) { r.SessionID = "" }, ""},
		{"a padded session", mint, func(r *ramp.Result) { r.SessionID = "\u2003session-1 \n" }, ""},
		{"another session", mint, func(r *ramp.Result) { r.SessionID = "session-2" }, "session_id"},
		{"no intent", mint, func(r *ramp.Result) { r.Intent = ramp.Intent{} }, ""},
		{"an unknown method", mint, func(r *ramp.Result) { r.Intent.Method = "steal" }, ""},
		{"the other direction", mint, func(r *ramp.Result) { r.Intent = burn.Intent }, "intent"},
		{"the other direction alone", mint, func(r *ramp.Result) {
			r.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble}
		}, "intent"},
		{"more than any quantity", mint, func(r *ramp.Result) {
			r.Intent.From[0].Amount = amount(t, "9e99")
			r.Intent.From = append(r.Intent.From, r.Intent.From[0])
		}, "intent"},
		{"the game's side missing", mint, func(r *ramp.Result) { r.Intent.From = nil }, ""},
		{"a quantity of zero", mint, func(r *ramp.Result) { r.Intent.From[0].Amount = ramp.Amount{} }, ""},
		{"another quantity", mint, func(r *ramp.Result) { r.Intent.From[0].Amount = ramp.NewAmount(99) }, "intent"},
		{"another asset", mint, func(r *ramp.Result) { r.Intent.From[0].ID = "item_gem" }, "intent"},
		{"the same in two parts", burn, func(r *ramp.Result) {
			r.Intent.To = []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(60)},
				{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(40)}}
		}, ""},
		{"another grant", burn, func(r *ramp.Result) { r.Intent.To[0].Amount = ramp.NewAmount(1000) }, "intent"},
		{"no token", mint, func(r *ramp.Result) { r.Intent.To = nil }, ""},
		{"a token quantity of zero", mint, func(r *ramp.Result) { r.Intent.To[0].Amount = ramp.Amount{} }, ""},
		{"a token quantity after fees", mint, func(r *ramp.Result) { r.Intent.To[0].Amount = ramp.NewAmount(8) }, ""},
		{"a token without an ID", mint, func(r *ramp.Result) { r.Intent.To[0].ID = "" }, ""},
		{"a token without a type", mint, func(r *ramp.Result) { r.Intent.To[0].Type = "" }, ""},
		{"a token in capitals", mint, func(r *ramp.Result) { r.Intent.To[0].ID = strings.ToUpper(testToken) }, ""},
		{"another token", mint, func(r *ramp.Result) { r.Intent.To[0].ID = "0x2" }, "intent"},
		{"another token burned", burn, func(r *ramp.Result) { r.Intent.From[0].ID = "0x2" }, "intent"},
		{"another type of token", mint, func(r *ramp.Result) { r.Intent.To[0].Type = ramp.TypeNFT }, ""},
		{"another type of token burned", burn, func(r *ramp.Result) { r.Intent.From[0].Type = ramp.TypeNFT }, ""},
		{"a second token", mint, func(r *ramp.Result) {
			r.Intent.To = append(r.Intent.To,
				ramp.IntentAsset{Type: ramp.TypeERC20, ID: "0x2", Amount: ramp.NewAmount(1)})
		}, "intent"},
		{"the token twice, net and fee", mint,
			func(r *ramp.Result) { r.Intent.To = append(r.Intent.To, r.Intent.To[0]) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range []uint64{0, 1} {
				r := reported(tt.order, status)
				written := must.Get(json.Marshal(r.Intent))(t)
				require.NoError(t, json.Unmarshal(written, &r.Intent))
				tt.change(r)
				step, err := ramp.Finish(r, atResult)(&tt.order)
				if tt.conflict != "" {
					conflict := as[*ramp.ConflictError](t, err)
					assert.Equal(t, tt.conflict, conflict.Field)
					assert.Zero(t, step)
					continue
				}
				require.NoError(t, err)
				assert.True(t, step.New)
			}
		})
	}
}

func TestOnlyAHashIsStoredAsOne(t *testing.T) {
	hash, stored := strings.Repeat("Ab", 32), "0x"+strings.Repeat("ab", 32)
	for reported, want := range map[string]string{
		"0x" + hash: stored, "0X" + hash: stored, stored: stored, "0x" + strings.Repeat("00", 32): "",
		"0x" + strings.Repeat("00", 31) + "01": "0x" + strings.Repeat("00", 31) + "01",
		"":                                     "", hash: "", "0x": "", "0x" + hash[2:]: "", "0x" + hash + "00": "",
		"0x" + strings.Repeat("zz", 32): "", "1x" + hash: "", "0xg" + hash[1:]: "", "0x" + hash[1:] + "g": "",
		"😀": "", strings.Repeat("x", 64<<10): "",
	} {
		o := accepted(t, mintRequest(t))
		r := &ramp.Result{UUID: o.UUID, TxHash: reported, Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}}
		step := must.Get(ramp.Finish(r, atResult)(&o))(t)
		assert.Equal(t, want, step.Order.TxHash)
	}
}

func TestAnOrderSurvivesJSON(t *testing.T) {
	r := mintRequest(t)
	r.Intent.From[0].Amount = amount(t, "1000000000000000000000000000001.000000000000000000000000000001")
	for _, order := range []ramp.Order{accepted(t, r), ended(t, accepted(t, r), 0),
		ended(t, accepted(t, burnRequest(t)), 1)} {
		written := must.Get(json.Marshal(order))(t)
		var read ramp.Order
		require.NoError(t, json.Unmarshal(written, &read))
		assert.Equal(t, order, read)
	}

	written := must.Get(json.Marshal(accepted(t, mintRequest(t))))(t)
	assert.JSONEq(t,
		`{"version":1,"uuid":"`+testUUID+`","state":"accepted","project_id":"project-1","session_id":"session-1",
		"user_address":"0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb","digest":"`+testDigest+`",
		"intent":`+string(oneorder.Object(oneorder.Mint()).Bytes(t))+`,"accepted_at":"2026-11-21T12:00:00.123Z"}`,
		string(written))
	for old, new := range map[string]string{
		`"version":1`: `"version":2`, `"version":1,`: ``, `"accepted"`: `"lost"`, `"mint"`: `"swap"`,
		`"amount":100`: `"amount":0`, `{`: `[{`,
	} {
		var read ramp.Order
		err := json.Unmarshal([]byte(strings.Replace(string(written), old, new, 1)), &read)
		assert.Error(t, err, new)
		var wrong *ramp.InvalidError
		assert.False(t, errors.As(err, &wrong), "what is stored is not the fault of a call")
		assert.Zero(t, read)
	}
	var read ramp.Order
	err := json.Unmarshal([]byte(strings.Replace(string(written), `"version":1`, `"version":2`, 1)), &read)
	assert.EqualError(t, err, "ramp: the stored order has version 2, but this program supports at most 1")
}

// During a deployment, a program of the release before ends orders that a newer one has
// opened. What the newer one has written must not be lost.
func TestAnOrderKeepsWhatANewerProgramHasWritten(t *testing.T) {
	written := must.Get(json.Marshal(accepted(t, mintRequest(t))))(t)
	newer := strings.NewReplacer(`"version":1,`, `"version":1,"tags":["a",1e400],`, `"intent":{`,
		`"intent":{"rate":{"a":0.10},`).Replace(string(written))
	var read ramp.Order
	require.NoError(t, json.Unmarshal([]byte(newer), &read))
	again := must.Get(json.Marshal(read))(t)
	assert.JSONEq(t, strings.ReplaceAll(newer, "1e400", "1"), strings.ReplaceAll(string(again), "1e400", "1"))

	step := must.Get(ramp.Finish(reported(read, 0), atResult)(&read))(t)
	again = must.Get(json.Marshal(step.Order))(t)
	for _, kept := range []string{`"tags":["a",1e400]`, `"rate":{"a":0.10}`, `"state":"failed"`, `"tx_hash":"0xabab`} {
		assert.Contains(t, string(again), kept)
	}
	assert.Equal(t, 1, strings.Count(string(again), `"intent"`))

	step.Order.Intent.From[0].ID = "item_gem" // a program that changes the intent writes what it means
	again = must.Get(json.Marshal(step.Order))(t)
	assert.Contains(t, string(again), "item_gem")
	assert.NotContains(t, string(again), "rate")
}

// What an order stores of its validate call, a repeat must have, too. An optional field is not compared
// if the stored order does not have it, because a release stored it that did not know the field.
func TestEveryFieldOfAValidateThatIsStoredIsCompared(t *testing.T) {
	order := reflect.TypeFor[ramp.Order]()
	for _, field := range storedTexts(t) { // digest and intent are tried above
		stored, _ := order.FieldByName(field)
		name, _, optional := strings.Cut(stored.Tag.Get("json"), ",omitempty")
		call := func(value string) *ramp.ValidateRequest {
			r := mintRequest(t)
			reflect.ValueOf(r).Elem().FieldByName(field).SetString(value)
			return r
		}
		accept := func(value string, stored *ramp.Order) (ramp.Step, error) {
			return ramp.Accept(player, call(value), atValidate)(stored)
		}
		first, err := accept("one", nil)
		require.NoError(t, err, name)
		require.Equal(t, "one", reflect.ValueOf(first.Order).FieldByName(field).String(),
			"%s: openOrder must store it: "+storeAField, name)
		_, err = accept("other", &first.Order)
		var conflict *ramp.ConflictError
		require.ErrorAs(t, err, &conflict, "%s: Accept must compare it: "+storeAField, name)
		assert.Equal(t, name, conflict.Field)
		for _, bad := range []string{strings.Repeat("x", 1025), "a\x00", "a\xff"} {
			_, err = accept(bad, nil)
			require.Error(t, err, "%s: openOrder must require that it can be stored: "+storeAField, name)
			assertFields(t, err, name+" must")
		}
		if optional {
			without := must.Get(accept("", nil))(t)
			again, err := accept("one", &without.Order)
			require.NoError(t, err, "%s: Accept must not compare it with an order that does not have it: "+storeAField,
				name)
			assert.False(t, again.New)
		}
	}
}

// storeAField ends the message of each test that a field which is stored with an order fails until its guide
// was followed.
const storeAField = `see "Store a field with an order" in CONTRIBUTING.md`

// storedTexts returns the fields of a validate call that are texts and that an order stores.
func storedTexts(t *testing.T) (fields []string) {
	order := reflect.TypeFor[ramp.Order]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ramp.ValidateRequest]()) {
		if _, stored := order.FieldByName(field.Name); stored && field.Type.Kind() == reflect.String {
			fields = append(fields, field.Name)
		}
	}
	require.GreaterOrEqual(t, len(fields), 2)
	return fields
}

// A field whose member is not known would be written twice, and the old value read back.
func TestAChangedOrderHasEachMemberOnce(t *testing.T) {
	var read ramp.Order
	was := filled(ended(t, accepted(t, mintRequest(t)), 1), "was")
	require.NoError(t, json.Unmarshal(must.Get(json.Marshal(was))(t), &read))
	want := filled(read, "is")
	text := must.Get(json.Marshal(want))(t)
	var changed ramp.Order
	require.NoError(t, json.Unmarshal(text, &changed))
	assert.Equal(t, want, changed)
	for _, field := range reflect.VisibleFields(reflect.TypeOf(read)) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			assert.Equal(t, 1, strings.Count(string(text), `"`+name+`":`), name)
		}
	}
}

// filled returns an order with a value in each of its texts.
func filled(o ramp.Order, value string) ramp.Order {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(o)) {
		of := reflect.ValueOf(&o).Elem().FieldByIndex(field.Index)
		if of.Kind() == reflect.String && field.Tag.Get("json") != "-" && field.Name != "State" {
			of.SetString(value)
		}
	}
	return o
}

func TestAMemoryStoreNamesWhatIsMissing(t *testing.T) {
	_, err := new(ramp.MemoryStore).Update(t.Context(), uuid.New(), nil)
	assertFields(t, err, "MemoryStore.Apply is required")
}

// The store in memory knows which order a transaction has ended, and which one succeeded last.
func TestTheStoreInMemoryIsALedger(t *testing.T) {
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	_, err := store.NewestSuccess(t.Context(), ramp.Testnet)
	assert.ErrorIs(t, err, ramp.ErrOrderUnknown)
	var orders []ramp.Order
	for n, network := range []ramp.Network{ramp.Testnet, "", ramp.Mainnet} {
		r := mintRequest(t)
		r.UUID = uuid.New()
		accept := ramp.OnlyOf(nil, network, ramp.Accept(player, r, atValidate))
		order := must.Get(store.Update(t.Context(), r.UUID, accept))(t).Order
		result := reported(order, 1)
		result.TxHash = common.BigToHash(big.NewInt(int64(n + 1))).Hex()
		finish := ramp.Finish(result, atResult.Add(time.Duration(n)*time.Second))
		orders = append(orders, must.Get(store.Update(t.Context(), r.UUID, finish))(t).Order)
		found := must.Get(store.OrderByTransaction(t.Context(), common.HexToHash(result.TxHash)))(t)
		assert.Equal(t, r.UUID, found.UUID)
	}
	assert.Equal(t, orders[1].UUID, must.Get(store.NewestSuccess(t.Context(), ramp.Testnet))(t).UUID)
	assert.Equal(t, orders[2].UUID, must.Get(store.NewestSuccess(t.Context(), ramp.Mainnet))(t).UUID)
	_, err = store.OrderByTransaction(t.Context(), common.MaxHash)
	assert.ErrorIs(t, err, ramp.ErrOrderUnknown)
}
