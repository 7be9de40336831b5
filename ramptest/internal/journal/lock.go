package journal

import "errors"

// ErrLocked means that another journal, perhaps in another process, uses the file.
var ErrLocked = errors.New("another program uses the file")
