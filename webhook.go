package ramp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Players authenticates players and lists their assets. Calls are concurrent.
type Players interface {
	// Authenticate checks that the token belongs to the session, for assets and validate calls
	// (interface 5.1). nil accepts the call, [Reject] answers 401, and any other error 500.
	Authenticate(ctx context.Context, s Session) error

	// Assets returns what the service shows of the user (interface 2.4), after Authenticate. List
	// every asset of the terms, also with balance 0; the handler logs a missing one.
	Assets(ctx context.Context, s Session) (*Player, error)
}

// Game handles orders with a ledger of your own, instead of [Players] and a [Store].
// Then exactly-once is up to you; [Accept] and [Finish] are the rules. Its methods
// are called concurrently.
type Game interface {
	Players

	// Validate approves or rejects a mint or a burn (interface 2.5). It is called after Authenticate,
	// with a well-formed request for r.Product. The game must check that the player has the assets,
	// and its policy. For a mint it takes the assets here, durably and once per UUID; [Intent.Effect]
	// says which. nil releases the signature, [Reject] rejects, and any other error answers 500.
	Validate(ctx context.Context, s Session, r *ValidateRequest) error

	// Result reports the outcome of a transaction (interface 6). It is called at least once per UUID,
	// possibly many times, concurrently and on any machine, and its effect must happen once. nil
	// answers 200, [Permanent] 400, and any other error 500, for redelivery.
	//
	// Use the order that was stored at validate under r.UUID, and r.Outcome. The rest of r may be
	// missing or unreadable (see [Result.Unreadable]). Authenticate is not called, because the token
	// may have expired during the 12 hours of redelivery, and s, which no HMAC covers, may be empty.
	Result(ctx context.Context, s Session, r *Result) error
}

// Handler serves the three endpoints of the game (interface 4.3). Make one with
// [NewHandler] and share it: it is safe for concurrent use.
//
// Mount Assets, Validate and Result on the paths that are set in the console, or
// the Handler itself for the paths of the interface's examples. With another
// framework, or without HTTP, pass headers and bytes to AnswerAssets,
// AnswerValidate and AnswerResult, which do all of the work and keep neither.
type Handler struct {
	config     HandlerConfig
	unverified sync.Map // a sample for each code of calls without a valid HMAC
	warned     sync.Map // the assets of the terms that some list did not have
}

