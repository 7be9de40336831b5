package ramptest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
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
	tx     *transaction // nil if the service has not placed the order
	placed time.Time    // when it was put on the chain

	// Guarded by the service.
	state    State
	attempts int       // deliveries so far
	retries  int       // of them, how many the schedule has counted
	next     time.Time // of the delivery that is planned; zero if there is none
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

// Assets asks the studio for a user's assets (interface 2.4). A studio that
// says no gives a [*Declined], one that breaks the interface another error.
func (s *Service) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var player *ramp.Player
	assets := call{kind: KindAssets, method: http.MethodGet, path: s.config.AssetsPath, session: session}
	_, err = s.exchange(ctx, assets, func(a *answer) (err error) {
		player, err = checkAssets(a)
		return err
	})
	return player, err
}

// Mint plays a player who mints: it asks the studio to approve that the
// materials of the initialize call become tokens (interface 2.5). Once the
// studio's answer has passed every check of sections 2.6 and 5.3, the
// transaction goes to the chain, whose next block has it, and the result is
// delivered after that: [Service.Advance] lets that happen.
//
// A studio that says no gives a [*Declined], one that breaks the interface
// another error. The same call again is the same request again, and the same
// order; it takes no more faults, see [ErrPlaced].
func (s *Service) Mint(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...Fault) (*Order, error) {
	return s.order(ctx, ramp.Mint, id, session, tokens, faults)
}

// Burn plays a player who burns: it asks the studio to approve that tokens
// become the outputs of the initialize call. All that [Service.Mint] says holds
// here.
func (s *Service) Burn(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...Fault) (*Order, error) {
	return s.order(ctx, ramp.Burn, id, session, tokens, faults)
}

func (s *Service) order(ctx context.Context, direction ramp.Direction, id uuid.UUID, session ramp.Session,
	tokens ramp.Amount, faults []Fault) (*Order, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	o := &Order{UUID: id, Session: session, script: newScript(faults), state: Pending}
	asked, err := s.promised(id, o.script.expired)
	if err != nil {
		return nil, err
	}
	o.Network, o.fee = asked.Network, ramp.NewAmount(int64(asked.MintFeeBps))
	if direction == ramp.Burn {
		o.fee = ramp.NewAmount(int64(asked.BurnFeeBps))
	}
	if o.wallet, err = s.wallet(session); err != nil {
		return nil, err
	}
	intent, err := s.intent(direction, asked, tokens)
	if err != nil {
		return nil, err
	}
	o.Request = ramp.ValidateRequest{UserAddress: o.wallet.Address().Hex(), ProjectID: asked.ProjectID, UUID: id, Intent: intent}
	if err := s.seal(ctx, o, &o.Request); err != nil {
		return nil, err
	}
	approval, err := s.approval(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Approval = *approval
	placed, err := s.place(ctx, o)
	if err == nil && placed != o && len(faults) > 0 {
		return nil, ErrPlaced
	}
	return placed, err
}

// promised returns what an initialize call was answered, while it holds.
func (s *Service) promised(id uuid.UUID, expired bool) (ramp.InitializeIntent, error) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.promises[id]
	switch {
	case !ok:
		return ramp.InitializeIntent{}, ErrUnknownUUID
	case (expired || !now.Before(p.expires)) && !s.config.AcceptExpired:
		return ramp.InitializeIntent{}, ErrExpiredUUID
	default:
		return p.intent, nil
	}
}

// intent is what the player asks for (interface 2.5).
func (s *Service) intent(direction ramp.Direction, asked ramp.InitializeIntent, tokens ramp.Amount) (ramp.Intent, error) {
	token := []ramp.IntentAsset{{Type: s.config.TokenType, ID: asked.Token, Amount: tokens}}
	intent := ramp.Intent{Method: asked.MintMethod, Type: ramp.Assemble, To: token, TargetCandidate: json.RawMessage("{}")}
	items, assets := asked.Materials, &intent.From
	if direction == ramp.Burn {
		intent.Method, intent.Type, intent.From = s.config.BurnMethod, ramp.Disassemble, token
		items, assets = asked.Outputs, &intent.To
	}
	if len(items) == 0 {
		return ramp.Intent{}, fmt.Errorf("ramptest: the initialize call had nothing for a %s", direction)
	}
	*assets = make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		amount := item.Amount
		if s.config.PerToken {
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
func (s *Service) seal(ctx context.Context, o *Order, r *ramp.ValidateRequest) error {
	if r.Digest == (ramp.Digest{}) {
		r.Digest = s.config.Digest(r)
	}
	signature, err := o.wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), r.Digest[:])))
	r.UserSig = signature.String()
	return err
}

// digest is the default of [Config.Digest].
func digest(r *ramp.ValidateRequest) ramp.Digest {
	terms, err := json.Marshal(r.Intent)
	if err != nil {
		panic(err) // it was read from JSON, or made of what can be written
	}
	return ramp.Digest(crypto.Keccak256([]byte("digest"), r.UUID[:], []byte(r.UserAddress), terms))
}

// Wallet is the address of a player's wallet: the user_address of the player's
// orders (interface 2.5). It is zero if [Config.Wallet] has none.
func (s *Service) Wallet(session ramp.Session) common.Address {
	signer, err := s.wallet(session)
	if err != nil {
		return common.Address{}
	}
	return signer.Address()
}

