package journal

import "github.com/token-ramp/ramp-go/internal/filelock"

// ErrLocked means that another journal, perhaps in another process, uses the file.
var ErrLocked = filelock.ErrLocked