// HandlerConfig configures a [Handler]; zero fields mean their defaults.
type HandlerConfig struct {
	// Players authenticates players and lists their assets. Required without Game.
	Players Players

	// Store keeps the orders and applies the effect of each exactly once. Required without Game.
	Store Store

	// OnConflict is called with every result that contradicts its order, such as a success after the
	// order was abandoned. No assets have moved, and a person must decide. If OnConflict returns nil,
	// the answer is HTTP 400, which ends the deliveries. If it fails or is nil, it is HTTP 500, the
	// cause is logged, and the service redelivers for 12 hours.
	//
	// A result whose transaction has ended another order, which is then Other, is always answered with
	// HTTP 500: a person can correct the other order, and a later delivery succeeds. A repeat with a
	// different tx_hash, for which a player may have paid twice, is answered with 200, and without
	// OnConflict only logged and observed. OnConflict must be nil with Game.
	OnConflict func(ctx context.Context, conflict *ConflictError, r *Result) error

	// Game replaces Players and Store by a ledger of your own.
	Game Game

	// Terms are the products that the game offers, and their project and network. A validate call for
	// none of them is rejected with [CodeTerms] and RejectStatus. Required.
	Terms *Terms

	// Policy, if set, is asked about every validate call after Authenticate and before anything is
	// signed or stored: may this player trade r.Tokens of r.Product? nil goes on, [Reject] rejects,
	// and any other error answers 500. It must change nothing and not look at balances, because it is
	// asked about repeats too. It can reject an r.Intent.TargetCandidate, which Terms ignore.
	Policy func(ctx context.Context, s Session, r *ValidateRequest) error

	// Wallet, if set, is asked after Policy, with the same errors: may the player use this wallet?
	// Whoever has the HMAC key can name the wallet of another player, and claim what that player
	// burns. Let a wallet belong to the account that names it first, for all of its sessions, in a
	// table with the wallet as its key; an account may have several. A call may be repeated or
	// rejected later. Required with Proof, unless AnyWallet is set.
	Wallet func(ctx context.Context, s Session, wallet common.Address) error

	// AnyWallet lets players use any wallet in spite of Proof; see docs/security.md. Off by default.
	AnyWallet bool

	// Key is the HMAC key of the console, for validate and result calls (interface 5.2). Required.
	Key HMACKey

	// Signer signs the orders that are approved (interface 5.3). It signs before the store or Game
	// decides, so that its failure costs no player anything; if they reject the order, the signature
	// is discarded. What Terms, Authenticate, Policy or Wallet reject is never signed. Required.
	Signer *Signer

	// SignTimeout limits a signature. After it, the answer is HTTP 500. The default is 3 seconds.
	SignTimeout time.Duration

	// Chain, if set, confirms every result with [RPC.Confirm] before anything else, so that a stolen
	// HMAC key cannot invent a transaction. The result then has the chain's receipt. Set
	// [RPCConfig].ChainID. A result that is not confirmed within 5 seconds is answered with HTTP 500,
	// whether the node is unreachable, behind, or disagrees, and the cause is logged. If it persists,
	// investigate. By default results are not confirmed.
	Chain *RPC

	// Confirmations is how many confirmations Chain waits for, counting the block of the transaction.
	// With more than the chain makes in 5 seconds, orders wait for redelivery, which begins after 5
	// minutes (interface 8). The default is 1. It must be 0 without Chain.
	Confirmations uint64

	// Proof, if set, says what a confirmed transaction must show before it ends its order. If it does
	// not, the answer is HTTP 500, and a person must decide. It needs Chain, and does not apply to
	// Game, which calls [Proof.Check] itself. By default the transaction need not be the order's own.
	Proof *Proof

	// RejectStatus is the HTTP status of an order that the game rejects with [Reject]: 200, or 400 to
	// 499. The default is 200, as in interface 4.3. The service's public guide uses 400.
	RejectStatus int

	// TranslateCode translates every errorCode before it is sent, including those of [Reject], because
	// the interface does not list them (7.2). If it returns "" or panics, the code is sent unchanged.
	TranslateCode func(Code) Code

	// MaxBody is the maximum size of a body in bytes. A larger one is answered with HTTP 413, and a
	// larger result with 500, so that it arrives once the limit was raised. The default is 1 MiB. A
	// connection can hold up to MaxBody until the HMAC is checked, so limit the number of connections,
	// and set ReadTimeout of your [http.Server].
	MaxBody int64

	// Logger gets one record per call, "ramp: call", with endpoint, status, duration and outcome. If
	// known, it has session_id, uuid, direction, product, tx_hash, conflict (the field that
	// contradicts the order), unreadable, header_session_id (of a result whose unsigned header names
	// another session than its signed body, which counts), target_candidate (of a validate call, if it
	// is not empty: nobody checks it but your Policy), previous_key (which older key of
	// [HMACKey.WithPrevious] verified the call, from 1), and error (the cause of a failure), and of a
	// [Store]: state, new (false for a repeat), and effect, such as "take -100 item_gold", which lets
	// a person correct balances after a database was lost. No record holds a token, a key, a signature
	// or a body. Of the calls without a valid HMAC, which anybody can make, at most one a second is
	// logged for each code, with unverified, and suppressed (how many were not logged before it). By
	// default only failures are logged, to [slog.Default]. slog.New(slog.DiscardHandler) logs nothing.
	Logger   *slog.Logger
	Observer Observer         // observes every call, except with a wrong method or an unknown path
	Now      func() time.Time // clock of orders; by default [time.Now]
}

