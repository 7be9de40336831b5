package emulator

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
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// submitted records a transaction that a client has sent to a chain, and plans to
// mine it.
func (s *Orders) submitted(network ramp.Network, tx *chain.Transaction) {
	submitted := control.Event{Network: network, TxHash: tx.Hash, Status: control.TxSubmitted}
	s.recordChain(uuid.Nil, submitted, "transaction %s submitted", tx.Hash)
	s.jobs.Plan(order.Job{Due: s.Chains[network].NextBlock(), Task: order.MineForeign, Network: network,
		Tx: tx})
	s.changes.note()
}

// Place plays a player: it asks the game for approval and then submits the
// transaction. Findings of the books are returned as an error together with the
// order.
func (s *Orders) Place(ctx context.Context, t *trade.Trade, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []fault.Fault) (*order.Order, error) {
	leave, err := s.Life.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	session = trade.Received(session)
	o, err := s.compose(ctx, t, id, session, tokens, faults)
	if err != nil {
		return nil, err
	}
	earlier := s.Find(id)
	placed, err := s.approved(ctx, o, len(faults) > 0)
	stranger := false // whom the game does not know, whatever the UUID
	if r := game.RejectionOf(err); r != nil {
		stranger = r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden ||
			r.Code == "INVALID_USER"
	}
	if err != nil && earlier != nil && !earlier.Same(o) && !stranger && !errors.Is(err, ErrTwoOrders) {
		err = fmt.Errorf(
			"%w (the UUID is that of an earlier order, and each order needs an initialize call "+
				"of its own)", err)
	}
	if stranger && s.Game.WasRobbed(session) {
		err = fmt.Errorf("%w (the service has asked for this session like a thief: if the game limits how "+
			"often a wrong token may be sent, set Config.NoThief)", err)
	}
	if placed == nil && err != nil {
		s.refused(o, err)
	}
	if r := game.RejectionOf(err); r != nil && r.Code == "INVALID_MESSAGE" &&
		tokens.Cmp(ramp.NewAmount(1)) != 0 {
		err = fmt.Errorf(
			"%w (Config.PerOrder is %t, which ramp emulate sets with -per-order: the game must read "+
				"prices in the same way)", err, s.config.Rules.PerOrder)
	}
	found := s.take(id)
	if v := s.Verdict(o); o.Refused != "" && v.Loss && found == nil {
		found = fmt.Errorf("ramptest: %s: %s", s.named(o), v.Said)
	}
	if found != nil {
		err = errors.Join(err, found)
	}
	return placed, err
}

