// Package statefile keeps values in a file, each under a key, for a service that continues from there.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/journal"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// File is an open state file.
type File struct {
	journal *journal.Journal

	mu     locks.Mutex
	err    error         // the first failure to write
	failed chan struct{} // closed when there is one
}

// Open opens a state file, or begins one. The path may be a link or a mounted file. Open
// lets only the owner read the file. It fails if another service uses the file, perhaps under
// another name, or if it is no state file.
func Open(path string) (*File, error) {
	j, err := journal.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ramptest: state: %w", err)
	}
	f := &File{journal: j, mu: locks.At(locks.File), failed: make(chan struct{})}
	version, err := f.Note("version")
	if err == nil && version == "" {
		err = f.SetNote("version", stateVersion)
	} else if err == nil && version != stateVersion {
		err = fmt.Errorf(
			"ramptest: state: another release wrote the file: its version is %s, but must be %s. Delete "+
				"it, or use another", version, stateVersion)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return f, nil
}

// stateVersion is the version of the lines. A file of another version is not read.
const stateVersion = "6"

// Note returns a text that [File.SetNote] has kept in the file, such as a key that
// a program generated. It is empty if there is none.
func (f *File) Note(name string) (text string, err error) {
	value, err := f.journal.Get("note/" + url.QueryEscape(name))
	if err == nil && value != nil {
		err = json.Unmarshal(value, &text)
	}
	return text, err
}

// SetNote keeps a text in the file; see [File.Note].
func (f *File) SetNote(name, text string) error {
	f.Put("note/"+url.QueryEscape(name), text)
	return f.Err()
}

// Kept returns the text of a note, which is fresh if there is none yet.
func (f *File) Kept(name, fresh string) (string, error) {
	text, err := f.Note(name)
	if err == nil && text == "" {
		text, err = fresh, f.SetNote(name, fresh)
	}
	return text, err
}

// Failed returns a channel that is closed when the file cannot be written, such as on a full disk; see
// [File.Err]. Nothing is written from then on: a service that continues from the file starts as if
// this one had been killed at that time.
func (f *File) Failed() <-chan struct{} { return f.failed }

// Err returns the first error of writing the file; nil if everything was written.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Close closes the file. Close the service before. It returns an error if this fails, and also the
// error of [File.Err] if there is one.
func (f *File) Close() error { return errors.Join(f.Err(), f.journal.Close()) }

// Put sets a key to values, with a tab between them; none deletes it.
func (f *File) Put(key string, values ...any) {
	texts, errs := make([][]byte, len(values)), make([]error, len(values))
	for i, value := range values {
		texts[i], errs[i] = json.Marshal(value)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = f.journal.Put(key, bytes.Join(texts, []byte("\t")))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("ramptest: state: %w", err)
		close(f.failed)
	}
}

// Rest decodes what a line has after its first tab.
func (f *File) Rest(key string, value any) error {
	text, err := f.journal.Get(key)
	if err != nil {
		return err
	}
	_, text, _ = bytes.Cut(text, []byte("\t"))
	return decode(text, value)
}

var errLine = errors.New("a line is not one of a service")

// decode decodes a part of a line. Its error quotes nothing, because that could be a token.
func decode(text []byte, value any) error {
	if json.Unmarshal(text, value) != nil {
		return errLine
	}
	return nil
}

// Clock is what the clock showed at a real time.
type Clock struct {
	Now, Wall time.Time
	Events    int // the number of the last event
}

// Clear deletes everything but the notes.
func (f *File) Clear() {
	for _, key := range f.journal.Keys("") {
		if !strings.HasPrefix(key, "note/") {
			f.Put(key)
		}
	}
}

// Each calls do for the values of the keys that begin with prefix, up to their first tab. An
// error says which line of the file it is about, and what to do.
func Each[T any](f *File, prefix string, do func(key string, value *T) error) error {
	for keys := range slices.Chunk(f.journal.Keys(prefix), 1_000) {
		values, err := f.journal.Values(keys)
		if err != nil {
			return err
		}
		for i, key := range keys {
			text, _, _ := bytes.Cut(values[i], []byte("\t"))
			value := new(T)
			err := decode(text, value)
			if err == nil {
				err = do(strings.TrimPrefix(key, prefix), value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w. Delete the line to go on without it, or start with another file",
					f.journal.Line(key), err)
			}
		}
	}
	return nil
}

// All adds the values of the keys that begin with prefix to list.
func All[T any](f *File, prefix string, list *[]T) error {
	return Each(f, prefix, func(_ string, value *T) error {
		*list = append(*list, *value)
		return nil
	})
}

// One reads the value of a key into value, if there is one.
func One[T any](f *File, key string, value *T) error {
	return Each(f, key, func(rest string, saved *T) error {
		if rest == "" {
			*value = *saved
		}
		return nil
	})
}

// Epoch returns the time at which a restored clock starts. A clock in real time
// includes the time that has passed since it was saved.
func (f *File) Epoch(speed float64, byDefault time.Time) (time.Time, error) {
	c := Clock{Now: byDefault}
	err := One(f, "clock", &c)
	if speed == 1 && !c.Wall.IsZero() {
		c.Now = c.Now.Add(max(0, time.Since(c.Wall)))
	}
	return c.Now, err
}

// Get returns the value of a key, or nil if there is none.
func (f *File) Get(key string) ([]byte, error) { return f.journal.Get(key) }
