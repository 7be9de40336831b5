//go:build solaris || aix

package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Lock opens a file, or creates one that only its owner may read, and locks it until Unlock, or until the
// process ends. These systems have no Flock. Their locks belong to the process, so it keeps others out, but
// does not notice if one process opens a file twice.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := setLock(file, syscall.F_WRLCK); err != nil {
		_ = file.Close() // nothing was written
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("%s cannot be locked: %w", path, err)
	}
	return file, nil
}

// Unlock closes a file and releases its lock.
func Unlock(file *os.File) error {
	return errors.Join(setLock(file, syscall.F_UNLCK), file.Close())
}

func setLock(file *os.File, kind int16) error {
	return syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: kind, Whence: io.SeekStart})
}
