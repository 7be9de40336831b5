package rampsql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Check returns what would fail the orders of a network, so that a server does not start: a
// database that is too old or of another dialect, tables that are not as [Dialect.Schema] creates
// them or would not survive a crash, a right that is missing, a pooler that loses prepared
// statements (found only if the pool has a second connection), and orders of mainnet in the table
// of testnet. It is called by [ramp.Handler.Check], which knows the network; "" means none.
//
// Check takes the steps of a trial order as [Store.Update] does, but without Apply, and rolls them
// back. Nothing of them can be seen, but on PostgreSQL they leave a dead row, so do not call it for
// each probe of a load balancer. Constraints and triggers of your own must allow an order of the
// project "ramp check". docs/databases.md says what Check cannot find.
func (s *Store) Check(ctx context.Context, network ramp.Network) error {
	if err := s.made(); err != nil {
		return err
	}
	own := cmp.Or(s.config.Network, network)
	if network != "" && network != own {
		return fmt.Errorf("ramp: check: %w", invalid.Field("Config.Network",
			fmt.Sprintf("must be that of the terms, %s, not %s", network, own)))
	}
	db := s.config.DB
	err := cmp.Or(s.check(ctx, own), s.checkClaims(ctx, own))
	cause := err
	if err == nil && db.Stats().MaxOpenConnections != 1 {
		cause = s.onSecondConnection(ctx, db)
	}
	var state interface{ SQLState() string }
	if errors.As(cause, &state) && (state.SQLState() == "42P05" || state.SQLState() == "26000") {
		err = fmt.Errorf("a pooler loses the driver's prepared statements; "+
			"docs/databases.md has settings for it: %w", cause)
	}
	if err != nil {
		return fmt.Errorf("ramp: check: %w", err)
	}
	return nil
}

// onSecondConnection repeats a statement that another connection has prepared. Behind a
// pooler, both may be one connection of the server, which knows the name already.
func (s *Store) onSecondConnection(ctx context.Context, db *sql.DB) error {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the others may be in use
	defer cancel()
	var version string
	return db.QueryRowContext(ctx, s.version).Scan(&version)
}

func (s *Store) check(ctx context.Context, network ramp.Network) error {
	if err := s.config.DB.PingContext(ctx); err != nil {
		return err
	}
	var version string
	if err := s.config.DB.QueryRowContext(ctx, s.version).Scan(&version); err != nil {
		return fmt.Errorf("the dialect is %s, but the database does not answer like it: %w",
			s.config.Dialect, err)
	}
	if err := s.checkVersion(version); err != nil {
		return err
	}
	for _, check := range []func(context.Context) error{
		s.checkMigrations, s.checkRights, s.checkAutocommit, s.checkNested, s.checkTable, s.checkRolledBack,
		s.rehearse, s.checkServer, s.checkDurability,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return s.checkNetwork(ctx, network)
}

// checkNested returns an error if the pool has connections that are in a transaction.
func (s *Store) checkNested(ctx context.Context) error {
	conn, err := s.config.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	nested, err := s.nested(ctx, conn)
	if err == nil && nested {
		err = errNested
	}
	return err
}

// checkMigrations returns an error if the tables are of an earlier release. If there are none,
// checkRights says so.
func (s *Store) checkMigrations(ctx context.Context) error {
	found, err := s.config.Dialect.Version(ctx, s.config.DB)
	if wanted := newest(); err == nil && found != 0 && found < wanted {
		err = fmt.Errorf("table ramp_orders has version %d, but this release needs version %d: "+
			"run the statements of Dialect.Migrations(%d)", found, wanted, found)
	}
	return err
}

// checkAutocommit returns an error if a statement outside of a transaction is not committed, such
// as EraseSession, and a query sees what its connection saw first. Orders are right: their
// transaction sets autocommit itself, so only a new connection tells.
func (s *Store) checkAutocommit(ctx context.Context) error {
	if s.autocommit == "" {
		return nil
	}
	var on bool
	err := s.config.DB.QueryRowContext(ctx, s.autocommit).Scan(&on)
	if err == nil && !on {
		err = errors.New("autocommit is off, so what is written outside of a transaction is lost, also " +
			"by statements of yours: set autocommit=1 in the address of the database")
	}
	return err
}

// checkRights returns an error that names what the user may not do.
func (s *Store) checkRights(ctx context.Context) error {
	for _, t := range []struct{ table, key, columns string }{
		{"ramp_orders", "claim", orderColumns},
		{"ramp_refusals", "reason", refusalColumns},
	} {
		for _, statement := range []string{
			"SELECT " + t.columns + " FROM " + t.table + " WHERE 1 = 0",
			// Matches no row; the key is for sql_safe_updates of MySQL.
			"UPDATE " + t.table + " SET " + t.key + " = " + t.key + " WHERE uuid IS NULL",
			"INSERT INTO " + t.table + " (" + t.columns + ") SELECT " + t.columns +
				" FROM " + t.table + " WHERE 1 = 0",
		} {
			if _, err := s.config.DB.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("table %s, which Dialect.Schema creates, is unusable for %.6s: %w",
					t.table, statement, err)
			}
		}
	}
	return nil
}

