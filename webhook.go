package ramp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Game is the studio's side of the three endpoints. Its methods are called
// concurrently. [NewOrderGame] makes a Game that handles orders correctly.
type Game interface {
	// Authenticate checks that the token belongs to the session, for assets and
	// validate calls (interface 5.1). nil accepts the call, [Reject] answers 401
	// with its code, and any other error answers 500.
	Authenticate(ctx context.Context, s Session) error

	// Assets returns what the service shows of the user (interface 2.4). It is
	// called after Authenticate.
	Assets(ctx context.Context, s Session) (*Player, error)

	// Validate approves or declines a mint or a burn (interface 2.5). It is called
	// after Authenticate, with a well-formed request. The game must check the rest:
	// that the token is its own and the rate is the one that it offers
	// ([InitializeIntent.CheckTerms]), that the player has the assets, and its
	// policy. For a mint it takes the assets here, durably and once per UUID;
	// [ValidateRequest.Effect] says which. nil approves and releases the signature,
	// [Reject] declines, and any other error answers 500.
	Validate(ctx context.Context, s Session, r *ValidateRequest) error

	// Result reports the outcome of a transaction (interface 6). It is called at
	// least once per UUID, possibly many times, concurrently and on any machine,
	// and its effect must happen once. nil answers 200, [Permanent] 400, and any
	// other error 500, so that the service delivers the result again.
	//
	// Use the order that was stored at validate under r.UUID, and r.Receipt.Status.
	// The rest of r may be missing: the service does not redeliver a refused
	// result, so one with other unreadable fields is passed on too (see
	// [Result.Unreadable]).
	//
	// Authenticate is not called, because the token may have expired during the 12
	// hours of redelivery. The HMAC authenticates the caller, but does not cover
	// the headers. So s may be empty, and s.ID is only as trustworthy as
	// r.SessionID.
	Result(ctx context.Context, s Session, r *Result) error
}

// Handler serves the three endpoints of the studio (interface 4.3). Make one with
// [NewHandler] and share it: it is safe for concurrent use.
//
// Mount Assets, Validate and Result on the paths that are set in the console, or
// the Handler itself for the paths of the interface's examples. With another
// framework, or without HTTP, pass headers and bytes to AnswerAssets,
// AnswerValidate and AnswerResult, which do all of the work.
type Handler struct {
	config    HandlerConfig
	confirmed []byte // the answer to every accepted result
}

// HandlerConfig configures a [Handler]. Game, Key and Signer are required. Every
// other field may be zero, which means its default.
type HandlerConfig struct {
	// Game handles the calls. [NewOrderGame] makes one that applies each order
	// exactly once. Required.
	Game Game

	// Key is the HMAC key of the console, from [TextKey] or [Base64URLKey].
	// Validate and result calls must be signed with it (interface 5.2). Required.
	Key HMACKey

	// Signer signs the orders that Game approves (interface 5.3). Required.
	Signer *Signer

	// ProjectID is the project_id from the console. Validate calls for other
	// projects are refused with HTTP 400. By default every project is accepted, and
	// a game that serves several must tell them apart in [Game.Validate].
	//
	// A result does not name its project (interface 6). If projects with different
	// HMAC keys share a database, set [OrderGameConfig].ProjectID too.
	ProjectID string

	// Chain, if set, confirms every result on the chain before [Game.Result] is
	// called, so that a stolen HMAC key cannot invent a transaction. The game gets
	// the chain's receipt instead of the service's. See [RPC.Confirm] for what is
	// compared. By default results are not confirmed.
	//
	// A result that is not confirmed within 5 seconds is answered with HTTP 500,
	// whether the node is unreachable, behind, or disagrees. The service then
	// delivers it again. The cause is logged. If it persists, investigate.
	//
	// A result does not name its network (interface 6). Give each network its own
	// handler, path and project, and set [RPCConfig].ChainID. Otherwise a
	// transaction on a testnet could pay for an order of the mainnet.
	Chain *RPC

	// Confirmations is how many confirmations Chain waits for, counting the block
	// of the transaction itself. The default is 1. The service first redelivers
	// after 5 minutes (interface 8), so require no more confirmations than the
	// chain makes blocks in 5 seconds, or accept the delay. It must be 0 without
	// Chain.
	Confirmations uint64

	// DeclineStatus is the HTTP status of an order that the game declines with
	// [Reject]: 200, or 400 to 499. The default is 200, as in section 4.3 of the
	// interface. The service's public guide uses 400.
	DeclineStatus int

	// TranslateCode translates every errorCode before it is sent, including those
	// of [Reject], because the interface does not say which values the service
	// knows (7.2). If it returns an empty code or panics, the code is sent
	// unchanged. By default no code is translated.
	TranslateCode func(Code) Code

	// MaxBody is the maximum size of a body in bytes. A larger body is answered
	// with HTTP 413. The default is 1 MiB. The interface does not set a limit.
	//
	// The handler reads no body without a well-formed HMAC header. With one, a
	// connection can hold up to MaxBody until the HMAC is checked, so limit the
	// number of connections and set ReadTimeout of your [http.Server].
	MaxBody int64

	// Logger gets one record per call, "ramp: call", with endpoint, status,
	// duration and outcome. If known, it also has uuid, direction, tx_hash, new
	// (false for a repeat; set by [OrderGame]), conflict (the field that
	// contradicts the order), unreadable, and error (the cause of a failure). No
	// record holds a token, a key, a signature or a body. By default only failures
	// are logged, to [slog.Default]. slog.New(slog.DiscardHandler) logs nothing.
	Logger *slog.Logger

	// Observer observes every call, for metrics and traces, except requests with
	// the wrong method or an unknown path. Its Step is not used here; set it in
	// [OrderGameConfig]. By default nothing is observed.
	Observer Observer
}