func (s *Orders) approved(ctx context.Context, o *order.Order, faults bool) (*order.Order, error) {
	for _, bend := range o.Script.OffTerms {
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
func (s *Orders) compose(ctx context.Context, t *trade.Trade, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []fault.Fault) (*order.Order, error) {
	script, err := fault.NewScript(faults)
	if err != nil {
		return nil, err
	}
	if script.Result.Fails > 0 && !s.Game.IsInMemory() {
		return nil, errors.New("ramptest: StoreFails needs a ramp.Handler as Config.Handler: " +
			"no store can be reached through a URL")
	}
	terms, _, err := s.Terms(id, script.Expired)
	if err != nil {
		return nil, err
	}
	o := &order.Order{UUID: id, Session: session, Network: terms.Network, Script: script, Composed: true}
	o.Delivery = order.NewDelivery(order.Progress{State: order.Pending})
	if t.Mint { // a burn is free (interface 2.2)
		o.Fee = ramp.NewAmount(int64(terms.MintFeeBps))
	}
	if o.Wallet, err = s.config.wallet(session); err != nil {
		return nil, err
	}
	intent, err := s.config.Rules.Intent(t, terms, tokens)
	if err != nil {
		return nil, err
	}
	o.Request = ramp.ValidateRequest{UserAddress: o.Wallet.Address().Hex(), ProjectID: terms.ProjectID,
		UUID: id, Intent: intent}
	o.HeldBefore = s.Chains[o.Network].TokenBalance(o.Token().Contract(), o.Wallet.Address())
	o.HeldBefore = cmp.Or(s.Audit.HeldBefore(o.Entered()), o.HeldBefore) // if it was asked for before
	return o, s.seal(ctx, o, &o.Request)
}

// approval makes all validate calls of the script, and returns the game's
// approval of the order itself.
func (s *Orders) approval(ctx context.Context, o *order.Order) (*ramp.Approval, error) {
	approvals := make([]*ramp.Approval, 1+max(0, o.Script.Calls))
	errs := make([]error, len(approvals))
	var calls sync.WaitGroup
	for i := range approvals[1:] {
		calls.Go(func() { approvals[1+i], errs[1+i] = s.ask(ctx, o, &o.Request, fault.Call{}, fault.AtOnce) })
	}
	approvals[0], errs[0] = s.ask(ctx, o, &o.Request, o.Script.Validate, "")
	calls.Wait()
	for _, err := range errs {
		if err != nil && !game.IsRejection(err) {
			return nil, err
		}
	}
	approved := slices.IndexFunc(approvals, func(a *ramp.Approval) bool { return a != nil })
	if approved < 0 { // any of them may be approved, but one must
		return nil, errs[0]
	}
	for _, again := range o.Script.Repeats {
		if err := s.askAgain(ctx, o, again); err != nil {
			return nil, err
		}
	}
	return approvals[approved], nil
}

// askAgain makes one more validate call under the UUID of an order.
func (s *Orders) askAgain(ctx context.Context, o *order.Order, again fault.Repeat) error {
	r := o.Request
	if again.Change != nil {
		if err := cmp.Or(again.Change(&r), s.seal(ctx, o, &r)); err != nil {
			return err
		}
	}
	_, err := s.ask(ctx, o, &r, fault.Call{}, again.Name)
	if again.Change == nil {
		return err
	}
	return mustReject(err, ErrTwoOrders)
}

// askBefore makes one more validate call for an approved order, and calls before when the game has answered
// and the answer has not arrived. The service has its approval, so the game may reject this call.
func (s *Orders) askBefore(ctx context.Context, o *order.Order, before func()) error {
	once := sync.OnceFunc(before)
	defer once() // if the game does not answer
	c := game.Call{Kind: control.KindValidate, Order: o, Body: text.JSON(&o.Request),
		Fault: fault.BeforeAnswer}
	_, err := s.Game.Play(ctx, c, fault.Call{}, func(a *game.Answer) error {
		once()
		_, err := game.CheckApproval(a, &o.Request, s.config.Validator)
		return err
	})
	if game.IsRejection(err) {
		return nil
	}
	return err
}

// mustReject returns what is wrong with an answer to a call that the game must reject, with the
// error of an approval.
func mustReject(err, approved error) error {
	switch {
	case err == nil:
		return approved
	case game.IsRejection(err):
		return nil
	default:
		return err
	}
}

// askOffTerms asks for an order like o that the game does not offer, under a UUID of its
// own. It is never placed.
func (s *Orders) askOffTerms(ctx context.Context, o *order.Order, bend fault.OffTerm) (err error) {
	other := &order.Order{Session: o.Session, Network: o.Network, Wallet: o.Wallet, Fee: o.Fee,
		Request: o.Request}
	if other.UUID, err = s.IssueLike(o.UUID); err != nil {
		return err
	}
	r := &other.Request
	r.UUID, r.Digest, r.Intent = other.UUID, ramp.Digest{}, trade.Copy(r.Intent)
	if err := cmp.Or(bend(&r.Intent), s.seal(ctx, other, r)); err != nil {
		return err
	}
	_, err = s.ask(ctx, other, r, fault.Call{}, fault.OffTheTerms)
	return mustReject(err, ErrOffTerms)
}

// ask makes one validate call.
func (s *Orders) ask(ctx context.Context, o *order.Order, r *ramp.ValidateRequest, script fault.Call,
	name string) (*ramp.Approval, error) {
	c := game.Call{Kind: control.KindValidate, Order: o, Body: text.JSON(r),
		Fault: name, Lost: s.loses(o.UUID, script.Lost)}
	var approval *ramp.Approval
	_, err := s.Game.Play(ctx, c, script, func(a *game.Answer) (err error) {
		approval, err = game.CheckApproval(a, r, s.config.Validator)
		return err
	})
	return approval, err
}

// place submits an approved order to the chain. It does not change an order that is
// already placed.
func (s *Orders) place(ctx context.Context, o *order.Order) (*order.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.placed[o.UUID]; known != nil {
		if !known.Same(o) {
			return nil,
				fmt.Errorf(
					"%w: the UUID is that of an earlier order, and each order needs an initialize call "+
						"of its own", ErrTwoOrders)
		}
		return known, nil
	}
	c := s.Chains[o.Network]
	moves := s.unique(o, s.config.Rules.Moves(&o.Request.Intent, o.Fee, o.Wallet.Address(), o.BurnsLess()))
	first := s.waiting(o.Network)
	if first != nil {
		order.Join(first, o)
		c.Join(o.Tx, moves)
	} else {
		to := o.Token().Contract()
		tx, err := c.Sign(ctx, o.Wallet, &to, o.Input(), o.Script.Kind)
		if err != nil {
			return nil, err
		}
		tx.Moves = moves
		o.Tx = c.Submit(tx)
	}
	o.TxHash, o.Placed = o.Tx.Hash, s.Clock.Now()
	s.placed[o.UUID] = o
	s.approvedAfterAll(o.UUID)
	s.count++
	o.Number = s.count
	s.queue = append(s.queue, o)
	s.recordChain(o.UUID, s.Chains.Event(o), "transaction submitted")
	if !o.Script.Pending && !o.Waits() && (first == nil || !first.Script.Pending) {
		s.jobs.Plan(order.Job{Due: c.NextBlock(), Task: order.MineOrder, Order: o})
	}
	s.changes.note(o.UUID)
	if o.Script.Stranger {
		return o, s.stranger(ctx, o)
	}
	return o, nil
}

// waiting returns the order of a network whose transaction waits for the next one, or nil. The caller must
// hold the lock.
func (s *Orders) waiting(network ramp.Network) *order.Order {
	for _, o := range s.queue {
		if _, mined := s.Chains.Outcome(o); o.Network == network && o.Waits() && !mined {
			return o
		}
	}
	return nil
}

// stranger mints the tokens of an order once more, without an order.
func (s *Orders) stranger(ctx context.Context, o *order.Order) error {
	c, token := s.Chains[o.Network], o.Token()
	wallet := trade.SessionWallet(ramp.Session{ID: "stranger"})
	tx, err := c.Sign(ctx, wallet, o.Tx.To, o.Tx.Input, 2)
	if err != nil {
		return err
	}
	tx.Moves = []chain.Move{{Token: token.Contract(), To: wallet.Address(), Amount: c.Units(token.Amount)}}
	s.submitted(o.Network, c.Submit(tx))
	return nil
}

// seal sets the digest of a request, unless it has one, and the user's signature.
// The user signs a different hash than the validator does.
func (s *Orders) seal(ctx context.Context, o *order.Order, r *ramp.ValidateRequest) error {
	if r.Digest == (ramp.Digest{}) {
		r.Digest = s.config.Digest(r)
	}
	signature, err := o.Wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), r.Digest[:])))
	r.UserSig = signature.String()
	return err
}

