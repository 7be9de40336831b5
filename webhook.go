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
	"time"

	"github.com/ethereum/go-ethereum/common"
)

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
