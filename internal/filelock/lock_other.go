//go:build !unix

package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// Lock locks a file until it is closed, or until the process ends: an open file cannot
// be removed on Windows.
func Lock(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ErrLocked
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	return file, err
}

// Unlock releases a lock.
func Unlock(file *os.File) error { return file.Close() }
