package ramp_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// What orders do is proven on real databases, in internal/dbtest. Here is what
// needs none.

var dialects = map[ramp.Dialect]string{
	ramp.PostgreSQL: "schema/postgresql.sql",
	ramp.MySQL:      "schema/mysql.sql",
	ramp.SQLite:     "schema/sqlite.sql",
}

func TestSchemaIsTheFileForMigrationTools(t *testing.T) {
	for dialect, file := range dialects {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(text), dialect.Schema(), dialect)
		assert.NotContains(t, dialect.String(), "unknown")
		_, err = ramp.NewOrders(dialect)
		assert.NoError(t, err)
	}
	assert.Empty(t, ramp.Dialect(0).Schema())
	assert.Equal(t, "unknown dialect", ramp.Dialect(0).String())
}

type noStudio struct{}

func (noStudio) Authenticate(context.Context, ramp.Session) error           { return nil }
func (noStudio) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return nil, nil }
func (noStudio) Apply(context.Context, *sql.Tx, ramp.Step) error            { return nil }

func TestOrdersThatCannotWorkAreNotMade(t *testing.T) {
	_, err := ramp.NewOrders(0)
	assert.ErrorContains(t, err, "dialect")
	for _, test := range []struct {
		want   string
		change func(*ramp.SQLGameConfig)
	}{
		{"SQLGameConfig.DB is required", func(c *ramp.SQLGameConfig) { c.DB = nil }},
		{"SQLGameConfig.Dialect is required and must be PostgreSQL, MySQL or SQLite", func(c *ramp.SQLGameConfig) { c.Dialect = 0 }},
		{"SQLGameConfig.Dialect is required and must be PostgreSQL, MySQL or SQLite", func(c *ramp.SQLGameConfig) { c.Dialect = 4 }},
		{"SQLGameConfig.Studio is required", func(c *ramp.SQLGameConfig) { c.Studio = nil }},
	} {
		config := ramp.SQLGameConfig{DB: sql.OpenDB(nil), Dialect: ramp.SQLite, Studio: noStudio{}}
		test.change(&config)
		game, err := ramp.NewSQLGame(config)
		assert.EqualError(t, err, "ramp: "+test.want)
		assert.Nil(t, game)
	}
	_, err = ramp.NewSQLGame(ramp.SQLGameConfig{})
	assertFields(t, err, "SQLGameConfig.DB", "SQLGameConfig.Dialect", "SQLGameConfig.Studio")
}

// What is wrong with a call is found before the transaction is touched: there
// is none here.
func TestOrdersRefuseACallBeforeTheyAskTheDatabase(t *testing.T) {
	ctx := t.Context()
	orders, err := ramp.NewOrders(ramp.SQLite)
	require.NoError(t, err)
	session := ramp.Session{ID: "s"}
	huge, err := ramp.ParseAmount("9" + strings.Repeat("0", 99))
	require.NoError(t, err)
	tooMuch := ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "t", Amount: ramp.NewAmount(1)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "a", Amount: huge}, {Type: ramp.TypeAsset, ID: "a", Amount: huge}}}
	for name, call := range map[string]func() (ramp.Step, error){
		"no session": func() (ramp.Step, error) { return orders.Accept(ctx, nil, ramp.Session{}, &ramp.ValidateRequest{}) },
		"no intent":  func() (ramp.Step, error) { return orders.Accept(ctx, nil, session, &ramp.ValidateRequest{}) },
		"a burn that is too large": func() (ramp.Step, error) {
			return orders.Accept(ctx, nil, session, &ramp.ValidateRequest{Intent: tooMuch})
		},
		"a result without status": func() (ramp.Step, error) { return orders.Finish(ctx, nil, &ramp.Result{Intent: tooMuch}) },
		"a result too large": func() (ramp.Step, error) {
			return orders.Finish(ctx, nil, &ramp.Result{Intent: tooMuch, Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}})
		},
		"no reason":    func() (ramp.Step, error) { return orders.Abandon(ctx, nil, uuid.New(), " ") },
		"no page size": func() (ramp.Step, error) { _, err := orders.Waiting(ctx, nil, time.Now(), 0); return ramp.Step{}, err },
	} {
		step, err := call()
		assert.Error(t, err, name)
		assert.Equal(t, ramp.Step{}, step, name)
	}
}

