package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

var rehearsals = flag.Int("rehearsals", 100, "`number` of validate calls of each side in TestRehearsal")

// TestRehearsal compares accepting a burn, whose grant of one statement is rehearsed, with accepting
// a mint whose Apply sends no statement: the difference is a savepoint, the grant, and back. The two
// take turns. It prints the medians.
func TestRehearsal(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { compareRehearsal(t, openSQLite(t), rampsql.SQLite) })
	t.Run("PostgreSQL", func(t *testing.T) {
		address := os.Getenv("RAMP_TEST_POSTGRESQL")
		if address == "" {
			t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set ***")
		}
		admin := must.Get(sql.Open("pgx", address))(t)
		t.Cleanup(func() { _ = admin.Close() })
		name := "rehearsal_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		must.Get(admin.Exec("CREATE SCHEMA " + name))(t)
		t.Cleanup(func() { must.Get(admin.Exec("DROP SCHEMA " + name + " CASCADE"))(t) })
		db := must.Get(sql.Open("pgx", address+"&search_path="+name))(t)
		t.Cleanup(func() { _ = db.Close() })
		must.Get(db.Exec(rampsql.PostgreSQL.Schema()))(t)
		compareRehearsal(t, db, rampsql.PostgreSQL)
	})
	t.Run("MySQL", func(t *testing.T) {
		address := os.Getenv("RAMP_TEST_MYSQL")
		if address == "" {
			t.Skip("*** NOT TESTED: RAMP_TEST_MYSQL is not set ***")
		}
		config := must.Get(mysql.ParseDSN(address))(t)
		admin := must.Get(sql.Open("mysql", config.FormatDSN()))(t)
		t.Cleanup(func() { _ = admin.Close() })
		config.DBName, config.MultiStatements = "rehearsal_"+strings.ReplaceAll(uuid.NewString(), "-", ""), true
		must.Get(admin.Exec("CREATE DATABASE " + config.DBName))(t)
		t.Cleanup(func() { must.Get(admin.Exec("DROP DATABASE " + config.DBName))(t) })
		db := must.Get(sql.Open("mysql", config.FormatDSN()))(t)
		t.Cleanup(func() { _ = db.Close() })
		must.Get(db.Exec(rampsql.MySQL.Schema()))(t)
		compareRehearsal(t, db, rampsql.MySQL)
	})
}

func compareRehearsal(t *testing.T, db *sql.DB, dialect rampsql.Dialect) {
	must.Get(db.Exec("CREATE TABLE purses (id VARCHAR(64) PRIMARY KEY, gold BIGINT NOT NULL)"))(t)
	must.Get(db.Exec("INSERT INTO purses VALUES ('alice', 0)"))(t)
	store := must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: dialect,
		Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if step.Effect.Kind != ramp.Grant {
				return nil
			}
			const grant = "UPDATE purses SET gold = gold + 1 WHERE id = 'alice'" // whose session it is
			_, err := tx.ExecContext(ctx, grant)
			return err
		}}))(t)
	gold := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: item, Amount: ramp.NewAmount(1)}}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenAddress, Amount: ramp.NewAmount(1)}}
	intents := map[ramp.Direction]ramp.Intent{
		ramp.Burn: {Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: gold},
		ramp.Mint: {Method: ramp.MethodMint, Type: ramp.Assemble, From: gold, To: token},
	}
	took := map[ramp.Direction][]time.Duration{}
	for n := range *rehearsals {
		sides := []ramp.Direction{ramp.Mint, ramp.Burn}
		if n%2 == 1 {
			slices.Reverse(sides)
		}
		for _, d := range sides {
			id := uuid.New()
			accept := ramp.Accept(ramp.Session{ID: "alice"}, &ramp.ValidateRequest{
				UUID: id, ProjectID: "project-1", UserAddress: playerAddress, Intent: intents[d]}, time.Now())
			begun := time.Now()
			_, err := store.Update(t.Context(), id, accept)
			took[d] = append(took[d], time.Since(begun))
			require.NoError(t, err)
		}
	}
	for _, side := range took {
		slices.Sort(side)
	}
	median := func(d ramp.Direction) time.Duration { return took[d][len(took[d])/2] }
	fmt.Printf("%s: accepted without a rehearsal in %v, with one in %v\n",
		dialect, median(ramp.Mint), median(ramp.Burn))
}
