package ramp

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/storable"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// Order is a mint or a burn as it was validated, and its outcome. It is a plain value: [Accept],
// [Finish] and [Abandon] are its rules, and a [Store] keeps it. Its JSON form is exact, and keeps
// members that a newer program has added. Other codecs, such as YAML and msgpack, keep that form as a
// text; BSON, which cannot, is refused. Do not embed an Order in a struct that is encoded: codecs would
// write the Order only, without the other fields.
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
	Reason      string        `json:"reason,omitempty"`  // who ended it by hand, and why: "who: reason"
	Settled     string        `json:"settled,omitempty"` // how, without the game: see [Settled]
	AcceptedAt  time.Time     `json:"accepted_at"`
	FinishedAt  time.Time     `json:"finished_at,omitzero"`

	// Members of the JSON form that this program does not know, and an intent that has some, so that
	// nothing is lost that a newer program has written.
	unknown    map[string]json.RawMessage
	intentJSON json.RawMessage
}

// Equal reports whether two orders are the same, whatever the time zones of their times.
func (o Order) Equal(p Order) bool {
	for _, at := range []*time.Time{&o.AcceptedAt, &o.FinishedAt, &p.AcceptedAt, &p.FinishedAt} {
		*at = at.UTC()
	}
	return reflect.DeepEqual(o, p)
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
// [OrderFailed] if it failed, and "" without a status. A missing status does not count as
// a failure: if the transaction of a mint had succeeded, giving back would pay twice.
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

// Delta returns by how much the player's balance of an asset changes if the effect moves the
// amount a: negative for Take, positive for GiveBack and Grant, and 0 for Nothing.
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

	// Evidence is what the chain shows of the transaction that ended the order, such as which
	// non-fungible tokens moved, if a [Confirmer] has asked the chain. It is zero for an order that
	// was accepted or abandoned, and for a repeat.
	Evidence Evidence

	// Rehearsal reports that the step is only tried, and rolled back: see [Step.Rehearse]. An Apply
	// must not send, log or count it.
	Rehearsal bool
}

// Settled reports whether the step ends an order whose assets a person has settled in another
// way, which Order.Settled describes: a [Store] stores the order and does not call Apply.
func (s Step) Settled() bool { return s.New && s.Order.Settled != "" }

// Evidence is what a transaction shows about an order, as the chain has it.
type Evidence struct {
	Succeeded bool            `json:"succeeded"`          // whether the transaction succeeded
	From      common.Address  `json:"from"`               // who sent it
	FeePayer  common.Address  `json:"fee_payer,omitzero"` // who paid for it, if somebody else did
	To        *common.Address `json:"to"`                 // where it went; nil if it created a contract

	// Units is how much of the order's token moved, net, in its smallest units or in pieces of an NFT.
	// For a mint, it is what the user received. For a burn, it is what the user lost, minus what others
	// gained; the zero address and the Contracts of rampproof.Config do not count as others. If the
	// tokens moved in the opposite direction, Units is negative. If the transaction failed, or if the
	// order has several tokens, Units is nil.
	Units *big.Int `json:"units,omitempty"`

	// TokenIDs are the pieces of an NFT that changed hands and stayed there. In a mint, they went from
	// the zero address or Contracts to the user. In a burn, they went from the user to the zero address
	// or Contracts.
	TokenIDs []*big.Int `json:"token_ids,omitempty"`
}

// Transition decides what a call does to an order. It gets the order that is stored under
// a UUID, or nil if there is none, and returns the step. It does no I/O, changes nothing,
// and may be called any number of times.
//
// For nil, an error that wraps [ErrOrderUnknown] means that the step needs a stored
// order. Every other error is final.
type Transition func(stored *Order) (Step, error)

// ConflictError describes a call that contradicts the order that is stored under
// its UUID. It wraps [ErrOrderConflict].
type ConflictError struct {
	Order Order  // the stored order, which the call did not change
	Field string // what differs, such as "digest", "intent", "session_id", "receipt.status" or "tx_hash"

	// Other is, with "tx_hash", the other order that the transaction has ended or that has claimed it, or
	// nil. Of an order of another database, only UUID and TxHash may be set; see [Claims].
	Other *Order
}

