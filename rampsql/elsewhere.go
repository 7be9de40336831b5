package rampsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
)

// errElsewhere is the error of an order on a connection on which ramp_orders is another table than that of
// the first order. The order is rolled back, and the connection is given up.
var errElsewhere = errors.New("the connection was left in another schema: Apply and every other part " +
	"of the game must leave search_path, the database and the role as they were")

// home is where the table of the first order is.
type home struct{ first atomic.Pointer[string] }

// found compares the place of the table with that of the first order.
func (h *home) found(place sql.NullString) error {
	h.first.CompareAndSwap(nil, &place.String)
	if first := *h.first.Load(); place.String != first {
		return fmt.Errorf("ramp_orders is in %q, not in %q: %w", place.String, first, errElsewhere)
	}
	return nil
}

// asker is a connection or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// sessionOf returns the settings of a connection, which queries of the dialect select.
func sessionOf(ctx context.Context, conn asker, queries []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, query := range queries {
		if err := addSettings(ctx, conn, query, settings); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

func addSettings(ctx context.Context, conn asker, query string, settings map[string]string) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		settings[name] = value
	}
	return rows.Err()
}

// unchanged returns an error that names what is different on a connection after Apply. before is nil
// unless a test asks.
func unchanged(
	ctx context.Context, conn asker, queries []string, id uuid.UUID, before map[string]string,
) error {
	if before == nil {
		return nil
	}
	after, err := sessionOf(ctx, conn, queries)
	if err != nil {
		return fmt.Errorf("ramp: order %s: after Apply: %w", id, err)
	}
	var changed []string
	for name, value := range after {
		if was, known := before[name]; !known || was != value {
			changed = append(changed, fmt.Sprintf("%s (now %q)", name, value))
		}
	}
	for name := range before {
		if _, known := after[name]; !known {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return fmt.Errorf("ramp: order %s: after Apply, its connection has another %s: Apply must leave it as "+
		"it was, because other orders use it; on PostgreSQL, use SET LOCAL", id, strings.Join(changed, ", "))
}
