package rampbooks_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/internal/test/jsonshape"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A finding is an error when it is new, and not again in each hour that follows. Books that
// cannot be read are an error, and read an hour later.
func TestAFindingIsAnErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewShop(t)
		s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger())
		s.Service.FailRPC(500)
		ctx, cancel := context.WithCancel(t.Context())
		hours := 0
		position := filepath.Join(t.TempDir(), "position")
		s.KeepBooks(ctx, rampbooks.PositionFile(position),
			func(_ context.Context, books *rampbooks.Reconciliation) error {
				assert.Len(t, books.Findings, 1)
				if hours++; hours == 3 {
					cancel()
				}
				return nil
			})
		assert.Equal(t, 1, strings.Count(s.Log.String(), `"level":"ERROR","msg":"ramp: the books do not close"`))
		assert.Equal(t, 2, strings.Count(s.Log.String(), `"level":"INFO","msg":"ramp: the books do not close"`))
		assert.Equal(t, 1,
			strings.Count(s.Log.String(),
				`"level":"ERROR","msg":"ramp: the books were not read","error":"ramp: reconcile: `))

		s.Log.Reset()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.KeepBooks(ctx, rampbooks.PositionFile(filepath.Join(t.TempDir(), "position")), nil)
		assert.Contains(t, s.Log.String(), `"level":"ERROR","msg":"ramp: the books do not close"`)
		assert.NotContains(t, s.Log.String(), "not kept")
	})
}

// item is the position of a job whose files do not survive it: an item of a database.
type item struct {
	text   []byte
	locked bool
}

func (i *item) Lock(context.Context) (func(), error) {
	if i.locked {
		return nil, rampbooks.ErrPositionLocked
	}
	i.locked = true
	return func() { i.locked = false }, nil
}

func (i *item) Read(context.Context) ([]byte, error) { return i.text, nil }

func (i *item) Write(_ context.Context, text []byte) error {
	i.text = text
	return nil
}

func (i *item) String() string { return "the item" }

// A job that something else starts every hour goes on where the last one ended.
func TestAJobEveryHourKeepsItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewShop(t)
		var position item
		var begins, ends []time.Time
		for range 3 {
			s.Place(t, s.Service.Mint, 2)
			require.NoError(t, s.NextBooks(t.Context(), &position,
				func(_ context.Context, books *rampbooks.Reconciliation) error {
					begins, ends = append(begins, books.From), append(ends, books.To)
					return nil
				}))
			time.Sleep(time.Hour)
		}
		assert.Equal(t, ends[:2], begins[1:])

		before := position.text
		failed := errors.New("the report is full")
		assert.ErrorIs(t, s.NextBooks(t.Context(), &position,
			func(context.Context, *rampbooks.Reconciliation) error { return failed }), failed)
		assert.Equal(t, before, position.text, "the next job lists the same again")

		position.locked = true
		assert.EqualError(t, s.NextBooks(t.Context(), &position, nil),
			"another process keeps the books of the item: another program uses it")
		position = item{text: []byte("{}")}
		assert.ErrorContains(t, s.NextBooks(t.Context(), &position, nil), "the item is not a position of the books")
	})
}

// A backup was restored, and the position of the books is newer than it. The books begin where the
// store ends, and not where they ended.
func TestBooksThatAreNewerThanTheStoreSaySo(t *testing.T) {
	for name, restore := range map[string]func(s *rig.Shop, id uuid.UUID){
		"is missing":  func(s *rig.Shop, id uuid.UUID) { s.Store.Lose(id, false) },
		"waits again": func(s *rig.Shop, id uuid.UUID) { s.Store.Lose(id, true) },
	} {
		s := rig.NewShop(t)
		position := filepath.Join(t.TempDir(), "position")
		first := s.Place(t, s.Service.Mint, 4)
		second := s.Place(t, s.Service.Mint, 4)
		s.Service.Advance(5 * time.Hour)
		third := s.Place(t, s.Service.Mint, 4)
		s.Service.Advance(time.Hour)
		must.Get(rig.RunCommand(t, s.Office, "reconcile", "-position", position))(t)
		s.Service.Advance(24 * time.Hour)
		once := func() (begins time.Time) {
			ctx, cancel := context.WithCancel(t.Context())
			s.KeepBooks(ctx, rampbooks.PositionFile(position),
				func(_ context.Context, books *rampbooks.Reconciliation) error {
					begins = books.From
					cancel()
					return nil
				})
			return begins
		}
		const newer = `"level":"ERROR","msg":"ramp: the books are newer than the store"`
		s.Place(t, s.Service.Mint, 4)
		assert.True(t, once().After(must.Get(s.Store.Order(t.Context(), second.UUID))(t).FinishedAt), name)
		assert.NotContains(t, s.Log.String(), newer, name)

		begun := must.Get(s.Store.Order(t.Context(), first.UUID))(t).FinishedAt
		newest := must.Get(os.ReadFile(position))(t)
		for _, order := range []*ramptest.PlacedOrder{second, third} {
			restore(s, order.UUID)
		}
		for id := range s.Store.Orders { // also of the newest books
			if strings.Contains(string(newest), id.String()) {
				restore(s, id)
			}
		}
		assert.Equal(t, begun.Add(-rampbooks.Overlap), once(), name)
		assert.Contains(t, s.Log.String(), newer, name)
	}
}

