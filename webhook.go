package ramp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The headers that carry a session (interface 4.3, 5.1). Header names are
// case-insensitive.
const (
	HeaderSession       = "X-Dapp-Sessionid"
	HeaderAuthorization = "X-Dapp-Authorization"
)

// Game is what a studio writes: its side of the three endpoints. Every method
// may be called by many requests at once.
type Game interface {
	// Authenticate says whether the token is one of the session, on assets and
	// validate calls (interface 5.1). nil lets the call pass, [Reject] answers
	// 401 with its code, any other error answers 500.
	Authenticate(ctx context.Context, s Session) error

	// Assets returns what the service shows of the user (interface 2.4). It is
	// called after Authenticate.
	Assets(ctx context.Context, s Session) (*Player, error)

	// Validate decides on a mint or a burn (interface 2.5). It is called after
	// Authenticate, with a request whose form is right. The game must check the
	// rest: that the token is its own, that the rate is the one it offers, that
	// the player has the assets, and its policy. For a mint, it takes the assets
	// here, durably and once for a UUID: [ValidateRequest.Effect] says which.
	// nil approves and releases the signature, [Reject] declines, and any other
	// error answers 500.
	Validate(ctx context.Context, s Session, r *ValidateRequest) error

	// Result reports that a transaction is over (interface 6). It is called at
	// least once for a UUID and perhaps many times, concurrently and on any
	// machine: the effect must happen once. nil answers 200, [Permanent] 400,
	// and any other error 500, so that the service delivers the result again.
	//
	// Go by the order that was stored at validate, under r.UUID, and by
	// r.Receipt.Status. The rest of r may be missing: a result is passed on
	// even if other fields are unreadable (see [Result.Unreadable]), because
	// the service does not deliver a refused one again.
	//
	// Authenticate is not called, because the token may have expired in the 12
	// hours that a delivery can take. The HMAC proves the caller. It does not
	// cover the headers, so s may be empty, and s.ID is only as good as
	// r.SessionID.
	Result(ctx context.Context, s Session, r *Result) error
}

// Handler is the studio's side of the three endpoints (interface 4.3). Make one
// with [NewHandler] and share it: it is safe for concurrent use.
//
// Mount Assets, Validate and Result on the paths that the console has, or the
// Handler itself for the paths of the interface's examples. Under another
// framework, or without HTTP, hand headers and bytes to AnswerAssets,
// AnswerValidate and AnswerResult, which do all of the work.
type Handler struct {
	config    HandlerConfig
	confirmed []byte // the only answer to a result that was taken in
}

// HandlerConfig configures a [Handler]. Game, Key and Signer are required. The
// zero value of every other field stands for its default.
type HandlerConfig struct {
	// Game is the studio's side of the three endpoints. Required.
	// [NewOrderGame] makes one whose orders are exact.
	Game Game

	// Key is the HMAC key of the console, from [TextKey] or [Base64URLKey].
	// Validate and result calls must be signed with it (interface 5.2).
	// Required.
	Key HMACKey

	// Signer signs the orders that Game approves (interface 5.3). Required.
	Signer *Signer

	// ProjectID is the project_id from the console. Validate calls for another
	// project are refused with HTTP 400. By default every project is accepted,
	// and a game that serves several tells them apart in [Game.Validate].
	//
	// A result names no project (interface 6). If projects with HMAC keys of
	// their own share a database, set [OrderGameConfig].ProjectID too.
	ProjectID string

	// Chain confirms every result on the chain before [Game.Result] is called
	// with it, so that a stolen HMAC key cannot make up a transaction. The game
	// gets the chain's receipt in place of the service's. See [RPC.Confirm] for
	// what is compared. By default results are not confirmed.
	//
	// A result that is not confirmed within 5 seconds is answered with HTTP
	// 500, so that the service delivers it again, and the cause is logged. That
	// is so whether the node is unreachable, behind, or disagrees. If the cause
	// persists, investigate.
	//
	// A result names no network (interface 6). Give each network a handler, a
	// path and a project of its own, and set [RPCConfig].ChainID: if one handler
	// asked several chains, a transaction on a testnet could pay.
	Chain *RPC

	// Confirmations is how many confirmations Chain waits for, counting the
	// block of the transaction itself. The default is 1. The service first
	// delivers again after 5 minutes (interface 8), so ask for no more
	// confirmations than the chain makes blocks in 5 seconds, or accept the
	// delay. It must be 0 without Chain.
	Confirmations uint64

	// DeclineStatus is the HTTP status of an order that the game declines with
	// [Reject]: 200, or 400 to 499. The default is 200, as in 4.3 of the
	// interface; the service's public guide has 400.
	DeclineStatus int

	// TranslateCode translates every errorCode before it is sent, including
	// those of [Reject], because the interface does not say which values the
	// service knows (7.2). If it returns an empty code or panics, the code is
	// sent untranslated, as it is by default.
	TranslateCode func(Code) Code

	// MaxBody is the largest body in bytes; a larger one is answered with HTTP
	// 413. The default is 1 MiB. The interface does not say how large a body
	// can be.
	//
	// Nothing of a body is read without an HMAC of the right form. With one, a
	// connection can hold up to MaxBody until its HMAC is checked, so limit the
	// connections and set ReadTimeout of your [http.Server].
	MaxBody int64

	// Logger gets one record for each call, "ramp: call", with endpoint, status,
	// duration and outcome. As far as they are known it also has uuid,
	// direction, tx_hash, new (false for a repeat; only [OrderGame] knows),
	// conflict (the field that contradicts the order), unreadable, and error,
	// the cause of a failure. No record holds a token, a key, a signature or a
	// body. By default only failures are logged, to [slog.Default];
	// slog.New(slog.DiscardHandler) logs nothing.
	Logger *slog.Logger

	// Observer is told about every call, for metrics and traces. A request with
	// another method, or for a path that is no endpoint's, is none. Its Step is
	// that of [OrderGameConfig]. By default nobody is.
	Observer Observer
}

