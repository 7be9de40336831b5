package ramp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// MarshalJSON writes the empty code, which means success, as null.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return marshal(strings.ToValidUTF8(string(c), "\ufffd"))
}

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
		c.Terms.checks = append(c.Terms.checks, c.Proof.check) // for Replace
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

// rejectionOf returns the answer to an error of this package's own checks. Errors of
// the game go to [gameRejection] instead, whatever they wrap.
func rejectionOf(err error) *Rejection {
	var rejection *Rejection
	var wrong *InvalidError
	switch {
	case errors.As(err, &rejection):
		return rejection
	case errors.Is(err, ErrHMACMissing):
		return unauthorized(CodeHMACMissing, err)
	case errors.Is(err, ErrHMACInvalid):
		return unauthorized(CodeHMACInvalid, err)
	case errors.As(err, &wrong):
		return &Rejection{Status: http.StatusBadRequest, Code: invalidCode(wrong), Err: err}
	default:
		return internalError(err)
	}
}

// gameRejection returns the answer to an error of the game or its store: the
// [Rejection] that it wraps, with status as the default, or else an internal error.
func gameRejection(err error, status int) *Rejection {
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		return internalError(err)
	}
	answer := &Rejection{Status: rejection.Status, Code: rejection.Code, Err: err}
	if answer.Status == 0 {
		answer.Status = status
	}
	if answer.Code == "" {
		answer.Code = CodeInternal
	}
	return answer
}

// invalidCode names the first wrong field. For intent.from[0].amount it is
// INVALID_INTENT_FROM_AMOUNT.
func invalidCode(e *InvalidError) Code {
	path := "body"
	if len(e.Fields) > 0 {
		path = e.Fields[0].Path
	}
	code := "INVALID"
	for _, step := range pathSteps(path) {
		if !isDigits(step) { // not an index
			code += "_" + strings.ToUpper(step)
		}
	}
	return Code(code)
}

// Response is the envelope of an answer to the service (interface 2.4, 2.6, 6 and
// 7.2). On success Data is set, on failure ErrorCode; the other is null.
type Response[T any] struct {
	Success   bool `json:"success"`   // whether the call succeeded
	ErrorCode Code `json:"errorCode"` // why it failed
	Data      *T   `json:"data"`      // the answer
}

// assetsData is the data of an answer to an assets call (interface 2.4, 9).
type assetsData struct {
	V1 Player `json:"v1"` // version 1 data
}

// Approval is the data of the answer to a validate call (interface 2.6).
type Approval struct {
	UserSig      string    `json:"userSig"`      // user_sig of the request, unchanged
	ValidatorSig Signature `json:"validatorSig"` // the signature of the digest
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

// call is one call of the service, and what is logged and observed of it.
type call struct {
	op          Operation
	session     Session
	unsigned    string // the session of a result's header, if it contradicts the signed body
	previousKey int    // which older key verified the call; 0 is none
	unreadable  []FieldError
	options     bool   // a validate call has a target_candidate that is not empty
	stack       []byte // of a panic; nil without one
}

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [rejectionOf]. run does the work; its errors are internal unless
// they are a [Rejection], and a panic is an internal error too.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error, run func(context.Context, *call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	ctx = h.config.Observer.start(ctx, c.op)
	c.op.Unverified = endpoint != "assets" || run == nil // of a wrong path
	data, err := func() (data any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				data, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
		if err := read(c); err != nil {
			return nil, rejectionOf(err)
		}
		return run(ctx, c)
	}()
	body := []byte("null") // of a result
	if data != nil {
		body, err = marshal(data)
	}
	if err != nil {
		reply = h.reject(endpoint, err)
	} else {
		body = append([]byte(`{"success":true,"errorCode":null,"data":`), body...)
		reply = Reply{http.StatusOK, append(body, '}'), nil}
	}
	h.record(ctx, c, reply)
	return reply
}

// authentic checks the size and the HMAC of a body before anything reads it.
func (h *Handler) authentic(c *call, header http.Header, body []byte) error {
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	if int64(len(body)) > h.config.MaxBody {
		return h.bodyTooLarge(h.config.MaxBody)
	}
	c.previousKey, err = h.config.Key.verify(body, signature)
	c.op.Unverified = err != nil
	if err == nil {
		return nil
	}
	switch encoding, _ := singleHeader(header, "Content-Encoding"); {
	case len(body) == 0, !slices.Contains([]string{"", fmt.Sprint(len(body))}, header.Get("Content-Length")):
		return fmt.Errorf("%w (the body has %d bytes, and Content-Length is %.20q: middleware may have read or changed it)", err, len(body), header.Get("Content-Length"))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf("%w (the body has a Content-Encoding, but the HMAC covers the body that the service sent)", err)
	}
	return err
}

// hmacHeader returns a well-formed signature.
func hmacHeader(header http.Header) (string, error) {
	signature, err := singleHeader(header, HeaderHMAC)
	if err != nil {
		return "", fmt.Errorf("ramp: %w: it occurs more than once", ErrHMACInvalid)
	}
	_, err = decodeHMAC(signature)
	return signature, err
}

func (h *Handler) bodyTooLarge(limit int64) error {
	return &Rejection{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Err: fmt.Errorf("ramp: the body is larger than %d bytes: raise that limit (HandlerConfig.MaxBody is %d)", limit, h.config.MaxBody)}
}

