package dbtest

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// What an upgrade of the system below a database can change is played here, row by row of the table in
// docs/databases.md.

// walk plays a life of orders on a place, and fails if anything is as it must not be.
func walk(t *testing.T, p *place) {
	t.Helper()
	w := newWorld(t, p, nil)
	check(t, w.store.Check(t.Context(), ramp.Testnet))
	const other = "Alice 玩 \\' \" %"
	w.give("alice", "gold", 100)
	sold, failed, bought, waits := newOrder("alice", mint("gold", 10)), newOrder("alice", mint("gold", 20)),
		newOrder("alice", burn("gold", 30)), newOrder("alice", mint("gold", 40))
	begun := time.Now()
	for _, o := range []order{sold, failed, bought, waits} {
		w.expect(w.validate(o), "200")
		w.expect(w.validate(o), "200")
	}
	strange := newOrder(other, burn("gold", 1))
	take(t, w.store, strange.id, strange.accept())
	for range 2 {
		w.expect(w.result(sold, success), "200")
		w.expect(w.result(failed, failure), "200")
		w.expect(w.result(bought, success), "200")
	}
	twice := ramp.Finish(&ramp.Result{UUID: waits.id, TxHash: txHashOf(sold.id),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(success)}}, time.Now())
	var conflict *ramp.ConflictError
	if _, err := w.store.Update(t.Context(), waits.id, twice); !errors.As(err, &conflict) {
		t.Errorf("one transaction ends two orders: %v", err)
	}
	for session, n := range map[string]int{"alice": 4, other: 1, "Alice": 0} {
		orders := must.Get(w.store.SessionOrders(t.Context(), session, ramp.OrderPage{}))(t)
		equal(t, "orders of "+session, len(orders), n)
		for _, o := range orders {
			if apart := o.AcceptedAt.Sub(begun).Abs(); apart > time.Minute {
				t.Errorf("an order was accepted %v ago", apart)
			}
		}
	}
	user := strings.ToUpper(sold.user[2:])
	equal(t, "orders of the wallet", len(must.Get(w.store.UserOrders(t.Context(), "0x"+user, ramp.OrderPage{}))(t)), 5)
	by := must.Get(w.store.OrderByTransaction(t.Context(), common.HexToHash(txHashOf(sold.id))))(t)
	equal(t, "the order of a transaction", by.UUID, sold.id)
	var gold int
	check(t, p.db.QueryRow("SELECT amount FROM holdings WHERE session_id = 'alice'").Scan(&gold))
	equal(t, "gold of alice", gold, 100-10+30-40)
}

// A server or a driver with other defaults: orders are as before.
func TestOrdersWithOtherDefaultsOfTheServer(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect rampsql.Dialect
		params  string
		only    string
	}{
		{"time zone", rampsql.PostgreSQL, "&timezone=Pacific/Auckland", ""},
		{"date style", rampsql.PostgreSQL, "&datestyle=German&intervalstyle=sql_standard", ""},
		{"floats", rampsql.PostgreSQL, "&extra_float_digits=-15&bytea_output=escape", ""},
		{"quotes", rampsql.PostgreSQL, "&standard_conforming_strings=off&backslash_quote=on", ""},
		{"NULL", rampsql.PostgreSQL, "&transform_null_equals=on&array_nulls=off", ""},
		{"time zone", rampsql.MySQL, "&time_zone=%27%2B13:00%27", ""},
		{"collation of the driver", rampsql.MySQL, "&collation=utf8mb4_unicode_ci", ""},
		{"collation of the driver", rampsql.MySQL, "&collation=utf8mb4_bin", ""},
		{"concatenation", rampsql.MySQL, "&sql_mode=%27STRICT_ALL_TABLES,PIPES_AS_CONCAT,IGNORE_SPACE%27", ""},
		{"ANSI", rampsql.MySQL, "&sql_mode=%27STRICT_ALL_TABLES,ANSI%27", ""},
		{"groups", rampsql.MySQL, "&sql_mode=%27TRADITIONAL,ONLY_FULL_GROUP_BY%27", ""},
		{"padding", rampsql.MySQL, "&sql_mode=%27STRICT_ALL_TABLES,PAD_CHAR_TO_FULL_LENGTH%27", ""},
		{"precedence", rampsql.MySQL,
			"&sql_mode=%27STRICT_ALL_TABLES,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION%27", ""},
		{"Oracle", rampsql.MySQL, "&sql_mode=%27STRICT_ALL_TABLES,ORACLE%27", "MariaDB"},
		{"assignments", rampsql.MySQL, "&sql_mode=%27STRICT_ALL_TABLES,SIMULTANEOUS_ASSIGNMENT%27", "MariaDB"},
		{"safe updates", rampsql.MySQL, "&sql_safe_updates=1", ""},
		{"case of LIKE, keys, quotes", rampsql.SQLite,
			"&_pragma=case_sensitive_like(1)&_pragma=foreign_keys(1)&_pragma=recursive_triggers(1)", ""},
		{"legacy", rampsql.SQLite, "&_pragma=legacy_alter_table(1)&_pragma=reverse_unordered_selects(1)", ""},
		{"short names", rampsql.SQLite, "&_pragma=short_column_names(0)&_pragma=full_column_names(1)", ""},
		{"trust", rampsql.SQLite, "&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=secure_delete(1)", ""},
	} {
		t.Run(string(c.dialect)+"/"+c.name, func(t *testing.T) {
			d := databaseOf(t, c.dialect)
			walk(t, newPlace(t, d, mode{params: c.params, only: c.only}, d.anySession))
		})
	}
}

