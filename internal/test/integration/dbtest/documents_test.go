package dbtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The table and the statements that docs/databases.md has for the game of the README.
func TestTheStatementsForMySQL(t *testing.T) {
	p := placeOn(t, rampsql.MySQL)
	table, take, grant := statementsForMySQL(t)
	run(t, p.admin, "USE "+p.schema+";"+table)
	changes := func(statement string, arguments ...any) bool {
		t.Helper()
		n := must.Get(must.Get(p.db.Exec(statement, arguments...))(t).RowsAffected())(t)
		return n > 0
	}
	balance := func(player string) (n int64) {
		t.Helper()
		check(t, p.db.QueryRow("SELECT COALESCE(SUM(amount), 0) FROM balances WHERE player = ?", player).Scan(&n))
		return n
	}
	equal(t, "a grant without a row", changes(grant, 5, "alice", "gold"), true)
	equal(t, "a grant with a row", changes(grant, 7, "alice", "gold"), true)
	equal(t, "a take", changes(take, 4, "alice", "gold", 4), true)
	equal(t, "a take of too much", changes(take, 9, "alice", "gold", 9), false)
	equal(t, "a take from Alice", changes(take, 1, "Alice", "gold", 1), false)
	equal(t, "alice owns", balance("alice"), 8)
	equal(t, "Alice owns", balance("Alice"), 0)
}

// statementsForMySQL returns the table and the two statements of docs/databases.md.
func statementsForMySQL(t *testing.T) (table, take, grant string) {
	t.Helper()
	_, section, _ := strings.Cut(pageOf(t, "databases.md"), "\n## MySQL and MariaDB\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sql\n(.+?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, expected a table, a Take and a Grant", len(blocks))
	}
	return strings.TrimSuffix(blocks[0][1], "\n"), blocks[1][1], blocks[2][1]
}