// setSession takes the session of a result from its body, which is signed. The headers
// are not, and may be missing, because a result can arrive 12 hours after its validate
// call.
func (c *call) setSession(header http.Header, r *Result) {
	signed := strings.TrimSpace(r.SessionID)
	unsigned, _ := sessionID(header)
	c.session.ID = cmp.Or(signed, unsigned)
	c.session.Token, _ = bearerToken(header)
	if unsigned != c.session.ID {
		c.unsigned = unsigned
	}
}

// take records the step that a store returned, or the conflict that it met.
func (c *call) take(step Step, err error) error {
	if err == nil {
		c.op.Step = &step
	} else {
		errors.As(err, &c.op.Conflict)
	}
	return err
}

// reject returns the reply to a failure. The service delivers a result again only after
// HTTP 500, so nothing but [Permanent] ends its deliveries.
func (h *Handler) reject(endpoint string, err error) Reply {
	var rejection *Rejection
	if !errors.As(err, &rejection) || rejection.Status < 200 || rejection.Status > 599 {
		rejection = internalError(err)
	}
	decided := rejection.Status == http.StatusBadRequest && rejection.Code == CodePermanent
	if endpoint == "result" && !decided {
		rejection = &Rejection{Status: http.StatusInternalServerError, Code: rejection.Code, Err: rejection.Err}
	}
	body := Must(marshal(Response[struct{}]{ErrorCode: h.translate(rejection.Code)}))
	return Reply{Status: rejection.Status, Body: body, Err: rejection}
}

// translate returns the code to send. A failure of TranslateCode must not turn into
// a success or a broken connection.
func (h *Handler) translate(c Code) (translated Code) {
	defer func() {
		if recover() != nil || translated == "" {
			translated = c
		}
	}()
	if h.config.TranslateCode == nil {
		return c
	}
	return h.config.TranslateCode(c)
}

// sample is when a record of a code was last logged, in Unix seconds, and how many were
// not logged since.
type sample struct{ second, suppressed atomic.Int64 }

// record observes and logs a call. slog.Default is looked up for each call, because
// programs often set it after they made the handler.
func (h *Handler) record(ctx context.Context, c *call, reply Reply) {
	op := &c.op
	op.Duration, op.Status = time.Since(op.Begun), reply.Status
	order := c.order()
	if order != nil {
		op.Direction = order.Direction
	}
	level, outcome := slog.LevelInfo, "success"
	var rejection *Rejection
	switch {
	case errors.As(reply.Err, &rejection):
		op.Err, op.Code = reply.Err, rejection.Code
		level, outcome = slog.LevelWarn, string(rejection.Code)
		if reply.Status >= 500 && !op.Unverified { // which anybody can cause
			level = slog.LevelError
		}
	case c.unreadable != nil, c.unsigned != "", c.options, op.Conflict != nil:
		level = slog.LevelWarn
	}
	h.config.Observer.end(ctx, *op)
	var suppressed int64
	if op.Unverified { // which anybody can cause, and must not fill the log with
		known, _ := h.unverified.LoadOrStore(op.Code, new(sample))
		last, now := known.(*sample), time.Now().Unix()
		if last.second.Swap(now) == now {
			last.suppressed.Add(1)
			return
		}
		suppressed = last.suppressed.Swap(0)
	}
	defer recoverHook(ctx, "Logger") // so that it costs nobody the signature of a stored order

	log := cmp.Or(h.config.Logger, slog.Default())
	if h.config.Logger == nil && level == slog.LevelInfo || !log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 20), slog.String("endpoint", op.Name), slog.Int("status", op.Status), slog.Duration("duration", op.Duration))
	add := func(known bool, attr slog.Attr) {
		if known {
			attrs = append(attrs, attr)
		}
	}
	session := c.session.ID
	if order != nil {
		session = order.SessionID
	}
	add(session != "", slog.String("session_id", session))
	add(op.UUID != uuid.Nil, slog.String("uuid", op.UUID.String()))
	add(op.Direction != "", slog.String("direction", string(op.Direction)))
	if order != nil {
		attrs = append(attrs, slog.String("state", string(order.State)))
	}
	if op.Step != nil {
		attrs = append(attrs, slog.Bool("new", op.Step.New), slog.String("effect", op.Step.Effect.String()))
		add(op.Step.Product != "", slog.String("product", op.Step.Product))
	}
	add(op.TxHash != "", slog.String("tx_hash", op.TxHash))
	add(c.options, slog.Bool("target_candidate", true))
	add(c.unsigned != "", slog.String("header_session_id", c.unsigned))
	add(c.previousKey > 0, slog.Int("previous_key", c.previousKey))
	add(op.Unverified, slog.Bool("unverified", true))
	add(suppressed > 0, slog.Int64("suppressed", suppressed))
	if op.Conflict != nil {
		attrs = append(attrs, slog.String("conflict", op.Conflict.Field))
	}
	if rejection != nil {
		attrs = append(attrs, slog.Any("error", rejection.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	add(c.stack != nil, slog.String("stack", string(c.stack)))
	log.LogAttrs(ctx, level, "ramp: call", append(attrs, slog.String("outcome", outcome))...)
}

// order returns the stored order that the call is about, or nil if it is unknown.
func (c *call) order() *Order {
	switch {
	case c.op.Step != nil:
		return &c.op.Step.Order
	case c.op.Conflict != nil:
		return &c.op.Conflict.Order
	default:
		return nil
	}
}