// NewHandler returns a handler for c.Game. The error is an [*InvalidError] that
// lists every field of c that is missing or wrong; [errors.Is] finds
// [ErrHMACKey] if the key is missing, and [ErrValidatorKey] if the signer is.
func NewHandler(c HandlerConfig) (*Handler, error) {
	var p problems
	p.require(c.Game != nil, "HandlerConfig.Game")
	p.requireKey(!c.Key.IsZero(), "HandlerConfig.Key", ErrHMACKey)
	p.requireKey(c.Signer != nil && c.Signer.sign != nil, "HandlerConfig.Signer", ErrValidatorKey)
	if c.Confirmations > 0 && c.Chain == nil {
		p.add("HandlerConfig.Confirmations", "must be 0 without Chain")
	}
	if s := c.DeclineStatus; s != 0 && s != http.StatusOK && (s < 400 || s > 499) {
		p.add("HandlerConfig.DeclineStatus", "must be 200, or 400 to 499")
	}
	if c.MaxBody < 0 {
		p.add("HandlerConfig.MaxBody", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	c.DeclineStatus = cmp.Or(c.DeclineStatus, http.StatusOK)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	confirmed, err := marshal(ResultResponse{Success: true})
	return &Handler{config: c, confirmed: confirmed}, err
}

// ParseSession reads the X-Dapp headers (interface 5.1), whatever the case of
// their names. The error wraps [ErrSessionMissing] or [ErrTokenMissing]. A
// header that comes twice is refused: nobody could say which one counts.
func ParseSession(header http.Header) (Session, error) {
	id, err := sessionID(header)
	if err != nil {
		return Session{}, err
	}
	token, err := bearerToken(header)
	if err != nil {
		return Session{}, err
	}
	return Session{ID: id, Token: token}, nil
}

func sessionID(header http.Header) (string, error) {
	id, ok := single(header, HeaderSession)
	if !ok || !isSessionID(id) {
		return "", fmt.Errorf("ramp: %w", ErrSessionMissing)
	}
	return id, nil
}

func bearerToken(header http.Header) (AccessToken, error) {
	authorization, ok := single(header, HeaderAuthorization)
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return AccessToken{}, fmt.Errorf("ramp: %w", ErrTokenMissing)
	}
	return NewAccessToken(token), nil
}

// single returns the value of a header whose name may have any case. ok is
// false when there are several.
func single(header http.Header, name string) (value string, ok bool) {
	seen := 0
	for key, values := range header {
		if len(key) == len(name) && strings.EqualFold(key, name) && len(values) > 0 {
			value = strings.TrimSpace(values[0])
			seen += len(values)
		}
	}
	return value, seen <= 1
}

// Reply is what goes back to the service.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // why it is no success, a [*Refusal]; nil for success
}

// Write sends the reply.
func (r Reply) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // the caller is gone: nobody is left to tell
}

