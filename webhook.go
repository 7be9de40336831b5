package ramp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/rollback"
)

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP] serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)

// ReadValidate verifies and reads a validate call (interface 2.5, 5), so that nothing of its body is
// read before the HMAC holds. body is the raw body, which ReadValidate copies. The session is what
// the headers claim: check its token, and the order with [Terms.Match]. The error is a [*Rejection] or
// an [*InvalidError], and [RejectionOf] says how to answer it. Bound the body before you read it. A
// [Handler] does all of this by itself.
func ReadValidate(key HMACKey, header http.Header, body []byte) (*ValidateRequest, Session, error) {
	if err := verify(key, header, body); err != nil {
		return nil, Session{}, err
	}
	r, _, err := readValidateCall(bytes.Clone(body))
	if err != nil {
		return nil, Session{}, err
	}
	s, err := ParseSession(header)
	if err != nil {
		return nil, Session{}, err
	}
	return r, s, nil
}

// ReadResult verifies and reads a result (interface 6, 5), as [ReadValidate] does. The session is that
// of the signed body or, if it has none, that of the header. Its token may be missing or have expired,
// because a result can arrive more than 12 hours after its validate call.
//
// Whatever the error is, answer HTTP 500: the service then delivers the result again.
func ReadResult(key HMACKey, header http.Header, body []byte) (*Result, Session, error) {
	if err := verify(key, header, body); err != nil {
		return nil, Session{}, err
	}
	r, _, err := readResultCall(bytes.Clone(body))
	if err != nil {
		return nil, Session{}, err
	}
	s, _ := resultSession(header, r)
	return r, s, nil
}

