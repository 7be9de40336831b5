package rampbooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/filelock"
)

// PositionStore keeps where the last books of [Reconciler.KeepBooks] ended: a [PositionFile], or what you
// write for a job whose files do not survive it, such as a row or an item of a database. The text is at
// most as large as the list of orders that have ended in one hour, and of findings that wait.
type PositionStore interface {
	// Lock makes sure that nobody else keeps these books until unlock is called. If another process does, the
	// error wraps [ErrPositionLocked]. It may do nothing if whatever starts the job never starts it twice.
	Lock(ctx context.Context) (unlock func(), err error)

	// Read returns what Write has stored last, or nil.
	Read(ctx context.Context) (text []byte, err error)

	// Write stores a text as a whole, or not at all.
	Write(ctx context.Context, text []byte) error

	// String names the place in errors and in the log.
	String() string
}

// ErrPositionLocked means that another process keeps the books.
var ErrPositionLocked = filelock.ErrLocked

// PositionFile is the name of a file as a [PositionStore].
type PositionFile string

var _ PositionStore = PositionFile("")

// Lock locks the file, by another one beside it.
func (p PositionFile) Lock(context.Context) (unlock func(), err error) {
	file, err := filelock.Lock(string(p) + ".lock")
	return func() { _ = filelock.Unlock(file) }, err
}

// Read returns what is in the file, or nil if there is none.
func (p PositionFile) Read(context.Context) ([]byte, error) {
	text, err := os.ReadFile(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Write replaces the file.
func (p PositionFile) Write(_ context.Context, text []byte) error {
	// what a process left that was killed may have another mode or owner
	if err := os.Remove(string(p) + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(string(p)+".new", os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	// a rename may reach the disk before what was written
	if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(string(p)+".new", string(p))
}

// String returns the name.
func (p PositionFile) String() string { return string(p) }

// lockPosition locks a position, if there is one.
func lockPosition(ctx context.Context, p PositionStore) (unlock func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	unlock, err = p.Lock(ctx)
	if errors.Is(err, ErrPositionLocked) {
		err = fmt.Errorf("another process keeps the books of %s: %w", p, err)
	}
	return unlock, err
}

// readPosition returns where the last books ended, or nothing if there were none.
func readPosition(ctx context.Context, p PositionStore) (last booksEnd, err error) {
	if p == nil {
		return booksEnd{}, nil
	}
	text, err := p.Read(ctx)
	switch {
	case err != nil, text == nil:
		return booksEnd{}, err
	case json.Unmarshal(text, &last) != nil || last.To.IsZero():
		return booksEnd{},
			fmt.Errorf(
				`%s is not a position of the books: write {"To":"2026-11-01T00:00:00Z"} with the end of `+
					"the last ones, or remove it", p)
	default:
		return last, nil
	}
}

// booksEnd is where the last books ended, the order in them that ended last, and when, those that ended in
// their last hour, what they have found for orders that wait, and what they were about. What a person has
// written may have only To.
type booksEnd struct {
	To          time.Time
	Newest      uuid.UUID `json:",omitzero"`
	NewestEnded time.Time `json:",omitzero"`
	Ended       []uuid.UUID
	Waiting     waitingTransactions `json:",omitempty"`
	About       *About              `json:",omitempty"`
}

// ended returns the orders that ended in the last hour, or nil if the file does not say.
func (last *booksEnd) ended() (orders map[uuid.UUID]bool) {
	if last.Ended == nil {
		return nil
	}
	orders = map[uuid.UUID]bool{}
	for _, id := range last.Ended {
		orders[id] = true
	}
	return orders
}

// checkAbout returns an error if books are about something else than the last ones. With a
// beginning, they may have other tokens.
func (last *booksEnd) checkAbout(p PositionStore, about About, anyTokens bool) error {
	if last.About == nil {
		return nil
	}
	before := *last.About
	switch {
	case before.ChainID != about.ChainID, before.Network != about.Network,
		!before.leadsTo(about):
		return fmt.Errorf("%s is the position of other books: they are about %s, and these about %s: "+
			"use a file of their own", p, before, about)
	case !anyTokens && !slices.Equal(before.Tokens, about.Tokens):
		return fmt.Errorf("%s is the position of books with other tokens: they are about %s, and these "+
			"about %s: begin once with -from where a new token was traded first, and at the latest where "+
			"these books ended, at %s",
			p, before, about, last.To.Format(time.RFC3339))
	}
	return nil
}

// leadsTo reports whether books of some projects can go on where those of a lie: a game keeps its projects
// when it gets a new one.
func (a *About) leadsTo(next About) bool {
	lost := func(project string) bool { return !slices.Contains(next.Projects, project) }
	return (len(a.Projects) == 0) == (len(next.Projects) == 0) && !slices.ContainsFunc(a.Projects, lost)
}
