package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The command load is not run by CI; this keeps it from rotting, and its books exact.
func TestTheLoadKeepsItsBooks(t *testing.T) {
	require.NoError(t, loadMain([]string{"-for", (600 * time.Millisecond).String(), "-workers", "4", "-players", "3"}))
}
