package ramptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

var (
	// ErrUnknownUUID means that the service has not issued the UUID.
	ErrUnknownUUID = errors.New("ramptest: the service knows no such UUID")

	// ErrExpiredUUID means that the UUID is older than [ramp.UUIDValidity]. The
	// interface does not say what the service does in that case (3); see
	// [Config.AcceptExpired].
	ErrExpiredUUID = errors.New("ramptest: the UUID has expired")

	// ErrTwoOrders means that the game approved two different orders under one
	// UUID, such as orders of two players or of two amounts. A UUID identifies one
	// request (interface 2.5).
	ErrTwoOrders = errors.New("ramptest: the game approved two orders under one UUID")

	// ErrOffTerms means that the game approved an order for another token, at
	// another rate or with an item more than it offers. See [ValidateOtherToken],
	// [ValidateOtherRate] and [ValidateExtraItem].
	ErrOffTerms = errors.New("ramptest: the game approved an order that it does not offer: set HandlerConfig.Terms")

	// ErrPlaced means that faults were given for an order that is already on the
	// chain.
	ErrPlaced = errors.New("ramptest: the order is already placed, so faults cannot be added")
)

// Order is a mint or a burn that the game has approved.
type Order struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Network  ramp.Network
	Request  ramp.ValidateRequest // the validate request that the game received
	Approval ramp.Approval        // the game's answer
	TxHash   common.Hash          // the transaction on the chain, see [Service.RPCURL]

	wallet     *ramp.Signer // of an order that is being placed
	composed   bool         // false for an order that was made by hand
	number     int          // counts the orders
	fee        ramp.Amount  // basis points
	script     script
	tx         *chain.Transaction // nil if the service has not placed the order
	placed     time.Time          // when it was submitted to the chain
	heldBefore *big.Rat           // the wallet's tokens before the first validate call
	refused    string             // how the game did not approve it, so that it has no transaction; "" if it did
	noSession  bool               // the game then rejected the session when it was asked for the assets

	reached  atomic.Bool // some call about it was sent to the game
	delivery delivery
}

// String returns a one-line description with the beginning of the UUID.
func (o *Order) String() string {
	t := o.trade()
	if t == nil {
		return "an order without an intent"
	}
	return fmt.Sprintf("%s %s of %s (%s)", t.direction, shortUUID(o.UUID), tokens(o.token().Amount.Rat()), o.delivery.now().State)
}

func shortUUID(id uuid.UUID) string { return id.String()[:8] }

// Outcome is the outcome of an order's transaction.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

// asOnChain stands for the outcome on the chain.
const asOnChain Outcome = -1

func (o Outcome) String() string {
	if o == Succeeded {
		return "succeeded"
	}
	return "failed"
}

// outcomes are the outcomes by their names.
var outcomes = map[string]Outcome{Succeeded.String(): Succeeded, Failed.String(): Failed}

// Rejection is the game's answer with success false (interface 7.2).
type Rejection struct {
	Status int       // HTTP status
	Code   ramp.Code // errorCode
}

func (r *Rejection) Error() string {
	did, why := "rejected the call with", ""
	switch {
	case r.Code == ramp.CodeHMACInvalid, r.Code == ramp.CodeHMACMissing:
		why = ": it has another HMAC key or reads it in another encoding, or verifies a body that was parsed and written anew"
	case r.Status >= http.StatusInternalServerError:
		did, why = "answered", ": its log may say why"
	}
	return fmt.Sprintf("ramptest: the game %s HTTP %d and %q%s", did, r.Status, string(r.Code), why)
}

// rejectionOf returns the rejection in an error, or nil.
func rejectionOf(err error) (rejected *Rejection) {
	errors.As(err, &rejected)
	return rejected
}

func isRejection(err error) bool { return rejectionOf(err) != nil }