// verify checks the HMAC of a body.
func verify(key HMACKey, header http.Header, body []byte) error {
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	return key.Verify(body, signature)
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

// readValidateCall reads the body of an authentic validate call. id is its UUID, or that of a result
// that came to the address of validate calls.
func readValidateCall(body []byte) (r *ValidateRequest, id uuid.UUID, err error) {
	if r, err = parseValidate(body); err == nil {
		return r, r.UUID, nil
	}
	if result, _ := parseResult(body); result != nil {
		return nil, result.UUID, misplaced("a result", "validate calls", err)
	}
	return nil, uuid.Nil, err
}

// readResultCall reads the body of an authentic result, as readValidateCall does.
func readResultCall(body []byte) (r *Result, id uuid.UUID, err error) {
	if r, err = parseResult(body); err == nil {
		return r, r.UUID, nil
	}
	if request, _ := parseValidate(body); request != nil {
		return nil, request.UUID, misplaced("a validate call", "results", err)
	}
	return nil, uuid.Nil, err
}

// misplaced returns the error of an authentic call that came to the address of the others.
// HTTP 500 leaves 12 hours to correct the console.
func misplaced(call, others string, err error) error {
	answer := internalError(fmt.Errorf("ramp: %s came to the address of %s: in the console, the address of "+
		"validate calls must end in %s and that of results in %s, or be where you mounted "+
		"Handler.Validate and Handler.Result (%w)", call, others, PathValidate, PathResult, err))
	answer.Code = rejectionOf(err, 0).Code
	return answer
}

// resultSession takes the session of a result from its body, which is signed. The headers are not,
// and may be missing. unsigned is the session of the header if it is another one.
func resultSession(header http.Header, r *Result) (s Session, unsigned string) {
	unsigned, _ = sessionID(header)
	s.ID = cmp.Or(strings.TrimSpace(r.SessionID), unsigned)
	s.Token, _ = bearerToken(header)
	if unsigned == s.ID {
		unsigned = ""
	}
	return s, unsigned
}

// Answer answers any call from its method, path, headers and raw body, as ServeHTTP does. It is for
// frameworks that do not use net/http, and for calls that come without HTTP. Route every
// call below a prefix, such as /game/api/, to Answer. Pass it the path from /api on, such as
// /api/result, and send the whole [Reply]. If a router answers a
// result by itself, the service does not send that result again. If the console has other paths,
// pass [PathAssets], [PathValidate] or [PathResult] in their place. Answer keeps neither header nor
// body.
func (h *Handler) Answer(ctx context.Context, method, path string, header http.Header, body []byte) Reply {
	switch {
	case method == http.MethodGet && path == PathAssets:
		return h.answerAssets(ctx, header)
	case method == http.MethodPost && path == PathValidate:
		return h.answerValidate(ctx, header, body, bytes.Clone)
	case method == http.MethodPost && path == PathResult:
		return h.answerResult(ctx, header, body, bytes.Clone)
	case path == PathAssets:
		return h.astray(ctx, method, path, header, http.MethodGet)
	case path == PathValidate, path == PathResult:
		return h.astray(ctx, method, path, header, http.MethodPost)
	default:
		return h.astray(ctx, method, path, header, "")
	}
}

// answerAssets answers an assets call (interface 2.4).
func (h *Handler) answerAssets(ctx context.Context, header http.Header) Reply {
	return h.answer(ctx, "assets", func(c *call) (err error) {
		c.session, err = ParseSession(header)
		return err
	}, func(ctx context.Context, c *call) (any, error) {
		c.asked.ask("Players.Authenticate")
		if err := h.config.Players.Authenticate(ctx, c.session); err != nil {
			return nil, gameRejection(err, http.StatusUnauthorized)
		}
		rollback.Admit(ctx) // in a test
		c.asked.ask("Players.Assets")
		player, err := h.config.Players.Assets(ctx, c.session)
		if err != nil {
			return nil, gameRejection(err, h.config.RejectStatus)
		}
		if err := player.check(); err != nil {
			return nil, err
		}
		h.warnUnlisted(ctx, player)
		return AssetsData{*player}, nil
	})
}

// answerValidate answers a validate call (interface 2.5). What it keeps of body is copied by keep.
func (h *Handler) answerValidate(ctx context.Context, header http.Header, body []byte,
	keep func([]byte) []byte) Reply {
	var r *ValidateRequest
	var unoffered *Rejection // by the terms: only a repeat of what they accepted may go on
	return h.answer(ctx, "validate", func(c *call) (err error) {
		if err := h.authentic(c, header, body); err != nil {
			return err
		}
		if r, c.op.UUID, err = readValidateCall(keep(body)); err != nil {
			return err
		}
		c.op.Direction, _ = r.Intent.Direction()
		c.options = options(r.Intent.TargetCandidate) != nil
		if err := h.config.Terms.Match(r); err != nil && !errors.As(err, &unoffered) {
			return err
		}
		if c.session, err = ParseSession(header); err != nil && unoffered != nil {
			return unoffered
		}
		return err
	}, func(ctx context.Context, c *call) (any, error) {
		accept := Accept(c.session, r, h.config.Now())
		if unoffered != nil {
			var err error
			if accept, err = h.unlessRepeat(ctx, c, accept, unoffered); err != nil {
				return nil, gameRejection(err, h.config.RejectStatus)
			}
		}
		c.asked.ask("Players.Authenticate")
		if err := h.config.Players.Authenticate(ctx, c.session); err != nil {
			return nil, gameRejection(err, http.StatusUnauthorized)
		}
		if err := h.askGame(ctx, c, r); err != nil {
			if accept, err = h.unlessRepeat(ctx, c, accept, err); err != nil {
				return nil, gameRejection(err, h.config.RejectStatus)
			}
		}
		// Sign before the game commits, and release the signature only after it
		// did: then a signer that is down costs no player anything.
		c.op.Signed = true
		c.asked.ask("the signer")
		signature, err := h.config.Signer.sign(ctx, h.config.SignTimeout, r.Digest)
		if err != nil {
			return nil, err
		}
		if err := h.validate(ctx, c, accept); err != nil {
			return nil, err
		}
		return Approval{r.UserSig, signature}, nil
	})
}

// askGame asks Policy and Wallet about a validate call.
func (h *Handler) askGame(ctx context.Context, c *call, r *ValidateRequest) error {
	if h.config.Policy != nil {
		c.asked.ask("HandlerConfig.Policy")
		if err := h.config.Policy(ctx, c.session, r); err != nil {
			return err
		}
	}
	if h.config.Wallet == nil {
		return nil
	}
	c.asked.ask("HandlerConfig.Wallet")
	return h.config.Wallet(ctx, c.session, common.HexToAddress(r.UserAddress))
}

// unlessRepeat returns why a call is rejected, unless the call repeats what was accepted and the
// rejection does not cover repeats: the player has paid, so the rules of today do not judge it. The
// transition that it returns opens no order.
func (h *Handler) unlessRepeat(
	ctx context.Context, c *call, accept Transition, rejected error,
) (Transition, error) {
	var rejection *Rejection
	if !errors.As(rejected, &rejection) || rejection.Repeats {
		return nil, rejected
	}
	accept = repeatOnly(accept)
	c.asked.ask("HandlerConfig.Store")
	switch repeat, err := h.repeats(ctx, c.op.UUID, accept); {
	case err != nil:
		return nil, err
	case !repeat:
		return nil, rejected
	default:
		return accept, nil
	}
}

// warnUnlisted logs, for each asset of the terms, the first list that does not have it.
// The service then shows no balance, for example because of a wrong ID, and nobody can
// trade it.
func (h *Handler) warnUnlisted(ctx context.Context, player *Player) {
	for _, offer := range h.config.Terms.valid() {
		for _, item := range slices.Concat(offer.Materials, offer.Outputs) {
			if slices.ContainsFunc(player.Assets, func(a Asset) bool { return a.ID == item.ID }) {
				continue
			}
			if _, again := h.warned.LoadOrStore(item.ID, true); !again {
				runHook(ctx, "Logger", func() {
					h.logger().LogAttrs(ctx, slog.LevelWarn,
						"ramp: an asset of the terms is not in a player's list",
						slog.String("asset", item.ID))
				})
			}
		}
	}
}

// answerResult answers a result call (interface 6). What it keeps of body is copied by keep.
func (h *Handler) answerResult(ctx context.Context, header http.Header, body []byte,
	keep func([]byte) []byte) Reply {
	var r *Result
	return h.answer(ctx, "result", func(c *call) (err error) {
		if err := h.authentic(c, header, body); err != nil {
			return err
		}
		if r, c.op.UUID, err = readResultCall(keep(body)); err != nil {
			return err
		}
		c.op.TxHash, c.unreadable = normalizeTxHash(r.TxHash), r.Unreadable
		c.op.Direction, _ = r.Intent.Direction()
		c.session, c.unsigned = resultSession(header, r)
		return nil
	}, func(ctx context.Context, c *call) (any, error) {
		if err := h.result(ctx, c, r); err != nil {
			return nil, gameRejection(err, http.StatusInternalServerError)
		}
		return nil, nil
	})
}

// validate accepts an order and applies its effect. A call that contradicts the order
// stored under its UUID is rejected with [CodeOrderConflict], and one for a finished order
// with [CodeOrderFinished].
func (h *Handler) validate(ctx context.Context, c *call, accept Transition) error {
	_, err := accept(nil)
	if err != nil && !errors.Is(err, ErrOrderUnknown) { // an error of the call, not of the store
		return rejectionOf(err, h.config.RejectStatus)
	}
	finished := false // by the rules; an error of Apply can wrap ErrOrderFinished, too
	err = h.update(ctx, c, func(stored *Order) (step Step, err error) {
		step, err = accept(stored)
		finished = errors.Is(err, ErrOrderFinished)
		return step, err
	})
	switch {
	case err == nil:
		return nil
	case c.op.Conflict != nil:
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderConflict, Err: err}
	case finished && errors.Is(err, ErrOrderFinished):
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderFinished, Err: err}
	default:
		return gameRejection(err, h.config.RejectStatus)
	}
}

