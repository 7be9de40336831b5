package ramp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Order is a mint or a burn as it was validated, and its outcome. It is a plain
// value: [Accept], [Finish] and [Abandon] are its rules, and a [Store] keeps it.
type Order struct {
	// ProjectID, SessionID, UserAddress, Digest and Intent are those of the validate call, and Network
	// is that of the terms, or empty. TxHash is the result's, in lower case, or empty. Times are UTC,
	// with millisecond precision; FinishedAt is zero while the order waits.
	UUID        uuid.UUID     `json:"uuid"`
	State       OrderState    `json:"state"` // accepted, or how it ended
	Network     Network       `json:"network,omitempty"`
	ProjectID   string        `json:"project_id"`
	SessionID   string        `json:"session_id"` // the owner of the game's assets
	UserAddress string        `json:"user_address"`
	Digest      Digest        `json:"digest"`
	Intent      Intent        `json:"-"` // in JSON it is "intent"
	Direction   Direction     `json:"-"` // derived from Intent
	Assets      []AssetAmount `json:"-"` // derived from Intent, one entry per ID
	TxHash      string        `json:"tx_hash,omitempty"`
	Reason      string        `json:"reason,omitempty"` // who ended it by hand, and why: "who: reason"
	AcceptedAt  time.Time     `json:"accepted_at"`
	FinishedAt  time.Time     `json:"finished_at,omitzero"`

	// Members of the JSON form that this program does not know, and an intent that has some, so that
	// nothing is lost that a newer program has written.
	unknown    map[string]json.RawMessage
	intentJSON json.RawMessage
}

// OrderState is the state of an order.
type OrderState string

// The states of an order. It begins as OrderAccepted and changes once.
const (
	OrderAccepted  OrderState = "accepted"  // approved at validate, waiting for its result
	OrderSucceeded OrderState = "succeeded" // its transaction succeeded
	OrderFailed    OrderState = "failed"    // its transaction failed
	OrderAbandoned OrderState = "abandoned" // a person decided that no result will come
)

// Outcome returns how the order ends: [OrderSucceeded] if the transaction succeeded,
// [OrderFailed] if it failed, and "" without a status, because giving back for a
// field that is merely missing would pay twice.
func (r *Result) Outcome() OrderState {
	switch {
	case !r.Receipt.Status.Present():
		return ""
	case r.Succeeded():
		return OrderSucceeded
	default:
		return OrderFailed
	}
}

func (p *problems) requireState(state OrderState) {
	switch state {
	case OrderAccepted, OrderSucceeded, OrderFailed, OrderAbandoned:
	default:
		p.add("state", "must be accepted, succeeded, failed or abandoned")
	}
}

// EffectKind is how an [Effect] changes the game's assets.
type EffectKind string

// The kinds of effects.
const (
	Nothing  EffectKind = ""          // the game's assets do not change
	Take     EffectKind = "take"      // a mint was approved: take the assets from the player
	GiveBack EffectKind = "give back" // a mint failed or was abandoned: give back what was taken
	Grant    EffectKind = "grant"     // a burn succeeded: give the assets to the player
)

// String returns the text of the kind, and "nothing" for Nothing.
func (k EffectKind) String() string { return cmp.Or(string(k), "nothing") }

// Effect is how a step of an order changes the game's assets.
type Effect struct {
	Kind   EffectKind    `json:"kind,omitempty"`   // which way the assets move
	Assets []AssetAmount `json:"assets,omitempty"` // one entry per asset ID, sorted by it; nil for Nothing
}

// String describes the effect on balances, such as "take -100 item_gold".
func (e Effect) String() string {
	text := e.Kind.String()
	for _, a := range e.Assets {
		sign := "+"
		if e.Kind == Take {
			sign = "-"
		}
		text += " " + sign + a.Amount.String() + " " + a.ID
	}
	return text
}

// Delta returns the signed change of the player's balance of a: negative for Take,
// positive for GiveBack and Grant, and 0 for Nothing.
func (e Effect) Delta(a AssetAmount) Amount {
	switch e.Kind {
	case Take:
		return a.Amount.neg()
	case GiveBack, Grant:
		return a.Amount
	default:
		return Amount{}
	}
}

