package rampbooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Decide stores what a person decided about a finding of the books, and returns it as it is stored.
// Who, Reason, Finding, and Order or TxHash are required; Moved says what the person moved. To reverse
// a decision, set Who, Reason and Reverses: the reversal is an entry, too. Without a Moved of its own,
// it has the amounts of the decision with the opposite sign. [Config].Journal is required.
//
// It moves nothing itself. It fails if the finding has a decision that is not reversed, so that what a
// person did is in the books once.
func (r *Reconciler) Decide(ctx context.Context, e Entry) (Entry, error) {
	if err := r.made(); err != nil {
		return Entry{}, err
	}
	j := r.config.Journal
	if j == nil {
		return Entry{}, invalid.Field("Config.Journal", "is required")
	}
	var wrong invalid.Fields
	if wrong.Reason("Entry", e.Who, e.Reason); wrong != nil {
		return Entry{}, wrong.Err()
	}
	entries, err := j.Entries(ctx, time.Time{})
	if err != nil {
		return Entry{}, err
	}
	if e.Reverses != uuid.Nil {
		err = e.reverse(entries)
	} else {
		err = r.checkDecision(ctx, &e, entries)
	}
	if err != nil {
		return Entry{}, err
	}
	e.Who, e.Reason = strings.TrimSpace(e.Who), strings.TrimSpace(e.Reason)
	e.At = r.config.Now().UTC().Truncate(time.Millisecond)
	e.ID = e.id(entries)
	if err := j.Add(ctx, e); err != nil {
		return Entry{}, err
	}
	r.log().WarnContext(ctx, "ramp: finding decided", "entry", e.ID.String(),
		"who", e.Who, "reason", e.Reason, "kind", string(e.Finding), "uuid", e.Order.String(),
		"tx_hash", e.TxHash.Hex(), "moved", movedText(e.Moved), "reverses", e.Reverses.String())
	return e, nil
}

// reverse makes the entry the reversal of a decision.
func (e *Entry) reverse(entries []Entry) error {
	at := slices.IndexFunc(entries, func(d Entry) bool { return d.ID == e.Reverses && d.Finding != "" })
	switch {
	case at < 0 || entries[at].Reverses != uuid.Nil:
		return fmt.Errorf("ramp: %s is no decision", e.Reverses)
	case slices.ContainsFunc(entries, func(d Entry) bool { return d.Reverses == e.Reverses }):
		return fmt.Errorf("ramp: decision %s has been reversed before", e.Reverses)
	}
	d := &entries[at]
	if e.Finding != "" && e.Finding != d.Finding || e.Order != uuid.Nil && e.Order != d.Order ||
		e.TxHash != (common.Hash{}) && e.TxHash != d.TxHash {
		return invalid.Field("Entry.Reverses", "is a decision about another Finding, Order or TxHash: leave "+
			"these empty")
	}
	e.Finding, e.Order, e.TxHash = d.Finding, d.Order, d.TxHash
	if e.Moved == nil {
		e.Moved = map[string]Amount{}
		for id, amount := range d.Moved {
			e.Moved[id] = amount.negated()
		}
	}
	return nil
}

// checkDecision returns an error if a decision cannot be one.
func (r *Reconciler) checkDecision(ctx context.Context, e *Entry, entries []Entry) error {
	var wrong invalid.Fields
	wrong.Require(slices.Contains(FindingKinds(), e.Finding), "Entry.Finding", "must be a kind of finding")
	wrong.Require(e.Order != uuid.Nil || e.TxHash != common.Hash{}, "Entry.Order", "or TxHash is required")
	if err := wrong.Err(); err != nil {
		return err
	}
	if e.Order != uuid.Nil {
		if _, err := r.order(ctx, e.Order); err != nil {
			return err
		}
	}
	if d := newJournal(entries).active[e.subject()]; d != nil {
		return fmt.Errorf("ramp: %s decided this at %s: reverse entry %s first: %w",
			d.Who, d.At.Format(time.RFC3339), d.ID, ErrDecided)
	}
	return nil
}

// ErrDecided is wrapped by the error of [Reconciler.Decide] if the finding already has a decision.
var ErrDecided = errors.New("the finding is decided")

// id follows from the subject and from how often it was decided, so that of two persons who decide
// at the same moment only one is stored.
func (e *Entry) id(entries []Entry) uuid.UUID {
	n := 0
	for i := range entries {
		if entries[i].subject() == e.subject() {
			n++
		}
	}
	return uuid.NewSHA1(e.Order, append(e.TxHash[:], string(e.Finding)+strconv.Itoa(n)...))
}
