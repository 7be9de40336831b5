package ramptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// submitted records a transaction that a client has sent to a chain, and plans to
// mine it.
func (s *orders) submitted(network ramp.Network, tx *chain.Transaction) {
	submitted := control.Event{Network: network, TxHash: tx.Hash, Status: control.TxSubmitted}
	s.recordChain(uuid.Nil, submitted, "transaction %s submitted", tx.Hash)
	s.agenda.plan(job{due: s.chains[network].NextBlock(), task: mineForeign, network: network, tx: tx})
	s.changes.note()
}

// order plays a player: it asks the game for approval and then submits the
// transaction. Findings of the books are returned as an error together with the
// order.
func (s *orders) order(ctx context.Context, t *trade, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	leave, err := s.life.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	o, err := s.compose(ctx, t, id, session, tokens, faults)
	if err != nil {
		return nil, err
	}
	earlier := s.find(id)
	placed, err := s.approved(ctx, o, len(faults) > 0)
	stranger := false // whom the game does not know, whatever the UUID
	if r := rejectionOf(err); r != nil {
		stranger = r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden ||
			r.Code == "INVALID_USER"
	}
	if err != nil && earlier != nil && !earlier.same(o) && !stranger && !errors.Is(err, ErrTwoOrders) {
		err = fmt.Errorf(
			"%w (the UUID is that of an earlier order, and each order needs an initialize call "+
				"of its own)", err)
	}
	if placed == nil && err != nil {
		s.refused(o, err)
	}
	if r := rejectionOf(err); r != nil && r.Code == "INVALID_MESSAGE" && tokens.Cmp(ramp.NewAmount(1)) != 0 {
		err = fmt.Errorf(
			"%w (Config.PerOrder is %t, which ramp emulate sets with -per-order: the game must read "+
				"prices in the same way)", err, s.config.PerOrder)
	}
	found := s.take(id)
	if v := s.verdict(o); o.refused != "" && v.Loss && found == nil {
		found = fmt.Errorf("ramptest: %s %s: %s", t.direction, shortUUID(id), v.Said)
	}
	if found != nil {
		err = errors.Join(err, found)
	}
	return placed, err
}

func (s *orders) approved(ctx context.Context, o *Order, faults bool) (*Order, error) {
	for _, bend := range o.script.offTerms {
		if err := s.askOffTerms(ctx, o, bend); err != nil {
			return nil, err
		}
	}
	approval, err := s.approval(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Approval = *approval
	placed, err := s.place(ctx, o)
	if err == nil && placed != o && faults {
		return nil, ErrPlaced
	}
	return placed, err
}

// compose returns the order that a player signs.
func (s *orders) compose(ctx context.Context, t *trade, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	script, err := newScript(faults)
	if err != nil {
		return nil, err
	}
	if script.result.fails > 0 && !s.game.isInMemory() {
		return nil, errors.New("ramptest: StoreFails needs a ramp.Handler as Config.Handler: " +
			"no store can be reached through a URL")
	}
	terms, _, err := s.terms(id, script.expired)
	if err != nil {
		return nil, err
	}
	o := &Order{UUID: id, Session: session, Network: terms.Network, script: script, composed: true}
	o.delivery = newDelivery(standing{State: Pending})
	if t.mint { // a burn is free (interface 2.2)
		o.fee = ramp.NewAmount(int64(terms.MintFeeBps))
	}
	if o.wallet, err = s.config.wallet(session); err != nil {
		return nil, err
	}
	intent, err := s.config.intent(t, terms, tokens)
	if err != nil {
		return nil, err
	}
	o.Request = ramp.ValidateRequest{UserAddress: o.wallet.Address().Hex(), ProjectID: terms.ProjectID,
		UUID: id, Intent: intent}
	o.heldBefore = s.chains[o.Network].TokenBalance(o.token().contract(), o.wallet.Address())
	o.heldBefore = cmp.Or(s.audit.HeldBefore(o.entered()), o.heldBefore) // if it was asked for before
	return o, s.seal(ctx, o, &o.Request)
}

// approval makes all validate calls of the script, and returns the game's
// approval of the order itself.
func (s *orders) approval(ctx context.Context, o *Order) (*ramp.Approval, error) {
	approvals := make([]*ramp.Approval, 1+max(0, o.script.calls))
	errs := make([]error, len(approvals))
	var calls sync.WaitGroup
	for i := range approvals[1:] {
		calls.Go(func() { approvals[1+i], errs[1+i] = s.ask(ctx, o, &o.Request, callScript{}, askedAtOnce) })
	}
	approvals[0], errs[0] = s.ask(ctx, o, &o.Request, o.script.validate, "")
	calls.Wait()
	for _, err := range errs {
		if err != nil && !isRejection(err) {
			return nil, err
		}
	}
	approved := slices.IndexFunc(approvals, func(a *ramp.Approval) bool { return a != nil })
	if approved < 0 { // any of them may be approved, but one must
		return nil, errs[0]
	}
	for _, again := range o.script.asked {
		if err := s.askAgain(ctx, o, again); err != nil {
			return nil, err
		}
	}
	return approvals[approved], nil
}

// askAgain makes one more validate call under the UUID of an order.
func (s *orders) askAgain(ctx context.Context, o *Order, again again) error {
	r := o.Request
	if again.change != nil {
		if err := cmp.Or(again.change(&r), s.seal(ctx, o, &r)); err != nil {
			return err
		}
	}
	_, err := s.ask(ctx, o, &r, callScript{}, again.fault)
	if again.change == nil {
		return err
	}
	return mustReject(err, ErrTwoOrders)
}

// mustReject returns what is wrong with an answer to a call that the game must reject, with the
// error of an approval.
func mustReject(err, approved error) error {
	switch {
	case err == nil:
		return approved
	case isRejection(err):
		return nil
	default:
		return err
	}
}

// askOffTerms asks for an order like o that the game does not offer, under a UUID of its
// own. It is never placed.
func (s *orders) askOffTerms(ctx context.Context, o *Order, bend bend) (err error) {
	other := &Order{Session: o.Session, Network: o.Network, wallet: o.wallet, fee: o.fee, Request: o.Request}
	if other.UUID, err = s.issueLike(o.UUID); err != nil {
		return err
	}
	r := &other.Request
	r.UUID, r.Digest, r.Intent = other.UUID, ramp.Digest{}, copied(r.Intent)
	if err := cmp.Or(bend(&r.Intent), s.seal(ctx, other, r)); err != nil {
		return err
	}
	_, err = s.ask(ctx, other, r, callScript{}, offTheTerms)
	return mustReject(err, ErrOffTerms)
}

// ask makes one validate call.
func (s *orders) ask(ctx context.Context, o *Order, r *ramp.ValidateRequest, script callScript,
	fault string) (*ramp.Approval, error) {
	c := call{kind: control.KindValidate, order: o, body: encoded(r),
		fault: fault, lost: s.loses(o.UUID, script.lost)}
	var approval *ramp.Approval
	_, err := s.game.play(ctx, c, script, func(a *answer) (err error) {
		approval, err = checkApproval(a, r, s.config.Validator)
		return err
	})
	return approval, err
}

// place submits an approved order to the chain. It does not change an order that is
// already placed.
func (s *orders) place(ctx context.Context, o *Order) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.placed[o.UUID]; known != nil {
		if !known.same(o) {
			return nil,
				fmt.Errorf(
					"%w: the UUID is that of an earlier order, and each order needs an initialize call "+
						"of its own", ErrTwoOrders)
		}
		return known, nil
	}
	c := s.chains[o.Network]
	to := o.token().contract()
	tx, err := c.Sign(ctx, o.wallet, &to, input(o), o.script.kind)
	if err != nil {
		return nil, err
	}
	tx.Moves = s.unique(o, s.config.moves(o, o.wallet.Address()))
	o.tx = c.Submit(tx)
	o.TxHash, o.placed = o.tx.Hash, s.clock.Now()
	s.placed[o.UUID] = o
	s.approvedAfterAll(o.UUID)
	s.count++
	o.number = s.count
	s.queue = append(s.queue, o)
	s.recordChain(o.UUID, s.onChain(o), "transaction submitted")
	if !o.script.pending {
		s.agenda.plan(job{due: c.NextBlock(), task: mineOrder, order: o})
	}
	s.changes.note(o.UUID)
	if o.script.stranger {
		return o, s.stranger(ctx, o)
	}
	return o, nil
}