// NewHandler returns a handler.
func NewHandler(c HandlerConfig) (*Handler, error) {
	var p problems
	p.require(c.Players != nil || c.Game != nil, "HandlerConfig.Players")
	p.require(c.Store != nil || c.Game != nil, "HandlerConfig.Store")
	memory, ok := c.Store.(*MemoryStore)
	p.require(!ok || memory != nil && memory.Apply != nil, "MemoryStore.Apply")
	if c.Game != nil && (c.Players != nil || c.Store != nil || c.OnConflict != nil) {
		p.add("HandlerConfig.Game", "replaces Players, Store and OnConflict, which must be nil")
	}
	p.require(c.Terms != nil, "HandlerConfig.Terms")
	p.requireKey(!c.Key.IsZero(), "HandlerConfig.Key", ErrHMACKey)
	p.requireKey(c.Signer != nil && c.Signer.sign != nil, "HandlerConfig.Signer", ErrValidatorKey)
	if c.SignTimeout < 0 {
		p.add("HandlerConfig.SignTimeout", "must not be negative")
	}
	if c.Confirmations > 0 && c.Chain == nil {
		p.add("HandlerConfig.Confirmations", "must be 0 without Chain")
	}
	if c.Proof != nil {
		p.require(c.Chain != nil, "HandlerConfig.Chain")
		if c.Wallet == nil && !c.AnyWallet {
			p.add("HandlerConfig.Wallet", "is required with Proof, unless AnyWallet is set: a stolen HMAC key could claim the burns of others")
		}
		if c.Terms != nil {
			c.Terms.mu.Lock()
			defer c.Terms.mu.Unlock()
		}
		c.Proof.check(&p, c.Terms.valid())
	}
	if s := c.RejectStatus; s != 0 && s != http.StatusOK && (s < 400 || s > 499) {
		p.add("HandlerConfig.RejectStatus", "must be 200, or 400 to 499")
	}
	if c.MaxBody < 0 {
		p.add("HandlerConfig.MaxBody", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if c.Proof != nil {
		c.Terms.proofs = append(c.Terms.proofs, c.Proof) // for Replace
	}
	c.RejectStatus = cmp.Or(c.RejectStatus, http.StatusOK)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.SignTimeout = cmp.Or(c.SignTimeout, 3*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Game != nil {
		c.Players = c.Game
	}
	return &Handler{config: c}, nil
}

// Check returns every fault that would otherwise show when a player has paid: of the
// store, if it has a method Check, as [SQLStore] does; of the signer, in a trial
// signature of a random digest; of the nodes of Chain; and of Proof.Decimals, compared
// with the token contracts. Call it when your server starts, and do not start after an
// error, except one that wraps [ErrUnreachable]. It changes nothing.
func (h *Handler) Check(ctx context.Context) error {
	c := &h.config
	var found []error
	if store, ok := c.Store.(interface{ Check(context.Context) error }); ok {
		found = append(found, store.Check(ctx))
	}
	var trial Digest
	rand.Read(trial[:]) // never fails
	_, err := c.Signer.sign(ctx, c.SignTimeout, trial)
	found = append(found, err)
	if c.Chain != nil {
		err := c.Chain.Check(ctx)
		switch {
		case err != nil && !errors.Is(err, ErrWrongChain) && errors.Join(found...) == nil:
			return fmt.Errorf("ramp: %w: %w", ErrUnreachable, err)
		case err == nil && c.Proof != nil:
			err = c.Proof.checkDecimals(ctx, c.Chain)
		}
		found = append(found, err)
	}
	return errors.Join(found...)
}

// AnswerAssets answers an assets call (interface 2.4) from its headers.
func (h *Handler) AnswerAssets(ctx context.Context, header http.Header) Reply {
	return h.answer(ctx, "assets", func(c *call) (err error) {
		c.session, err = ParseSession(header)
		return err
	}, func(ctx context.Context, c *call) (any, error) {
		if err := h.config.Players.Authenticate(ctx, c.session); err != nil {
			return nil, gameRejection(err, http.StatusUnauthorized)
		}
		player, err := h.config.Players.Assets(ctx, c.session)
		if err != nil {
			return nil, gameRejection(err, h.config.RejectStatus)
		}
		if err := player.check(); err != nil {
			return nil, err
		}
		h.warnUnlisted(ctx, player)
		return assetsData{*player}, nil
	})
}

// AnswerValidate answers a validate call (interface 2.5), from its raw body.
func (h *Handler) AnswerValidate(ctx context.Context, header http.Header, body []byte) Reply {
	return h.answerValidate(ctx, header, body, bytes.Clone)
}

func (h *Handler) answerValidate(ctx context.Context, header http.Header, body []byte, keep func([]byte) []byte) Reply {
	var r *ValidateRequest
	return h.answer(ctx, "validate", func(c *call) (err error) {
		if err := h.authentic(c, header, body); err != nil {
			return err
		}
		if r, err = parseValidate(keep(body)); err != nil {
			return err
		}
		c.op.UUID = r.UUID
		c.op.Direction, _ = r.Intent.Direction()
		c.options = options(r.Intent.TargetCandidate) != nil
		if own := h.config.Terms.config.ProjectID; own != "" && r.ProjectID != own {
			return invalid("project_id", "is not the project of this handler")
		}
		if r.Product, r.Tokens, err = h.config.Terms.Match(r.Intent); err != nil {
			return gameRejection(err, h.config.RejectStatus)
		}
		c.session, err = ParseSession(header)
		return err
	}, func(ctx context.Context, c *call) (any, error) {
		if err := h.config.Players.Authenticate(ctx, c.session); err != nil {
			return nil, gameRejection(err, http.StatusUnauthorized)
		}
		if h.config.Policy != nil {
			if err := h.config.Policy(ctx, c.session, r); err != nil {
				return nil, gameRejection(err, h.config.RejectStatus)
			}
		}
		if h.config.Wallet != nil {
			if err := h.config.Wallet(ctx, c.session, common.HexToAddress(r.UserAddress)); err != nil {
				return nil, gameRejection(err, h.config.RejectStatus)
			}
		}
		// Sign before the game commits, and release the signature only after it
		// did: then a signer that is down costs no player anything.
		c.op.Signed = true
		signature, err := h.config.Signer.sign(ctx, h.config.SignTimeout, r.Digest)
		if err != nil {
			return nil, err
		}
		if err := h.validate(ctx, c, r); err != nil {
			return nil, err
		}
		return Approval{r.UserSig, signature}, nil
	})
}

// warnUnlisted logs, for each asset of the terms, the first list that does not have it.
// The service then shows no balance, for example because of a wrong ID, and nobody can
// trade it.
func (h *Handler) warnUnlisted(ctx context.Context, player *Player) {
	defer recoverHook(ctx, "Logger")
	log := cmp.Or(h.config.Logger, slog.Default())
	for _, offer := range h.config.Terms.valid() {
		for _, item := range slices.Concat(offer.Materials, offer.Outputs) {
			if slices.ContainsFunc(player.Assets, func(a Asset) bool { return a.ID == item.ID }) {
				continue
			}
			if _, again := h.warned.LoadOrStore(item.ID, true); !again {
				log.LogAttrs(ctx, slog.LevelWarn, "ramp: an asset of the terms is not in a player's list", slog.String("asset", item.ID))
			}
		}
	}
}

// AnswerResult answers a result call (interface 6), from its raw body.
func (h *Handler) AnswerResult(ctx context.Context, header http.Header, body []byte) Reply {
	return h.answerResult(ctx, header, body, bytes.Clone)
}

func (h *Handler) answerResult(ctx context.Context, header http.Header, body []byte, keep func([]byte) []byte) Reply {
	var r *Result
	return h.answer(ctx, "result", func(c *call) (err error) {
		if err := h.authentic(c, header, body); err != nil {
			return err
		}
		if r, err = parseResult(keep(body)); err != nil {
			return err
		}
		c.op.UUID, c.op.TxHash, c.unreadable = r.UUID, normalizeTxHash(r.TxHash), r.Unreadable
		c.op.Direction, _ = r.Intent.Direction()
		c.setSession(header, r)
		return nil
	}, func(ctx context.Context, c *call) (any, error) {
		if h.config.Chain != nil {
			receipt, transaction, err := h.confirm(ctx, r)
			if err != nil { // an internal error, whatever it wraps
				return nil, internalError(fmt.Errorf("ramp: the result is not confirmed: %w", err))
			}
			r.Receipt, r.Transaction = *receipt, transaction
		}
		if err := h.result(ctx, c, r); err != nil {
			return nil, gameRejection(err, http.StatusInternalServerError)
		}
		return nil, nil
	})
}

// confirmationWait limits how long one delivery waits for the chain, because the
// service does not wait forever, but delivers again.
const confirmationWait = 5 * time.Second

// confirm verifies a result on the handler's chain.
func (h *Handler) confirm(ctx context.Context, result *Result) (*Receipt, *Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	return h.config.Chain.Confirm(ctx, result, h.config.Confirmations)
}

// validate accepts an order and applies its effect, or lets the Game do so. A call
// that contradicts the order stored under its UUID is rejected with
// [CodeOrderConflict], and one for a finished order with [CodeOrderFinished].
func (h *Handler) validate(ctx context.Context, c *call, r *ValidateRequest) error {
	if h.config.Game != nil {
		if err := h.config.Game.Validate(ctx, c.session, r); err != nil {
			return gameRejection(err, h.config.RejectStatus)
		}
		return nil
	}
	accept := Accept(c.session, r, h.config.Now())
	if _, err := accept(nil); err != nil { // an error of the call, not of the store
		return rejectionOf(err)
	}
	err := c.take(h.config.Store.Update(ctx, r.UUID, h.own(accept)))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOrderConflict):
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderConflict, Err: err}
	case errors.Is(err, ErrOrderFinished):
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderFinished, Err: err}
	default:
		return gameRejection(err, h.config.RejectStatus)
	}
}

