//go:build !unix && !windows

package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// Lock opens a file, or creates one that only its owner may read. Plan 9 opens a file of this mode once.
// WebAssembly has one process, and no locks.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600|os.ModeExclusive)
	if info, failed := os.Stat(path); err != nil && !errors.Is(err, fs.ErrPermission) && failed == nil &&
		info.Mode()&os.ModeExclusive != 0 {
		return nil, ErrLocked
	}
	return file, err
}

// Unlock closes a file and releases its lock.
func Unlock(file *os.File) error { return file.Close() }