// unique returns the moves of an order of non-fungible tokens, one for each, or moves
// if the tokens have no IDs. A mint makes new IDs. A burn takes those that earlier mints
// gave to the wallet, oldest first; the wallet holds others from the beginning. The
// caller must hold the lock.
func (s *Orders) unique(o *order.Order, moves []chain.Move) (single []chain.Move) {
	token := o.Token()
	n, err := token.Amount.Int64()
	if err != nil || n > 1000 || !strings.EqualFold(string(token.Type), string(ramp.TypeNFT)) {
		return moves
	}
	wallet := o.Wallet.Address()
	var held []*big.Int
	for _, other := range s.queue {
		if outcome, mined := s.Chains.Outcome(other); !mined || outcome != order.Succeeded {
			continue
		}
		if p := other.Partner.Load(); p != nil && p.Number < other.Number { // it has the same moves
			continue
		}
		for _, m := range other.Tx.Moves {
			switch {
			case m.ID == nil || m.Token != token.Contract():
			case m.To == wallet:
				held = append(held, m.ID)
			case m.From == wallet:
				held = slices.DeleteFunc(held, func(id *big.Int) bool { return id.Cmp(m.ID) == 0 })
			}
		}
	}
	for i := range n {
		m := moves[0]
		m.Amount = chain.Units(ramp.NewAmount(1), s.config.Rules.Decimals)
		m.ID = new(big.Int).SetBytes(crypto.Keccak256([]byte("token"), o.UUID[:], big.NewInt(i).Bytes())[:8])
		if m.From == wallet && len(held) > 0 {
			m.ID, held = held[0], held[1:]
		}
		single = append(single, m)
	}
	return single
}
