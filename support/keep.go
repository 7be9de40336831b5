package support

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/filelock"
)

// KeepBooks compares the orders with the chain at once and then every hour, until ctx is
// done; see [Orders.Reconcile]. Their totals begin where the last books ended, as the file says, or a
// day ago if there is no such file, and their findings [Overlap] earlier. If a backup of the store was
// restored since, the store does not
// have the newest order of these books: they then begin where the store ends, with an error, "ramp: the
// books are newer than the store". Keep the file where it survives the process.
//
// The file says what its books are about. If that is another chain, project or network, or other tokens, the
// books are not read: compare the time of a new token with the command reconcile and its flags -from and
// -position. Only one process keeps the books of a file: another one waits until it has ended.
//
// An order for which the books have found an event is a finding of all later books, too, until it
// has ended: the file names it, with the transaction.
//
// It logs one record for each finding that is listed, "ramp: the books do not close", with
// kind, detail, time, uuid and tx_hash, with fitting, with refused, which says how often,
// since when and why, and with findings and listed if there are more: an error, and only
// information if the last books had it too. "ramp: the books were
// not read", "ramp: the books stand still" and "ramp: the position of the books was not kept"
// have the cause, and "ramp: the books have no position" says where they begin instead.
// report, if not nil, gets the books, to keep their findings and for metrics. If it fails, so do these
// books: the position is not kept, and the next ones have the findings again. It corrects nothing.
func (o *Orders) KeepBooks(
	ctx context.Context, file string, report func(context.Context, *Reconciliation) error,
) {
	unlock, err := o.waitForLock(ctx, position(file))
	if err != nil {
		return
	}
	defer unlock()
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	log := o.log()
	known := map[string]bool{} // the findings of the last books
	for {
		books, _, err := o.since(ctx, position(file), span{})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.ErrorContext(ctx, "ramp: the books were not read", "error", err)
		default:
			known = o.say(ctx, books, known)
			var err error
			if report != nil {
				err = report(ctx, books)
			}
			if err == nil {
				err = o.keep(ctx, position(file), books)
			}
			if err != nil {
				log.ErrorContext(ctx, "ramp: the position of the books was not kept", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// waitForLock waits until no other process keeps the books of a position. During a deployment that is the
// process before.
func (o *Orders) waitForLock(ctx context.Context, p position) (unlock func(), err error) {
	const often = time.Minute
	for waited := time.Duration(0); ; waited += often {
		unlock, err := p.lock()
		if err == nil {
			return unlock, nil
		}
		level := slog.LevelError
		if waited == 0 && errors.Is(err, filelock.ErrLocked) {
			level = slog.LevelWarn
		}
		if waited%time.Hour == 0 {
			o.log().Log(ctx, level, "ramp: the books were not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(often):
		}
	}
}

// say logs what the books found, and returns it. A finding that is known is information only.
func (o *Orders) say(ctx context.Context, books *Reconciliation, known map[string]bool) map[string]bool {
	found := map[string]bool{}
	say := func(finding, more []any) {
		key, level := fmt.Sprint(finding...), slog.LevelError
		if known[key] {
			level = slog.LevelInfo
		}
		found[key] = true
		o.log().Log(ctx, level, "ramp: the books do not close", append(finding, more...)...)
	}
	for _, f := range books.Findings {
		say(f.attrs())
	}
	if n := books.found(); n > len(books.Findings) {
		say([]any{"findings", n, "listed", len(books.Findings)}, nil)
	}
	if books.Stalled != "" {
		o.log().ErrorContext(ctx, "ramp: the books stand still", "end", books.To, "error", books.Stalled)
	}
	return found
}

// attrs returns what a record says of a finding, and what may be different in the next books: no address,
// which is personal.
func (f *Finding) attrs() (finding, more []any) {
	finding = []any{"kind", f.Kind, "detail", f.Detail, "time", f.Time}
	if f.Fitting {
		more = append(more, "fitting", true)
	}
	for _, order := range f.Orders {
		finding = append(finding, "uuid", order.UUID)
		if order.Refusal != nil {
			more = append(more, "refused", refused(order.Refusal))
		}
	}
	for _, e := range f.Events {
		finding = append(finding, "tx_hash", e.TxHash)
	}
	return finding, more
}

// since reconciles from a time, or else from a position, until another time, or else now. Whoever gives the
// time decides what the books of a position are about from now on.
func (o *Orders) since(ctx context.Context, p position, s span) (*Reconciliation, []Line, error) {
	if err := o.made(); err != nil {
		return nil, nil, err
	}
	last, err := p.read()
	if err != nil {
		return nil, nil, err
	}
	if err := last.checkAbout(p, o.about(), !s.from.IsZero()); err != nil {
		return nil, nil, err
	}
	s.waiting = last.Waiting
	if !s.from.IsZero() {
		return o.reconcile(ctx, s)
	}
	if s.from = last.To; last.To.IsZero() {
		s.from = o.config.Now().Add(-24 * time.Hour)
		if p != "" {
			o.log().WarnContext(ctx, "ramp: the books have no position", "file", string(p), "begin", s.from)
		}
		return o.reconcile(ctx, s)
	}
	s.overlap = Overlap
	restored, err := o.restored(ctx, last)
	if err != nil {
		return nil, nil, err
	}
	if restored {
		newest, err := o.newest(ctx, last.To)
		if err != nil {
			return nil, nil, err
		}
		s.from, s.overlap = newest.FinishedAt.Add(-Overlap), 0
		if newest.UUID == uuid.Nil {
			s.from = last.To.Add(-longestSearch)
		}
		o.log().ErrorContext(ctx, "ramp: the books are newer than the store",
			"file", string(p), "position", last.To, "uuid", last.Newest, "begin", s.from)
	}
	return o.reconcile(ctx, s)
}

// restored reports whether the store lacks the newest order of the last books, or its end.
func (o *Orders) restored(ctx context.Context, last booksEnd) (bool, error) {
	if last.Newest == uuid.Nil {
		return false, nil
	}
	order, err := o.order(ctx, last.Newest)
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return true, nil
	case errors.Is(err, ramp.ErrOrderForeign):
		return false, nil
	}
	return err == nil && order.State == ramp.OrderAccepted, err
}

// longestSearch is how far back the newest order of a store is searched.
const longestSearch = 90 * 24 * time.Hour

// newest returns the order that ended last before a time, or an empty one.
func (o *Orders) newest(ctx context.Context, before time.Time) (newest ramp.Order, err error) {
	ledger, err := o.ledger()
	if err != nil {
		return ramp.Order{}, err
	}
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, longestSearch / 3, longestSearch} {
		if newest.UUID != uuid.Nil {
			break
		}
		all := o.pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
			return ledger.Ended(ctx, before.Add(-back), before, page)
		})
		for orders, err := range all {
			if err != nil {
				return ramp.Order{}, err
			}
			for _, order := range orders {
				if !order.FinishedAt.Before(newest.FinishedAt) {
					newest = order
				}
			}
		}
	}
	return newest, nil
}

// booksEnd is where the last books ended, the order in them that ended last, what they have found for
// orders that wait, and what they were about: nil if a person has written the file.
type booksEnd struct {
	To      time.Time
	Newest  uuid.UUID `json:",omitzero"`
	Waiting waiting   `json:",omitempty"`
	About   *About    `json:",omitempty"`
}

// checkAbout returns an error if books are about something else than the last ones. With a beginning, they
// may have other tokens.
func (last *booksEnd) checkAbout(p position, about About, anyTokens bool) error {
	if last.About == nil {
		return nil
	}
	before := *last.About
	switch {
	case before.ChainID != about.ChainID, before.Network != about.Network,
		before.ProjectID != about.ProjectID:
		return fmt.Errorf("%s is the position of other books: they are about %s, and these about %s: "+
			"use a file of their own", p, before, about)
	case !anyTokens && !slices.Equal(before.Tokens, about.Tokens):
		return fmt.Errorf("%s is the position of books with other tokens: they are about %s, and these "+
			"about %s: begin once with -from where a new token was traded first, and at the latest where "+
			"these books ended, at %s",
			p, before, about, last.To.Format(time.RFC3339))
	}
	return nil
}

// position is a file that says where the last books ended. Without a name, there is none.
type position string

// lock locks the position against other processes.
func (p position) lock() (unlock func(), err error) {
	if p == "" {
		return func() {}, nil
	}
	file, err := filelock.Lock(string(p) + ".lock")
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("another process keeps the books of %s: %w", p, err)
	}
	return func() { _ = filelock.Unlock(file) }, err
}

// read returns where the last books ended, or nothing if there were none.
func (p position) read() (last booksEnd, err error) {
	text, err := os.ReadFile(string(p))
	switch {
	case p == "", errors.Is(err, fs.ErrNotExist):
		return booksEnd{}, nil
	case err != nil:
		return booksEnd{}, err
	case json.Unmarshal(text, &last) != nil || last.To.IsZero():
		return booksEnd{},
			fmt.Errorf(
				`%s is not a position of the books: write {"To":"2026-11-01T00:00:00Z"} with the end of `+
					"the last ones, or remove it", p)
	default:
		return last, nil
	}
}

// keep stores the end of books that were reported: as a whole, or not at all. The
// position never moves backwards, and never past what no books are about.
func (o *Orders) keep(ctx context.Context, p position, books *Reconciliation) error {
	read, err := p.read()
	last := read.To
	if p == "" || err != nil || !last.IsZero() && (books.To.Before(last) || books.From.After(last)) {
		return err // what is between, no books are about
	}
	newest, err := o.newest(ctx, books.To)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(string(p)+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = json.NewEncoder(file).Encode(booksEnd{books.To, newest.UUID, books.waiting, &books.About})
	// a rename may reach the disk before what was written
	if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(string(p)+".new", string(p))
}