// Effect returns how an order with this intent changes the game's assets when it enters a
// state: a mint takes when it is accepted, and gives back when it failed or was
// abandoned; a burn grants when it succeeded. Use the intent that was stored at validate:
// that of a result is a report.
func (i *Intent) Effect(state OrderState) (Effect, error) {
	o := Order{Intent: *i, State: state}
	var p problems
	p.addAll(o.derive())
	p.requireState(state)
	return o.effect(), p.err()
}

// effectKind is the rule: when assets move, and which way.
func effectKind(d Direction, entered OrderState) EffectKind {
	switch {
	case d == Mint && entered == OrderAccepted:
		return Take
	case d == Mint && (entered == OrderFailed || entered == OrderAbandoned):
		return GiveBack
	case d == Burn && entered == OrderSucceeded:
		return Grant
	default:
		return Nothing
	}
}

// Step is what a call does to an order.
type Step struct {
	Order  Order  // the order after the step
	Effect Effect // how the game's assets change: apply it where Order is stored; Nothing for a repeat
	New    bool   // whether the step changes the order; false for a repeat

	// Product and Tokens are those of the [ValidateRequest] that was accepted. They are not stored.
	Product string
	Tokens  Amount

	// Evidence is what the transaction shows that ended the order, such as which non-fungible tokens
	// moved, if a [Confirmer] has asked the chain. It is zero for an order that was accepted or
	// abandoned, and for a repeat.
	Evidence Evidence

	// Rehearsal reports that the step is only tried, and rolled back: see [Step.Rehearse]. An Apply
	// must not send, log or count it.
	Rehearsal bool
}

// Evidence is what a transaction shows about an order, as the chain has it.
type Evidence struct {
	Succeeded bool            `json:"succeeded"`          // whether the transaction succeeded
	From      common.Address  `json:"from"`               // who sent it
	FeePayer  common.Address  `json:"fee_payer,omitzero"` // who paid for it, if somebody else did
	To        *common.Address `json:"to"`                 // where it went; nil if it created a contract

	// Units is how much of the order's token moved, net, in its smallest units or in pieces of an NFT:
	// for a mint, what the user received; for a burn, what the user lost, less what anybody else
	// gained but the zero address and Contracts. It is negative if it went the other way, and nil if
	// the transaction failed, or for several tokens.
	Units *big.Int `json:"units,omitempty"`

	// TokenIDs are the pieces of an NFT that went from the zero address or Contracts to the user of a
	// mint, or from the user of a burn to them, and stayed there.
	TokenIDs []*big.Int `json:"token_ids,omitempty"`
}

// Transition is a rule of exactly-once: it takes the order that is stored under a
// UUID, or nil if there is none, and returns the step of a call. It does no I/O,
// changes nothing, and may be called any number of times.
//
// For nil, an error that wraps [ErrOrderUnknown] means that the step needs a stored
// order. Every other error is final.
type Transition func(stored *Order) (Step, error)

// ConflictError describes a call that contradicts the order that is stored under
// its UUID. It wraps [ErrOrderConflict].
type ConflictError struct {
	Order Order  // the stored order, which the call did not change
	Field string // what differs: "digest", "intent", "receipt.status", "tx_hash"
	Other *Order // with "tx_hash": the other order that the transaction has ended, or nil
}

// Error names the order, its state and the field.
func (e *ConflictError) Error() string {
	problem := e.Field + " differs"
	switch {
	case e.Other != nil && e.Other.UUID == uuid.Nil:
		problem = e.Field + " has ended another order"
	case e.Other != nil:
		problem = e.Field + " has ended order " + e.Other.UUID.String()
	}
	return fmt.Sprintf("ramp: order %s (%s): %v: %s", e.Order.UUID, e.Order.State, ErrOrderConflict, problem)
}

// Unwrap returns [ErrOrderConflict].
func (e *ConflictError) Unwrap() error { return ErrOrderConflict }

// The maximum lengths of an order's texts in bytes, far below the smallest column
// of the three schemas.
const (
	maxOrderText   = 1024
	maxOrderReason = 4096
)

// requireStorable rejects text that some database cannot store, because the error
// of a driver could quote it.
func (p *problems) requireStorable(text, path string, limit int) {
	switch {
	case len(text) > limit:
		p.add(path, "must be at most %d bytes", limit)
	case !utf8.ValidString(text):
		p.add(path, "must be valid UTF-8")
	case strings.ContainsRune(text, 0):
		p.add(path, "must not contain a NUL character")
	}
}

