package rampbooks

import (
	"cmp"
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

// position is a file that says where the last books ended. Without a name, there is none.
type position string

// lock locks the position against other processes.
func (p position) lock() (unlock func(), err error) {
	if p == "" {
		return func() {}, nil
	}
	file, err := filelock.Lock(string(p) + ".lock")
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("another process keeps the books of %s: %w", p, err)
	}
	return func() { _ = filelock.Unlock(file) }, err
}

// read returns where the last books ended, or nothing if there were none.
func (p position) read() (last booksEnd, err error) {
	text, err := os.ReadFile(string(p))
	switch {
	case p == "", errors.Is(err, fs.ErrNotExist):
		return booksEnd{}, nil
	case err != nil:
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

// booksEnd is where the last books ended, the order in them that ended last, those that ended in their last
// hour, what they have found for orders that wait, and what they were about. What a person has written may
// have only To.
type booksEnd struct {
	To      time.Time
	Newest  uuid.UUID `json:",omitzero"`
	Ended   []uuid.UUID
	Waiting waitingTransactions `json:",omitempty"`
	About   *About              `json:",omitempty"`
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
func (last *booksEnd) checkAbout(p position, about About, anyTokens bool) error {
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

// write stores the end of books: as a whole, or not at all.
func (p position) write(end booksEnd) error {
	// what a process left that was killed may have another mode or owner
	if err := os.Remove(string(p) + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(string(p)+".new", os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = json.NewEncoder(file).Encode(end)
	// a rename may reach the disk before what was written
	if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(string(p)+".new", string(p))
}
