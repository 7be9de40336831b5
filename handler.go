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
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/wire"
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

// Handler serves the three endpoints of the game (interface 4.3). Make one with
// [NewHandler] and share it: it is safe for concurrent use.
//
// Mount Assets, Validate and Result on the paths that are set in the console, or
// the Handler itself for the paths of the interface's examples. With a framework that does not use
// net/http, or without HTTP, use Answer.
//
// The service delivers a result again only after HTTP 500 or no answer. So the answer to a result is
// HTTP 200 or 500, whatever fails. There is one exception: see [HandlerConfig].OnConflict. Once the
// HMAC of a result is verified, the handler works on it even if the sender has gone.
//
// A call is answered before the deadline of its context, less [HandlerConfig].SendTime: with HTTP 500
// if the store, the signer or any other part has not returned by then, even if it ignores its context.
// What such a part still does is logged when it returns, and is not lost: a repeated call finds it.
// Without a deadline, the context of the work on a result ends after 30 seconds.
type Handler struct {
	config     HandlerConfig
	unverified sync.Map // a sample for each code of calls without a valid HMAC
	warned     sync.Map // the assets of the terms that some list did not have
}

// HandlerConfig configures a [Handler]; zero fields mean their defaults.
type HandlerConfig struct {
	// Players authenticates players and lists their assets. Required.
	Players Players

	// Store keeps the orders and applies the effect of each exactly once. Required.
	Store Store

	// OnConflict is called with every result that contradicts its order, at each delivery. This
	// delivery has moved no assets, and a person must decide. Return nil when a person will learn of it, and
	// an error otherwise. conflict.Field says what differs:
	//
	//	receipt.status       the order has already ended in another way. If OnConflict returns nil, the
	//	                     answer is HTTP 400, and the service does not send the result again
	//	session_id, intent   they differ from the stored order. A wrong character set of the database can
	//	                     cause this, too. HTTP 500
	//	tx_hash, with Other  the transaction has already ended another order, Other. A person can correct
	//	                     this. HTTP 500
	//	tx_hash              a repeat of the result names another transaction, so a player may have paid
	//	                     twice. HTTP 200
	//
	// If OnConflict fails, the answer is HTTP 500. If OnConflict is not set, the answer is HTTP
	// 500, too, except in the last case, which is then only logged and observed. After HTTP 500,
	// the cause is logged, and the service repeats the result for 12 hours.
	OnConflict func(ctx context.Context, conflict *ConflictError, r *Result) error

	// Terms are the products that the game offers, and their project and network. If a validate call is
	// for none of them, it is rejected with [CodeInvalidMessage] and RejectStatus. There is one
	// exception: a repeat of a call that was accepted goes on, even if the product is no longer sold.
	// Required.
	Terms *Terms

	// Policy, if set, is asked about every validate call that Authenticate and Terms let pass,
	// before anything is signed or stored: may this player trade r.Tokens of r.Product? nil goes
	// on, [Reject] rejects, and any other error answers 500. It must change nothing and not look at
	// balances, because it is asked about repeats too. If the product of a repeated order is no
	// longer sold, r.Product is empty and r.Tokens is 0. A repeat of an order that was accepted and
	// waits passes although Policy rejects it, because the player has paid; see [Rejection].Repeats.
	// Whoever has the HMAC key chooses r.Intent.TargetCandidate and r.Digest, and Terms
	// check neither. So Policy can reject an order that has a TargetCandidate, or whose Digest does
	// not belong to its Intent. docs/security.md has an example.
	Policy func(ctx context.Context, s Session, r *ValidateRequest) error

	// Wallet, if set, is asked after Policy, with the same errors: may the player use this wallet?
	// Whoever has the HMAC key can name the wallet of another player, and claim what that player
	// burns. Keep a table whose key is the wallet: the first account that names a wallet owns it,
	// in all of the account's sessions. An account may own several wallets. Wallet may be asked
	// again for the same order, whose repeat passes as with Policy, and the order may still be
	// rejected afterwards. If orders wait
	// when you set Wallet for the first time, fill the table from them: docs/security.md has the
	// statement. Required if Confirm is a proof; see [AnyWallet].
	Wallet func(ctx context.Context, s Session, wallet common.Address) error

	// Key is the HMAC key of the console, for validate and result calls (interface 5.2). Required.
	Key HMACKey

	// Signer signs the orders that are approved (interface 5.3). It signs before the store decides,
	// so that its failure costs no player anything; if the store rejects the order, the signature
	// is discarded. What Terms, Authenticate, Policy or Wallet reject is never signed. Required.
	Signer *Signer

	// SignTimeout is how long a signature may take. After that, the answer is HTTP 500. The
	// default is 3 seconds.
	SignTimeout time.Duration

	// SendTime is how long before the deadline of its context a call is answered, so that the answer is
	// sent in time. If less than four times as much is left for the whole call, it is a quarter of that.
	// The default is 200 milliseconds.
	SendTime time.Duration

	// Confirm, if set, asks the chain about every result before anything else, so that a stolen HMAC
	// key cannot invent a transaction: rampproof.Confirmed(chain, 1), or a rampproof.Proof, for
	// which the transaction must also be the order's own. The result then has the chain's receipt.
	// What is not confirmed within a few seconds is answered with HTTP 500, and the cause is logged,
	// whether the node is unreachable, behind, or disagrees. If this goes on, investigate. By
	// default results are not confirmed.
	Confirm Confirmer

	// RejectStatus is the HTTP status of an order that the game rejects with [Reject]: 200, or 400 to
	// 499. The default is 200, as in interface 4.3. The service's public guide uses 400.
	RejectStatus int

	// TranslateCode translates every errorCode before it is sent, including those of [Reject], because
	// the interface does not list them (7.2). If it returns "" or panics, the code is sent unchanged.
	TranslateCode func(Code) Code

	// MaxBody is the maximum size of a body in bytes. A larger one is answered with HTTP 413, and a
	// larger result with 500, so that it arrives once the limit was raised. The default is 1 MiB.
	// Until the HMAC is checked, a connection can hold three times as much, while the buffer grows. So
	// limit the number of connections, and set ReadTimeout of your [http.Server].
	MaxBody int64

	// Logger gets one record for each call, "ramp: call". It must not block: the call is answered after
	// its record. By default only failures and warnings are logged, to [slog.Default].
	// slog.New(slog.DiscardHandler) logs nothing. No record holds a token, a key, a signature or a body.
	//
	// Every record has endpoint, status, duration and outcome, which is success or the errorCode. If
	// they are known, it also has:
	//
	//	project_id            of the order, or of the terms
	//	session_id, uuid, direction, product, tx_hash
	//	state, new, effect    of the order: new is false for a repeat, and effect is a text such as
	//	                      "take -100 item_gold"
	//	moved, moved_at       of a repeat: the effect of the step that it repeats, and its time. It may be
	//	                      the only record of that step, if the answer of the database was lost
	//	order                 the order as it is stored, in its JSON form, also for a repeat. After the loss
	//	                      of a database, Restore of package support stores it again
	//	signed                the validator key was asked for a signature: sent if the call succeeded
	//	signer                then also the address of this key: two servers may have two
	//	error                 the cause of a failure
	//	conflict              the field that contradicts the order
	//	unreadable            the fields of a result that could not be read
	//	header_session_id     the unsigned header of a result names this session, and the signed body
	//	                      another one; the body counts
	//	target_candidate      the one of a validate call is not empty: only your Policy checks it
	//	previous_key          an older key verified the call: its position in HMACKey.WithPrevious, from 1
	//	unverified            anybody may have made this call: a validate or result call without a valid
	//	                      HMAC, or a call with a wrong path or method
	//	hmac_key              if the HMAC does not match, the HMACKey.Fingerprint of your newest key
	//	suppressed            how many unverified records were left out before this one: at most one a
	//	                      second is logged for each code
	//	late                  this call was answered with HTTP 500 in an earlier record, because its time
	//	                      was over. This record says how the work on it ended
	//	stack                 of a panic
	Logger   *slog.Logger
	Observer Observer         // also observes a call with a wrong path or method, if it may be the service's
	Now      func() time.Time // clock of orders; by default [time.Now]
}

