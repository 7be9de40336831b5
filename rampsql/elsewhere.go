package rampsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// errElsewhere is the error of an order on a connection on which ramp_orders is another table than that of
// the first order. The order is rolled back, and the connection is given up.
var errElsewhere = errors.New("the connection was left in another schema: Apply and every other part " +
	"of the game must leave search_path, the database and the role as they were")

// found compares the place of the table with that of the first order.
func (s *Store) found(place sql.NullString) error {
	s.home.CompareAndSwap(nil, &place.String)
	if here := *s.home.Load(); place.String != here {
		return fmt.Errorf("ramp_orders is in %q, not in %q: %w", place.String, here, errElsewhere)
	}
	return nil
}

// findPlace does what found does if no row says where it is.
func (s *Store) findPlace(ctx context.Context, tx *sql.Tx) error {
	var place sql.NullString
	if err := tx.QueryRowContext(ctx, "SELECT "+s.place).Scan(&place); err != nil {
		return err
	}
	return s.found(place)
}

// The statements that select what a connection keeps beyond a transaction, and the game depends on.
const (
	sessionPostgreSQL = "SELECT name, setting FROM pg_settings WHERE source = 'session'" +
		" AND name NOT LIKE 'transaction%' UNION ALL SELECT 'current_user', current_user::text" +
		" UNION ALL SELECT 'search_path', current_setting('search_path')"
	sessionMySQL = "SHOW SESSION VARIABLES WHERE variable_name IN ('sql_mode', 'time_zone'," +
		" 'character_set_client', 'character_set_connection', 'character_set_results'," +
		" 'collation_connection', 'tx_isolation', 'transaction_isolation', 'foreign_key_checks'," +
		" 'unique_checks', 'sql_safe_updates', 'lock_wait_timeout', 'innodb_lock_wait_timeout')"
	sessionSQLite = "SELECT 'query_only', query_only FROM pragma_query_only" +
		" UNION ALL SELECT 'ignore_check_constraints', ignore_check_constraints" +
		" FROM pragma_ignore_check_constraints UNION ALL SELECT 'database ' || name, ''" +
		" FROM pragma_database_list WHERE name <> 'temp'" +
		" UNION ALL SELECT 'temporary table ' || name, '' FROM sqlite_temp_master"
)

// asker is a connection or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// sessionOf returns the settings of a connection.
func (s *Store) sessionOf(ctx context.Context, conn asker) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, s.session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	settings := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		settings[name] = value
	}
	return settings, rows.Err()
}

// unchanged returns an error that names what is different on a connection after Apply. before is nil
// unless a test asks.
func (s *Store) unchanged(ctx context.Context, conn asker, id uuid.UUID, before map[string]string) error {
	if before == nil {
		return nil
	}
	after, err := s.sessionOf(ctx, conn)
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
