package ramptest

import (
	"context"
	"errors"
	"math/big"
	"net/http"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
)

// Imbalance is an error which reports that the game has lost assets, or moved them
// twice or wrongly.
type Imbalance struct {
	Orders  []uuid.UUID // the orders of the calls; several if calls overlapped
	Problem string      // what is wrong, in words
	// the assets whose balance is wrong; none if the game approved more than the player owned
	Assets []AssetBalance
}

// AssetBalance is a player's balance of an asset before and after a call, and the
// balance expected after it.
type AssetBalance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

// Error returns the problem.
func (i *Imbalance) Error() string { return "ramptest: " + i.Problem }

// imbalances returns findings as the service reports them.
func imbalances(found []*audit.Finding) (all []*Imbalance) {
	for _, f := range found {
		i := &Imbalance{Orders: f.Orders, Problem: f.Problem}
		for _, a := range f.Assets {
			i.Assets = append(i.Assets, AssetBalance(a))
		}
		all = append(all, i)
	}
	return all
}

// take returns the findings about an order that were not returned before, as an error. It
// returns nil unless the mode is BooksFail.
func (s *shared) take(id uuid.UUID) error {
	if s.config.Books != BooksFail {
		return nil
	}
	var errs []error
	for _, found := range imbalances(s.audit.Take(id)) {
		errs = append(errs, found)
	}
	return errors.Join(errs...)
}

const movedTwice = "\nAssets moved twice. Either the game moves them in two places, such as a handler and " +
	"a job. Or it uses a rampsql.Store, whose first attempt at each step was rolled back, and something " +
	"stayed: Apply must use tx for every statement, and tables with transactions, so not MyISAM."

// otherEmulator is the cause that no books can see.
const otherEmulator = "\nAn order of another emulator looks like this, too, because each emulator knows " +
	"only its own orders. If a second one uses this game, such as that of another test, give it a game of " +
	"its own."

// causes explains findings whose cause may be one that the books do not see. If assets moved exactly twice,
// two parts of the game may have moved them, or a rampsql.Store behind [Config.Handler] may have rolled back
// less than an Apply has done. These, and what moves for no order, may be orders of another emulator.
func causes(found []*Imbalance) string {
	between := false
	for _, f := range found {
		between = between || len(f.Orders) == 0
		for _, a := range f.Assets {
			moved := new(big.Rat).Sub(a.After.Rat(), a.Before.Rat())
			due := new(big.Rat).Sub(a.Expected.Rat(), a.Before.Rat())
			if due.Sign() != 0 && moved.Cmp(due.Add(due, due)) == 0 {
				return movedTwice + otherEmulator
			}
		}
	}
	if between {
		return otherEmulator
	}
	return ""
}

// rejectsSession reports whether an error of an assets call means that the game rejected the session.
func rejectsSession(err error) bool {
	r := rejectionOf(err)
	return r != nil && r.Status < http.StatusInternalServerError
}

// newAudit returns the books of a service, which ask its game and write its record.
func (s *shared) newAudit(ask func(context.Context, ramp.Session, uuid.UUID) (*ramp.Player, int,
	error)) *audit.Books {
	return audit.New(audit.Config{Off: s.config.Books == BooksOff, Closed: s.config.Closed,
		Settle: s.config.Settle, Regenerating: s.config.Regenerating,
		Ask: ask, Rejects: rejectsSession, Changed: func(id uuid.UUID) { s.changes.note(id) },
		Judged: func(id uuid.UUID, said string, found *audit.Finding) {
			if found != nil {
				for _, id := range found.Orders {
					s.history.Lose(id, found.Problem)
				}
			}
			if id == uuid.Nil && !s.config.isUnitTest() {
				return // players play
			}
			s.history.Add(control.Event{Time: s.clock.Now(), Kind: control.KindBooks,
				UUID: id, Outcome: said, Failed: found != nil})
		}})
}