// AnswerAssets answers an assets call (interface 2.4) from its headers.
func (h *Handler) AnswerAssets(ctx context.Context, header http.Header) Reply {
	return h.answer(ctx, "assets", func(call *call) (any, error) {
		s, err := ParseSession(header)
		if err != nil {
			return nil, refusalOf(err)
		}
		if err := h.config.Game.Authenticate(call, s); err != nil {
			return nil, gameRefusal(err, http.StatusUnauthorized)
		}
		player, err := h.config.Game.Assets(call, s)
		if err != nil {
			return nil, gameRefusal(err, h.config.DeclineStatus)
		}
		if err := player.check(); err != nil {
			return nil, err
		}
		return AssetsResponse{Success: true, Data: &AssetsData{V1: *player}}, nil
	})
}

// AnswerValidate answers a validate call (interface 2.5, 2.6) from its headers
// and the raw bytes of its body.
func (h *Handler) AnswerValidate(ctx context.Context, header http.Header, body []byte) Reply {
	return h.answer(ctx, "validate", func(call *call) (any, error) {
		if err := h.authentic(header, body); err != nil {
			return nil, refusalOf(err)
		}
		r, err := ParseValidate(body)
		if err != nil {
			return nil, refusalOf(err)
		}
		call.op.UUID = r.UUID
		call.op.Direction, _ = r.Intent.Direction()
		if h.config.ProjectID != "" && r.ProjectID != h.config.ProjectID {
			return nil, refusalOf(invalid("project_id", "is not the project of this handler"))
		}
		s, err := ParseSession(header)
		if err != nil {
			return nil, refusalOf(err)
		}
		if err := h.config.Game.Authenticate(call, s); err != nil {
			return nil, gameRefusal(err, http.StatusUnauthorized)
		}
		// Signed before the game commits, released only after it did: a signer
		// that is down then costs no player anything.
		signature, err := h.config.Signer.Sign(call, r.Digest)
		if err != nil {
			return nil, err
		}
		if err := h.config.Game.Validate(call, s, r); err != nil {
			return nil, gameRefusal(err, h.config.DeclineStatus)
		}
		return ValidateResponse{Success: true, Data: &Approval{UserSig: r.UserSig, ValidatorSig: signature}}, nil
	})
}

// AnswerResult answers a result call (interface 6) from its headers and the raw
// bytes of its body.
func (h *Handler) AnswerResult(ctx context.Context, header http.Header, body []byte) Reply {
	return h.answer(ctx, "result", func(call *call) (any, error) {
		if err := h.authentic(header, body); err != nil {
			return nil, refusalOf(err)
		}
		r, err := ParseResult(body)
		if err != nil {
			return nil, unreadableResult(err)
		}
		call.op.UUID, call.op.TxHash, call.unreadable = r.UUID, storedTxHash(r.TxHash), r.Unreadable
		call.op.Direction, _ = r.Intent.Direction()
		s, err := resultSession(header, r)
		if err != nil {
			return nil, err
		}
		if h.config.Chain != nil {
			receipt, err := h.confirm(call, r)
			if err != nil {
				return nil, fmt.Errorf("ramp: the result is not confirmed: %w", err) // ours to ask again
			}
			r.Receipt = *receipt
		}
		if err := h.config.Game.Result(call, s, r); err != nil {
			refusal := gameRefusal(err, http.StatusInternalServerError)
			if refusal.Status != http.StatusBadRequest || refusal.Code != CodePermanent {
				// Declined or not, an outcome that was not taken in must come again.
				refusal.Status = http.StatusInternalServerError
			}
			return nil, refusal
		}
		return bytes.Clone(h.confirmed), nil
	})
}

// unreadableResult is the answer to an authentic result without a UUID or a
// status. It is 500, so that the service delivers it again while a fix is
// deployed; a body that is not a JSON object stays what it is.
func unreadableResult(err error) *Refusal {
	refusal := refusalOf(err)
	if refusal.Code != codeInvalidBody {
		refusal.Status = http.StatusInternalServerError
	}
	return refusal
}

// resultSession returns whom a result is about. Its body is signed, its headers
// are not: they may be missing, because a result can arrive 12 hours after its
// token was good, but they must not contradict the body.
func resultSession(header http.Header, r *Result) (Session, error) {
	signed := strings.TrimSpace(r.SessionID)
	id, _ := sessionID(header)
	switch {
	case id == "":
		id = signed
	case signed != "" && signed != id:
		return Session{}, &Refusal{Status: http.StatusInternalServerError, Code: CodeSessionMismatch, Err: fmt.Errorf("ramp: %w", ErrSessionMismatch)}
	}
	token, _ := bearerToken(header)
	return Session{ID: id, Token: token}, nil
}