// A quiet game deletes all that has ended, and its books go on: no backup was restored.
func TestDeletingTheNewestOrderIsNoRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewShop(t)
		var position item
		next := func() (begins, ends time.Time) {
			require.NoError(t, s.NextBooks(t.Context(), &position,
				func(_ context.Context, books *rampbooks.Reconciliation) error {
					begins, ends = books.From, books.To
					return nil
				}))
			return begins, ends
		}
		s.Place(t, s.Service.Mint, 4)
		next()
		s.Service.Advance(6 * 24 * time.Hour)
		_, end := next()
		s.Service.Advance(2 * 24 * time.Hour) // in which no books were made
		for id := range s.Store.Orders {
			s.Store.Lose(id, false)
		}
		begin, _ := next()
		assert.Equal(t, end, begin)
		assert.NotContains(t, s.Log.String(), "the books are newer than the store")
	})
}

// Each run begins where the last one ended, once its report is written.
func TestTheBooksBeginWhereTheLastOnesEnded(t *testing.T) {
	s := rig.NewShop(t)
	position := filepath.Join(t.TempDir(), "position")
	s.Place(t, s.Service.Mint, 4)
	printed := must.Get(rig.RunCommand(t, s.Office, "reconcile", "-position", position, "-format", "totals"))(t)
	assert.Contains(t, printed, `"mint","items_taken","item_gold",,100,,,`)
	printed = must.Get(rig.RunCommand(t, s.Office, "reconcile"))(t)
	assert.Regexp(t, `\nnot judged yet: 0, and all after 2\S+Z\n`, printed)
	end := s.Service.Now()
	s.Service.Advance(5 * time.Hour)

	s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger())
	for format, want := range map[string]string{"text": "books from ", "json": `"event_without_order":1`} {
		printed, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position+".of "+format, "-format", format)
		assert.EqualError(t, err, "orders and chain disagree; findings: 1")
		assert.Contains(t, printed, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, rampbooks.PositionFile(position),
		func(_ context.Context, books *rampbooks.Reconciliation) error {
			assert.Len(t, books.Findings, 1)
			assert.WithinDuration(t, end, books.From, 30*time.Minute)
			assert.Equal(t, books.From.Add(-rampbooks.Overlap), books.FindingsFrom)
			cancel()
			return nil
		})
	assert.Contains(t, s.Log.String(), `"msg":"ramp: the books do not close","kind":"event_without_order"`)
	printed, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position, "-format", "totals")
	assert.Error(t, err, "the overlap has the finding again")
	assert.NotContains(t, printed, "tokens_ordered", "both orders were in earlier books")

	// The position moves neither backwards nor past what no books are about.
	kept := must.Get(os.ReadFile(position))(t)
	s.Service.Advance(time.Hour)
	later := s.Service.Now().Format(time.RFC3339)
	s.Place(t, s.Service.Mint, 1)
	for _, period := range [][]string{{"-from", s.Begin.Format(time.RFC3339), "-to", end.Format(time.RFC3339)},
		{"-from", later}} {
		_, err := rig.RunCommand(t, s.Office, "reconcile", append(period, "-position", position)...)
		assert.NoError(t, err, "a quiet night is no error")
		now := must.Get(os.ReadFile(position))(t)
		assert.Equal(t, string(kept), string(now))
	}

	for _, damaged := range []string{"{}", "", "\x00\x00"} {
		require.NoError(t, os.WriteFile(position, []byte(damaged), 0o600))
		_, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position)
		assert.ErrorContains(t, err, "is not a position of the books")
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What nobody could read is in the next books again.
func TestAReportThatCannotBeWrittenKeepsThePosition(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger())
	position := filepath.Join(t.TempDir(), "position")
	for _, format := range []string{"text", "json", "totals"} {
		flags := flag.NewFlagSet("reconcile", flag.ContinueOnError)
		run := must.Get(rampbooks.NewCommand("reconcile", flags))(t)
		require.NoError(t, flags.Parse([]string{"-position", position, "-format", format}))
		assert.ErrorContains(t, run(t.Context(), s.Reconciler, nil, full{}), "no space left on device")
		assert.NoFileExists(t, position)
	}
}

