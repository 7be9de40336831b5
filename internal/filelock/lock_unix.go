//go:build unix && !solaris && !aix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Lock locks a file until it is closed, or until the process ends.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		return nil, ErrLocked
	}
	return file, nil
}

// Unlock releases a lock. To close the file is not enough while a program is being started,
// which has a copy of it for a moment.
func Unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