// authentic checks size and HMAC, before anything looks into the body.
func (h *Handler) authentic(header http.Header, body []byte) error {
	if int64(len(body)) > h.config.MaxBody {
		return h.tooLarge()
	}
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	err = h.config.Key.Verify(body, signature)
	encoding, _ := single(header, "Content-Encoding")
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return fmt.Errorf("%w (the body is empty: something in front of the handler may have consumed it)", err)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf("%w (the body has a Content-Encoding, but the HMAC covers the body that the service sent)", err)
	}
	return err
}

// hmacHeader returns a signature whose form is right.
func hmacHeader(header http.Header) (string, error) {
	signature, ok := single(header, HeaderHMAC)
	if !ok {
		return "", fmt.Errorf("ramp: %w: it came more than once", ErrHMACInvalid)
	}
	_, err := decodeHMAC(signature)
	return signature, err
}

func (h *Handler) tooLarge() error {
	return fmt.Errorf("ramp: %w: the limit is %d bytes; raise HandlerConfig.MaxBody", ErrBodyTooLarge, h.config.MaxBody)
}

// call is one call of the service, and what the log and the observer say of it.
// It is the context that the game gets, so that an [OrderGame] below any game of
// the studio's can add the step that it took.
type call struct {
	context.Context
	op         Operation
	unreadable []FieldError
	stack      []byte // of a panic

	mu       sync.Mutex // a game may go on after it has answered
	stepped  bool       // an OrderGame found or took a step
	new      bool
	order    Direction // of the stored order
	conflict *ConflictError
}

type callKey struct{}

// Value also finds the call itself.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// noteStep adds a step to the call that ctx belongs to, if it is one about the
// same order.
func noteStep(ctx context.Context, step Step) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.op.UUID == step.Order.UUID {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stepped, c.new, c.order = true, step.New, step.Order.Direction
	}
}

// noteConflict adds a conflict to the call that ctx belongs to, if it is one about
// the same order.
func noteConflict(ctx context.Context, conflict *ConflictError) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.op.UUID == conflict.Order.UUID {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.order, c.conflict = conflict.Order.Direction, conflict
	}
}

