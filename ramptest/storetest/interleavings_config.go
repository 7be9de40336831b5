package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/internal/interleaving"
)

// Interleavings is a store on a SQL database, and how to walk through what can happen to it.
type Interleavings struct {
	// Connector connects to a database of the test's own, with the tables of the store and of the game,
	// as the game does. See [Connector]. Required. The rows of the test are not deleted.
	Connector driver.Connector

	// Dialect is that of the database. Required.
	Dialect rampsql.Dialect

	// Open opens the store on db, as a server does when it starts. The game must use db, too: the
	// test can stop only the statements that go through db. Open is called for each server, and
	// again after the server was killed. Required.
	Open func(db *sql.DB) (ramp.Store, error)

	// Assets are one or two items of the game that are counted. An order moves 5 of each. Required.
	Assets []string

	// Give sets the balance of an asset of a session, and creates the session if it is new. Balance
	// reads it. They must reach the same database, but not by the db that Open got, whose
	// statements stop. Both are required.
	Give    func(ctx context.Context, session, asset string, balance int64) error
	Balance func(ctx context.Context, session, asset string) (int64, error)

	// Admin connects to the same database as somebody who may see which connections wait, and end
	// them: on MySQL and MariaDB with the privilege PROCESS. The default is Connector.
	Admin driver.Connector

	// NoFaults leaves out what goes wrong: testing.Short() is a good value. It takes about a tenth of
	// the time.
	NoFaults bool

	// ThreeCalls lets three calls meet instead of two, without faults.
	ThreeCalls bool
}

// Connector returns the connector of a database, from the arguments of [sql.Open].
func Connector(driverName, dataSourceName string) (driver.Connector, error) {
	db, err := sql.Open(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	of := db.Driver()
	if opener, ok := of.(driver.DriverContext); ok {
		return opener.OpenConnector(dataSourceName)
	}
	return connector{of, dataSourceName}, nil
}

type connector struct {
	driver driver.Driver
	name   string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.name) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// check returns an error if a field is missing, and sets the defaults.
func (s *Interleavings) check() error {
	var missing []string
	for name, ok := range map[string]bool{
		"Connector": s.Connector != nil, "Dialect": interleaving.DialectOf(s.Dialect) != nil,
		"Open": s.Open != nil,
		"Give": s.Give != nil, "Balance": s.Balance != nil, "Assets": len(s.Assets) > 0,
	} {
		if !ok {
			missing = append(missing, "Interleavings."+name)
		}
	}
	if s.Admin == nil {
		s.Admin = s.Connector
	}
	slices.Sort(missing)
	if missing != nil {
		return fmt.Errorf("storetest: %s must be set", strings.Join(missing, " and "))
	}
	return nil
}