// orders holds the UUIDs that a service has issued, the orders that it has placed,
// and the jobs that are due. This file takes an order to the chain; deliver.go
// takes it from there to its end.
type orders struct {
	shared
	game   *game
	chains map[ramp.Network]*chain.Chain
	agenda *agenda

	turn sync.Mutex // held while jobs that are due are run

	mu     sync.Mutex
	issued map[uuid.UUID]*issued
	placed map[uuid.UUID]*Order
	queue  []*Order // the placed orders, oldest first
	count  int      // how many were placed
	held   []*Order // orders whose result waits for that of another order
	lost   []*Order // orders that were not approved, or failed, oldest first; lists show those with a loss
}

// issued is an issued UUID with the terms of its initialize call.
type issued struct {
	Expires time.Time
	Opened  bool `json:",omitzero"` // the exchange page was opened
	Lost    int  `json:",omitzero"` // validate answers that were lost, see [LostAnswer]
	Terms   ramp.InitializeIntent
}

// reset forgets all UUIDs, orders, jobs and chains.
func (s *orders) reset() {
	s.keeper.clear(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.issued)
		clear(s.placed)
		s.queue, s.held, s.lost, s.count = nil, nil, nil, 0
		s.agenda.reset()
		for _, c := range s.chains {
			c.Reset()
		}
	})
}

// issue issues a UUID for terms.
func (s *orders) issue(terms ramp.InitializeIntent) uuid.UUID {
	id, expires := uuid.New(), s.clock.now().Add(ramp.UUIDValidity)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(id, &issued{Terms: terms, Expires: expires})
	s.keeper.touch(id)
	s.forget()
	return id
}

// enter adds an issued UUID. The caller must hold the lock.
func (s *orders) enter(id uuid.UUID, known *issued) {
	s.issued[id] = known
	terms := &known.Terms
	if c := s.chains[terms.Network]; c != nil && s.config.isSingle(terms) {
		c.SetNonFungible(common.HexToAddress(terms.Token))
	}
}

// isSingle reports whether the tokens of terms are non-fungible.
func (c *Config) isSingle(terms *ramp.InitializeIntent) bool {
	return slices.ContainsFunc(trades, func(t *trade) bool { return c.tokenType(t.items(terms)) == ramp.TypeNFT })
}

// terms returns the terms of a UUID and when they expire.
func (s *orders) terms(id uuid.UUID, expired bool) (terms ramp.InitializeIntent, until time.Time, err error) {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.issued[id]
	switch {
	case !ok:
		return terms, until, ErrUnknownUUID
	case (expired || !now.Before(known.Expires)) && !s.config.AcceptExpired:
		return terms, until, ErrExpiredUUID
	default:
		return known.Terms, known.Expires, nil
	}
}

// issueLike issues another UUID for the terms of a UUID.
func (s *orders) issueLike(id uuid.UUID) (uuid.UUID, error) {
	s.mu.Lock()
	known := s.issued[id]
	s.mu.Unlock()
	if known == nil {
		return uuid.Nil, ErrUnknownUUID
	}
	return s.issue(known.Terms), nil
}

// forget drops the oldest finished orders above [Desk.KeepOrders], those with a loss last, and
// the UUIDs that expired long ago. It works in batches, because it scans them all. The caller
// must hold the lock.
func (s *orders) forget() {
	keep := s.config.Desk.KeepOrders
	slack := keep/10 + 1
	if keep == 0 || len(s.queue) < keep+slack && len(s.issued) < 10*keep+slack {
		return
	}
	finished := 0
	for _, o := range s.queue {
		if s.isFinished(o) {
			finished++
		}
	}
	for _, all := range []bool{false, true} { // those that need attention last
		s.queue = slices.DeleteFunc(s.queue, func(o *Order) bool {
			if finished <= keep || !s.isFinished(o) || !all && s.verdict(o).Attention {
				return false
			}
			finished--
			delete(s.placed, o.UUID)
			delete(s.issued, o.UUID)
			s.keeper.touch(o.UUID)
			s.audit.forget(o.UUID)
			s.chains[o.Network].Forget(o.tx)
			return true
		})
	}
	old := s.clock.now().Add(-24 * time.Hour)
	maps.DeleteFunc(s.issued, func(id uuid.UUID, known *issued) bool {
		unused := s.placed[id] == nil && known.Expires.Before(old) && s.refusedAs(id) == nil
		if unused {
			s.keeper.touch(id)
		}
		return unused
	})
}