// result finishes an order and applies its effect, or lets the Game do so. A result
// for an unknown order is an error, so that it is delivered again. One that
// contradicts its order goes to [HandlerConfig].OnConflict.
func (h *Handler) result(ctx context.Context, c *call, r *Result) error {
	if h.config.Game != nil {
		return h.config.Game.Result(ctx, c.session, r)
	}
	err := c.take(h.config.Store.Update(ctx, r.UUID, h.own(h.proven(r, Finish(r, h.config.Now())))))
	if err == nil && c.op.TxHash != "" && c.op.Step.Order.TxHash != "" && c.op.TxHash != c.op.Step.Order.TxHash {
		c.op.Conflict = &ConflictError{Order: c.op.Step.Order, Field: "tx_hash"} // but answered as a repeat
	}
	conflict := c.op.Conflict
	if conflict == nil || err == nil && h.config.OnConflict == nil {
		return err
	}
	if h.config.OnConflict == nil {
		return fmt.Errorf("%w (set HandlerConfig.OnConflict to hand conflicts to a person)", conflict)
	}
	if failed := h.config.OnConflict(ctx, conflict, r); failed != nil {
		// A new rejection, so that one inside failed cannot set the status.
		return internalError(fmt.Errorf("%w (OnConflict failed: %w)", conflict, failed))
	}
	if err != nil && conflict.Other == nil {
		return Permanent(conflict)
	}
	return err // 500 if another order has the transaction, because a person can correct that
}