func TestThePositionOfTheBooksThatCannotBeKeptIsLogged(t *testing.T) {
	s := rig.NewShop(t)
	position := filepath.Join(t.TempDir(), "position")
	require.NoError(t, os.MkdirAll(position+".new/full", 0o700)) // what is written before the rename
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, rampbooks.PositionFile(position), func(context.Context, *rampbooks.Reconciliation) error {
		cancel()
		return nil
	})
	assert.Contains(t, s.Log.String(), `"msg":"ramp: the position of the books was not kept"`)
	assert.Contains(t, s.Log.String(), `"msg":"ramp: the books have no position"`)
	assert.NoFileExists(t, position)
}

func TestThePositionOfTheBooksIsForItsOwnerOnly(t *testing.T) {
	s := rig.NewShop(t)
	folder := t.TempDir()
	position, other := filepath.Join(folder, "position"), filepath.Join(folder, "other")
	for name, leave := range map[string]func() error{
		"nothing":                    func() error { return nil },
		"a file that all may read":   func() error { return os.WriteFile(position+".new", []byte("{"), 0o644) },
		"a file that nobody may use": func() error { return os.WriteFile(position+".new", nil, 0) },
		"a link to another file": func() error {
			return errors.Join(os.WriteFile(other, []byte("other"), 0o644), os.Symlink(other, position+".new"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, leave(), "what a process that was killed left")
			ctx, cancel := context.WithCancel(t.Context())
			s.KeepBooks(ctx, rampbooks.PositionFile(position),
				func(context.Context, *rampbooks.Reconciliation) error {
					cancel()
					return nil
				})
			kept := must.Get(os.Lstat(position))(t)
			assert.Equal(t, fs.FileMode(0o600), kept.Mode())
			assert.NoFileExists(t, position+".new")
		})
	}
	assert.Equal(t, "other", string(must.Get(os.ReadFile(other))(t)))
}

// The findings could not be kept: the next books have them again.
func TestBooksWhoseFindingsWereNotKeptComeAgain(t *testing.T) {
	s := rig.NewShop(t)
	position := filepath.Join(t.TempDir(), "position")
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, rampbooks.PositionFile(position), func(context.Context, *rampbooks.Reconciliation) error {
		cancel()
		return errors.New("the database is down")
	})
	assert.Contains(t, s.Log.String(),
		`"msg":"ramp: the position of the books was not kept","error":"the database is down"`)
	assert.NoFileExists(t, position)
}

// A period that ends before it begins has no order and no event: its books would be green whatever happened.
func TestBooksOfNoTimeAreNoBooks(t *testing.T) {
	s := rig.NewShop(t)
	position := filepath.Join(t.TempDir(), "position")
	began := s.Service.Now()
	s.Place(t, s.Service.Mint, 4)
	must.Get(rig.RunCommand(t, s.Office, "reconcile", "-position", position))(t)
	kept := must.Get(os.ReadFile(position))(t)
	s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger()) // a finding
	s.Service.Advance(time.Hour)
	for _, period := range [][]string{{"-to", began.Format(time.RFC3339)},
		{"-from", s.Service.Now().Format(time.RFC3339), "-to", began.Format(time.RFC3339)},
		{"-from", s.Service.Now().Add(time.Hour).Format(time.RFC3339)}} {
		out, err := rig.RunCommand(t, s.Office, "reconcile", append(period, "-position", position)...)
		assert.Error(t, err, "%v: %s", period, out)
	}
	assert.Equal(t, kept, must.Get(os.ReadFile(position))(t))
	_, err := rig.RunCommand(t, s.Office, "reconcile", "-position", position)
	assert.ErrorContains(t, err, "findings: 1")
}

// A program in a typed language, and one that reads numbers as floating point, lose nothing of the books.
func TestTheJSONOfTheBooksIsReadWithoutLoss(t *testing.T) {
	s := rig.NewShop(t)
	from := s.Begin.Format(time.RFC3339)
	shapes := map[string]jsonshape.Shapes{"json": {}, "lines-json": {}}
	books := func() {
		for format, shape := range shapes {
			printed, _ := rig.RunCommand(t, s.Office, "reconcile", "-from", from, "-format", format)
			assert.Empty(t, shape.Add([]byte(printed)), format)
		}
	}
	s.Service.Advance(time.Hour)
	books() // of a quiet time
	s.Place(t, s.Service.Mint, 2)
	s.Place(t, s.Service.Burn, 3, ramptest.ResultNever())
	s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger())
	s.Place(t, s.Service.Mint, 1, ramptest.StaysPending())
	s.Service.Advance(14 * time.Hour)
	books()
}