// What a database cannot store is refused before the transaction, so that no
// error of a driver quotes it.
func TestOrdersRefuseWhatCannotBeStored(t *testing.T) {
	ctx := t.Context()
	intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "a", Amount: ramp.NewAmount(1)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "t", Amount: ramp.NewAmount(1)}}}
	for dialect := range dialects {
		orders, err := ramp.NewOrders(dialect)
		require.NoError(t, err)
		for path, call := range map[string]func(string) error{
			"session_id": func(text string) error {
				_, err := orders.Accept(ctx, nil, ramp.Session{ID: text}, &ramp.ValidateRequest{Intent: intent})
				return err
			},
			"project_id": func(text string) error {
				_, err := orders.Accept(ctx, nil, ramp.Session{ID: "s"}, &ramp.ValidateRequest{Intent: intent, ProjectID: text})
				return err
			},
			"user_address": func(text string) error {
				_, err := orders.Accept(ctx, nil, ramp.Session{ID: "s"}, &ramp.ValidateRequest{Intent: intent, UserAddress: text})
				return err
			},
			"reason": func(text string) error {
				_, err := orders.Abandon(ctx, nil, uuid.New(), text)
				return err
			},
		} {
			longest := 1024
			if path == "reason" {
				longest = 4096
			}
			texts := map[string]string{
				fmt.Sprintf("must be at most %d bytes", longest): strings.Repeat("quoted", longest),
				"must be valid UTF-8":                            "quoted\xff",
				"must not contain a NUL character":               "quoted\x00",
			}
			if dialect == ramp.MySQL {
				texts["must not contain a character above U+FFFF"] = "quoted\U0001F600"
			}
			for problem, text := range texts {
				var wrong *ramp.InvalidError
				require.ErrorAs(t, call(text), &wrong, "%s: %s %s", dialect, path, problem)
				require.Len(t, wrong.Fields, 1)
				assert.Equal(t, path, wrong.Fields[0].Path)
				assert.Contains(t, wrong.Fields[0].Problem, problem)
				assert.NotContains(t, wrong.Error(), "quoted")
			}
			assert.Panics(t, func() { _ = call(strings.Repeat("x", longest)) }, "the longest one goes to the transaction, which is nil")
		}
	}
}

func TestConflictsSayWhatDiffersAndNothingSecret(t *testing.T) {
	id := uuid.MustParse("5f1f8c3a-0000-4000-8000-000000000001")
	conflict := &ramp.ConflictError{Field: "digest",
		Order: ramp.Order{UUID: id, State: ramp.OrderAccepted, SessionID: "session-7", UserAddress: "0xaa"}}
	err := fmt.Errorf("around: %w", conflict)
	assert.EqualError(t, conflict,
		"ramp: order 5f1f8c3a-0000-4000-8000-000000000001 (accepted): the call contradicts the stored order: digest differs")
	assert.ErrorIs(t, err, ramp.ErrOrderConflict)
	assert.NotErrorIs(t, err, ramp.ErrOrderFinished)
	var found *ramp.ConflictError
	require.True(t, errors.As(err, &found))
	assert.Equal(t, id, found.Order.UUID)
}

func ExampleDialect_Schema() {
	statement, _, _ := strings.Cut(ramp.SQLite.Schema()[strings.Index(ramp.SQLite.Schema(), "CREATE"):], " (")
	fmt.Println(statement)
	// Output: CREATE TABLE IF NOT EXISTS ramp_orders
}
