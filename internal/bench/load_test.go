package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CI does not run the command load, so this test checks that it works.
func TestTheLoadKeepsItsBooks(t *testing.T) {
	require.NoError(t, loadMain([]string{"-for", (600 * time.Millisecond).String(), "-workers", "4", "-players", "3"}))
}
