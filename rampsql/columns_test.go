package rampsql

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// storeAField ends the message of a test that a column fails until its guide was followed.
const storeAField = `see "Store a field with an order" in CONTRIBUTING.md`

// A row of columns says all of its column, and nothing that contradicts itself.
func TestEveryColumnSaysAllOfItself(t *testing.T) {
	names := map[string]bool{}
	for _, c := range columns {
		assert.False(t, names[c.name], "%s is there twice", c.name)
		names[c.name] = true
		assert.Positive(t, c.since, "%s: the version that added it", c.name)
		assert.Equal(t, c.holds == number, c.width == 0, "%s: a text has a width", c.name)
		assert.Contains(t, []class{ofOrder, ofPlayer}, c.class, "%s: EraseSession replaces what is ofPlayer", c.name)
		assert.Contains(t, []moment{atAccept, atEnd, atBoth}, c.written, "%s: which step writes it", c.name)
		if c.class == ofPlayer {
			assert.GreaterOrEqual(t, c.width, len("erased-")+26, "%s: EraseSession writes a random text", c.name)
			assert.Equal(t, text, c.holds, "%s: EraseSession writes a random text", c.name)
		}
		if c.since > 1 {
			assert.True(t, c.nullable(), "%s: a release before writes NULL: use optional or milliseconds", c.name)
		}
	}
}

// Each field of an order is stored. The assets follow from the intent.
func TestEveryFieldOfAnOrderHasAColumn(t *testing.T) {
	var row orderRow
	order := reflect.ValueOf(&row.Order).Elem()
	at := map[uintptr]string{}
	for _, c := range columns {
		at[reflect.ValueOf(c.at(&row)).Pointer()] = c.name
	}
	other := map[string]string{"Digest": "digest", "Intent": "intent", "Assets": "intent"}
	for _, field := range reflect.VisibleFields(order.Type()) {
		if field.IsExported() && other[field.Name] == "" {
			assert.NotEmpty(t, at[order.FieldByIndex(field.Index).Addr().Pointer()],
				"ramp.Order.%s has no row in columns: %s", field.Name, storeAField)
		}
	}
}

// What the schemas create is what columns and indexes say, and each later version has its migrations.
func TestTheSchemasHaveTheColumns(t *testing.T) {
	column := regexp.MustCompile(`(?m)^ {4}([a-z_]+) `)
	for _, dialect := range withSchema(t) {
		assert.NotEmpty(t, unlocked[dialect].index, "unlocked in columns_test.go does not have %s", dialect)
		schema := dialect.Schema()
		_, table, _ := strings.Cut(schema, "CREATE TABLE IF NOT EXISTS ramp_orders (")
		table, _, _ = strings.Cut(table, "\n)")
		var created, wanted []string
		for _, match := range column.FindAllStringSubmatch(table, -1) {
			created = append(created, match[1])
		}
		for _, c := range columns {
			wanted = append(wanted, c.name)
			if c.since > 1 {
				adds(t, dialect, c.since, "ADD COLUMN "+c.name+" ", "NOT NULL", "DEFAULT")
			}
		}
		assert.ElementsMatch(t, wanted, created, "rampsql/schema/%s.sql has other columns than columns.go: %s", dialect,
			storeAField)
		for _, i := range indexes {
			assert.True(t, strings.Contains(schema, " "+i.name+" "), "rampsql/schema/%s.sql lacks the index %s: %s",
				dialect, i.name, storeAField)
			if i.since > 1 {
				adds(t, dialect, i.since, unlocked[dialect].index+i.name+" ")
			}
		}
	}
	// Nothing else is in the directory: a file without its row would never be missed by Check.
	files := must.Get(fs.Glob(schemas, "schema/*"))(t)
	assert.Len(t, files, len(withSchema(t))*newest(), "rampsql/schema: a file of each dialect for each version: %s",
		storeAField)
}

// withSchema returns the dialects that have a schema.
func withSchema(t *testing.T) (dialects []Dialect) {
	for _, file := range must.Get(fs.Glob(schemas, "schema/*.sql"))(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "schema/"), ".sql")
		if !strings.Contains(name, "-") {
			dialects = append(dialects, Dialect(name))
		}
	}
	return dialects
}