// Confirmer decides whether a result may end its order. Package rampproof has those that
// ask the chain; calls are concurrent.
type Confirmer interface {
	// Confirm is called with every authentic result, and with finish, the transition that would end the
	// order. It replaces r.Receipt with the receipt that the chain has, and sets r.Transaction. It
	// returns a new transition, which calls finish. If the chain confirms the step of finish, the new
	// transition returns that step. Otherwise it returns an error. Whatever needs the network happens
	// before Confirm returns, because a transition does no I/O.
	//
	// If Confirm returns an error, the answer is HTTP 500, and the service sends the result again. If
	// the new transition returns an error, the handler treats it as it would treat an error of finish
	// without a Confirmer.
	Confirm(ctx context.Context, store Store, r *Result, finish Transition) (Transition, error)

	// CheckConfig returns what the config of a handler lacks for this Confirmer, as an
	// [*InvalidError]. [NewHandler] calls it and returns this error. c.Terms are set then.
	CheckConfig(c *HandlerConfig) error

	// Check returns every fault that can be found before there is a result, such as a node of another
	// chain, or a token of c.Terms that is no contract there. [Handler.Check] calls it with the config
	// of the handler.
	Check(ctx context.Context, c *HandlerConfig) error
}

// AnyWallet is a function for [HandlerConfig].Wallet: it lets players use any wallet.
// Whoever has the HMAC key can then claim what others burn; see docs/security.md.
func AnyWallet(context.Context, Session, common.Address) error { return nil }

