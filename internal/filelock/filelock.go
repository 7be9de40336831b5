// Package filelock opens files that one program at a time uses.
package filelock

import "errors"

// ErrLocked means that another holder, perhaps in another process, has the lock.
var ErrLocked = errors.New("another program uses it")
