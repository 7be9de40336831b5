package ramptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

var (
	// ErrUnknownUUID says that no initialize call was answered with the UUID.
	ErrUnknownUUID = errors.New("ramptest: the service knows no such UUID")

	// ErrExpiredUUID says that the UUID is older than [ramp.UUIDValidity]. What
	// the service does then, the interface does not show (3); see
	// [Config.AcceptExpired].
	ErrExpiredUUID = errors.New("ramptest: the UUID has expired")

	// ErrTwoOrders says that the studio approved two different orders under one
	// UUID, which identifies a request (interface 2.5): of two players, say, or of
	// two amounts.
	ErrTwoOrders = errors.New("ramptest: the studio approved two orders under one UUID")

	// ErrPlaced says that faults were given with an order that is on the chain
	// already, where they would come too late.
	ErrPlaced = errors.New("ramptest: the order is placed already, and takes no more faults")
)

// Order is a mint or a burn that the studio has approved.
type Order struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Network  ramp.Network
	Request  ramp.ValidateRequest // what the studio was asked
	Approval ramp.Approval        // what it answered
	TxHash   common.Hash          // the transaction, see [Service.RPCURL]

	wallet *ramp.Signer
	fee    ramp.Amount // basis points
	script script
	tx     *chain.Transaction // nil if the service has not placed the order
	placed time.Time          // when it was put on the chain

	delivery delivery
}

// String names an order on one line, with the beginning of its UUID.
func (o *Order) String() string {
	if len(o.Request.Intent.From) == 0 || len(o.Request.Intent.To) == 0 {
		return "an order without an intent"
	}
	verb := "mint"
	if o.Request.Intent.Type == ramp.Disassemble {
		verb = "burn"
	}
	return fmt.Sprintf("%s %s of %s tokens (%s)", verb, shortUUID(o.UUID), o.token().Amount, o.delivery.now())
}

// Outcome is what the chain makes of an order.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

func (o Outcome) String() string {
	if o == Succeeded {
		return "succeeded"
	}
	return "failed"
}

// Declined is a studio's answer with success false (interface 7.2).
type Declined struct {
	Status int       // HTTP status
	Code   ramp.Code // errorCode
}

func (d *Declined) Error() string {
	return fmt.Sprintf("ramptest: the studio declined with HTTP %d and %q", d.Status, string(d.Code))
}

func isDeclined(err error) bool {
	var declined *Declined
	return errors.As(err, &declined)
}

// orders are the orders of a service: what they may be (issued), what the studio
// has approved (placed), and what makes them go on. This file takes an order to
// the chain; deliver.go takes it from there to its end.
type orders struct {
	config *Config
	clock  *clock
	record *record
	life   *lifetime
	studio *studio
	chains map[ramp.Network]*chain.Chain
	agenda *agenda

	turn sync.Mutex // held by whoever does what is due

	mu     sync.Mutex
	issued map[uuid.UUID]*issued
	placed map[uuid.UUID]*Order
	held   []*Order // whose results wait for another one
}

// issued is a UUID, and the terms for which an initialize call was given it.
type issued struct {
	terms   ramp.InitializeIntent
	expires time.Time
	lost    int // validate answers that nobody heard, see [LostAnswer]
}

// issue gives terms a UUID.
func (s *orders) issue(terms ramp.InitializeIntent, at time.Time) uuid.UUID {
	id := uuid.New()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued[id] = &issued{terms: terms, expires: at.Add(ramp.UUIDValidity)}
	return id
}

// terms returns those of a UUID, and until when they hold.
func (s *orders) terms(id uuid.UUID, expired bool) (terms ramp.InitializeIntent, until time.Time, err error) {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.issued[id]
	switch {
	case !ok:
		return terms, until, ErrUnknownUUID
	case (expired || !now.Before(known.expires)) && !s.config.AcceptExpired:
		return terms, until, ErrExpiredUUID
	default:
		return known.terms, known.expires, nil
	}
}

// find returns the order that was placed under a UUID, or nil.
func (s *orders) find(id uuid.UUID) *Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.placed[id]
}

// of returns the orders of a session on a network, the newest first.
func (s *orders) of(session string, network ramp.Network) []*Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Order
	for _, o := range s.placed {
		if o.Session.ID == session && o.Network == network {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *Order) int { return b.placed.Compare(a.placed) })
	return list
}

// order plays a player: the studio approves, then the chain gets a transaction.
// What the books find is an error beside the order.
func (s *orders) order(ctx context.Context, direction ramp.Direction, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	leave, err := s.life.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	o, err := s.compose(ctx, direction, id, session, tokens, faults)
	if err != nil {
		return nil, err
	}
	placed, err := s.approved(ctx, o, len(faults) > 0)
	if found := s.studio.audit.take(id); found != nil {
		err = errors.Join(err, found)
	}
	return placed, err
}