// stranger mints the tokens of an order once more, without an order.
func (s *orders) stranger(ctx context.Context, o *Order) error {
	c, token := s.chains[o.Network], o.token()
	wallet := sessionWallet(ramp.Session{ID: "stranger"})
	tx, err := c.Sign(ctx, wallet, o.tx.To, o.tx.Input, 2)
	if err != nil {
		return err
	}
	tx.Moves = []chain.Move{{Token: token.contract(), To: wallet.Address(), Amount: c.Units(token.Amount)}}
	s.submitted(o.Network, c.Submit(tx))
	return nil
}

// seal sets the digest of a request, unless it has one, and the user's signature.
// The user signs a different hash than the validator does.
func (s *orders) seal(ctx context.Context, o *Order, r *ramp.ValidateRequest) error {
	if r.Digest == (ramp.Digest{}) {
		r.Digest = s.config.Digest(r)
	}
	signature, err := o.wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), r.Digest[:])))
	r.UserSig = signature.String()
	return err
}

// unique returns the moves of an order of non-fungible tokens, one for each, or moves
// if the tokens have no IDs. A mint makes new IDs. A burn takes those that earlier mints
// gave to the wallet, oldest first; the wallet holds others from the beginning. The
// caller must hold the lock.
func (s *orders) unique(o *Order, moves []chain.Move) (single []chain.Move) {
	token := o.token()
	n, err := token.Amount.Int64()
	if err != nil || n > 1000 || !strings.EqualFold(string(token.Type), string(ramp.TypeNFT)) {
		return moves
	}
	wallet := o.wallet.Address()
	var held []*big.Int
	for _, other := range s.queue {
		if outcome, mined := s.outcome(other); !mined || outcome != Succeeded {
			continue
		}
		for _, m := range other.tx.Moves {
			switch {
			case m.ID == nil || m.Token != token.contract():
			case m.To == wallet:
				held = append(held, m.ID)
			case m.From == wallet:
				held = slices.DeleteFunc(held, func(id *big.Int) bool { return id.Cmp(m.ID) == 0 })
			}
		}
	}
	for i := range n {
		m := moves[0]
		m.Amount = chain.Units(ramp.NewAmount(1), s.config.Decimals)
		m.ID = new(big.Int).SetBytes(crypto.Keccak256([]byte("token"), o.UUID[:], big.NewInt(i).Bytes())[:8])
		if m.From == wallet && len(held) > 0 {
			m.ID, held = held[0], held[1:]
		}
		single = append(single, m)
	}
	return single
}