// repeats reports whether a call repeats one that was accepted and waits for its result. The
// error is one of the store.
func (h *Handler) repeats(ctx context.Context, id uuid.UUID, accept Transition) (bool, error) {
	var refused error // by the rules
	terms := &h.config.Terms.config
	next := OnlyOf(terms.projects(), terms.Network, accept)
	_, err := h.config.Store.Update(ctx, id, func(stored *Order) (step Step, err error) {
		step, refused = next(stored)
		return step, refused
	})
	if refused != nil && (err == nil || errors.Is(err, refused)) {
		return false, nil
	}
	return err == nil, err
}

// repeatOnly keeps a transition from opening an order.
func repeatOnly(next Transition) Transition {
	return func(stored *Order) (Step, error) {
		if stored == nil {
			return Step{}, ErrOrderUnknown
		}
		return next(stored)
	}
}

// result finishes an order, or notes why that was refused.
func (h *Handler) result(ctx context.Context, c *call, r *Result) error {
	refused := errors.New("ramp: panic")
	defer func() {
		if refused != nil {
			h.refuse(ctx, c, refused)
		}
	}()
	refused = h.finish(ctx, c, r)
	return refused
}

// refuse notes that a result was refused.
func (h *Handler) refuse(ctx context.Context, c *call, refused error) {
	if !c.noteBy.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), c.noteBy)
		defer cancel()
	}
	id, cause := c.op.UUID, refused
	if rejection := (*Rejection)(nil); errors.As(refused, &rejection) && rejection.Err != nil {
		cause = rejection.Err
	}
	if failed := Refuse(ctx, h.config.Store, id, cause); failed != nil {
		h.logger().LogAttrs(ctx, slog.LevelWarn, "ramp: the refusal of a result was not noted",
			slog.String("uuid", id.String()), slog.Any("error", failed))
	}
}

