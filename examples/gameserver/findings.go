// This file keeps what calls somebody until a person has ended it, in the database: a counter or a
// gauge of a process would forget it at the next deployment. The command resolve closes a conflict, and the
// command decide ends a finding of the books. To make it yours: change nothing, or keep it
// where your game has such lists.

package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// keepConflict stores a call that contradicts its order, for a person. A repeat is stored once. tx_hash
// is that of a result.
func (g *game) keepConflict(ctx context.Context, id uuid.UUID, conflict *ramp.ConflictError,
	txHash string) error {
	hash := fmt.Sprintf("%+q", txHash) // ASCII
	return g.insertNew(ctx, g.db, "conflicts", "uuid, field, tx_hash, state, at",
		id.String(), conflict.Field, hash[1:min(len(hash)-1, 67)], string(conflict.Order.State),
		time.Now().UTC().Format(time.RFC3339))
}

// keepingConflicts returns the End of an observer that also stores the validate calls that contradict
// their orders: OnConflict is about results. A counter alone would hide one before its first scrape.
func (g *game) keepingConflicts(end func(context.Context, ramp.Operation),
	log *slog.Logger) func(context.Context, ramp.Operation) {
	return func(ctx context.Context, op ramp.Operation) {
		end(ctx, op)
		if op.Conflict == nil || op.Name != "validate" {
			return
		}
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if err := g.keepConflict(soon, op.UUID, op.Conflict, ""); err != nil {
			log.ErrorContext(ctx, "the conflict was not kept", "uuid", op.UUID, "error", err)
		}
	}
}

// keepFindings stores what does not fit in the books. What is in several books is stored once. Add ends a
// finding when a person decides it, and keepFindings one that was decided while the books were made.
func (g *game) keepFindings(ctx context.Context, books *rampbooks.Reconciliation) error {
	for i := range books.Findings {
		f := &books.Findings[i]
		order, hash, unsigned := "", "", 0
		if len(f.Orders) > 0 {
			order = f.Orders[0].UUID.String()
		}
		if len(f.Events) > 0 {
			hash = f.Events[0].TxHash.Hex()
		}
		if isUnsignedMint(f) {
			unsigned = 1
		}
		err := g.insertNew(ctx, g.db, "findings", "id, kind, uuid, tx_hash, about, mint, detail, at", idOf(f),
			string(f.Kind), order, hash, about(f), unsigned, shortened(f.Detail),
			f.Time.UTC().Format(time.RFC3339))
		if err != nil {
			return err
		}
	}
	for i := range books.Decided {
		f := &books.Decided[i]
		const end = "UPDATE findings SET entry = ? WHERE id = ? AND entry = ''" +
			" AND NOT EXISTS (SELECT 1 FROM entries WHERE reverses = ?)"
		entry := f.Decided.ID.String()
		if _, err := g.db.ExecContext(ctx, g.bind(end), entry, idOf(f), entry); err != nil {
			return err
		}
	}
	return nil
}

// idOf returns what is the same for a finding in all books.
func idOf(f *rampbooks.Finding) string {
	id := sha256.New()
	fmt.Fprintln(id, f.Kind)
	for _, o := range f.Orders {
		fmt.Fprintln(id, o.UUID)
	}
	for _, e := range f.Events {
		fmt.Fprintln(id, e.TxHash, e.LogIndex)
	}
	return hex.EncodeToString(id.Sum(nil))
}

// about lists the orders and events by which a person may decide a finding, as many as a column holds.
func about(f *rampbooks.Finding) string {
	var list strings.Builder
	for _, o := range f.Orders {
		fmt.Fprintln(&list, o.UUID)
	}
	for _, e := range f.Events {
		fmt.Fprintln(&list, e.TxHash)
	}
	return list.String()[:min(list.Len(), 60_000)]
}

// shortened returns as much of a text as a column holds, in ASCII.
func shortened(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1:min(len(quoted)-1, 999)]
}

// isUnsignedMint reports whether a finding is a mint on the chain without an order, or of another amount,
// user or token than its order: somebody else has the validator key, or had a digest signed that means
// something else than its order. Tokens that are burned without an order harm nobody.
func isUnsignedMint(f *rampbooks.Finding) bool {
	isMint := func(e rampbooks.ChainEvent) bool { return e.Direction == ramp.Mint }
	return (f.Kind == rampbooks.EventWithoutOrder || f.Kind == rampbooks.Differs) &&
		slices.ContainsFunc(f.Events, isMint)
}

// openFindings are the findings that a person has to decide. One about an order that waits ends with the
// order.
const openFindings = ` FROM findings f WHERE f.entry = '' AND (f.kind NOT LIKE 'waits%' OR EXISTS
	(SELECT 1 FROM ramp_orders o WHERE o.state = 'accepted' AND CAST(o.uuid AS CHAR(36)) = f.uuid))`

// observeFindings registers gauges of what a person has to end.
func (g *game) observeFindings(registry prometheus.Registerer) {
	count := func(name, help, query, argument string, labels prometheus.Labels) {
		gauge(registry, name, help, labels, func(ctx context.Context) (n float64, err error) {
			err = g.db.QueryRowContext(ctx, g.bind(query), argument).Scan(&n)
			return n, err
		})
	}
	count("ramp_conflicts_open", "Conflicts that nobody has resolved.",
		"SELECT COUNT(*) FROM conflicts WHERE closed = ?", "", nil)
	for _, kind := range rampbooks.FindingKinds() {
		count("ramp_books_findings", "Findings of the books that nobody has decided.",
			"SELECT COUNT(*)"+openFindings+" AND f.kind = ?",
			string(kind), prometheus.Labels{"kind": string(kind)})
	}
	count("ramp_books_unsigned_mints",
		"Findings that are mints on the chain which were not signed for an order.",
		"SELECT COUNT(*)"+openFindings+" AND f.mint = 1 AND f.kind <> ?", "", nil)
}

// printConflicts lists the conflicts and the findings, newest first.
func (g *game) printConflicts(ctx context.Context, out io.Writer) error {
	conflicts, err := g.column(ctx, g.db,
		`SELECT CONCAT(uuid, '  ', state, '  ', at, '  ', field, '  ', tx_hash, '  ', closed)
		FROM conflicts WHERE uuid <> ? ORDER BY at DESC, uuid`, "")
	if err != nil {
		return err
	}
	findings, err := g.column(ctx, g.db,
		`SELECT CONCAT(f.kind, '  ', f.at, '  ', f.uuid, '  ', f.tx_hash, '  ',
		f.detail, '  ', COALESCE(CONCAT(e.who, ': ', e.reason), '')) FROM findings f
		LEFT JOIN entries e ON e.id = f.entry WHERE f.id <> ? ORDER BY f.at DESC, f.id`, "")
	if err != nil {
		return err
	}
	lines := append([]string{
		"UUID, STATE, TIME, WHAT DIFFERS, TX_HASH OF THE RESULT, AND HOW IT WAS RESOLVED"}, conflicts...)
	if len(findings) > 0 {
		lines = append(append(lines, "",
			"KIND, TIME, UUID, TX_HASH, WHAT THE BOOKS FOUND, AND WHO DECIDED IT, AND WHY"), findings...)
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// resolve closes the conflicts of an order or a transaction. It returns how many.
func (g *game) resolve(ctx context.Context, tx *sql.Tx, of, why string) (int64, error) {
	const statement = "UPDATE conflicts SET closed = ? WHERE (uuid = ? OR tx_hash = ?) AND closed = ''"
	done, err := tx.ExecContext(ctx, g.bind(statement), why, of, of)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