// Error names the order, its state and the field.
func (e *ConflictError) Error() string {
	problem := e.Field + " differs"
	switch {
	case e.Other != nil && e.Other.UUID == uuid.Nil:
		problem = e.Field + " has ended another order"
	case e.Other != nil && (e.Other.State == "" || e.Other.State == OrderAccepted):
		problem = e.Field + " belongs to order " + e.Other.UUID.String() + ", which has claimed it"
	case e.Other != nil:
		problem = e.Field + " has ended order " + e.Other.UUID.String()
	}
	return fmt.Sprintf("ramp: order %s (%s): %v: %s", e.Order.UUID, e.Order.State, ErrOrderConflict, problem)
}

// Unwrap returns [ErrOrderConflict].
func (e *ConflictError) Unwrap() error { return ErrOrderConflict }

// requireStorable rejects text that some database cannot store.
func (p *problems) requireStorable(text, path string, limit int) {
	if problem := storable.Problem(text, limit); problem != "" {
		p.add(path, "%s", problem)
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
	if kind := effectKind(o.Direction, o.State); kind != Nothing && o.Settled == "" {
		return Effect{Kind: kind, Assets: byID(o.Assets)}
	}
	return Effect{}
}

// Moved returns how the game's assets changed when the order entered its state, and when that was. A step
// that is a repeat has no [Step].Effect, and its order says what the step that it repeats has moved.
func (o *Order) Moved() (Effect, time.Time) {
	at := o.AcceptedAt
	if o.State != OrderAccepted {
		at = o.FinishedAt
	}
	return o.effect(), at
}

// Accept returns the transition for a validate call (interface 2.5). It opens the order;
// the effect is Take for a mint and Nothing for a burn. The same call again is a repeat,
// which changes nothing and may be signed again. If it differs in project, session, user
// address, digest, the intent's assets or its target_candidate, the error is a
// [*ConflictError]. After the order has ended, the error wraps [ErrOrderFinished].
//
// The session ID is required. It, the project ID and the user address may each have up to
// 1,024 bytes of UTF-8 without NUL, or the error is an [*InvalidError].
func Accept(s Session, r *ValidateRequest, now time.Time) Transition {
	opened, err := openOrder(s, r, now)
	return func(stored *Order) (Step, error) {
		if err != nil {
			return Step{}, err
		}
		if stored == nil {
			if err := opened.checkSize(); err != nil {
				return Step{}, err
			}
			return Step{Order: opened, Effect: opened.effect(), New: true, Product: r.Product,
				Tokens: r.Tokens}, nil
		}
		switch {
		case stored.ProjectID != opened.ProjectID:
			return stored.conflict("project_id")
		case stored.SessionID != opened.SessionID:
			return stored.conflict("session_id")
		case !strings.EqualFold(stored.UserAddress, opened.UserAddress): // case is only a checksum
			return stored.conflict("user_address")
		case stored.Digest != opened.Digest:
			return stored.conflict("digest")
		case stored.Direction != opened.Direction, !sameAssets(stored.Assets, opened.Assets),
			!sameTokens(stored.chainSide(), opened.chainSide()):
			return stored.conflict("intent")
		case !reflect.DeepEqual(options(stored.Intent.TargetCandidate),
			options(opened.Intent.TargetCandidate)):
			return stored.conflict("intent.target_candidate")
		case stored.State != OrderAccepted:
			return Step{}, fmt.Errorf("ramp: order %s (%s): %w", stored.UUID, stored.State, ErrOrderFinished)
		}
		return Step{Order: *stored, Product: r.Product, Tokens: r.Tokens}, nil
	}
}

// conflictOutcome is the Field of a result whose order has ended otherwise.
const conflictOutcome = "receipt.status"

func (o *Order) conflict(field string) (Step, error) {
	return Step{}, &ConflictError{Order: *o, Field: field}
}

// MaxOrder is the size in bytes of the largest order in its JSON form, what its end adds included: 256 KiB.
// An intent that would make an order larger is refused before anything is signed, so that a store whose
// items are limited can end every order that it has accepted.
const MaxOrder = 256 << 10

// maxEnd is what an order can become larger by after it was opened: by the two texts that a person writes,
// each character escaped, and by members of a fixed size.
const maxEnd = 6*2*storable.MaxReason + 2<<10

func openOrder(s Session, r *ValidateRequest, now time.Time) (Order, error) {
	o := Order{
		UUID: r.UUID, State: OrderAccepted, ProjectID: r.ProjectID, SessionID: strings.TrimSpace(s.ID),
		UserAddress: r.UserAddress, Digest: r.Digest, Intent: r.Intent, AcceptedAt: inMilliseconds(now),
	}
	if o.SessionID == "" {
		return Order{}, invalid("session_id", "is required")
	}
	var p problems
	p.requireStorable(o.SessionID, "session_id", storable.MaxText)
	p.requireStorable(o.UserAddress, "user_address", storable.MaxText)
	p.requireStorable(o.ProjectID, "project_id", storable.MaxText)
	if err := p.err(); err != nil {
		return Order{}, err
	}
	err := o.derive() // not in the return: Go does not define whether o is read before or after
	return o, err
}

// checkSize returns an error for an intent that is too large. It writes the order only if a bound that is
// quick to compute does not say that the intent is small: the other texts never take the rest.
func (o *Order) checkSize() error {
	const each = 320 // of an asset: its names, and an amount of 100 digits on either side of the point
	most := 256 + len(o.Intent.TargetCandidate) + 6*len(o.Intent.Method) + 6*len(o.Intent.Type)
	for _, side := range [][]IntentAsset{o.Intent.From, o.Intent.To} {
		for _, a := range side {
			most += each + 6*(len(a.Type)+len(a.ID))
		}
	}
	if most <= MaxOrder/4 {
		return nil
	}
	intent, err := wire.Marshal(o.Intent)
	order, errOrder := wire.Marshal(o)
	if err := cmp.Or(err, errOrder); err != nil {
		return fmt.Errorf("ramp: order %s: %w", o.UUID, err)
	}
	if over := len(order) + maxEnd - MaxOrder; over > 0 {
		return invalid("intent", "must have at most %d bytes, and has %d", len(intent)-over, len(intent))
	}
	return nil
}

// OnlyOf limits a transition to the orders of some projects on one network; no projects, and no
// network, mean any. If the stored order is of another project or network, the error wraps
// [ErrOrderForeign]. Answer such a result with HTTP 500, so that the service sends it again: the
// result may be true, and has only come to the wrong place. No call names its network, so OnlyOf
// stores the network with a new order. An order without a network was accepted before you
// configured one, and OnlyOf lets it pass.
func OnlyOf(projects []string, network Network, next Transition) Transition {
	return func(stored *Order) (step Step, err error) {
		switch {
		case stored == nil:
		case len(projects) > 0 && !slices.Contains(projects, stored.ProjectID):
			return Step{}, fmt.Errorf("ramp: order %s: %w: project %q, and not %q",
				stored.UUID, ErrOrderForeign, stored.ProjectID, strings.Join(projects, ", "))
		case network != "" && stored.Network != "" && stored.Network != network:
			return Step{}, fmt.Errorf("ramp: order %s: %w: %s, and not %s",
				stored.UUID, ErrOrderForeign, stored.Network, network)
		}
		step, err = next(stored)
		if stored == nil {
			step.Order.Network = network
		}
		return step, err
	}
}

// Finish returns the transition for a result call (interface 6). The effect is GiveBack
// for a failed mint, Grant for a successful burn, and Nothing otherwise. It comes from
// the stored order; from the result, only the UUID and the status decide. The same
// outcome again is a repeat, which changes nothing; so is a failure of an abandoned
// order. To detect a second transaction, compare the repeat's tx_hash with Order.TxHash.
//
// A different outcome, session, direction, token, or quantity of the game's assets is a
// [*ConflictError]; what is missing or unreadable in the result is not compared. A result
// without a status is an [*InvalidError]. The [Store] checks that no other order has
// ended by the transaction.
func Finish(r *Result, now time.Time) Transition {
	return func(stored *Order) (Step, error) {
		outcome := r.Outcome()
		if outcome == "" {
			return Step{}, invalid("receipt.status", "is required")
		}
		if stored == nil {
			return Step{}, ErrOrderUnknown // bare, because every result makes it
		}
		session := strings.TrimSpace(r.SessionID)
		switch {
		case session != "" && session != stored.SessionID:
			return stored.conflict("session_id")
		case stored.contradicts(&r.Intent):
			return stored.conflict("intent")
		case stored.State == OrderAccepted:
			return stored.end(outcome, normalizeTxHash(r.TxHash), "", now)
		case stored.State == outcome, stored.State == OrderAbandoned && outcome == OrderFailed:
			return Step{Order: *stored}, nil
		default:
			return stored.conflict(conflictOutcome)
		}
	}
}

// contradicts reports whether a readable part of the reported intent differs. The
// quantity of tokens is not compared, because that of a result may be net of fees.
func (o *Order) contradicts(reported *Intent) bool {
	if direction, err := reported.Direction(); err == nil && direction != o.Direction {
		return true
	}
	if slices.Equal(reported.From, o.Intent.From) && slices.Equal(reported.To, o.Intent.To) { // nearly always
		return false
	}
	game, chain := reported.sides(o.Direction)
	var p problems
	checkIntentAssets(&p, game.path, game.assets, true, false)
	// A sum that overflows differs too.
	if sum, _ := game.sum(); p == nil && !sameAssets(sum, o.Assets) {
		return true
	}
	ids := func(s side) (ids []string) {
		for _, token := range s.tokens() {
			ids = append(ids, token.ID)
		}
		return slices.Compact(ids) // a result may list the net amount and the fee
	}
	tokens := ids(chain)
	return len(tokens) > 0 && tokens[0] != "" && !slices.Equal(tokens, ids(o.chainSide()))
}

// Abandon returns the transition for a person who has decided that the result of an order
// will never come. The effect is GiveBack for a mint, and Nothing for a burn. The reason
// is stored; it may have up to 4,096 bytes of UTF-8 without NUL. The package never
// abandons an order by itself, because if the transaction had succeeded, giving back
// would pay twice. A result that reports success afterwards is a [*ConflictError].
// Abandoning again is a repeat, which changes nothing. For a finished order the error
// wraps [ErrOrderFinished], for an unknown one [ErrOrderUnknown].
func Abandon(reason string, now time.Time) Transition {
	return func(stored *Order) (Step, error) {
		var p problems
		p.require(strings.TrimSpace(reason) != "", "reason")
		p.requireStorable(reason, "reason", storable.MaxReason)
		if err := p.err(); err != nil {
			return Step{}, err
		}
		switch {
		case stored == nil:
			return Step{}, ErrOrderUnknown
		case stored.State == OrderAccepted:
			return stored.end(OrderAbandoned, "", reason, now)
		case stored.State == OrderAbandoned:
			return Step{Order: *stored}, nil
		default:
			return Step{}, fmt.Errorf("ramp: order %s (%s): %w", stored.UUID, stored.State, ErrOrderFinished)
		}
	}
}

// Settled returns the transition for a person who ends an order whose assets were settled in
// another way, such as by mail, because the game cannot move them: the player is gone, or the item.
// The transition next is [Finish] or [Abandon]. The step of Settled is that of next without its
// effect, and a [Store] does not call Apply for it. The text how says in which way they were
// settled. It is stored as Order.Settled and may have up to 4,096 bytes of UTF-8 without NUL. If
// next returns an error, Settled returns it. If the order has ended before, and the game has moved
// its assets, the error is a [*ConflictError].
func Settled(how string, next Transition) Transition {
	return func(stored *Order) (Step, error) {
		var p problems
		p.require(strings.TrimSpace(how) != "", "settled")
		p.requireStorable(how, "settled", storable.MaxReason)
		if err := p.err(); err != nil {
			return Step{}, err
		}
		step, err := next(stored)
		switch {
		case err != nil:
			return Step{}, err
		case step.Order.State == OrderAccepted: // its assets would never be taken
			return Step{}, invalid("settled", "is for the end of an order")
		case step.New:
			step.Order.Settled = how
			step.Effect = step.Order.effect()
		case step.Order.effect().Kind != Nothing: // somebody may have paid twice
			return step.Order.conflict("settled")
		}
		return step, nil
	}
}

// If s opens a burn, Rehearse returns the grant that would follow a success of this burn,
// with Rehearsal set. For every other step, ok is false.
//
// When a burn has succeeded, its tokens are gone. So if its assets cannot be granted, it must
// be declined before its signature is sent. Before it stores s, a store that can roll back,
// such as that of rampsql, applies this grant as it would apply the real one, and rolls it
// back. If the grant failed, the store returns its error and does not store s. [MemoryStore]
// does not rehearse. The give-back of a mint is not rehearsed: the player has just had these
// assets, so there is room for them.
//
// The grant is what [Finish] returns for a success, with a random TxHash and the time of
// the order. Its Product and Tokens are empty, as at every end of an order. Its Evidence is
// empty, too, as it is at a real end without a [Confirmer].
func (s Step) Rehearse() (grant Step, ok bool) {
	if !s.New || s.Order.State != OrderAccepted || s.Order.Direction != Burn {
		return Step{}, false
	}
	var hash common.Hash
	rand.Read(hash[:]) // never fails
	grant, err := s.Order.end(OrderSucceeded, hash.Hex(), "", s.Order.AcceptedAt)
	grant.Rehearsal = true
	return grant, err == nil
}

// end returns the step that ends an order.
func (o Order) end(state OrderState, txHash, reason string, now time.Time) (Step, error) {
	o.State, o.TxHash, o.Reason, o.FinishedAt = state, txHash, reason, inMilliseconds(now)
	err := o.derive() // so that the effect follows from the intent, whatever a store returned
	return Step{Order: o, Effect: o.effect(), New: true}, err
}

// normalizeTxHash returns a transaction hash as it is stored, or "" if it is not
// one, because text of any other form must not keep an order from being stored. It is
// in lower case, so that one transaction does not look like two. Zeros are not a hash:
// two failures without a transaction would look like one.
func normalizeTxHash(reported string) string {
	const length = 2 + 64
	hash := strings.ToLower(reported[:min(length+1, len(reported))])
	if len(hash) != length || hash[:2] != "0x" || !wire.IsHex(hash[2:]) || strings.Trim(hash[2:], "0") == "" {
		return ""
	}
	return hash
}

// sameAssets reports whether two lists have the same assets, in any order.
func sameAssets(a, b []AssetAmount) bool {
	return slices.Equal(a, b) || slices.Equal(byID(a), byID(b))
}

// sameTokens reports whether two lists have the same tokens, in any order and case.
func sameTokens(a, b side) bool {
	return slices.Equal(a.assets, b.assets) || slices.Equal(a.tokens(), b.tokens())
}

// options returns what a target_candidate says, or nil if it is empty. Stores may write
// its JSON in another way.
func options(raw json.RawMessage) any {
	if len(raw) == 0 || string(raw) == "{}" { // nearly always
		return nil
	}
	var said any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&said) != nil {
		return string(raw)
	}
	if members, ok := said.(map[string]any); ok && len(members) == 0 {
		return nil
	}
	return said
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

// orderMembers are the members of orderJSON, by the tags of its fields.
var orderMembers = membersOf(reflect.TypeFor[orderJSON]())

// membersOf returns the members of the JSON form of a struct.
func membersOf(form reflect.Type) (members []string) {
	for _, field := range reflect.VisibleFields(form) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			members = append(members, name)
		}
	}
	return members
}

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

// UnmarshalJSON reads what MarshalJSON wrote. It fails if the JSON member "version" is higher than this
// program knows. A newer program raises that number only if older programs must not touch the order.
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
	for _, known := range orderMembers {
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

// MarshalText writes the JSON form, because other codecs leave out what they do not know.
func (o Order) MarshalText() ([]byte, error) { return o.MarshalJSON() }

// UnmarshalText reads the JSON form.
func (o *Order) UnmarshalText(text []byte) error { return o.UnmarshalJSON(text) }

// MarshalBinary writes the JSON form, as MarshalText does.
func (o Order) MarshalBinary() ([]byte, error) { return o.MarshalJSON() }

// UnmarshalBinary reads the JSON form.
func (o *Order) UnmarshalBinary(text []byte) error { return o.UnmarshalJSON(text) }

// MarshalBSON fails: BSON uses neither MarshalText nor MarshalBinary, and would lose what an
// order is about.
func (Order) MarshalBSON() ([]byte, error) { return nil, errNoBSON }