// NewHandler returns a handler.
func NewHandler(c HandlerConfig) (*Handler, error) {
	var p problems
	p.requireValue(c.Players, "HandlerConfig.Players")
	p.requireValue(c.Store, "HandlerConfig.Store")
	memory, ok := c.Store.(*MemoryStore)
	p.require(!ok || memory == nil || memory.Apply != nil, "MemoryStore.Apply")
	p.require(c.Terms != nil, "HandlerConfig.Terms")
	p.requireMade(c.Terms, "HandlerConfig.Terms")
	p.requireKey(!c.Key.IsZero(), "HandlerConfig.Key", ErrHMACKey)
	p.requireKey(c.Signer != nil && c.Signer.sign != nil, "HandlerConfig.Signer", ErrValidatorKey)
	if c.Signer != nil && c.Terms != nil && c.Terms.Network() == Mainnet {
		if why := whoseKeyIs(c.Signer.Address()); why != "" {
			p.add("HandlerConfig.Signer", "has the address %s, whose private key everybody knows (%s): "+
				"on mainnet, anybody could mint", c.Signer.Address(), why)
		}
	}
	if c.SignTimeout < 0 {
		p.add("HandlerConfig.SignTimeout", "must not be negative")
	}
	if c.SendTime < 0 {
		p.add("HandlerConfig.SendTime", "must not be negative")
	}
	if c.Confirm != nil && p.requireValue(c.Confirm, "HandlerConfig.Confirm") && c.Terms != nil {
		var wrong *InvalidError
		if err := c.Confirm.CheckConfig(&c); errors.As(err, &wrong) {
			p.addAll(wrong)
		} else if err != nil {
			p.add("HandlerConfig.Confirm", "%v", err)
		}
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
	c.RejectStatus = cmp.Or(c.RejectStatus, http.StatusOK)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.SignTimeout = cmp.Or(c.SignTimeout, 3*time.Second)
	c.SendTime = cmp.Or(c.SendTime, 200*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Handler{config: c}, nil
}

// Check returns every fault that would otherwise show when a player has paid: of the
// store, if it has the optional method Check that [Store] describes; of the signer, in a
// trial signature of a random digest; and of Confirm, such as a node of another chain.
// Call it when your server starts, and do not start after an error. It changes nothing.
//
// An outage of a node is only logged and is not an error, because only results need the
// node, and they can wait. An outage is a timeout, a connection that cannot be made or
// breaks, HTTP 429 or 5xx, or a rate limit. Any other answer is an error, such as HTTP
// 401, 403 or 404, or one that is not JSON-RPC.
func (h *Handler) Check(ctx context.Context) error {
	c := &h.config
	if c.Store == nil {
		return errors.New("ramp: the Handler was not made by NewHandler")
	}
	var found []error
	if store, ok := c.Store.(interface {
		Check(context.Context, Network) error
	}); ok {
		found = append(found, store.Check(ctx, c.Terms.config.Network))
	}
	var trial Digest
	rand.Read(trial[:]) // never fails
	_, err := c.Signer.sign(ctx, c.SignTimeout, trial)
	found = append(found, err)
	h.checkClock(ctx)
	for _, warning := range c.Terms.arbitrageWarnings() {
		h.logger().LogAttrs(ctx, slog.LevelWarn, "ramp: check", slog.String("warning", warning))
	}
	if c.Confirm != nil {
		for _, err := range joinedErrors(c.Confirm.Check(ctx, c)) {
			if !isOutage(err) {
				found = append(found, err)
				continue
			}
			h.logger().LogAttrs(ctx, slog.LevelWarn, "ramp: a node cannot be reached: results wait for it",
				slog.Any("error", err))
		}
	}
	return errors.Join(found...)
}

// checkClock logs that the clock of orders stands still or is not that of this computer.
func (h *Handler) checkClock(ctx context.Context) {
	const most = time.Minute
	begun, first := time.Now(), h.config.Now()
	problem := ""
	switch ahead := first.Sub(begun).Round(time.Second); {
	case first.IsZero():
		problem = "it returns the zero time"
	case ahead > most:
		problem = "it is " + ahead.String() + " ahead of the clock of this computer"
	case ahead < -most:
		problem = "it is " + (-ahead).String() + " behind the clock of this computer"
	}
	for problem == "" && h.config.Now().Equal(first) { // a clock can have steps of 16 ms
		if time.Since(begun) > 50*time.Millisecond {
			problem = "it stands still"
		}
		time.Sleep(time.Millisecond)
	}
	if problem != "" {
		h.logger().LogAttrs(ctx, slog.LevelWarn, "ramp: check",
			slog.String("warning", "orders get a wrong time from HandlerConfig.Now"),
			slog.String("error", problem))
	}
}

// joinedErrors returns the errors that [errors.Join] made one of.
func joinedErrors(err error) []error {
	list, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, err := range list.Unwrap() {
		all = append(all, joinedErrors(err)...)
	}
	return all
}

// Reply is the answer to a call of the service. Write sends it; with another framework,
// send Status, Header and Body, also if Err is set.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // nil for success, otherwise a [*Rejection]

	allowed string // the method of the path, after another one
}

// allowing returns the reply to a call with another method than that of its path.
func (r Reply) allowing(method string) Reply {
	r.allowed = method
	return r
}

// Header returns the headers of the reply, one value each.
func (r Reply) Header() http.Header {
	header := http.Header{}
	r.setIn(header)
	return header
}

func (r Reply) setIn(header http.Header) {
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	if r.allowed != "" {
		header.Set("Allow", r.allowed)
	}
}

// Write writes the reply to w.
func (r Reply) Write(w http.ResponseWriter) {
	r.setIn(w.Header())
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // an error means that the caller is gone
}

// call is one call of the service, and what is logged and observed of it.
type call struct {
	op          Operation
	session     Session
	unsigned    string // the session of a result's header, if it contradicts the signed body
	previousKey int    // which older key verified the call; 0 is none
	ownKey      string // the fingerprint of the key that did not verify it
	unreadable  []FieldError
	options     bool   // a validate call has a target_candidate that is not empty
	handedOver  bool   // OnConflict took the contradicting outcome of a result
	late        bool   // it was answered before the work on it had ended
	stack       []byte // of a panic; nil without one

	noteBy time.Time // of a result with a deadline: its refusal must be noted by then
	asked  *asked    // nil: nobody waits less long than the work takes
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

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [rejectionOf]. run does the work; its errors are internal unless
// they are a [Rejection], and a panic is an internal error too. run is nil for what is none of the
// three calls, or was not read.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error,
	run func(context.Context, *call) (any, error)) Reply {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	ctx = h.config.Observer.start(ctx, c.op)
	c.op.Unverified = endpoint != "assets" || run == nil // of a wrong path
	data, err := c.guarded(ctx, func(context.Context, *call) (any, error) {
		if err := read(c); err != nil {
			return nil, rejectionOf(err, h.config.RejectStatus)
		}
		return nil, nil
	})
	if err == nil {
		c, data, err = h.runInTime(ctx, c, run)
	}
	body := []byte("null") // of a result
	if data != nil {
		body, err = wire.Marshal(data)
	}
	var reply Reply
	if err != nil {
		reply = h.reject(c.rejection(err))
	} else {
		body = append([]byte(`{"success":true,"errorCode":null,"data":`), body...)
		reply = Reply{Status: http.StatusOK, Body: append(body, '}')}
	}
	h.record(ctx, c, reply)
	return reply
}

// runInTime does the work of a call until it must be answered, and returns what is then known of the call.
// The work on a result does not end when the sender gives up: the next delivery could be given up in the
// same way, and the order would never end.
func (h *Handler) runInTime(ctx context.Context, c *call,
	run func(context.Context, *call) (any, error)) (*call, any, error) {
	deadline, ok := ctx.Deadline()
	if c.op.Name == "result" {
		ctx = context.WithoutCancel(ctx)
	}
	if !ok { // nobody waits less long than the work takes, which is faster without a goroutine of its own
		if c.op.Name == "result" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, resultTime)
			defer cancel()
		}
		data, err := c.guarded(ctx, run)
		return c, data, err
	}
	times := timingOf(deadline, h.config.SendTime)
	c.noteBy, c.asked = times.note, new(asked)
	before := *c
	var data any
	var err error
	if runUntil(ctx, times,
		func(ctx context.Context) { data, err = c.guarded(ctx, run) },
		func(ctx context.Context) { h.recordLate(ctx, c, err) }) {
		return c, data, err
	}
	return &before, nil, fmt.Errorf("ramp: %s has not returned: %w", before.asked.part(),
		context.DeadlineExceeded)
}