func (s *Service) wallet(session ramp.Session) (*ramp.Signer, error) {
	signer := s.config.Wallet(session)
	if signer == nil {
		return nil, errors.New("ramptest: Config.Wallet has none for the session")
	}
	return signer, nil
}

// wallet is the default of [Config.Wallet].
func wallet(session ramp.Session) *ramp.Signer {
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
func (s *Service) approval(ctx context.Context, o *Order) (*ramp.Approval, error) {
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
func (s *Service) askAgain(ctx context.Context, o *Order, how again) error {
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
func (s *Service) ask(ctx context.Context, o *Order, r *ramp.ValidateRequest, w wire, fault string) (*ramp.Approval, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	if w.unknown {
		body = withUnknownFields(body)
	}
	if err := s.forge(ctx, w.forged, func() call { return s.post(KindValidate, o, 0, body) }); err != nil {
		return nil, err
	}
	c := s.post(KindValidate, o, 0, body)
	c.fault, c.lost, c.slow = fault, s.loses(o.UUID, w.lost), w.slow
	var approval *ramp.Approval
	_, err = s.exchange(ctx, c, func(a *answer) (err error) {
		approval, err = checkApproval(a, r, s.config.Validator)
		return err
	})
	return approval, err
}

// loses says whether one more validate answer under a UUID gets lost, of so many
// that do.
func (s *Service) loses(id uuid.UUID, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.promises[id]
	if p.lost >= most {
		return false
	}
	p.lost++
	return true
}

// forge makes calls that the service has not signed, which the studio must
// refuse. The error is [ErrForged] if it does not.
func (s *Service) forge(ctx context.Context, forged []forgery, genuine func() call) (err error) {
	for _, forgery := range forged {
		c := genuine()
		c.forged = true
		forgery(&c)
		_, accepted := s.exchange(ctx, c, func(a *answer) error {
			if a.status == http.StatusOK && outcome(a) == "success" {
				return ErrForged
			}
			return nil
		})
		err = cmp.Or(err, accepted)
	}
	return err
}

// place puts an approved order on the chain. An order that is there already is
// left as it is.
func (s *Service) place(ctx context.Context, o *Order) (*Order, error) {
	placed, err := s.submit(ctx, o)
	if err != nil || placed != o {
		return placed, err
	}
	s.onChain(o, "transaction submitted")
	if !o.script.pending {
		s.plan(s.chains[o.Network].nextBlock(), func(context.Context) []Delivery { return s.settle(o) })
	}
	return o, nil
}

func (s *Service) submit(ctx context.Context, o *Order) (*Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.orders[o.UUID]; known != nil {
		if !known.same(o) {
			return nil, ErrTwoOrders
		}
		return known, nil
	}
	chain := s.chains[o.Network]
	token := o.token()
	method := selector(string(o.Request.Intent.Method) + "(bytes32)")
	tx, err := chain.sign(ctx, o.wallet, token.contract(), append(method[:], o.Request.Digest[:]...), o.script.kind)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	if o.script.kind == feeDelegatedType {
		tx.feePayer, tx.sponsor = service(), tx.signature // over what a payer signs, the node alone knows
	}
	if tx.moves, err = moves(chain, o, token, o.wallet.Address()); err != nil {
		return nil, err
	}
	o.tx = chain.submit(tx)
	o.TxHash, o.placed = o.tx.hash, s.Now()
	s.orders[o.UUID] = o
	return o, nil
}

// same says whether two orders are one request of one player. A wallet need not
// sign twice to the same bytes.
func (o *Order) same(other *Order) bool {
	a, b := o.Request, other.Request
	a.UserSig, b.UserSig = "", ""
	return o.Session.ID == other.Session.ID && reflect.DeepEqual(a, b)
}

// service is the service's own account. It gets the fees, and pays the gas of
// type 0x7.
func service() common.Address { return common.BytesToAddress(crypto.Keccak256([]byte("service"))) }

// side is the token of an order.
type side ramp.IntentAsset

func (s side) contract() common.Address { return common.HexToAddress(s.ID) }

func (o *Order) token() side {
	if o.Request.Intent.Type == ramp.Disassemble {
		return side(o.Request.Intent.From[0])
	}
	return side(o.Request.Intent.To[0])
}

// moves are the tokens that an order makes or destroys.
func moves(c *chain, o *Order, token side, player common.Address) ([]move, error) {
	contract, amount := token.contract(), c.inUnits(token.Amount)
	if o.Request.Intent.Type == ramp.Disassemble {
		return []move{{token: contract, from: player, amount: amount}}, nil
	}
	actual, err := afterFee(token.Amount, o.fee)
	if err != nil {
		return nil, err
	}
	net := c.inUnits(actual)
	made := []move{{token: contract, to: player, amount: net}}
	if fee := new(big.Int).Sub(amount, net); fee.Sign() > 0 {
		made = append(made, move{token: contract, to: service(), amount: fee})
	}
	return made, nil
}

// onChain records what happened to an order on the chain.
func (s *Service) onChain(o *Order, what string) {
	s.record.add(Event{Time: s.Now(), Kind: KindChain, UUID: o.UUID, Outcome: fmt.Sprintf("%s %s", o.Network, what)})
}