// proven lets a result end only an order whose end the transaction proves.
func (h *Handler) proven(r *Result, finish Transition) Transition {
	return func(stored *Order) (step Step, err error) {
		if step, err = finish(stored); err == nil && step.New && h.config.Proof != nil {
			step.Evidence, err = h.config.Proof.Check(stored, r.Transaction, &r.Receipt)
		}
		return step, err
	}
}

// own lets a transition see only orders of the handler's project and network. An order
// without a network was accepted before the network was configured.
func (h *Handler) own(next Transition) Transition {
	project, network := h.config.Terms.config.ProjectID, h.config.Terms.config.Network
	return func(stored *Order) (Step, error) {
		switch {
		case stored == nil:
		case project != "" && stored.ProjectID != project:
			return Step{}, &ConflictError{Order: *stored, Field: "project_id"}
		case network != "" && stored.Network != "" && stored.Network != network:
			return Step{}, &ConflictError{Order: *stored, Field: "network"}
		}
		step, err := next(stored)
		if stored == nil {
			step.Order.Network = network
		}
		return step, err
	}
}

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP] serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)

// ServeHTTP serves the three endpoints on PathAssets, PathValidate and
// PathResult, and answers 404 for every other path. A POST to another path that ends in
// /result is answered with 500, so that the service delivers it again while somebody
// corrects the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case PathAssets:
		h.Assets(w, r)
	case PathValidate:
		h.Validate(w, r)
	case PathResult:
		h.Result(w, r)
	default:
		// The mux may strip too little, or too much, or the console have another path.
		rejection := &Rejection{Status: http.StatusNotFound, Code: CodeNotFound}
		name := path.Base(strings.ToLower(r.URL.Path))
		ours := slices.Contains([]string{"assets", "validate", "result"}, name)
		if !ours || name == "result" && r.Method != http.MethodPost {
			h.reject("", rejection).Write(w)
			return
		}
		rejection.Err = fmt.Errorf("ramp: the handler got the path %.100q, but answers %q: "+
			"correct http.StripPrefix, or mount the methods of the handler", r.URL.Path, "/api/"+name)
		h.answer(r.Context(), name, func(*call) error { return rejection }, nil).Write(w)
	}
}

