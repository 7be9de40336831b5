//go:build !unix

package journal

import (
	"errors"
	"io/fs"
	"os"
)

// lock locks a file until it is closed, or until the process ends: an open file cannot
// be removed on Windows.
func lock(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ErrLocked
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	return file, err
}

func unlock(file *os.File) error { return file.Close() }
