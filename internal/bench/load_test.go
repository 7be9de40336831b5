package main

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const statementsOfAnOrder = "6.0, and 4.0 BEGIN and COMMIT"

// CI does not run the command load, so this test checks that it works.
func TestTheLoadKeepsItsBooks(t *testing.T) {
	var report strings.Builder
	require.NoError(t, loadMain([]string{"-for", "240ms", "-workers", "4", "-players", "3"}, &report))
	assert.Contains(t, report.String(), "| statements, an order | "+statementsOfAnOrder+" |")
}

// On PostgreSQL each statement is a round trip. The server by hand must make as many, or
// the comparison says nothing.
func TestTheLoadComparesEqualServers(t *testing.T) {
	address := os.Getenv("RAMP_TEST_POSTGRESQL")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set ***")
	}
	u, err := url.Parse(address)
	require.NoError(t, err)
	admin := &load{address: address}
	require.NoError(t, admin.open())
	defer admin.db.Close()
	name := "load_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err = admin.db.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	defer func() {
		_, err := admin.db.Exec("DROP DATABASE " + name)
		assert.NoError(t, err)
	}()
	u.Path = "/" + name
	var report strings.Builder
	require.NoError(t, loadMain([]string{"-db", u.String(), "-for", "320ms", "-workers", "2", "-players", "3", "-byhand"}, &report))
	assert.Contains(t, report.String(), "the same statements ("+statementsOfAnOrder+")")
	assert.Regexp(t, `ratio, 8 rounds: median \d\.\d\d`, report.String())
}
