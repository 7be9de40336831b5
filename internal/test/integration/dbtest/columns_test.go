package dbtest

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// amountColumns has each kind of column in which a studio keeps amounts, and what is in it.
const amountColumns = `
CREATE TABLE amounts (
	words VARCHAR(250), exact DECIMAL(38, 18), whole BIGINT, rounded DOUBLE PRECISION, none DECIMAL(38, 18)
);
INSERT INTO amounts VALUES (
	'0.000000000000000000000000000001', 9007199254740993.000000000000000001, 9007199254740993, 99.5, NULL
);
`

// An amount is read exactly from text, DECIMAL and whole numbers, and not from what is rounded. database/sql
// takes none as an argument, because databases add the text of a number to a number as a float. pgx
// does, and PostgreSQL gives it the type of the column.
func TestAmountsAreReadFromColumns(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		scan := func(column string) (amount ramp.Amount, err error) {
			return amount, p.db.QueryRow("SELECT " + column + " FROM amounts").Scan(&amount)
		}
		want := map[string]string{
			"words": "0.000000000000000000000000000001",
			"exact": "9007199254740993.000000000000000001",
			"whole": "9007199254740993",
		}
		if !p.exact { // its DECIMAL is a float, or rounded to a whole number
			delete(want, "exact")
		}
		for column, text := range want {
			amount, err := scan(column)
			check(t, err)
			if amount.String() != text {
				t.Errorf("%s: %s, want %s", column, amount, text)
			}
		}
		for _, column := range []string{"rounded", "none"} {
			if amount, err := scan(column); err == nil && (column == "none" || !p.floatText) {
				t.Errorf("%s is read as %s", column, amount)
			}
		}
		var none sql.Null[ramp.Amount]
		check(t, p.db.QueryRow("SELECT none FROM amounts").Scan(&none))
		if none.Valid {
			t.Errorf("NULL is read as %s", none.V)
		}
		if !p.amounts {
			if _, err := p.db.Exec("UPDATE amounts SET whole = ?", ramp.NewAmount(1)); err == nil {
				t.Error("an amount is an argument")
			}
			return
		}
		exact := must.Get(ramp.ParseAmount(want["exact"]))(t)
		run(t, p.db, "UPDATE amounts SET exact = 0")
		if _, err := p.db.Exec("UPDATE amounts SET exact = exact + $1", exact); err != nil {
			t.Error(err)
		}
		native := must.Get(pgx.Connect(t.Context(), p.dsn))(t)
		defer native.Close(t.Context())
		for column, text := range want { // in the binary format of pgx
			var amount ramp.Amount
			check(t, native.QueryRow(t.Context(), "SELECT "+column+" FROM amounts").Scan(&amount))
			if amount.String() != text {
				t.Errorf("pgx: %s: %s, want %s", column, amount, text)
			}
		}
		var amount ramp.Amount
		if err := native.QueryRow(t.Context(), "SELECT rounded FROM amounts").Scan(&amount); err == nil {
			t.Errorf("pgx: a float is read as %s", amount)
		}
	}, amountColumns)
}
