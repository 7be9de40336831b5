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
	"time"
)

// KeepBooks compares the orders with the chain at once and then every hour, until ctx is
// done; see [Orders.Reconcile]. It begins where the last books ended, as the file says, or a
// day ago if there is no such file. Only one process may use the file.
//
// It logs one record for each finding, "ramp: the books do not close", with kind, detail,
// time, uuid, tx_hash and user, and "ramp: the books were not read" or "ramp: the position
// of the books was not kept" with the cause. report, if not nil, gets the books, for
// metrics. It corrects nothing.
func (o *Orders) KeepBooks(ctx context.Context, file string, report func(*Books)) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	log := cmp.Or(o.config.Logger, slog.Default())
	for {
		books, err := o.since(ctx, position(file), time.Time{}, time.Time{})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.ErrorContext(ctx, "ramp: the books were not read", "error", err)
		default:
			for _, f := range books.Findings {
				log.ErrorContext(ctx, "ramp: the books do not close", f.attrs()...)
			}
			if report != nil {
				report(books)
			}
			if err := position(file).keep(books); err != nil {
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

// attrs returns what a record says of a finding.
func (f *Finding) attrs() []any {
	attrs := []any{"kind", f.Kind, "detail", f.Detail, "time", f.Time()}
	for _, order := range f.Orders {
		attrs = append(attrs, "uuid", order.UUID)
	}
	for _, e := range f.Events {
		attrs = append(attrs, "tx_hash", e.TxHash, "user", e.User)
	}
	return attrs
}

// since reconciles from a time, or else from a position, until another time, or else now.
func (o *Orders) since(ctx context.Context, p position, from, to time.Time) (_ *Books, err error) {
	if from.IsZero() {
		if from, err = p.begin(o.config.Now()); err != nil {
			return nil, err
		}
	}
	return o.Reconcile(ctx, from, to)
}

// position is a file that says where the last books ended. Without a name, there is none.
type position string

// begin returns when the next books begin.
func (p position) begin(now time.Time) (time.Time, error) {
	var last struct{ To time.Time }
	text, err := os.ReadFile(string(p))
	switch {
	case p == "", errors.Is(err, fs.ErrNotExist):
		return now.Add(-24 * time.Hour), nil
	case err != nil:
		return time.Time{}, err
	case json.Unmarshal(text, &last) != nil || last.To.IsZero():
		return time.Time{}, fmt.Errorf("%s is not a position of the books", p)
	default:
		return last.To.Add(-Overlap), nil
	}
}

// keep stores the end of books that were reported: as a whole, or not at all.
func (p position) keep(books *Books) error {
	if p == "" {
		return nil
	}
	text, err := json.Marshal(struct{ To time.Time }{books.To})
	if err != nil {
		return err
	}
	if err := os.WriteFile(string(p)+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(string(p)+".new", string(p))
}
