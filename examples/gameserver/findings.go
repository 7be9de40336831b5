// This file keeps what calls somebody until a person has closed it, in the database: a counter or a
// gauge of a process would forget it at the next deployment. To make it yours: change nothing, or keep it
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
	"github.com/token-ramp/ramp-go/support"
)

// keepConflict stores a call that contradicts its order, for a person. A repeat is stored once. tx_hash
// is that of a result.
func (g *game) keepConflict(ctx context.Context, id uuid.UUID, conflict *ramp.ConflictError, txHash string) error {
	hash := fmt.Sprintf("%+q", txHash) // ASCII
	return g.insertNew(ctx, g.db, "conflicts", "uuid, field, tx_hash, state, at",
		id.String(), conflict.Field, hash[1:min(len(hash)-1, 67)], string(conflict.Order.State), time.Now().UTC().Format(time.RFC3339))
}

// keepingConflicts returns the End of an observer that also stores the validate calls that contradict
// their orders: OnConflict is about results. A counter alone would hide one before its first scrape.
func (g *game) keepingConflicts(end func(context.Context, ramp.Operation), log *slog.Logger) func(context.Context, ramp.Operation) {
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

// keepFindings stores what does not fit in the books. What is in several books is stored once.
func (g *game) keepFindings(ctx context.Context, books *support.Reconciliation) error {
	for _, f := range books.Findings {
		id, order, hash := sha256.New(), "", ""
		fmt.Fprintln(id, f.Kind)
		for _, o := range f.Orders {
			fmt.Fprintln(id, o.UUID)
		}
		for _, e := range f.Events {
			fmt.Fprintln(id, e.TxHash, e.LogIndex)
		}
		if len(f.Orders) > 0 {
			order = f.Orders[0].UUID.String()
		}
		if len(f.Events) > 0 {
			hash = f.Events[0].TxHash.Hex()
		}
		unsigned := 0
		if isUnsignedMint(&f) {
			unsigned = 1
		}
		if err := g.insertNew(ctx, g.db, "findings", "id, kind, uuid, tx_hash, mint, detail, at", hex.EncodeToString(id.Sum(nil)),
			string(f.Kind), order, hash, unsigned, shortened(f.Detail), f.Time.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// shortened returns as much of a text as a column holds, in ASCII.
func shortened(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1:min(len(quoted)-1, 999)]
}

// isUnsignedMint reports whether a finding is a mint on the chain without an order, or of another amount,
// user or token than its order: somebody else has the validator key, or had a digest signed that means
// something else than its order. Tokens that are burned without an order harm nobody.
func isUnsignedMint(f *support.Finding) bool {
	isMint := func(e support.ChainEvent) bool { return e.Direction == ramp.Mint }
	return (f.Kind == support.EventWithoutOrder || f.Kind == support.Differs) && slices.ContainsFunc(f.Events, isMint)
}

// openFindings are the findings that a person has to close. One about an order that waits closes itself
// when the order ends.
const openFindings = ` FROM findings f WHERE f.closed = '' AND (f.kind NOT LIKE 'waits%' OR EXISTS
	(SELECT 1 FROM ramp_orders o WHERE o.state = 'accepted' AND CAST(o.uuid AS CHAR(36)) = f.uuid))`

// observeFindings registers gauges of what a person has to end.
func (g *game) observeFindings(registry prometheus.Registerer) {
	count := func(name, help, query, argument string, labels prometheus.Labels) {
		gauge(registry, name, help, labels, func(ctx context.Context) (n float64, err error) {
			err = g.db.QueryRowContext(ctx, g.bind(query), argument).Scan(&n)
			return n, err
		})
	}
	count("ramp_conflicts_open", "Conflicts that nobody has resolved.", "SELECT COUNT(*) FROM conflicts WHERE closed = ?", "", nil)
	for _, kind := range support.FindingKinds() {
		count("ramp_books_findings", "Findings of the books that nobody has resolved.", "SELECT COUNT(*)"+openFindings+" AND f.kind = ?",
			string(kind), prometheus.Labels{"kind": string(kind)})
	}
	count("ramp_books_unsigned_mints", "Findings that are mints on the chain which were not signed for an order.",
		"SELECT COUNT(*)"+openFindings+" AND f.mint = 1 AND f.kind <> ?", "", nil)
}

// printConflicts lists the conflicts and the findings, newest first.
func (g *game) printConflicts(ctx context.Context, out io.Writer) error {
	conflicts, err := g.column(ctx, g.db, `SELECT CONCAT(uuid, '  ', state, '  ', at, '  ', field, '  ', tx_hash, '  ', closed)
		FROM conflicts WHERE uuid <> ? ORDER BY at DESC, uuid`, "")
	if err != nil {
		return err
	}
	findings, err := g.column(ctx, g.db, `SELECT CONCAT(kind, '  ', at, '  ', uuid, '  ', tx_hash, '  ', detail, '  ', closed)
		FROM findings WHERE id <> ? ORDER BY at DESC, id`, "")
	if err != nil {
		return err
	}
	lines := append([]string{"UUID, STATE, TIME, WHAT DIFFERS, TX_HASH OF THE RESULT, AND HOW IT WAS RESOLVED"}, conflicts...)
	if len(findings) > 0 {
		lines = append(append(lines, "", "KIND, TIME, UUID, TX_HASH, WHAT THE BOOKS FOUND, AND HOW IT WAS RESOLVED"), findings...)
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// resolve closes the conflicts and the findings of an order or a transaction. It returns how many.
func (g *game) resolve(ctx context.Context, tx *sql.Tx, of, why string) (n int64, err error) {
	for _, statement := range []string{"UPDATE conflicts SET closed = ? WHERE (uuid = ? OR tx_hash = ?) AND closed = ''",
		"UPDATE findings SET closed = ? WHERE (uuid = ? OR tx_hash = ?) AND closed = ''"} {
		done, err := tx.ExecContext(ctx, g.bind(statement), why, of, of)
		if err != nil {
			return n, err
		}
		changed, _ := done.RowsAffected() // no driver fails
		n += changed
	}
	return n, nil
}
