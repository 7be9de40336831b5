package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CI does not run the command load, so this test checks that it works.
func TestTheLoadKeepsItsBooks(t *testing.T) {
	var report strings.Builder
	require.NoError(t, loadMain([]string{"-for", "240ms", "-workers", "4", "-players", "3"}, &report))
	assert.Contains(t, report.String(), "| statements, an order | 6.0, and 4.0 BEGIN and COMMIT |")
}