func (s *orders) approved(ctx context.Context, o *Order, faults bool) (*Order, error) {
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

// compose makes the order that a player signs.
func (s *orders) compose(ctx context.Context, direction ramp.Direction, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	script, err := newScript(faults)
	if err != nil {
		return nil, err
	}
	terms, _, err := s.terms(id, script.expired)
	if err != nil {
		return nil, err
	}
	o := &Order{UUID: id, Session: session, Network: terms.Network, script: script}
	o.delivery.state = Pending
	bps := terms.MintFeeBps
	if direction == ramp.Burn {
		bps = terms.BurnFeeBps
	}
	o.fee = ramp.NewAmount(int64(bps))
	if o.wallet, err = s.config.wallet(session); err != nil {
		return nil, err
	}
	intent, err := s.config.intent(direction, terms, tokens)
	if err != nil {
		return nil, err
	}
	o.Request = ramp.ValidateRequest{UserAddress: o.wallet.Address().Hex(), ProjectID: terms.ProjectID, UUID: id, Intent: intent}
	return o, s.seal(ctx, o, &o.Request)
}

// intent is what the player asks for (interface 2.5).
func (c *Config) intent(direction ramp.Direction, asked ramp.InitializeIntent, tokens ramp.Amount) (ramp.Intent, error) {
	token := []ramp.IntentAsset{{Type: c.TokenType, ID: asked.Token, Amount: tokens}}
	intent := ramp.Intent{Method: asked.MintMethod, Type: ramp.Assemble, To: token, TargetCandidate: json.RawMessage("{}")}
	items, assets := asked.Materials, &intent.From
	if direction == ramp.Burn {
		intent.Method, intent.Type, intent.From = c.BurnMethod, ramp.Disassemble, token
		items, assets = asked.Outputs, &intent.To
	}
	if len(items) == 0 {
		return ramp.Intent{}, fmt.Errorf("ramptest: the initialize call had nothing for a %s", direction)
	}
	*assets = make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		amount := item.Amount
		if c.PerToken {
			var err error
			if amount, err = rounded(new(big.Rat).Mul(amount.Rat(), tokens.Rat())); err != nil {
				return ramp.Intent{}, err
			}
		}
		(*assets)[i] = ramp.IntentAsset{Type: ramp.TypeAsset, ID: item.ID, Amount: amount}
	}
	return intent, nil
}

// rounded is a fraction as an amount, to the 100 places that one may have.
func rounded(r *big.Rat) (ramp.Amount, error) {
	a, err := ramp.ParseAmount(r.FloatString(100))
	if err != nil {
		return ramp.Amount{}, fmt.Errorf("ramptest: %w", err)
	}
	return a, nil
}

// afterFee takes a fee in basis points off an amount.
func afterFee(amount, fee ramp.Amount) (ramp.Amount, error) {
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	rest.Mul(rest, amount.Rat()).Quo(rest, big.NewRat(10_000, 1))
	return rounded(rest)
}

// seal sets the digest of a request, unless it has one, and the user's
// signature. The user signs another hash than the validator.
func (s *orders) seal(ctx context.Context, o *Order, r *ramp.ValidateRequest) error {
	if r.Digest == (ramp.Digest{}) {
		r.Digest = s.config.Digest(r)
	}
	signature, err := o.wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), r.Digest[:])))
	r.UserSig = signature.String()
	return err
}

// hashDigest is the default of [Config.Digest].
func hashDigest(r *ramp.ValidateRequest) ramp.Digest {
	terms, err := json.Marshal(r.Intent)
	if err != nil {
		panic(err) // it was read from JSON, or made of what can be written
	}
	return ramp.Digest(crypto.Keccak256([]byte("digest"), r.UUID[:], []byte(r.UserAddress), terms))
}

func (c *Config) wallet(session ramp.Session) (*ramp.Signer, error) {
	signer := c.Wallet(session)
	if signer == nil {
		return nil, errors.New("ramptest: Config.Wallet has none for the session")
	}
	return signer, nil
}

// sessionWallet is the default of [Config.Wallet].
func sessionWallet(session ramp.Session) *ramp.Signer {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("wallet"), []byte(session.ID)))
	if err != nil {
		panic(err) // one hash of 2^128 is no key
	}
	signer, err := ramp.NewECDSASigner(key)
	if err != nil {
		panic(err) // it is a key
	}
	return signer
}