// guarded does the work of a call. Whether it panicked is not asked of recover, which returns nil for
// panic(nil) with GODEBUG=panicnil=1.
func (c *call) guarded(ctx context.Context,
	run func(context.Context, *call) (any, error)) (data any, err error) {
	returned := false
	defer func() {
		if !returned {
			cause := recover()
			c.stack = debug.Stack()
			data, err = nil, fmt.Errorf("ramp: panic: %v", cause)
		}
	}()
	data, err = run(ctx, c)
	returned = true
	return data, err
}

// recordLate logs how the work on a call ended that was answered before.
func (h *Handler) recordLate(ctx context.Context, c *call, err error) {
	if err == nil {
		err = fmt.Errorf("ramp: the call was already answered: %w", context.DeadlineExceeded)
	}
	reply := h.reject(internalError(err))
	c.late, c.op.Duration, c.op.Status = true, time.Since(c.op.Begun), reply.Status
	h.log(ctx, c, c.level(reply), 0)
}

// rejection returns the answer to an error. The service delivers a result again only after HTTP
// 500, so nothing ends its deliveries but OnConflict.
func (c *call) rejection(err error) *Rejection {
	var found *Rejection
	if !errors.As(err, &found) || found.Status < 200 || found.Status > 599 {
		found = internalError(err)
	}
	if c.op.Name == "result" && !c.handedOver {
		return &Rejection{Status: http.StatusInternalServerError, Code: found.Code, Err: found.Err}
	}
	return found
}