// NewHandler returns a handler for c.Game. The error is an [*InvalidError] that
// lists every missing or wrong field of c. [errors.Is] finds [ErrHMACKey] if the
// key is missing, and [ErrValidatorKey] if the signer is.
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

// AnswerAssets answers an assets call (interface 2.4) from its headers.
func (h *Handler) AnswerAssets(ctx context.Context, header http.Header) Reply {
	var s Session
	return h.answer(ctx, "assets", func(*call) (err error) {
		s, err = ParseSession(header)
		return err
	}, func(call *call) (any, error) {
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
	var r *ValidateRequest
	var s Session
	return h.answer(ctx, "validate", func(call *call) (err error) {
		if err := h.authentic(header, body); err != nil {
			return err
		}
		if r, err = ParseValidate(body); err != nil {
			return err
		}
		call.op.UUID = r.UUID
		call.op.Direction, _ = r.Intent.Direction()
		if h.config.ProjectID != "" && r.ProjectID != h.config.ProjectID {
			return invalid("project_id", "is not the project of this handler")
		}
		s, err = ParseSession(header)
		return err
	}, func(call *call) (any, error) {
		if err := h.config.Game.Authenticate(call, s); err != nil {
			return nil, gameRefusal(err, http.StatusUnauthorized)
		}
		// Sign before the game commits, and release the signature only after it
		// did: then a signer that is down costs no player anything.
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
	var r *Result
	var s Session
	return h.answer(ctx, "result", func(call *call) (err error) {
		if err := h.authentic(header, body); err != nil {
			return err
		}
		if r, err = ParseResult(body); err != nil {
			return unreadableResult(err)
		}
		call.op.UUID, call.op.TxHash, call.unreadable = r.UUID, normalizeTxHash(r.TxHash), r.Unreadable
		call.op.Direction, _ = r.Intent.Direction()
		s, err = resultSession(header, r)
		return err
	}, func(call *call) (any, error) {
		if h.config.Chain != nil {
			receipt, err := h.confirm(call, r)
			if err != nil { // an internal error, whatever it wraps
				return nil, fmt.Errorf("ramp: the result is not confirmed: %w", err)
			}
			r.Receipt = *receipt
		}
		if err := h.config.Game.Result(call, s, r); err != nil {
			refusal := gameRefusal(err, http.StatusInternalServerError)
			if refusal.Status != http.StatusBadRequest || refusal.Code != CodePermanent {
				refusal.Status = http.StatusInternalServerError // so that the service delivers it again
			}
			return nil, refusal
		}
		return bytes.Clone(h.confirmed), nil
	})
}

// confirmationWait limits how long one delivery waits for the chain, because the
// service does not wait forever, but delivers again.
const confirmationWait = 5 * time.Second

// confirm verifies a result on the handler's chain.
func (h *Handler) confirm(ctx context.Context, result *Result) (*Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	return h.config.Chain.Confirm(ctx, result, h.config.Confirmations)
}

// unreadableResult returns the answer to an authentic result without a UUID or a
// status. The status is 500, so that the service delivers the result again while a
// fix is deployed. A body that is not a JSON object stays 400.
func unreadableResult(err error) *Refusal {
	refusal := refusalOf(err)
	if refusal.Code != codeInvalidBody {
		refusal.Status = http.StatusInternalServerError
	}
	return refusal
}

// resultSession returns the session of a result. The body is signed and the headers
// are not. The headers may be missing, because a result can arrive 12 hours after
// its validate call, but they must not contradict the body.
func resultSession(header http.Header, r *Result) (Session, error) {
	signed := strings.TrimSpace(r.SessionID)
	id, _ := sessionID(header)
	switch {
	case id == "":
		id = signed
	case signed != "" && signed != id:
		return Session{}, &Refusal{Status: http.StatusInternalServerError, Code: CodeSessionMismatch,
			Err: errors.New("ramp: X-Dapp-SessionID contradicts the signed body")}
	}
	token, _ := bearerToken(header)
	return Session{ID: id, Token: token}, nil
}

// authentic checks the size and the HMAC of a body before anything reads it.
func (h *Handler) authentic(header http.Header, body []byte) error {
	if int64(len(body)) > h.config.MaxBody {
		return h.tooLarge()
	}
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	err = h.config.Key.Verify(body, signature)
	encoding, _ := singleHeader(header, "Content-Encoding")
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return fmt.Errorf("%w (the body is empty: middleware may have consumed it)", err)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf("%w (the body has a Content-Encoding, but the HMAC covers the body that the service sent)", err)
	}
	return err
}

// hmacHeader returns a well-formed signature.
func hmacHeader(header http.Header) (string, error) {
	signature, ok := singleHeader(header, HeaderHMAC)
	if !ok {
		return "", fmt.Errorf("ramp: %w: it occurs more than once", ErrHMACInvalid)
	}
	_, err := decodeHMAC(signature)
	return signature, err
}

func (h *Handler) tooLarge() error {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Err: fmt.Errorf("ramp: the body is too large: the limit is %d bytes; raise HandlerConfig.MaxBody", h.config.MaxBody)}
}
