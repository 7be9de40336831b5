package ramp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
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

// confirmationWait bounds how long one delivery waits for the chain, because the
// service does not wait forever, and delivers again.
const confirmationWait = 5 * time.Second

// confirm asks the chain of the handler whether a result tells the truth.
func (h *Handler) confirm(ctx context.Context, result *Result) (*Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	return h.config.Chain.Confirm(ctx, result, h.config.Confirmations)
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
