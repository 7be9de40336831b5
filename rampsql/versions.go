package rampsql

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
)

// schemas has the file DIALECT.sql, which creates the tables of the newest version, and for each version
// from 2 on the file DIALECT-VERSION.sql, a statement that adds a column or an index.
//
//go:embed schema
var schemas embed.FS

// Schema returns the statements that create the tables of a [Store], for your migrations. The directory
// rampsql/schema of the module has them as files too. Servers that start together may all run them: run
// the whole text at once, or in one transaction, because on PostgreSQL its first statement makes other
// servers wait until the transaction ends. If the tables may be of an earlier release, run
// [Dialect.Migrations] instead. Schema returns "" for an unknown dialect.
func (d Dialect) Schema() string {
	if !d.known() {
		return ""
	}
	text, _ := schemas.ReadFile("schema/" + string(d) + ".sql")
	return string(text)
}

// Migrations returns what brings tables of a version, which [Dialect.Version] finds, to the version of
// this release. It is empty if nothing is missing, and [Dialect.Schema] for version 0, which is no
// tables. Otherwise each text is one statement, which is also a file of the directory rampsql/schema.
// Run it by itself, outside of a transaction, before a server of this release starts, while those of the
// release before run. It adds a column or an index, and does not lock the table for the time of its rows,
// except on SQLite, where an index does: see docs/databases.md.
func (d Dialect) Migrations(from int) (texts []string) {
	if from == 0 && d.known() {
		return []string{d.Schema()}
	}
	for n := from + 1; ; n++ {
		text, err := schemas.ReadFile(fmt.Sprintf("schema/%s-%d.sql", d, n))
		if err != nil {
			return texts
		}
		texts = append(texts, string(text))
	}
}

// Version returns the version of the tables in a database, which is 0 if there are none. It is found out
// from their columns and indexes, so nothing has to be noted: also a migration that was interrupted, or
// a table that was restored, has the version that it has. db is a *sql.DB, a *sql.Conn or a *sql.Tx.
func (d Dialect) Version(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) (int, error) {
	if !d.known() {
		return 0, fmt.Errorf("ramp: unknown dialect %q", string(d))
	}
	has, err := d.values().read(ctx, db.QueryContext)
	if err != nil {
		return 0, fmt.Errorf("ramp: version of the tables: %w", err)
	}
	return has.version(), nil
}

// newest returns the version of the tables that this release needs.
func newest() (version int) {
	for _, c := range columns {
		version = max(version, c.since)
	}
	for _, i := range indexes {
		version = max(version, i.since)
	}
	return version
}

// catalog is what a database says of the columns and indexes of the table ramp_orders, by their names.
type catalog map[string]cataloged

// read asks the database for the catalog.
func (d *dialect) read(
	ctx context.Context, query func(context.Context, string, ...any) (*sql.Rows, error),
) (catalog, error) {
	rows, err := query(ctx, d.catalog)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	has := catalog{}
	for rows.Next() {
		var name string
		var of cataloged
		if err := rows.Scan(&name, &of.kind, &of.width); err != nil {
			return nil, err
		}
		has[name] = of
	}
	return has, rows.Err()
}

// version returns the version of the tables: the last up to which each addition is there.
func (has catalog) version() int {
	if len(has) == 0 {
		return 0
	}
	complete := newest()
	lacks := func(name string, since int) {
		if _, there := has[name]; !there && since > 1 { // without a part of the first, they are damaged
			complete = min(complete, since-1)
		}
	}
	for _, c := range columns {
		lacks(c.name, c.since)
	}
	for _, i := range indexes {
		lacks(i.name, i.since)
	}
	return complete
}
