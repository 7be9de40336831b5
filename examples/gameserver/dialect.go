// To make it yours: change nothing. Each database has a file of its own. Remove those that you do not use.

package main

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/rampsql"
)

// connectTimeout limits a connection to one host of the database. Without it, a host that neither
// answers nor refuses would keep the driver from asking the next one.
const connectTimeout = 2 * time.Second

// dialect is what one database does otherwise than the others.
type dialect struct {
	sql  rampsql.Dialect
	form string // of its addresses
	file bool   // the address is the path of a file, which one server has to itself
	open func(address string) (*sql.DB, error)

	// translate returns a statement as the database reads it. The statements of this program are written
	// for PostgreSQL, with ? for each argument.
	translate func(statement string) string

	denied string // what its error says if the user lacks a right

	// lock tries to get the lock of a migration and returns whether it has, and unlock gives it back.
	// They are empty if a transaction locks the whole database.
	lock, unlock string

	// impatient lets a statement wait for a lock for a second at most, and patient ends that. gaveUp is
	// what the error of such a statement says. They are empty if one transaction writes at a time.
	impatient, patient, gaveUp string

	// createIndexes creates indexes while orders are written. It is nil if they are created with the tables.
	createIndexes func(ctx context.Context, db *sql.DB, conn *sql.Conn, statements []string,
		says func(text string)) error
}

// dialects has the dialect of each scheme of -db. The file of each database adds its own, as a driver of
// database/sql does, so that a file can be removed without a change elsewhere.
var dialects = map[string]dialect{}

// dialectOf returns the dialect of an address.
func dialectOf(address string) (dialect, error) {
	scheme, _, _ := strings.Cut(address, ":")
	d, ok := dialects[scheme]
	if !ok {
		return d, errors.New("-db must be " + forms())
	}
	return d, nil
}

// forms lists the addresses that are known.
func forms() string {
	var list []string
	for _, scheme := range slices.Sorted(maps.Keys(dialects)) {
		list = append(list, dialects[scheme].form)
	}
	return strings.Join(slices.Compact(list), " or ")
}