// finish finishes an order and applies its effect. A result for an unknown order is an
// error, so that it is delivered again. One that contradicts its order goes to
// [HandlerConfig].OnConflict.
func (h *Handler) finish(ctx context.Context, c *call, r *Result) error {
	finish := Finish(r, h.config.Now())
	if h.config.Confirm != nil {
		var err error
		c.asked.ask("HandlerConfig.Confirm")
		if finish, err = h.config.Confirm.Confirm(ctx, h.config.Store, r, finish); err != nil {
			// whatever it wraps
			return internalError(fmt.Errorf("ramp: the result is not confirmed: %w", err))
		}
	}
	err := h.update(ctx, c, finish)
	if err == nil && c.op.TxHash != "" && c.op.Step.Order.TxHash != "" &&
		c.op.TxHash != c.op.Step.Order.TxHash {
		c.op.Conflict = &ConflictError{Order: c.op.Step.Order, Field: "tx_hash"} // but answered as a repeat
	}
	conflict := c.op.Conflict
	if conflict == nil || err == nil && h.config.OnConflict == nil {
		return err
	}
	if h.config.OnConflict == nil {
		return fmt.Errorf("%w (set HandlerConfig.OnConflict to hand conflicts to a person)", err)
	}
	c.asked.ask("HandlerConfig.OnConflict")
	if failed := h.config.OnConflict(ctx, conflict, r); failed != nil {
		// A new rejection, so that one inside failed cannot set the code.
		return internalError(fmt.Errorf("%w (OnConflict failed: %w)", conflict, failed))
	}
	// Only an outcome can be read in one way alone. A text, such as a session, may have been stored
	// or read in another character set, and who has ended another order is for a person to correct.
	if err != nil && conflict.Field == conflictOutcome {
		c.handedOver = true
		return &Rejection{Status: http.StatusBadRequest, Code: CodeOrderConflict, Err: conflict}
	}
	return err
}

// update takes a step of the call's order, and records it, or the conflict that it met. Only what
// this transition or the store says of this order is a conflict of the call: an error of Apply can
// wrap any other.
func (h *Handler) update(ctx context.Context, c *call, next Transition) error {
	var own, conflict *ConflictError
	terms := &h.config.Terms.config
	c.asked.ask("HandlerConfig.Store")
	if err := rollback.Fail(ctx); err != nil { // in a test
		return err
	}
	step, err := h.config.Store.Update(ctx, c.op.UUID, OnlyOf(terms.projects(), terms.Network,
		func(stored *Order) (step Step, err error) {
			step, err = next(stored)
			own, _ = err.(*ConflictError) // not one that it wraps
			return step, err
		}))
	switch {
	case err == nil:
		c.op.Step = &step
		return nil
	case errors.Is(err, ErrOrderForeign):
		return fmt.Errorf("%w: correct TermsConfig, or the address in the console", err)
	case !errors.As(err, &conflict):
		return err
	}
	ended := conflict.Other != nil && conflict.Order.UUID == c.op.UUID // by the same transaction
	if conflict == own || ended {
		c.op.Conflict = conflict
	}
	return err
}