// approval asks the studio as often as the script has it, and returns its
// approval of the order itself.
func (s *orders) approval(ctx context.Context, o *Order) (*ramp.Approval, error) {
	approvals := make([]*ramp.Approval, 1+max(0, o.script.calls))
	errs := make([]error, len(approvals))
	var calls sync.WaitGroup
	for i := range approvals[1:] {
		calls.Go(func() { approvals[1+i], errs[1+i] = s.ask(ctx, o, &o.Request, wire{}, "at once") })
	}
	approvals[0], errs[0] = s.ask(ctx, o, &o.Request, o.script.validate, "")
	calls.Wait()
	for _, err := range errs {
		if err != nil && !isDeclined(err) {
			return nil, err
		}
	}
	approved := slices.IndexFunc(approvals, func(a *ramp.Approval) bool { return a != nil })
	if approved < 0 { // which of them may come first is open, but one must
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
func (s *orders) askAgain(ctx context.Context, o *Order, how again) error {
	r := o.Request
	fault := "again"
	switch how {
	case otherDigest:
		fault = "with another digest"
		r.Digest = ramp.Digest(crypto.Keccak256([]byte("another"), r.Digest[:]))
	case otherAmount:
		fault = "with another amount"
		r.Digest = ramp.Digest{}
		for _, side := range []*[]ramp.IntentAsset{&r.Intent.From, &r.Intent.To} {
			more := make([]ramp.IntentAsset, len(*side))
			for i, asset := range *side {
				more[i] = asset
				var err error
				if more[i].Amount, err = asset.Amount.Add(asset.Amount); err != nil {
					return fmt.Errorf("ramptest: %w", err)
				}
			}
			*side = more
		}
	}
	if err := s.seal(ctx, o, &r); err != nil {
		return err
	}
	_, err := s.ask(ctx, o, &r, wire{}, fault)
	switch {
	case how == sameAgain:
		return err
	case err == nil:
		return ErrTwoOrders
	case isDeclined(err):
		return nil
	default:
		return err
	}
}

// ask makes one validate call, after the forged ones of the script.
func (s *orders) ask(ctx context.Context, o *Order, r *ramp.ValidateRequest, w wire, fault string) (*ramp.Approval, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	if w.unknown {
		body = withUnknownFields(body)
	}
	c := s.studio.call(KindValidate, o, 0, body)
	if err := s.studio.forged(ctx, c, w.forged); err != nil {
		return nil, err
	}
	c.fault, c.lost, c.slow = fault, s.loses(o.UUID, w.lost), w.slow
	var approval *ramp.Approval
	_, err = s.studio.exchange(ctx, c, func(a *answer) (err error) {
		approval, err = checkApproval(a, r, s.config.Validator)
		return err
	})
	return approval, err
}

// loses reports whether one more validate answer under a UUID gets lost, of so many
// that do.
func (s *orders) loses(id uuid.UUID, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.issued[id]
	if known.lost >= most {
		return false
	}
	known.lost++
	return true
}

// place puts an approved order on the chain. An order that is there already is
// left as it is.
func (s *orders) place(ctx context.Context, o *Order) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.placed[o.UUID]; known != nil {
		if !known.same(o) {
			return nil, ErrTwoOrders
		}
		return known, nil
	}
	c := s.chains[o.Network]
	method := chain.Selector(string(o.Request.Intent.Method) + "(bytes32)")
	tx, err := c.Sign(ctx, o.wallet, o.token().contract(), append(method[:], o.Request.Digest[:]...), o.script.kind)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	if tx.Moves, err = s.config.moves(o, o.wallet.Address()); err != nil {
		return nil, err
	}
	o.tx = c.Submit(tx)
	o.TxHash, o.placed = o.tx.Hash, s.clock.now()
	s.placed[o.UUID] = o
	s.record.chain(o.placed, o.UUID, o.Network, "transaction submitted")
	if !o.script.pending {
		s.agenda.plan(job{due: c.NextBlock(), task: mineOrder, order: o})
	}
	return o, nil
}

// same reports whether two orders are one request of one player. A wallet need not
// sign twice to the same bytes.
func (o *Order) same(other *Order) bool {
	a, b := o.Request, other.Request
	a.UserSig, b.UserSig = "", ""
	return o.Session.ID == other.Session.ID && reflect.DeepEqual(a, b)
}

// serviceAccount is the service's own account. It gets the fees, and pays the gas
// of type 0x7.
func serviceAccount() common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("service")))
}

// orderToken is the token of an order.
type orderToken ramp.IntentAsset

func (t orderToken) contract() common.Address { return common.HexToAddress(t.ID) }

func (o *Order) token() orderToken {
	if o.Request.Intent.Type == ramp.Disassemble {
		return orderToken(o.Request.Intent.From[0])
	}
	return orderToken(o.Request.Intent.To[0])
}

// moves are the tokens that an order makes or destroys.
func (c *Config) moves(o *Order, player common.Address) ([]chain.Move, error) {
	token := o.token()
	contract, amount := token.contract(), chain.Units(token.Amount, c.Decimals)
	if o.Request.Intent.Type == ramp.Disassemble {
		return []chain.Move{{Token: contract, From: player, Amount: amount}}, nil
	}
	actual, err := afterFee(token.Amount, o.fee)
	if err != nil {
		return nil, err
	}
	net := chain.Units(actual, c.Decimals)
	made := []chain.Move{{Token: contract, To: player, Amount: net}}
	if fee := new(big.Int).Sub(amount, net); fee.Sign() > 0 {
		made = append(made, chain.Move{Token: contract, To: serviceAccount(), Amount: fee})
	}
	return made, nil
}
