//go:build solaris || aix

package filelock

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Lock locks a file until it is closed, or until the process ends. These systems have no Flock. Their
// locks belong to the process, so it keeps others out, but not a second journal of its own.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if setLock(file, syscall.F_WRLCK) != nil {
		_ = file.Close() // nothing was written
		return nil, ErrLocked
	}
	return file, nil
}

// Unlock releases a lock.
func Unlock(file *os.File) error {
	return errors.Join(setLock(file, syscall.F_UNLCK), file.Close())
}

func setLock(file *os.File, kind int16) error {
	return syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: kind, Whence: io.SeekStart})
}
