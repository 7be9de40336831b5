package ramptest

import "github.com/token-ramp/ramp-go/ramptest/internal/statefile"

// StateFile keeps a service in a file: its orders, chains, clock, books and events. A
// service with the same file continues from there; see [Standalone.State]. The file contains
// the access tokens of players, so only its owner may read it.
type StateFile struct{ file *statefile.File }

// OpenState opens a state file, or begins one. The path may be a link or a mounted file. OpenState
// lets only the owner read the file. It fails if another service uses the file, perhaps under
// another name, or if it is no state file.
func OpenState(path string) (*StateFile, error) {
	file, err := statefile.Open(path)
	if err != nil {
		return nil, err
	}
	return &StateFile{file}, nil
}

// Note returns a text that [StateFile.SetNote] has kept in the file, such as a key that
// a program generated. It is empty if there is none.
func (f *StateFile) Note(name string) (text string, err error) { return f.file.Note(name) }

// SetNote keeps a text in the file; see [StateFile.Note].
func (f *StateFile) SetNote(name, text string) error { return f.file.SetNote(name, text) }

// Failed returns a channel that is closed when the file cannot be written, such as on a full disk; see
// [StateFile.Err]. Nothing is written from then on: a service that continues from the file starts as if
// this one had been killed at that time.
func (f *StateFile) Failed() <-chan struct{} { return f.file.Failed() }

// Err returns the first error of writing the file; nil if everything was written.
func (f *StateFile) Err() error { return f.file.Err() }

// Close closes the file. Close the service before. It returns an error if this fails, and also the
// error of [StateFile.Err] if there is one.
func (f *StateFile) Close() error { return f.file.Close() }