// adds fails the test unless the migration to a version is one statement that adds something and
// cannot lock the table for the time of its rows.
func adds(t *testing.T, dialect Dialect, version int, what string, never ...string) {
	t.Helper()
	name := fmt.Sprintf("schema/%s-%d.sql", dialect, version)
	file, err := schemas.ReadFile(name)
	require.NoError(t, err, "rampsql/%s is missing: a statement that adds what version %d adds: %s", name, version,
		storeAField)
	statement := strings.TrimSpace(regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(string(file), ""))
	statement = strings.TrimSuffix(statement, ";")
	assert.NotContains(t, statement, ";", "rampsql/%s is one statement", name)
	assert.Contains(t, statement, what, "rampsql/%s", name)
	for _, word := range never {
		assert.NotContains(t, statement, word, "rampsql/%s: PostgreSQL 9.5 would write each row anew", name)
	}
	ends := unlocked[dialect].columnEnds
	if strings.Contains(what, "INDEX ") {
		ends = unlocked[dialect].indexEnds
	}
	assert.True(t, strings.HasSuffix(statement, ends), "rampsql/%s must end in %s", name, ends)
}

// unlocked is how a migration of each dialect adds a column and an index while orders go on.
var unlocked = map[Dialect]struct{ columnEnds, index, indexEnds string }{
	PostgreSQL: {index: "INDEX CONCURRENTLY "},
	MySQL: {columnEnds: "ALGORITHM=INSTANT", index: "INDEX ",
		indexEnds: "ALGORITHM=INPLACE, LOCK=NONE"},
	SQLite: {index: "INDEX "},
}

// Each version that is not complete is the one before, whatever else is there.
func TestTheVersionIsThatOfWhatIsThere(t *testing.T) {
	has := catalog{}
	assert.Zero(t, has.version())
	for version := 1; version <= newest(); version++ {
		for _, c := range columns {
			if c.since <= version {
				has[c.name] = cataloged{}
			}
		}
		for _, i := range indexes {
			if i.since <= version {
				has[i.name] = cataloged{}
			}
		}
		assert.Equal(t, version, has.version())
	}
	for _, dialect := range withSchema(t) {
		assert.Len(t, dialect.Migrations(1), newest()-1)
		assert.Equal(t, []string{dialect.Schema()}, dialect.Migrations(0))
	}
	assert.Empty(t, Dialect("oracle").Migrations(0))
}

// Package ramp has the same rules, for what a store of another kind reads.
func TestWhatFollowsFromAnIntentIsWhatPackageRampSays(t *testing.T) {
	orders := os.DirFS("../testdata/formats")
	files := must.Get(fs.Glob(orders, "*/order-*.json"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		var want ramp.Order
		require.NoError(t, want.UnmarshalJSON(must.Get(fs.ReadFile(orders, file))(t)))
		got := want
		got.Direction, got.Assets = "", nil
		require.NoError(t, derive(&got))
		assert.Equal(t, want.Direction, got.Direction)
		assert.Equal(t, want.Assets, got.Assets)
	}
}

// A row that Apply changes must not change the call. The memory store copies an intent with clone, of
// package ramp, which cannot be called here.
func TestACopyOfAnIntentSharesNoMemory(t *testing.T) {
	intent := ramp.Intent{From: make([]ramp.IntentAsset, 1), To: make([]ramp.IntentAsset, 1),
		TargetCandidate: []byte("{}")}
	memory, id := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}, uuid.New()
	open := func(*ramp.Order) (ramp.Step, error) {
		return ramp.Step{New: true, Order: ramp.Order{UUID: id, State: ramp.OrderAccepted, Intent: intent}}, nil
	}
	_ = must.Get(memory.Update(t.Context(), id, open))(t)
	var stored ramp.Intent
	read := func(order *ramp.Order) (ramp.Step, error) {
		stored = order.Intent
		return ramp.Step{}, errors.ErrUnsupported
	}
	_, err := memory.Update(t.Context(), id, read)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for name, copied := range map[string]ramp.Intent{"cloneIntent": cloneIntent(intent), "clone": stored} {
		require.Equal(t, intent, copied, name)
		was, is := reflect.ValueOf(intent), reflect.ValueOf(copied)
		for _, field := range reflect.VisibleFields(was.Type()) {
			switch field.Type.Kind() {
			case reflect.Slice, reflect.Map, reflect.Pointer:
				require.False(t, was.FieldByIndex(field.Index).IsZero(), "set %s above", field.Name)
				assert.NotEqual(t, was.FieldByIndex(field.Index).Pointer(), is.FieldByIndex(field.Index).Pointer(),
					"%s must copy %s", name, field.Name)
			}
		}
	}
}
