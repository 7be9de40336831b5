package rampbooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/token-ramp/ramp-go/internal/console"
)

// KeepBooks compares the orders with the chain at once and then every hour, until ctx is done. It
// corrects nothing. See [Reconciler.Reconcile].
//
// The position keeps where the last books ended, so it must survive the process: a [PositionFile] on a disk
// that does, or a [PositionStore] of yours. The totals of new books begin there. Their findings begin
// earlier, by the duration [Overlap]. If position is nil, the totals begin a day ago. It also keeps the
// findings whose order still waits, with their transactions: all later books list them, until the order has
// ended. Only one process keeps the books of a position; another one waits until it has ended.
//
// If the position is about another chain, project or network, or about other tokens, no books are made.
// After you add a token, run the command reconcile once, with -position, and with -from at the time
// when the token was first traded.
//
// After a backup of the store was restored, the store may lack the newest order of the position. The books
// then begin where the store ends. An order that ended a week ago says nothing: it may have been deleted.
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
//	                                                the books of the position
//	ramp: the books stand still                     with the cause
//	ramp: the position of the books was not kept    with the cause
//	ramp: the books are newer than the store        a backup of the store was restored
//	ramp: the books have no position                as a warning, with the time at which they begin
//
// If report is not nil, it gets the books, for example to store their findings or for metrics. If
// it fails, the position is not kept, and the next books list the findings again.
func (r *Reconciler) KeepBooks(
	ctx context.Context, position PositionStore, report func(context.Context, *Reconciliation) error,
) {
	unlock, err := r.waitForLock(ctx, position)
	if err != nil {
		return
	}
	defer unlock()
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	known := map[string]bool{} // the findings of the last books
	for {
		known, _ = r.nextBooks(ctx, position, report, known) // which has logged the error
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// NextBooks does once what [Reconciler.KeepBooks] does each hour, for a job that something else starts every
// hour. It logs the same, and returns what of it is an error, other than findings.
func (r *Reconciler) NextBooks(
	ctx context.Context, position PositionStore, report func(context.Context, *Reconciliation) error,
) error {
	unlock, err := lockPosition(ctx, position)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = r.nextBooks(ctx, position, report, nil)
	return err
}

func (r *Reconciler) nextBooks(
	ctx context.Context, position PositionStore, report func(context.Context, *Reconciliation) error,
	known map[string]bool,
) (found map[string]bool, err error) {
	log := r.log()
	books, _, err := r.reconcileSince(ctx, position, span{})
	if err != nil {
		if ctx.Err() == nil {
			log.ErrorContext(ctx, "ramp: the books were not read", "error", err)
		}
		return known, err
	}
	known = r.logFindings(ctx, books, known)
	if report != nil {
		err = report(ctx, books)
	}
	if err == nil {
		err = r.keepPosition(ctx, position, books)
	}
	if err != nil {
		log.ErrorContext(ctx, "ramp: the position of the books was not kept", "error", err)
	}
	return known, err
}

// waitForLock waits until no other process keeps the books of a position. During a deployment that
// is the process before.
func (r *Reconciler) waitForLock(ctx context.Context, p PositionStore) (unlock func(), err error) {
	const often = time.Minute
	for waited := time.Duration(0); ; waited += often {
		unlock, err := lockPosition(ctx, p)
		if err == nil {
			return unlock, nil
		}
		level := slog.LevelError
		if waited == 0 && errors.Is(err, ErrPositionLocked) {
			level = slog.LevelWarn
		}
		if waited%time.Hour == 0 {
			r.log().Log(ctx, level, "ramp: the books were not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(often):
		}
	}
}

// logFindings logs what the books found, and returns it. A finding that is known is information only.
func (r *Reconciler) logFindings(
	ctx context.Context, books *Reconciliation, known map[string]bool,
) (found map[string]bool) {
	found = map[string]bool{}
	say := func(finding, more []any) {
		key, level := fmt.Sprint(finding...), slog.LevelError
		if known[key] {
			level = slog.LevelInfo
		}
		found[key] = true
		r.log().Log(ctx, level, "ramp: the books do not close", append(finding, more...)...)
	}
	for _, f := range books.Findings {
		say(f.attrs())
	}
	if n := books.findingCount(); n > len(books.Findings) {
		say([]any{"findings", n, "listed", len(books.Findings)}, nil)
	}
	if books.Stalled != "" {
		r.log().ErrorContext(ctx, "ramp: the books stand still", "end", books.To, "error", books.Stalled)
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
