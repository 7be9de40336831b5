package rampbooks

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
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/filelock"
)

// KeepBooks compares the orders with the chain at once and then every hour, until ctx is done. It
// corrects nothing. See [Reconciler.Reconcile].
//
// The file keeps where the last books ended, so put it where it survives the process. The totals of new
// books begin there. Their findings begin earlier, by the duration [Overlap]. Without a file, the totals
// begin a day ago. The file also keeps the findings whose order still waits, with their transactions: all
// later books list them, until the order has ended. Only one process keeps the books of a file; another
// one waits until it has ended.
//
// If the file is about another chain, project or network, or about other tokens, no books are made.
// After you add a token, run the command reconcile once, with -position, and with -from at the time
// when the token was first traded.
//
// After a backup of the store was restored, the store may lack the newest order of the file. The books
// then begin where the store ends.
//
// It logs these records, as errors unless the list says otherwise:
//
//	ramp: the books do not close                    one for each finding that is listed, with kind, detail,
//	                                                time, uuid and tx_hash. The attribute fitting lists
//	                                                orders that the transaction would fit, and refused says
//	                                                how often, since when and why the result was refused. If
//	                                                not all findings are listed, the attribute findings has
//	                                                how many there are, and listed how many are listed. A
//	                                                finding that the last books had, too, is logged as
//	                                                information
//	ramp: the books were not read                   with the cause; as a warning, if another process keeps
//	                                                the books of the file
//	ramp: the books stand still                     with the cause
//	ramp: the position of the books was not kept    with the cause
//	ramp: the books are newer than the store        a backup of the store was restored
//	ramp: the books have no position                as a warning, with the time at which they begin
//
// If report is not nil, it gets the books, for example to store their findings or for metrics. If
// it fails, the position is not kept, and the next books list the findings again.
func (o *Reconciler) KeepBooks(
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

// waitForLock waits until no other process keeps the books of a position. During a deployment that
// is the process before.
func (o *Reconciler) waitForLock(ctx context.Context, p position) (unlock func(), err error) {
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
func (o *Reconciler) say(ctx context.Context, books *Reconciliation, known map[string]bool) map[string]bool {
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
	if n := books.findingCount(); n > len(books.Findings) {
		say([]any{"findings", n, "listed", len(books.Findings)}, nil)
	}
	if books.Stalled != "" {
		o.log().ErrorContext(ctx, "ramp: the books stand still", "end", books.To, "error", books.Stalled)
	}
	return found
}

// attrs returns what a record says of a finding, and what may be different in the next books: no
// address, which is personal.
func (f *Finding) attrs() (finding, more []any) {
	finding = []any{"kind", f.Kind, "detail", f.Detail, "time", f.Time}
	if f.Fitting {
		more = append(more, "fitting", true)
	}
	for _, order := range f.Orders {
		finding = append(finding, "uuid", order.UUID)
		if order.Refusal != nil {
			more = append(more, "refused", console.Refused(order.Refusal))
		}
	}
	for _, e := range f.Events {
		finding = append(finding, "tx_hash", e.TxHash)
	}
	return finding, more
}

// since reconciles from a time, or else from a position, until another time, or else now. Whoever
// gives the time decides what the books of a position are about from now on.
func (o *Reconciler) since(ctx context.Context, p position, s span) (*Reconciliation, []Line, error) {
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
func (o *Reconciler) restored(ctx context.Context, last booksEnd) (bool, error) {
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
func (o *Reconciler) newest(ctx context.Context, before time.Time) (newest ramp.Order, err error) {
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, longestSearch / 3, longestSearch} {
		if newest.UUID != uuid.Nil {
			break
		}
		all := o.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
			return o.config.Store.Ended(ctx, before.Add(-back), before, page)
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
	Newest  uuid.UUID           `json:",omitzero"`
	Waiting waitingTransactions `json:",omitempty"`
	About   *About              `json:",omitempty"`
}

// checkAbout returns an error if books are about something else than the last ones. With a
// beginning, they may have other tokens.
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
func (o *Reconciler) keep(ctx context.Context, p position, books *Reconciliation) error {
	read, err := p.read()
	last := read.To
	if p == "" || err != nil || !last.IsZero() && (books.To.Before(last) || books.From.After(last)) {
		return err // what is between, no books are about
	}
	newest, err := o.newest(ctx, books.To)
	if err != nil {
		return err
	}
	// what a process left that was killed may have another mode or owner
	if err := os.Remove(string(p) + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(string(p)+".new", os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
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
