package rampsql

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// rehearse takes the steps of a trial order as Update does, and rolls them back. It locks
// nothing but its own row.
func (s *Store) rehearse(ctx context.Context) error {
	if s.config.ASCIISessions {
		return s.tryUpdate(ctx, "Ramp check", "ramp check")
	}
	// Characters that a character set may lack, and two sessions that a collation may take for it.
	err := s.tryUpdate(ctx, "Ramp check \u00c1\u73a9\U0001f642",
		"ramp check \u00c1\u73a9\U0001f642", "Ramp check A\u73a9\U0001f642")
	if err == nil || ctx.Err() != nil || errors.Is(err, errSameSession) || s.config.Retryable(err) {
		return err // which is not about characters
	}
	if plain := s.tryUpdate(ctx, "Ramp check", "ramp check"); plain != nil {
		return plain
	}
	return fmt.Errorf("who has a character such as \u00c1, \u73a9 or \U0001f642 in the session cannot "+
		"trade, or what Apply grants goes to a row that nobody owns: use a character set that has them, "+
		"or set Config.ASCIISessions if no session has one: %w", err)
}

// warn logs what fails no order of most players.
func (s *Store) warn(ctx context.Context, what string, err error) {
	cmp.Or(s.config.Logger, slog.Default()).WarnContext(ctx, "ramp: check", "warning", what, "error", err)
}

// tryUpdate tries until an order would have ended: the service repeats a call that raced others.
func (s *Store) tryUpdate(ctx context.Context, session string, similar ...string) error {
	const repeats = 20
	for n := 0; ; n++ {
		err := s.tryOrder(ctx, session, similar)
		if err == nil || n == s.config.Retries+repeats || !s.config.Retryable(err) || !wait(ctx, n) {
			return err
		}
	}
}

var errSameSession = errors.New("the collation of session_id takes one session for another: " +
	"create it as Dialect.Schema does")

// tryOrder makes one trial order of a session and rolls it back.
func (s *Store) tryOrder(ctx context.Context, session string, similar []string) error {
	id := uuid.New()
	err := s.tryRolledBack(ctx, id, session, similar)
	if changed := (*ramp.ConflictError)(nil); errors.As(err, &changed) {
		err = fmt.Errorf("the database has changed its %s: "+
			"the column, or the connection, has another character set", changed.Field)
	}
	if err == nil {
		_, gone := s.one(ctx, "trial order", "WHERE uuid = $1", id.String())
		switch {
		case gone == nil:
			err = errors.New("its row stays: the database, or a proxy, has committed each statement")
		case !errors.Is(gone, ramp.ErrOrderUnknown):
			err = gone
		}
	}
	if err != nil {
		return fmt.Errorf("a trial order, which is rolled back, fails as every order would: %w", err)
	}
	return nil
}

func (s *Store) tryRolledBack(
	ctx context.Context, id uuid.UUID, session string, similar []string,
) (err error) {
	token, one := common.Address{19: 1}.Hex(), ramp.NewAmount(1)
	r := &ramp.ValidateRequest{
		UUID: id, ProjectID: "ramp check", UserAddress: token,
		Intent: ramp.Intent{
			Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: session, Amount: one}},
			To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: one}},
		},
	}
	rand.Read(r.Digest[:]) // never fails
	result := &ramp.Result{
		UUID: id, TxHash: r.Digest.String(), Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)},
	}
	now := time.Now()
	accept, finish := ramp.Accept(ramp.Session{ID: session}, r, now), ramp.Finish(result, now)

	t, err := s.begin(ctx, pool{s.config.DB, s.config.TxOptions, &s.hooks})
	if err != nil {
		return fmt.Errorf("begin, with Config.TxOptions: %w", err)
	}
	defer func() {
		if failed := t.close(ctx); err == nil {
			err = failed
		}
	}()
	for n, next := range []ramp.Transition{accept, accept, finish, finish} {
		opened, err := openingStep(next)
		if err != nil {
			return err
		}
		step, _, err := s.update(ctx, t.tx(), id, &opened, next)
		if err != nil {
			return err
		}
		if repeat := n%2 == 1; step.New == repeat {
			return errNoKey
		}
	}
	var rows, same int
	var shown string
	query, args := s.bind(
		"SELECT COUNT(*), COUNT(CASE WHEN session_id IN ($1, $2) THEN 1 END), MAX(session_id)"+
			" FROM ramp_orders WHERE uuid = $3", similar[0], similar[len(similar)-1], id.String())
	switch err := t.tx().QueryRowContext(ctx, query, args...).Scan(&rows, &same, &shown); {
	case err != nil:
		return err
	case rows != 1:
		return errNoKey
	case same != 0:
		return errSameSession
	case shown != session:
		return fmt.Errorf("the connection turns %q into %q: on MySQL, set charset=utf8mb4", session, shown)
	}
	return nil
}

var errNoKey = errors.New("its UUID has two rows: the table has no primary key, as Dialect.Schema creates it")