// checkTable asks the catalog for what a trial order cannot tell.
func (s *Store) checkTable(ctx context.Context) error {
	db := s.config.DB
	var volatile string
	var indexes int
	has, listed := s.read(ctx, db.QueryContext)
	counted := db.QueryRowContext(ctx, s.hashIndexes).Scan(&indexes)
	unsafe := db.QueryRowContext(ctx, s.volatile).Scan(&volatile)
	none := func(err error) error {
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	switch err := cmp.Or(listed, counted, none(unsafe)); {
	case err != nil:
		return fmt.Errorf("read what table ramp_orders is: %w", err)
	case indexes == 0:
		return errors.New("table ramp_orders has no unique index of tx_hash alone, " +
			"as Dialect.Schema creates it: one transaction could end two orders")
	case unsafe == nil:
		return fmt.Errorf("table ramp_orders is %s: orders would not outlive a crash; "+
			"create it as Dialect.Schema does", volatile)
	}
	for _, c := range columns {
		if of := has[c.name]; !c.fits(of) {
			return fmt.Errorf("column %s of table ramp_orders is of type %s, or narrower than "+
				"Dialect.Schema creates it", c.name, of.kind)
		}
	}
	return nil
}

func (s *Store) checkRolledBack(ctx context.Context) error {
	return s.rehearsals.checkRollback(ctx, s.config.DB)
}

// checkServer warns of what may be meant, or is no fault of the database.
func (s *Store) checkServer(ctx context.Context) error {
	var setting string
	err := s.config.DB.QueryRowContext(ctx, s.lax).Scan(&setting)
	switch {
	case err == nil:
		s.warn(ctx, "what does not fit a column is stored as another value, also in tables of yours",
			errors.New(setting+" is not strict"))
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if s.sorted != "" {
		err := s.config.DB.QueryRowContext(ctx, s.sorted).Scan(&setting)
		switch {
		case err == nil:
			s.warn(ctx, "an upgrade of the system can change the order of an index, and then one "+
				"transaction can end two orders: give the column the collation C", errors.New(setting))
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	if s.clock == "" {
		return nil
	}
	var theirs int64
	before := time.Now()
	if err := s.config.DB.QueryRowContext(ctx, s.clock).Scan(&theirs); err != nil {
		return err
	}
	const most = time.Minute
	switch behind := time.Until(time.UnixMilli(theirs)); {
	case behind > most:
		s.warn(ctx, "one of two clocks is wrong", fmt.Errorf(
			"that of this computer is %v behind that of the database", behind.Round(time.Second)))
	case before.Sub(time.UnixMilli(theirs)) > most:
		s.warn(ctx, "one of two clocks is wrong", fmt.Errorf(
			"that of this computer is %v ahead of that of the database", -behind.Round(time.Second)))
	}
	return nil
}

// checkDurability warns of settings with which a commit that was confirmed can be lost.
func (s *Store) checkDurability(ctx context.Context) error {
	rows, err := s.config.DB.QueryContext(ctx, s.settings)
	if err != nil {
		return err
	}
	defer rows.Close()
	are := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		are[name] = value
	}
	for _, weak := range s.weak(are) {
		s.warn(ctx, "a crash or a failover can lose orders that were answered", errors.New(weak))
	}
	return rows.Err()
}

// checkNetwork returns an error if tokens of testnet, which cost nothing, could buy assets of mainnet: the
// table has what the other network could still end. A game that has gone live may keep its old orders, if
// none of them waits.
func (s *Store) checkNetwork(ctx context.Context, own ramp.Network) error {
	// In the order of the index: a planner without statistics takes it for quicker to read the table.
	const inOrder = " ORDER BY network, state, finished_at, uuid LIMIT 1"
	statement, other, has := "SELECT uuid FROM ramp_orders WHERE network = $1", ramp.Mainnet, "mainnet"
	switch own {
	case "":
		return nil
	case ramp.Mainnet:
		statement, other, has = statement+" AND state = 'accepted'", ramp.Testnet, "testnet that wait"
	}
	query, args := s.bind(statement+inOrder, string(other))
	var found string
	err := s.config.DB.QueryRowContext(ctx, query, args...).Scan(&found)
	switch {
	case err == nil:
		return fmt.Errorf("table ramp_orders has orders of %s, such as %s: tokens of testnet, which cost "+
			"nothing, would buy assets there; use another database, or first end those of testnet",
			has, found)
	case errors.Is(err, sql.ErrNoRows):
		return nil
	default:
		return err
	}
}

// checkClaims returns what the claims lack for orders of a network.
func (s *Store) checkClaims(ctx context.Context, network ramp.Network) error {
	c := s.config.Claims
	switch {
	case c == nil:
		return nil
	case network != "" && network != c.config.Network:
		return invalid.Field("Config.Claims",
			fmt.Sprintf("must be of the network of the terms, %s, not %s", network, c.config.Network))
	default:
		return c.Check(ctx)
	}
}