// isFinished reports whether an order has ended and nothing more is planned for it.
func (s *orders) isFinished(o *Order) bool {
	return o.delivery.now().State.over() && s.progress(o).done
}

// opens records that the exchange page of a UUID is opened, and reports whether it
// is for the first time.
func (s *orders) opens(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.issued[id]
	first := known != nil && !known.Opened
	if first {
		known.Opened = true
		s.keeper.touch(id)
	}
	return first
}

// all returns the orders, newest first. They include those that the game did not approve,
// but for which it moved something.
func (s *orders) all() []*Order {
	s.mu.Lock()
	list, lost := slices.Clone(s.queue), slices.Clone(s.lost)
	s.mu.Unlock()
	lost = slices.DeleteFunc(lost, func(o *Order) bool { return !s.verdict(o).Attention })
	if len(lost) > 0 {
		list = append(list, lost...)
		slices.SortStableFunc(list, func(a, b *Order) int { return a.placed.Compare(b.placed) })
	}
	slices.Reverse(list)
	return list
}

// maxLost bounds the orders that were not approved. Those that lost nothing go first.
const maxLost = 1_000

// refused keeps an order that the game did not approve, because it may have moved something.
// An answer that was lost on purpose, or that nobody waited for, is not the game's failure.
func (s *orders) refused(o *Order, err error) {
	answer, asked := s.record.last(func(e *Event) bool { return e.UUID == o.UUID && e.Kind == KindValidate && e.IsWrong() })
	if errors.Is(err, ErrLostAnswer) || errors.Is(err, errCanceled) || !asked || !o.reached.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placed[o.UUID] != nil { // what moved, that order moved
		return
	}
	r, _ := s.game.readings.of(o.Session)
	o.refused, o.noSession, o.placed = answer.Said, r.rejection() > 0, s.clock.now()
	s.approvedAfterAll(o.UUID)
	s.lost = append(s.lost, o)
	s.keeper.touch(o.UUID)
	if len(s.lost) > maxLost {
		oldest := max(0, slices.IndexFunc(s.lost, func(o *Order) bool { return !s.verdict(o).Attention }))
		s.keeper.touch(s.lost[oldest].UUID)
		s.lost = slices.Delete(s.lost, oldest, oldest+1)
	}
}

// approvedAfterAll forgets that an order was refused. The caller must hold the lock.
func (s *orders) approvedAfterAll(id uuid.UUID) {
	s.lost = slices.DeleteFunc(s.lost, func(o *Order) bool { return o.UUID == id })
}

// refusedAs returns the order of a UUID that was not approved, or nil. The caller must hold
// the lock.
func (s *orders) refusedAs(id uuid.UUID) *Order {
	for _, o := range s.lost {
		if o.UUID == id {
			return o
		}
	}
	return nil
}

