// Package filelock locks files, so that one program uses what they stand for.
package filelock

import "errors"

// ErrLocked means that another holder, perhaps in another process, has the lock.
var ErrLocked = errors.New("another program uses the file")