// A new release of MySQL or MariaDB creates databases with another character set and collation. The tables of the
// store name their own.
func TestOrdersInADatabaseWithAnotherCharacterSet(t *testing.T) {
	for _, set := range []string{"latin1 COLLATE latin1_swedish_ci", "utf8mb3 COLLATE utf8mb3_general_ci",
		"utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb4 COLLATE utf8mb4_unicode_520_ci",
		"ucs2 COLLATE ucs2_general_ci"} {
		t.Run(set, func(t *testing.T) {
			p := placeOn(t, rampsql.MySQL)
			run(t, p.admin, "DROP DATABASE "+p.schema+"; CREATE DATABASE "+p.schema+" CHARACTER SET "+set+
				"; USE "+p.schema+";"+rampsql.MySQL.Schema()+strings.ReplaceAll(tables, ");", ") COLLATE utf8mb4_bin;"))
			walk(t, p)
		})
	}
}

// The order of text under a collation of the system changes with the system's library. An index that was built
// before then misses what it has. So no index of the store is of such a text.
func TestNoIndexOfOrdersDependsOnALibrary(t *testing.T) {
	p := placeOn(t, rampsql.PostgreSQL)
	rows := must.Get(p.db.Query("SELECT i.indexrelid::regclass::text, c.collname::text FROM pg_index i" +
		" CROSS JOIN unnest(i.indcollation) AS of JOIN pg_collation c ON c.oid = of WHERE i.indrelid IN" +
		" ('ramp_orders'::regclass, 'ramp_refusals'::regclass, 'ramp_claims'::regclass)"))(t)
	defer rows.Close()
	n := 0
	for rows.Next() {
		var index, collation string
		check(t, rows.Scan(&index, &collation))
		equal(t, "the collation of "+index, collation, "C")
		n++
	}
	check(t, rows.Err())
	equal(t, "texts in indexes", n, 9)
}

// A table that somebody else has created may depend on the library: after an upgrade, its unique index can miss a
// transaction that it has. Check warns. That of the database may be C, too.
func TestCheckWarnsOfAnIndexThatDependsOnALibrary(t *testing.T) {
	for collation, want := range map[string]string{
		`"C"`: "", `"POSIX"`: "", "pg_catalog.default": "",
		`"und-x-icu"`: "tx_hash has the collation und-x-icu", `"C.utf8"`: "tx_hash has the collation C.utf8",
	} {
		t.Run(collation, func(t *testing.T) {
			p := placeOn(t, rampsql.PostgreSQL)
			var ofDatabase string
			query := "SELECT datcollate FROM pg_database WHERE datname = current_database()"
			check(t, p.db.QueryRow(query).Scan(&ofDatabase))
			if want == "" && strings.HasSuffix(collation, "default") && ofDatabase != "C" {
				want = "tx_hash has the collation default"
			}
			run(t, p.admin, "ALTER TABLE "+p.schema+".ramp_orders ALTER tx_hash TYPE text COLLATE "+collation)
			log := warnings(t, p)
			equal(t, "Check warns", strings.Contains(log, "one transaction can end two orders"), want != "")
			equal(t, "of what", strings.Contains(log, want), true)
		})
	}
}

// Whatever case the server gives to names, those of the store have none.
func TestNamesOfTablesHaveNoCase(t *testing.T) {
	for _, d := range databases {
		for line := range strings.Lines(d.dialect.Schema()) {
			code, _, _ := strings.Cut(line, "--")
			other := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }
			for _, word := range strings.FieldsFunc(code, other) {
				if strings.HasPrefix(strings.ToLower(word), "ramp_") {
					equal(t, "a name", word, strings.ToLower(word))
				}
			}
		}
	}
}
