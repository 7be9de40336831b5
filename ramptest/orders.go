package ramptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

var (
	// ErrUnknownUUID says that no initialize call was answered with the UUID.
	ErrUnknownUUID = errors.New("ramptest: the service knows no such UUID")

	// ErrExpiredUUID says that the UUID is older than [ramp.UUIDValidity]. What
	// the service does then, the interface does not show (3); this one refuses.
	ErrExpiredUUID = errors.New("ramptest: the UUID has expired")
)

// Order is a mint or a burn that the studio has approved.
type Order struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Request  ramp.ValidateRequest // what the studio was asked
	Approval ramp.Approval        // what it answered

	fee   ramp.Amount // basis points
	block uint64      // the block that has its transaction
}

// Outcome is what the chain makes of an order.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

// Declined is a studio's answer with success false (interface 7.2).
type Declined struct {
	Status int       // HTTP status
	Code   ramp.Code // errorCode
}

func (d *Declined) Error() string {
	return fmt.Sprintf("ramptest: the studio declined with HTTP %d and %q", d.Status, string(d.Code))
}

// Assets asks the studio for a user's assets (interface 2.4). A studio that
// says no gives a [*Declined], one that breaks the interface another error.
func (s *Service) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	header := http.Header{
		"X-Dapp-Authorization": {"Bearer " + session.Token.Reveal()},
		"X-Dapp-SessionID":     {session.ID},
	}
	answer, err := s.call(ctx, http.MethodGet, s.config.AssetsPath, header, nil)
	if err != nil {
		return nil, err
	}
	return checkAssets(answer)
}

// Mint plays a player who mints: it asks the studio to approve that the
// materials of the initialize call become tokens (interface 2.5). It returns
// the order once the studio's answer has passed every check of sections 2.6 and
// 5.3. A studio that says no gives a [*Declined], one that breaks the interface
// another error. The same call again is the same request again.
func (s *Service) Mint(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount) (*Order, error) {
	asked, err := s.initialized(id)
	if err != nil {
		return nil, err
	}
	return s.validate(ctx, id, session, ramp.NewAmount(int64(asked.MintFeeBps)), asked.ProjectID, ramp.Intent{
		Method: asked.MintMethod,
		Type:   ramp.Assemble,
		From:   gameSide(asked.Materials),
		To:     []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: asked.Token, Amount: tokens}},
	})
}

// Burn plays a player who burns: it asks the studio to approve that tokens
// become the outputs of the initialize call. All that [Service.Mint] says holds
// here.
func (s *Service) Burn(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount) (*Order, error) {
	asked, err := s.initialized(id)
	if err != nil {
		return nil, err
	}
	return s.validate(ctx, id, session, ramp.NewAmount(int64(asked.BurnFeeBps)), asked.ProjectID, ramp.Intent{
		Method: asked.BurnMethod,
		Type:   ramp.Disassemble,
		From:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: asked.Token, Amount: tokens}},
		To:     gameSide(asked.Outputs),
	})
}

// Deliver tells the studio once how the order's transaction ended (interface
// 6). Call it again for a redelivery, or from several goroutines at once. nil
// says that the studio confirmed with HTTP 200 and the envelope of 4.3.
func (s *Service) Deliver(ctx context.Context, o *Order, outcome Outcome) error {
	intent := o.Request.Intent
	actual, err := afterFee(intent.To[0].Amount, o.fee)
	if err != nil {
		return fmt.Errorf("ramptest: %w", err)
	}
	intent.FeeRate, intent.Actual = json.Number(o.fee.String()), actual.String()
	receipt := receipt(o, outcome)
	body, err := json.Marshal(ramp.Result{
		SessionID: o.Session.ID,
		UUID:      o.UUID,
		TxHash:    receipt.TransactionHash.Hex(),
		Receipt:   receipt,
		Intent:    intent,
	})
	if err != nil {
		return fmt.Errorf("ramptest: %w", err)
	}
	answer, err := s.call(ctx, http.MethodPost, s.config.ResultPath, s.signed(o.Session, body), body)
	if err != nil {
		return err
	}
	return checkResult(answer)
}

// initialized returns what an initialize call has promised, while it holds.
func (s *Service) initialized(id uuid.UUID) (ramp.InitializeIntent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.pending[id]
	switch {
	case !ok:
		return ramp.InitializeIntent{}, ErrUnknownUUID
	case !s.config.Now().Before(p.expires):
		return ramp.InitializeIntent{}, ErrExpiredUUID
	default:
		return p.request.Intent, nil
	}
}

func (s *Service) validate(ctx context.Context, id uuid.UUID, session ramp.Session,
	fee ramp.Amount, project string, intent ramp.Intent) (*Order, error) {
	intent.TargetCandidate = json.RawMessage("{}")
	terms, err := json.Marshal(intent)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	digest := ramp.Digest(crypto.Keccak256([]byte("digest"), id[:], terms))
	wallet, err := wallet(session)
	if err != nil {
		return nil, err
	}
	// The user signs another hash than the validator.
	userSig, err := wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), digest[:])))
	if err != nil {
		return nil, err
	}
	o := &Order{UUID: id, Session: session, fee: fee, Request: ramp.ValidateRequest{
		UserSig:     userSig.String(),
		UserAddress: wallet.Address().Hex(),
		ProjectID:   project,
		Digest:      digest,
		UUID:        id,
		Intent:      intent,
	}}
	body, err := json.Marshal(o.Request)
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	answer, err := s.call(ctx, http.MethodPost, s.config.ValidatePath, s.signed(session, body), body)
	if err != nil {
		return nil, err
	}
	approval, err := checkApproval(answer, &o.Request, s.config.Validator)
	if err != nil {
		return nil, err
	}
	o.Approval = *approval
	o.block = s.mine(id)
	return o, nil
}

// mine puts an order's transaction into a block: a new one, unless the order
// has one already.
func (s *Service) mine(id uuid.UUID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id]
	if p.block == 0 {
		s.height++
		p.block = s.height
		s.pending[id] = p
	}
	return p.block
}

// wallet is the player's own key, the same for the same session.
func wallet(session ramp.Session) (*ramp.Signer, error) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("wallet"), []byte(session.ID)))
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	return ramp.NewECDSASigner(key)
}

func gameSide(items []ramp.Item) []ramp.IntentAsset {
	assets := make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		assets[i] = ramp.IntentAsset{Type: ramp.TypeAsset, ID: item.ID, Amount: item.Amount}
	}
	return assets
}

// afterFee takes a fee in basis points off an amount.
func afterFee(amount, fee ramp.Amount) (ramp.Amount, error) {
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	rest.Mul(rest, amount.Rat()).Quo(rest, big.NewRat(10_000, 1))
	return ramp.ParseAmount(rest.FloatString(104)) // the 100 places of an amount, and the fee's 4
}

// signed are the headers of a validate or result call (interface 4.3), with
// their names in lower case, as the service writes them.
func (s *Service) signed(session ramp.Session, body []byte) http.Header {
	return http.Header{
		"x-dapp-authorization": {"Bearer " + session.Token.Reveal()},
		"x-dapp-sessionid":     {session.ID},
		"x-hmac-signature":     {s.config.Key.Sign(body)},
	}
}

// answer is what the studio's server said.
type answer struct {
	status int
	body   []byte
}

func (s *Service) call(ctx context.Context, method, path string, header http.Header, body []byte) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.endpoint(path), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response, err := s.config.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ramptest: the studio did not answer: %w", err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return nil, fmt.Errorf("ramptest: the studio's answer did not come whole: %w", err)
	}
	return &answer{status: response.StatusCode, body: read}, nil
}
