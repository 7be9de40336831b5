//go:build unix && !solaris && !aix

package journal

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that is being started holds a copy of every open file for a moment.
func TestAClosedJournalIsFreeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Open(path)
	require.NoError(t, err)
	copied, err := syscall.Dup(int(j.file.Fd()))
	require.NoError(t, err)
	defer syscall.Close(copied)
	require.NoError(t, j.Close())
	j, err = Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Close())
}
