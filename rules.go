package ramp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Accept returns the step of a validate call (interface 2.5). It opens the order; the
// effect is Take for a mint and Nothing for a burn. The same call again is a repeat,
// which changes nothing and may be signed again. If it differs in project, session, user
// address, digest, the intent's assets or its target_candidate, the error is a
// [*ConflictError]. After its end, it wraps [ErrOrderFinished].
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
			return Step{Order: opened, Effect: opened.effect(), New: true, Product: r.Product, Tokens: r.Tokens}, nil
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
		case !reflect.DeepEqual(options(stored.Intent.TargetCandidate), options(opened.Intent.TargetCandidate)):
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

func openOrder(s Session, r *ValidateRequest, now time.Time) (Order, error) {
	o := Order{
		UUID: r.UUID, State: OrderAccepted, ProjectID: r.ProjectID, SessionID: strings.TrimSpace(s.ID),
		UserAddress: r.UserAddress, Digest: r.Digest, Intent: r.Intent, AcceptedAt: inMilliseconds(now),
	}
	if o.SessionID == "" {
		return Order{}, invalid("session_id", "is required")
	}
	var p problems
	p.requireStorable(o.SessionID, "session_id", maxOrderText)
	p.requireStorable(o.UserAddress, "user_address", maxOrderText)
	p.requireStorable(o.ProjectID, "project_id", maxOrderText)
	if err := p.err(); err != nil {
		return Order{}, err
	}
	err := o.derive() // not in the return: Go does not define whether o is read before or after
	return o, err
}

// OnlyOf lets a transition see only the orders of a project on a network; empty means any. For an
// order of another one the error wraps [ErrOrderForeign]: that a call came to the wrong place says
// nothing about its outcome, so answer a result with HTTP 500. OnlyOf stores the network with a new
// order, because no call names it. An order without a network was accepted before it was configured.
func OnlyOf(projectID string, network Network, next Transition) Transition {
	return func(stored *Order) (Step, error) {
		switch {
		case stored == nil:
		case projectID != "" && stored.ProjectID != projectID:
			return Step{}, fmt.Errorf("ramp: order %s: %w: project %q, and not %q",
				stored.UUID, ErrOrderForeign, stored.ProjectID, projectID)
		case network != "" && stored.Network != "" && stored.Network != network:
			return Step{}, fmt.Errorf("ramp: order %s: %w: %s, and not %s",
				stored.UUID, ErrOrderForeign, stored.Network, network)
		}
		step, err := next(stored)
		if stored == nil {
			step.Order.Network = network
		}
		return step, err
	}
}

// Finish returns the step of a result call (interface 6). The effect is GiveBack for a
// failed mint, Grant for a successful burn, and Nothing otherwise. It comes from the
// stored order; from the result, only the UUID and the status decide. The same outcome
// again is a repeat, which changes nothing; so is a failure of an abandoned order. To
// detect a second transaction, compare the repeat's tx_hash with Order.TxHash.
//
// A different outcome, session, direction, quantity of game assets or token is a
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

// Abandon returns the step of a person who has decided that the result of an order will
// never come. The effect is GiveBack for a mint, and Nothing for a burn. The reason is
// stored; it may have up to 4,096 bytes of UTF-8 without NUL. The package never abandons
// an order by itself, because if the transaction had succeeded, giving back would pay
// twice. A result that reports success afterwards is a [*ConflictError]. Abandoning again
// is a repeat, which changes nothing. For a finished order the error wraps
// [ErrOrderFinished], for an unknown one [ErrOrderUnknown].
func Abandon(reason string, now time.Time) Transition {
	return func(stored *Order) (Step, error) {
		var p problems
		p.require(strings.TrimSpace(reason) != "", "reason")
		p.requireStorable(reason, "reason", maxOrderReason)
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

// Rehearse returns the step that a [Store] tries before it stores s, if s opens a burn: the
// grant, with Rehearsal set. By the time a burn succeeds, its tokens are gone, so what
// cannot be granted must be declined before anything is signed. A store applies the grant
// as it would apply the real one, and rolls it back; its error is that of s. ok is false for
// every other step. A failed mint is not rehearsed, because right after the take its
// give-back always fits.
//
// The grant is what [Finish] returns for a success, with a random TxHash and the time of
// the order. Its Product, Tokens and Evidence are empty, as those of a real end can be.
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