// reject returns the reply to a rejection.
func (h *Handler) reject(rejection *Rejection) Reply {
	body := Must(wire.Marshal(Response[struct{}]{ErrorCode: h.translate(rejection.Code)}))
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
	if order := c.order(); order != nil {
		op.Direction = order.Direction
	}
	level := c.level(reply)
	h.config.Observer.end(ctx, *op)
	if suppressed, logged := h.sampled(op); logged {
		h.log(ctx, c, level, suppressed)
	}
}

// log writes the record of a call.
func (h *Handler) log(ctx context.Context, c *call, level slog.Level, suppressed int64) {
	// a logger that panics must cost nobody the signature of a stored order
	runHook(ctx, "Logger", func() {
		log := h.logger()
		if h.config.Logger == nil && level == slog.LevelInfo || !log.Enabled(ctx, level) {
			return
		}
		var attrs [24]slog.Attr // on the stack
		log.LogAttrs(ctx, level, "ramp: call", c.appendAttrs(attrs[:0], &h.config, suppressed)...)
	})
}

// level sets what the operation failed with, and returns the level of the record.
func (c *call) level(reply Reply) slog.Level {
	op := &c.op
	var rejection *Rejection
	switch {
	case errors.As(reply.Err, &rejection):
		op.Err, op.Code = reply.Err, rejection.Code
		if reply.Status >= 500 && !op.Unverified { // which anybody can cause
			return slog.LevelError
		}
		return slog.LevelWarn
	case c.unreadable != nil, c.unsigned != "", c.options, op.Conflict != nil:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// sampled reports whether a call is logged, and how many of its code were not before it. Calls
// without a valid HMAC, which anybody can make, must not fill the log.
func (h *Handler) sampled(op *Operation) (suppressed int64, logged bool) {
	if !op.Unverified {
		return 0, true
	}
	known, _ := h.unverified.LoadOrStore(op.Code, new(sample))
	last, now := known.(*sample), time.Now().Unix()
	if last.second.Swap(now) == now {
		last.suppressed.Add(1)
		return 0, false
	}
	return last.suppressed.Swap(0), true
}

// appendAttrs appends what the record of a call says.
func (c *call) appendAttrs(attrs []slog.Attr, config *HandlerConfig, suppressed int64) []slog.Attr {
	op, order := &c.op, c.order()
	attrs = append(attrs, slog.String("endpoint", op.Name),
		slog.Int("status", op.Status), slog.Duration("duration", op.Duration))
	add := func(known bool, attr slog.Attr) {
		if known {
			attrs = append(attrs, attr)
		}
	}
	session, project := c.session.ID, config.Terms.config.ProjectID
	if order != nil {
		session, project = order.SessionID, order.ProjectID
	}
	add(project != "", slog.String("project_id", project))
	add(session != "", slog.String("session_id", session))
	add(op.UUID != uuid.Nil, slog.String("uuid", op.UUID.String()))
	add(op.Direction != "", slog.String("direction", string(op.Direction)))
	if order != nil {
		attrs = append(attrs, slog.String("state", string(order.State)))
	}
	if op.Step != nil {
		attrs = append(attrs, slog.Bool("new", op.Step.New), slog.String("effect", op.Step.Effect.String()))
		if !op.Step.New {
			moved, at := op.Step.Order.Moved()
			attrs = append(attrs, slog.String("moved", moved.String()), slog.Time("moved_at", at))
		}
		add(op.Step.Product != "", slog.String("product", op.Step.Product))
	}
	add(op.Signed, slog.Bool("signed", true))
	add(op.Signed, slog.String("signer", config.Signer.Address().Hex()))
	add(op.TxHash != "", slog.String("tx_hash", op.TxHash))
	add(c.options, slog.Bool("target_candidate", true))
	add(c.unsigned != "", slog.String("header_session_id", c.unsigned))
	add(c.previousKey > 0, slog.Int("previous_key", c.previousKey))
	add(op.Unverified, slog.Bool("unverified", true))
	add(c.ownKey != "", slog.String("hmac_key", c.ownKey))
	add(suppressed > 0, slog.Int64("suppressed", suppressed))
	add(c.late, slog.Bool("late", true))
	if op.Conflict != nil {
		attrs = append(attrs, slog.String("conflict", op.Conflict.Field))
	}
	outcome := "success"
	var rejection *Rejection
	if errors.As(op.Err, &rejection) {
		outcome = string(rejection.Code)
		attrs = append(attrs, slog.Any("error", rejection.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	add(c.stack != nil, slog.String("stack", string(c.stack)))
	if op.Step != nil {
		attrs = append(attrs, slog.Any("order", &op.Step.Order))
	}
	return append(attrs, slog.String("outcome", outcome))
}

// logger returns the logger. slog.Default is looked up for each record, because programs
// often set it after they made the handler.
func (h *Handler) logger() *slog.Logger { return cmp.Or(h.config.Logger, slog.Default()) }