// ServeHTTP serves the three endpoints on PathAssets, PathValidate and PathResult, and answers
// everything else with 404 or 405. If a call has a wrong path or method but may be a result, the
// answer is 500: the service sends it again while somebody corrects the address. A call may be a
// result if it has a well-formed X-HMAC-SIGNATURE, or if it is a POST to a path that ends in
// /result.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case PathAssets:
		h.Assets(w, r)
	case PathValidate:
		h.Validate(w, r)
	case PathResult:
		h.Result(w, r)
	default:
		h.astray(r.Context(), r.Method, r.URL.Path, r.Header, "").Write(w)
	}
}

// astray answers what is none of the three calls. allowed is the method of the path if the path
// is that of a call, or else "".
func (h *Handler) astray(ctx context.Context, method, called string, header http.Header,
	allowed string) Reply {
	rejection := &Rejection{Status: http.StatusNotFound, Code: CodeNotFound}
	if allowed != "" {
		rejection = &Rejection{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed}
	}
	endpoint := path.Base(strings.ToLower(called))
	switch {
	case carriesHMAC(header), endpoint == "result" && method == http.MethodPost:
		rejection.Status = http.StatusInternalServerError
	case allowed != "", endpoint != "assets" && endpoint != "validate": // such as a health probe
		return h.reject(rejection).allowing(allowed)
	}
	wanted := PathResult + ", or of validate calls, " + PathValidate
	switch endpoint {
	case "assets":
		wanted = PathAssets
	case "validate":
		wanted = PathValidate
	default:
		endpoint = "result"
	}
	advice := "the path of " + endpoint + " calls is " + wanted +
		": correct the console, a redirect or http.StripPrefix, or mount the methods of the handler"
	if allowed != "" {
		advice = "this path is for " + allowed + ": look for a redirect, which can turn POST into GET"
	}
	rejection.Err = fmt.Errorf("ramp: the handler got %.10s %.100q, but %s", method, called, advice)
	return h.answer(ctx, endpoint, func(*call) error { return rejection }, nil).allowing(allowed)
}

// carriesHMAC reports whether a call has a well-formed HMAC header, right or wrong.
func carriesHMAC(header http.Header) bool {
	wellFormed := func(value string) bool {
		_, err := decodeHMAC(strings.TrimSpace(value))
		return err == nil
	}
	for name, values := range header {
		named := len(name) == len(HeaderHMAC) && strings.EqualFold(name, HeaderHMAC)
		if named && slices.ContainsFunc(values, wellFormed) {
			return true
		}
	}
	return false
}

// Assets serves the Get Assets endpoint (interface 4.3).
func (h *Handler) Assets(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		h.astray(r.Context(), r.Method, r.URL.Path, r.Header, http.MethodGet).Write(w)
		return
	}
	h.answerAssets(r.Context(), r.Header).Write(w)
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
	if r.Method != http.MethodPost {
		h.astray(r.Context(), r.Method, r.URL.Path, r.Header, http.MethodPost).Write(w)
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
	c.ownKey = h.config.Key.Fingerprint()
	switch encoding, _ := singleHeader(header, "Content-Encoding"); {
	case len(body) == 0, !slices.Contains([]string{"", fmt.Sprint(len(body))}, header.Get("Content-Length")):
		return fmt.Errorf(
			"%w (the body has %d bytes, and Content-Length is %.20q: middleware may have read or changed it)",
			err, len(body), header.Get("Content-Length"))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf(
			"%w (the body has a Content-Encoding, but the HMAC covers the body that the service sent)", err)
	}
	return err
}

func (h *Handler) bodyTooLarge(limit int64) error {
	return &Rejection{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Err: fmt.Errorf(
			"ramp: the body is larger than %d bytes: raise that limit (HandlerConfig.MaxBody is %d)", limit,
			h.config.MaxBody)}
}