// answer runs one call and turns its outcome into a reply and a log record. A
// panic is an internal error like any other.
func (h *Handler) answer(ctx context.Context, endpoint string, run func(*call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	c.Context = h.config.Observer.start(ctx, c.op)
	response, err := func() (response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				response, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
		return run(c)
	}()
	if err == nil {
		var written bool
		reply = Reply{Status: http.StatusOK}
		if reply.Body, written = response.([]byte); !written {
			reply.Body, err = marshal(response)
		}
	}
	if err != nil {
		reply = h.refuse(err)
	}
	h.record(c, reply)
	return reply
}

// refuse answers with the envelope of a failure.
func (h *Handler) refuse(err error) Reply {
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Status < 200 || refusal.Status > 599 {
		refusal = &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
	}
	body, err := marshal(Response[struct{}]{ErrorCode: h.translate(refusal.Code)})
	if err != nil {
		panic(err) // a struct of a boolean and a string
	}
	return Reply{Status: refusal.Status, Body: body, Err: refusal}
}

// translate is the code as the wire has it. What the studio's function does, a
// failure must not become a success or a dead connection of it.
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

// record tells the observer and the log of one call. Without a logger of its own
// a handler logs what went wrong to the program's, which is looked up late
// because programs set it late.
func (h *Handler) record(c *call, reply Reply) {
	c.mu.Lock()
	op, stepped, isNew := c.op, c.stepped, c.new
	op.Direction, op.Conflict = cmp.Or(c.order, op.Direction), c.conflict
	c.mu.Unlock()
	op.Duration, op.Status = time.Since(op.Begun), reply.Status

	level, outcome := slog.LevelInfo, "success"
	var refusal *Refusal
	switch {
	case errors.As(reply.Err, &refusal):
		op.Err, op.Code = reply.Err, refusal.Code
		level, outcome = slog.LevelWarn, string(refusal.Code)
		if reply.Status >= 500 || reply.Status == http.StatusRequestEntityTooLarge {
			level = slog.LevelError // nothing was done, and somebody has to act
		}
	case c.unreadable != nil, op.Conflict != nil:
		level = slog.LevelWarn
	}
	h.config.Observer.end(c.Context, op)

	log := h.config.Logger
	if log == nil {
		if level == slog.LevelInfo {
			return
		}
		log = slog.Default()
	}
	if !log.Enabled(c.Context, level) {
		return
	}
	attrs := []slog.Attr{slog.String("endpoint", op.Name), slog.Int("status", op.Status), slog.Duration("duration", op.Duration)}
	if op.UUID != uuid.Nil {
		attrs = append(attrs, slog.String("uuid", op.UUID.String()))
	}
	if op.Direction != 0 {
		attrs = append(attrs, slog.String("direction", op.Direction.String()))
	}
	if stepped {
		attrs = append(attrs, slog.Bool("new", isNew))
	}
	if op.TxHash != "" {
		attrs = append(attrs, slog.String("tx_hash", op.TxHash))
	}
	if op.Conflict != nil {
		attrs = append(attrs, slog.String("conflict", op.Conflict.Field))
	}
	if refusal != nil {
		attrs = append(attrs, slog.Any("error", refusal.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	if c.stack != nil {
		attrs = append(attrs, slog.String("stack", string(c.stack)))
	}
	log.LogAttrs(c.Context, level, "ramp: call", append(attrs, slog.String("outcome", outcome))...)
}

// check finds what a game must not answer.
func (p *Player) check() error {
	if p == nil {
		return errors.New("ramp: the game returned neither a player nor an error")
	}
	var wrong problems
	wrong.requireText(p.PlayerID, "player_id")
	wrong.requireText(p.Name, "name")
	wrong.requireText(p.WalletAddress, "wallet_address")
	wrong.requireText(p.Server, "server")
	for i, a := range p.Assets {
		if a.ID != "" && utf8.ValidString(a.ID) && a.Balance.Sign() >= 0 {
			continue
		}
		at := fmt.Sprintf("assets[%d]", i)
		wrong.require(a.ID != "", at+".id")
		wrong.requireText(a.ID, at+".id")
		if a.Balance.Sign() < 0 {
			wrong.add(at+".balance", "must not be below 0")
		}
	}
	if err := wrong.err(); err != nil {
		return fmt.Errorf("ramp: the player that the game returned: %w", err)
	}
	return nil
}

// From here on it is net/http, and nothing else.

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP]
// serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)

// ServeHTTP serves the three endpoints on PathAssets, PathValidate and
// PathResult, and answers 404 for every other path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case PathAssets:
		h.Assets(w, r)
	case PathValidate:
		h.Validate(w, r)
	case PathResult:
		h.Result(w, r)
	default:
		refusal := &Refusal{Status: http.StatusNotFound, Code: CodeNotFound}
		for _, path := range []string{PathAssets, PathValidate, PathResult} {
			if strings.HasSuffix(r.URL.Path, path) { // the console and the mux disagree
				refusal.Err = fmt.Errorf("ramp: the path %s has a prefix: mount the handler with http.StripPrefix, or its methods one by one", path)
				h.answer(r.Context(), strings.TrimPrefix(path, "/api/"), func(*call) (any, error) { return nil, refusal })
			}
		}
		h.refuse(refusal).Write(w)
	}
}

// Assets is the Get Assets endpoint (interface 4.3).
func (h *Handler) Assets(w http.ResponseWriter, r *http.Request) {
	if h.allows(w, r, http.MethodGet) {
		h.AnswerAssets(r.Context(), r.Header).Write(w)
	}
}

// Validate is the Validate Order endpoint (interface 4.3).
func (h *Handler) Validate(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "validate", h.AnswerValidate)
}

// Result is the result endpoint (interface 4.3).
func (h *Handler) Result(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "result", h.AnswerResult)
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, endpoint string,
	answer func(context.Context, http.Header, []byte) Reply) {
	if !h.allows(w, r, http.MethodPost) {
		return
	}
	body, err := h.readBody(w, r)
	if err != nil {
		h.answer(r.Context(), endpoint, func(*call) (any, error) { return nil, err }).Write(w)
		return
	}
	answer(r.Context(), r.Header, body).Write(w)
}

// readBody reads nothing of a body that is too large, or that has no HMAC of the
// right form, and makes room for a large one only as it comes.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.config.MaxBody {
		return nil, refusalOf(h.tooLarge())
	}
	if _, err := hmacHeader(r.Header); err != nil {
		return nil, refusalOf(err)
	}
	const maxAtOnce = 32 << 10
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxAtOnce)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refusalOf(h.tooLarge())
	case err != nil: // a timeout or a broken connection: a result must come again
		return nil, fmt.Errorf("ramp: read the body: %w", err)
	}
	return body.Bytes(), nil
}

func (h *Handler) allows(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	h.refuse(&Refusal{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed}).Write(w)
	return false
}