// derive sets the fields that follow from the intent.
func (o *Order) derive() error {
	t, err := o.Intent.trade()
	o.Direction, o.Assets = t.direction, t.assets
	return err
}

// effect returns how the order changes the game's assets when it enters its state. They are
// sorted, so that two orders of a player lock rows in the same order.
func (o *Order) effect() Effect {
	if kind := effectKind(o.Direction, o.State); kind != Nothing {
		return Effect{Kind: kind, Assets: byID(o.Assets)}
	}
	return Effect{}
}

// clone returns an order that shares no memory with o.
func (o Order) clone() Order {
	o.Intent.From, o.Intent.To = slices.Clone(o.Intent.From), slices.Clone(o.Intent.To)
	o.Intent.TargetCandidate, o.Assets = slices.Clone(o.Intent.TargetCandidate), slices.Clone(o.Assets)
	return o
}

// inMilliseconds returns t with the precision that every store keeps.
func inMilliseconds(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// chainSide returns the tokens of the order.
func (o *Order) chainSide() side {
	_, chain := o.Intent.sides(o.Direction)
	return chain
}

// orderVersion is the version of an order's JSON form. Orders of a newer version are
// rejected, so it is raised only when an older program must not touch an order: the
// programs of two releases run side by side during a deployment. A new member alone
// raises nothing, because an older program keeps it.
const orderVersion = 1

// orderJSON is the JSON form of an [Order]. The intent is as it was read.
type orderJSON struct {
	Version int `json:"version"`
	plainOrder
	Intent json.RawMessage `json:"intent"`
}

type plainOrder Order // without its methods

// MarshalJSON writes an order for a store that keeps documents. Amounts stay exact, and
// members that UnmarshalJSON did not know are kept.
func (o Order) MarshalJSON() ([]byte, error) {
	var read Intent
	if o.intentJSON == nil || read.UnmarshalJSON(o.intentJSON) != nil || !reflect.DeepEqual(read, o.Intent) {
		intent, err := wire.Marshal(o.Intent)
		if err != nil {
			return nil, err
		}
		o.intentJSON = intent
	}
	o.AcceptedAt, o.FinishedAt = o.AcceptedAt.UTC(), o.FinishedAt.UTC()
	text, err := wire.Marshal(orderJSON{orderVersion, plainOrder(o), o.intentJSON})
	if err != nil || len(o.unknown) == 0 {
		return text, err
	}
	unknown, err := wire.Marshal(o.unknown)
	return slices.Concat(text[:len(text)-1], []byte(","), unknown[1:]), err
}

// UnmarshalJSON reads what MarshalJSON wrote. It fails for a newer version.
func (o *Order) UnmarshalJSON(b []byte) error {
	var stored orderJSON
	var unknown map[string]json.RawMessage
	err := cmp.Or(json.Unmarshal(b, &stored), json.Unmarshal(b, &unknown))
	read := Order(stored.plainOrder)
	err = cmp.Or(err, read.Intent.UnmarshalJSON(stored.Intent))
	switch {
	case stored.Version > orderVersion:
		return fmt.Errorf("ramp: the stored order has version %d, but this program supports at most %d",
			stored.Version, orderVersion)
	case err != nil, stored.Version != orderVersion:
		return errors.New("ramp: the stored value is not an order")
	}
	for _, known := range []string{"version", "uuid", "state", "network", "project_id", "session_id",
		"user_address", "digest", "intent", "tx_hash", "reason", "accepted_at", "finished_at"} {
		delete(unknown, known)
	}
	read.AcceptedAt, read.FinishedAt = read.AcceptedAt.UTC(), read.FinishedAt.UTC()
	if len(unknown) > 0 {
		read.unknown = unknown
	}
	if known, err := wire.Marshal(read.Intent); err != nil || !bytes.Equal(known, stored.Intent) {
		read.intentJSON = stored.Intent
	}
	var p problems
	p.requireState(read.State)
	// The cause is not wrapped: it is not an error of the call.
	if err := cmp.Or(p.err(), read.derive()); err != nil {
		return fmt.Errorf("ramp: the value stored under %s is not an order: %v", read.UUID, err)
	}
	*o = read
	return nil
}