// latest returns the terms of the last initialize call that brought a UUID, if there was one.
func (s *orders) latest() (terms ramp.InitializeIntent, ok bool) {
	call, _ := s.record.last(func(e *Event) bool { return e.Kind == KindInitialize && e.UUID != uuid.Nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.issued[call.UUID]; known != nil {
		return known.Terms, true
	}
	return terms, false
}

// find returns the order that was placed under a UUID, or nil.
func (s *orders) find(id uuid.UUID) *Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.placed[id]
}

// shown is find, for an order that was not approved, too.
func (s *orders) shown(id uuid.UUID) *Order {
	if o := s.find(id); o != nil {
		return o
	}
	all := s.all()
	if i := slices.IndexFunc(all, func(o *Order) bool { return o.refused != "" && o.UUID == id }); i >= 0 {
		return all[i]
	}
	return nil
}

// order plays a player: it asks the game for approval and then submits the
// transaction. Findings of the books are returned as an error together with the
// order.
func (s *orders) order(ctx context.Context, t *trade, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	leave, err := s.life.enter()
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
	if err != nil && earlier != nil && !earlier.same(o) && !errors.Is(err, ErrTwoOrders) {
		err = fmt.Errorf("%w (the UUID is that of an earlier order, and each order needs an initialize call of its own)", err)
	}
	if placed == nil && err != nil {
		s.refused(o, err)
	}
	if r := rejectionOf(err); r != nil && r.Code == "INVALID_MESSAGE" && tokens.Cmp(ramp.NewAmount(1)) != 0 {
		err = fmt.Errorf("%w (Config.PerOrder is %t, which ramp emulate sets with -per-order: the game must read prices in the same way)", err, s.config.PerOrder)
	}
	found := s.audit.take(id)
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
	terms, _, err := s.terms(id, script.expired)
	if err != nil {
		return nil, err
	}
	o := &Order{UUID: id, Session: session, Network: terms.Network, script: script, composed: true}
	o.delivery.State = Pending
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
	o.Request = ramp.ValidateRequest{UserAddress: o.wallet.Address().Hex(), ProjectID: terms.ProjectID, UUID: id, Intent: intent}
	o.heldBefore = s.chains[o.Network].TokenBalance(o.token().contract(), o.wallet.Address())
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

// copied returns an intent that shares no assets with the given one.
func copied(i ramp.Intent) ramp.Intent {
	i.From, i.To = slices.Clone(i.From), slices.Clone(i.To)
	return i
}

// ask makes one validate call.
func (s *orders) ask(ctx context.Context, o *Order, r *ramp.ValidateRequest, script callScript, fault string) (*ramp.Approval, error) {
	c := call{kind: KindValidate, order: o, body: encoded(r), fault: fault, lost: s.loses(o.UUID, script.lost)}
	var approval *ramp.Approval
	_, err := s.game.play(ctx, c, script, func(a *answer) (err error) {
		approval, err = checkApproval(a, r, s.config.Validator)
		return err
	})
	return approval, err
}

// loses reports whether the next validate answer under a UUID is lost, and counts
// it. At most limit are.
func (s *orders) loses(id uuid.UUID, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.issued[id]
	if known.Lost >= limit {
		return false
	}
	known.Lost++
	s.keeper.touch(id)
	return true
}

// place submits an approved order to the chain. It does not change an order that is
// already placed.
func (s *orders) place(ctx context.Context, o *Order) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.placed[o.UUID]; known != nil {
		if !known.same(o) {
			return nil, fmt.Errorf("%w: the UUID is that of an earlier order, and each order needs an initialize call of its own", ErrTwoOrders)
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
	o.TxHash, o.placed = o.tx.Hash, s.clock.now()
	s.placed[o.UUID] = o
	s.approvedAfterAll(o.UUID)
	s.count++
	o.number = s.count
	s.queue = append(s.queue, o)
	s.recordChain(o.UUID, s.onChain(o), "transaction submitted")
	if !o.script.pending {
		s.agenda.plan(job{due: c.NextBlock(), task: mineOrder, order: o})
	}
	s.keeper.touch(o.UUID)
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

// address returns the address of the player's wallet.
func (o *Order) address() common.Address { return common.HexToAddress(o.Request.UserAddress) }

// same reports whether two orders are the same request of the same player. It
// ignores the user signature, because signing is not always deterministic.
func (o *Order) same(other *Order) bool {
	a, b := o.Request, other.Request
	a.UserSig, b.UserSig = "", ""
	return o.Session.ID == other.Session.ID && reflect.DeepEqual(a, b)
}