// Assets serves the Get Assets endpoint (interface 4.3).
func (h *Handler) Assets(w http.ResponseWriter, r *http.Request) {
	if h.allows(w, r, http.MethodGet) {
		h.AnswerAssets(r.Context(), r.Header).Write(w)
	}
}

// Validate serves the Validate Order endpoint (interface 4.3).
func (h *Handler) Validate(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "validate", h.answerValidate)
}

// Result serves the result endpoint (interface 4.3).
func (h *Handler) Result(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "result", h.answerResult)
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, endpoint string,
	answer func(context.Context, http.Header, []byte, func([]byte) []byte) Reply) {
	if !h.allows(w, r, http.MethodPost) {
		return
	}
	body, err := h.readBody(w, r)
	if err != nil {
		h.answer(r.Context(), endpoint, func(*call) error { return err }, nil).Write(w)
		return
	}
	answer(r.Context(), r.Header, body, slices.Clip).Write(w) // nobody else has the body
}

// readBody reads a body. It reads nothing of one that is too large or has no
// well-formed HMAC header, and allocates memory for a large one only as it arrives.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if _, err := hmacHeader(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > h.config.MaxBody {
		return nil, h.bodyTooLarge(h.config.MaxBody)
	}
	const maxPrealloc = 32 << 10
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxPrealloc)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large): // whose limit may be that of middleware
		return nil, h.bodyTooLarge(large.Limit)
	case err != nil: // a timeout or a broken connection
		return nil, internalError(fmt.Errorf("ramp: read the body: %w", err))
	}
	return body.Bytes(), nil
}

func (h *Handler) allows(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	h.reject("", &Rejection{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed}).Write(w)
	return false
}

// Reply is the answer to a call of the service. Write sends it; with another framework,
// send Status and Body as application/json, also if Err is set.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // nil for success, otherwise a [*Rejection]
}

// Write writes the reply to w.
func (r Reply) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // an error means that the caller is gone
}
