package support_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// sessions are the sessions of the shop's only player.
func sessions(_ context.Context, player string) ([]string, error) {
	return map[string][]string{"alice": {"session-1"}}[player], nil
}

// command runs a command as a program does.
func command(t *testing.T, o *backoffice, name string, args ...string) (string, error) {
	t.Helper()
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	single, err := support.NewCommand(name, flags)
	books, failed := rampbooks.NewCommand(name, flags)
	if err != nil && failed != nil {
		return "", err
	}
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if single != nil {
		err = single(t.Context(), o.Orders, flags.Args(), &out)
	} else {
		err = books(t.Context(), o.Reconciler, flags.Args(), &out)
	}
	return out.String(), err
}

func TestTheListIsOfAPlayerAWalletATimeOrWaits(t *testing.T) {
	s := newShop(t)
	done := s.place(t, s.service.Mint, 1)
	wallet := s.service.Wallet(ramp.Session{ID: "session-1"}).Hex()
	middle := s.service.Now()
	mint, burn := s.place(t, s.service.Mint, 1, ramptest.ResultNever()),
		s.place(t, s.service.Burn, 1, ramptest.ResultNever())
	day := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		args []string
		want []*ramptest.Order
	}{
		"waiting for an hour":    {[]string{"-older", "30m"}, []*ramptest.Order{mint, burn}},
		"waiting mints":          {[]string{"-older", "30m", "-direction", "mint"}, []*ramptest.Order{mint}},
		"of a player":            {[]string{"-player", "alice"}, []*ramptest.Order{burn, mint, done}},
		"of a session":           {[]string{"-session", "session-1"}, []*ramptest.Order{burn, mint, done}},
		"of a wallet":            {[]string{"-address", wallet}, []*ramptest.Order{burn, mint, done}},
		"ended since a day":      {[]string{"-from", s.begin.UTC().Format(time.DateOnly)}, []*ramptest.Order{done}},
		"ended since a time":     {[]string{"-from", day(middle)}, nil},
		"ended between":          {[]string{"-from", day(s.begin), "-to", day(middle)}, []*ramptest.Order{done}},
		"ended before":           {[]string{"-to", day(middle)}, []*ramptest.Order{done}},
		"ended between too soon": {[]string{"-from", day(s.begin), "-to", day(s.begin.Add(time.Minute))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			printed, _, _ := strings.Cut(ramp.Must(command(t, s.backoffice, "list", c.args...)), "Orders that wait")
			rows := strings.Split(strings.TrimSpace(printed), "\n")[1:]
			require.Len(t, rows, len(c.want), printed)
			for i, o := range c.want {
				assert.Contains(t, rows[i], o.UUID.String())
			}
		})
	}

	_, err := command(t, s.backoffice, "list", "-player", "bob")
	assert.EqualError(t, err, `there is no player "bob" with a session`)
	printed := ramp.Must(command(t, s.backoffice, "list"))
	assert.True(t, strings.HasPrefix(printed, "UUID ") &&
		strings.HasSuffix(printed,
			"\nOrders that wait, but not yet for 13h0m0s, are not listed: use -older 0s.\n"), printed)
	assert.Equal(t, 2, strings.Count(printed, "\n"))

	s.change(mint.UUID, func(o *ramp.Order) { o.Direction, o.Intent, o.Assets = "", ramp.Intent{}, nil })
	printed = ramp.Must(command(t, s.backoffice, "list", "-player", "alice"))
	assert.Regexp(t, mint.UUID.String()+"  unknown direction", printed, "a damaged row hides no other")
	assert.Equal(t, 4, strings.Count(printed, "\n"))
}

// Who ended an order by hand, and why, is found years later, without a log.
func TestTheListSaysWhoEndedAnOrderAndWhy(t *testing.T) {
	s := newShop(t)
	done := s.place(t, s.service.Mint, 1)
	finished := s.place(t, s.service.Burn, 1, ramptest.ResultNever())
	abandoned := s.place(t, s.service.Mint, 1, ramptest.StaysPending())
	s.service.Advance(13 * time.Hour)
	lost := support.Decision{Who: "alice", Reason: "case 41: the proxy\nlost it"}
	ramp.Must(s.Finish(t.Context(), finished.UUID, finished.TxHash, lost))
	s.service.Advance(time.Minute)
	ramp.Must(s.Abandon(t.Context(), abandoned.UUID, support.Decision{Who: "bob", Reason: "case 42"}))

	from := []string{"-from", s.begin.UTC().Format(time.RFC3339)}
	rows := func(args ...string) []string {
		return strings.Split(strings.TrimSpace(ramp.Must(command(t, s.backoffice, "list", args...))), "\n")
	}
	all := rows(from...)
	require.Len(t, all, 4)
	assert.Contains(t, all[0], "  BY HAND")
	assert.Regexp(t, "^"+done.UUID.String()+".*  -$", all[1])
	assert.Regexp(t, "^"+finished.UUID.String()+`.*  succeeded  .*  alice: case 41: the proxy\\nlost it +-$`, all[2])
	assert.Regexp(t, "^"+abandoned.UUID.String()+".*  abandoned  .*  bob: case 42 +-$", all[3])
	byHand := rows(append(from, "-by-hand")...)
	require.Len(t, byHand, 3)
	assert.Equal(t, []string{finished.UUID.String(), abandoned.UUID.String()}, []string{byHand[1][:36], byHand[2][:36]})
	assert.Len(t, rows("-by-hand", "-player", "alice"), 3)
	_, err := command(t, s.backoffice, "list", "-by-hand")
	assert.ErrorContains(t, err, "-by-hand needs -from")

	require.NoError(t, s.service.Resend(t.Context(), finished), "the result, after all")
	report := ramp.Must(s.Show(t.Context(), finished.UUID))
	assert.Equal(t, "alice: case 41: the proxy\nlost it", report.Order.Reason)
	assert.Contains(t, report.Text(), "\nby hand   alice: case 41: the proxy\\nlost it\n")

	s.place(t, s.service.Mint, 1, ramptest.MintedByStranger())
	s.change(abandoned.UUID, func(o *ramp.Order) { o.Direction, o.Intent, o.Assets = "", ramp.Intent{}, nil })
	books := s.books(t, s.begin, time.Time{})
	at := slices.IndexFunc(books.Findings, func(f rampbooks.Finding) bool { return f.Kind == rampbooks.Differs })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, "bob: case 42", books.Findings[at].Orders[0].Reason)
	assert.Contains(t, books.Text(), "bob: case 42")
}

func TestWaitingOrdersAreCountedByTheirAge(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 1)
	s.place(t, s.service.Mint, 1, ramptest.ResultNever())
	s.service.Advance(14 * time.Hour)
	s.place(t, s.service.Mint, 1, ramptest.ResultNever())
	s.place(t, s.service.Burn, 1, ramptest.ResultNever())
	s.service.Advance(10 * time.Minute)
	printed := ramp.Must(command(t, s.backoffice, "count"))
	assert.Equal(t, `WAITING LONGER THAN  MINTS  BURNS
0s                   2      1
5m0s                 2      1
1h0m0s               2      1
13h0m0s              1      0
168h0m0s             0      0
`, printed)
}

// viewer is a store whose user may only look.
type viewer struct{ *ledger }

func (v viewer) Update(context.Context, uuid.UUID, ramp.Transition) (ramp.Step, error) {
	return ramp.Step{}, errors.New("permission denied for table ramp_orders")
}

// Whoever may only look needs no right to write, and locks no order of a player who waits.
func TestLookingNeedsNoRightToWrite(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 1)
	lost := s.place(t, s.service.Burn, 1, ramptest.ResultNever())
	log := filepath.Join(t.TempDir(), "log")
	record := `{"msg":"ramp: call","uuid":"` + lost.UUID.String() + `","state":"succeeded"}`
	require.NoError(t, os.WriteFile(log, []byte(record), 0o600))
	looks := ramp.Must(newBackoffice(backofficeConfig{
		Store: viewer{s.store}, Proof: proofOn(s.chain, &rampproof.Config{AnyFailure: true}),
		Products: rampbooks.Always(product),
		Now:      s.service.Now, Logger: quiet,
	}))
	for want, args := range map[string][]string{
		lost.UUID.String() + "  burn":         {"list", "-older", "1m"},
		"5m0s                 0      1":       {"count"},
		"proves that the order has ended so":  {"show", lost.UUID.String()},
		lost.UUID.String() + " waits again":   {"missing", log},
		"not judged yet: 1, and all after 20": {"reconcile"},
	} {
		assert.Contains(t, ramp.Must(command(t, looks, args[0], args[1:]...)), want, args)
	}
	s.service.Advance(13 * time.Hour)
	for _, args := range [][]string{
		{"finish", "-tx", lost.TxHash.Hex()}, {"abandon", "-against-evidence", "-without-evidence"},
	} {
		args = append(args, "-who", "bob", "-reason", "case 43", lost.UUID.String())
		_, err := command(t, looks, args[0], args[1:]...)
		assert.ErrorContains(t, err, "permission denied", args)
	}
}

// A finding is an error when it is new, and not again in each hour that follows. Books that
// cannot be read are an error, and read an hour later.
func TestAFindingIsAnErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.place(t, s.service.Mint, 2, ramptest.MintedByStranger())
		s.service.FailRPC(500)
		ctx, cancel := context.WithCancel(t.Context())
		hours := 0
		position := filepath.Join(t.TempDir(), "position")
		s.KeepBooks(ctx, position, func(_ context.Context, books *rampbooks.Reconciliation) error {
			assert.Len(t, books.Findings, 1)
			if hours++; hours == 3 {
				cancel()
			}
			return nil
		})
		assert.Equal(t, 1, strings.Count(s.log.String(), `"level":"ERROR","msg":"ramp: the books do not close"`))
		assert.Equal(t, 2, strings.Count(s.log.String(), `"level":"INFO","msg":"ramp: the books do not close"`))
		assert.Equal(t, 1,
			strings.Count(s.log.String(),
				`"level":"ERROR","msg":"ramp: the books were not read","error":"ramp: reconcile: `))

		s.log.Reset()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.KeepBooks(ctx, filepath.Join(t.TempDir(), "position"), nil)
		assert.Contains(t, s.log.String(), `"level":"ERROR","msg":"ramp: the books do not close"`)
		assert.NotContains(t, s.log.String(), "not kept")
	})
}

// A backup was restored, and the position of the books is newer than it. The books begin where the
// store ends, and not where they ended.
func TestBooksThatAreNewerThanTheStoreSaySo(t *testing.T) {
	for name, restore := range map[string]func(s *shop, id uuid.UUID){
		"is missing":  func(s *shop, id uuid.UUID) { s.store.lose(id, false) },
		"waits again": func(s *shop, id uuid.UUID) { s.store.lose(id, true) },
	} {
		s := newShop(t)
		position := filepath.Join(t.TempDir(), "position")
		first := s.place(t, s.service.Mint, 4)
		second := s.place(t, s.service.Mint, 4)
		s.service.Advance(5 * time.Hour)
		third := s.place(t, s.service.Mint, 4)
		s.service.Advance(time.Hour)
		ramp.Must(command(t, s.backoffice, "reconcile", "-position", position))
		s.service.Advance(24 * time.Hour)
		once := func() (begins time.Time) {
			ctx, cancel := context.WithCancel(t.Context())
			s.KeepBooks(ctx, position, func(_ context.Context, books *rampbooks.Reconciliation) error {
				begins = books.From
				cancel()
				return nil
			})
			return begins
		}
		const newer = `"level":"ERROR","msg":"ramp: the books are newer than the store"`
		s.place(t, s.service.Mint, 4)
		assert.True(t, once().After(ramp.Must(s.store.Order(t.Context(), second.UUID)).FinishedAt), name)
		assert.NotContains(t, s.log.String(), newer, name)

		begun := ramp.Must(s.store.Order(t.Context(), first.UUID)).FinishedAt
		newest := ramp.Must(os.ReadFile(position))
		for _, order := range []*ramptest.Order{second, third} {
			restore(s, order.UUID)
		}
		for id := range s.store.orders { // also of the newest books
			if strings.Contains(string(newest), id.String()) {
				restore(s, id)
			}
		}
		assert.Equal(t, begun.Add(-rampbooks.Overlap), once(), name)
		assert.Contains(t, s.log.String(), newer, name)
	}
}

// Each run begins where the last one ended, once its report is written.
func TestTheBooksBeginWhereTheLastOnesEnded(t *testing.T) {
	s := newShop(t)
	position := filepath.Join(t.TempDir(), "position")
	s.place(t, s.service.Mint, 4)
	printed := ramp.Must(command(t, s.backoffice, "reconcile", "-position", position, "-format", "totals"))
	assert.Contains(t, printed, `"mint","items_taken","item_gold",,100,,,`)
	printed = ramp.Must(command(t, s.backoffice, "reconcile"))
	assert.Regexp(t, `\nnot judged yet: 0, and all after 2\S+Z\n`, printed)
	end := s.service.Now()
	s.service.Advance(5 * time.Hour)

	s.place(t, s.service.Mint, 2, ramptest.MintedByStranger())
	for format, want := range map[string]string{"text": "books from ", "json": `"event_without_order":1`} {
		printed, err := command(t, s.backoffice, "reconcile", "-position", position+".of "+format, "-format", format)
		assert.EqualError(t, err, "orders and chain disagree; findings: 1")
		assert.Contains(t, printed, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, position, func(_ context.Context, books *rampbooks.Reconciliation) error {
		assert.Len(t, books.Findings, 1)
		assert.WithinDuration(t, end, books.From, 30*time.Minute)
		assert.Equal(t, books.From.Add(-rampbooks.Overlap), books.FindingsFrom)
		cancel()
		return nil
	})
	assert.Contains(t, s.log.String(), `"msg":"ramp: the books do not close","kind":"event_without_order"`)
	printed, err := command(t, s.backoffice, "reconcile", "-position", position, "-format", "totals")
	assert.Error(t, err, "the overlap has the finding again")
	assert.NotContains(t, printed, "tokens_ordered", "both orders were in earlier books")

	// The position moves neither backwards nor past what no books are about.
	kept := ramp.Must(os.ReadFile(position))
	s.service.Advance(time.Hour)
	later := s.service.Now().Format(time.RFC3339)
	s.place(t, s.service.Mint, 1)
	for _, period := range [][]string{{"-from", s.begin.Format(time.RFC3339), "-to", end.Format(time.RFC3339)},
		{"-from", later}, {"-to", "2026-01-01"}} {
		_, err := command(t, s.backoffice, "reconcile", append(period, "-position", position)...)
		assert.NoError(t, err, "a quiet night is no error")
		now := ramp.Must(os.ReadFile(position))
		assert.Equal(t, string(kept), string(now))
	}

	for _, damaged := range []string{"{}", "", "\x00\x00"} {
		require.NoError(t, os.WriteFile(position, []byte(damaged), 0o600))
		_, err := command(t, s.backoffice, "reconcile", "-position", position)
		assert.ErrorContains(t, err, "is not a position of the books")
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What nobody could read is in the next books again.
func TestAReportThatCannotBeWrittenKeepsThePosition(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 2, ramptest.MintedByStranger())
	position := filepath.Join(t.TempDir(), "position")
	for _, format := range []string{"text", "json", "totals"} {
		flags := flag.NewFlagSet("reconcile", flag.ContinueOnError)
		run := ramp.Must(rampbooks.NewCommand("reconcile", flags))
		require.NoError(t, flags.Parse([]string{"-position", position, "-format", format}))
		assert.ErrorContains(t, run(t.Context(), s.Reconciler, nil, full{}), "no space left on device")
		assert.NoFileExists(t, position)
	}
}

func TestThePositionOfTheBooksThatCannotBeKeptIsLogged(t *testing.T) {
	s := newShop(t)
	position := filepath.Join(t.TempDir(), "position")
	require.NoError(t, os.MkdirAll(position+".new/full", 0o700)) // what is written before the rename
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, position, func(context.Context, *rampbooks.Reconciliation) error {
		cancel()
		return nil
	})
	assert.Contains(t, s.log.String(), `"msg":"ramp: the position of the books was not kept"`)
	assert.Contains(t, s.log.String(), `"msg":"ramp: the books have no position"`)
	assert.NoFileExists(t, position)
}

func TestThePositionOfTheBooksIsForItsOwnerOnly(t *testing.T) {
	s := newShop(t)
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
			s.KeepBooks(ctx, position, func(context.Context, *rampbooks.Reconciliation) error {
				cancel()
				return nil
			})
			kept := ramp.Must(os.Lstat(position))
			assert.Equal(t, fs.FileMode(0o600), kept.Mode())
			assert.NoFileExists(t, position+".new")
		})
	}
	assert.Equal(t, "other", string(ramp.Must(os.ReadFile(other))))
}

// The findings could not be kept: the next books have them again.
func TestBooksWhoseFindingsWereNotKeptComeAgain(t *testing.T) {
	s := newShop(t)
	position := filepath.Join(t.TempDir(), "position")
	ctx, cancel := context.WithCancel(t.Context())
	s.KeepBooks(ctx, position, func(context.Context, *rampbooks.Reconciliation) error {
		cancel()
		return errors.New("the database is down")
	})
	assert.Contains(t, s.log.String(),
		`"msg":"ramp: the position of the books was not kept","error":"the database is down"`)
	assert.NoFileExists(t, position)
}

// A list that could not be read to its end is none, and what was not kept is said.
func TestACommandSaysWhatFailed(t *testing.T) {
	orders, store, n := newOrders(t, 24*time.Hour, paid)
	order := orderOf(ramp.Mint, 5, now.Add(-14*time.Hour))
	store.keep(t, order)
	store.witness(t, n)
	for _, args := range [][]string{{"list"}, {"list", "-session", "session-1"}, {"count"}} {
		store.calls, store.failing = 0, 0
		ramp.Must(command(t, orders, args[0], args[1:]...))
		for calls := store.calls; calls > 0; calls-- {
			store.calls, store.failing = 0, calls
			_, err := command(t, orders, args[0], args[1:]...)
			assert.ErrorContains(t, err, "the database is down", args)
		}
	}
	store.failing, n.down = 0, "eth_getLogs"
	for _, flags := range [][]string{nil, {"-json"}} {
		printed, err := command(t, orders, "show", append(flags, order.UUID.String())...)
		assert.ErrorContains(t, err, "read the chain")
		assert.Contains(t, printed, order.UUID.String())
	}
	n.down = ""
	position := filepath.Join(t.TempDir(), "position")
	require.NoError(t, os.MkdirAll(position+".new/full", 0o700))
	_, err := command(t, orders, "reconcile", "-position", position, "-from",
		now.Add(-time.Minute).Format(time.RFC3339))
	assert.ErrorContains(t, err, "position.new")
	for _, want := range []string{"give back +500 item_gold", "it had ended so before, and nothing was moved"} {
		assert.Contains(t,
			ramp.Must(command(t, orders, "abandon", "-who", "alice", "-reason", "case 21", order.UUID.String())), want)
	}
}

func TestACommandThatIsUsedWronglySaysHow(t *testing.T) {
	s := newShop(t)
	id, tx := uuid.NewString(), "0x"+strings.Repeat("1", 64)
	for want, args := range map[string][]string{
		`there is no command "forget": use list, count, find, missing,`:   {"forget"},
		"one argument is required, after the flags: the UUID of an order": {"show"},
		"arguments are required, after the flags: the files of the logs":  {"missing"},
		`"1" is not a UUID`:                          {"show", "1"},
		`unexpected argument "` + id + `"`:           {"list", id},
		"-direction must be mint or burn":            {"list", "-direction", "up"},
		"invalid value \"yesterday\" for flag -from": {"list", "-from", "yesterday"},
		"no such file":                               {"missing", "/no/log"},
		"Decision.Who is required":                   {"abandon", "-reason", "x", id},
		"Decision.Reason is required":                {"abandon", "-who", "bob", id},
		"-tx is required":                            {"finish", "-who", "bob", "-reason", "x", id},
		"invalid value \"0x1\" for flag -tx":         {"finish", "-tx", "0x1", id},
		"unknown order":                              {"finish", "-who", "bob", "-reason", "x", "-tx", tx, id},
		"-format must be":                            {"reconcile", "-format", "xml"},
	} {
		printed, err := command(t, s.backoffice, args[0], args[1:]...)
		assert.ErrorContains(t, err, want)
		assert.Empty(t, printed)
	}
	poor := ramp.Must(newBackoffice(backofficeConfig{Store: networked{s.store}}))
	_, err := command(t, poor, "list")
	assert.EqualError(t, err, "ramp: Config.Store must be a rampbooks.OrderLister")
	poor = ramp.Must(newBackoffice(backofficeConfig{Store: s.store}))
	_, err = command(t, poor, "list", "-player", "alice")
	assert.EqualError(t, err, "ramp: Config.Sessions is required to list the orders of a player")
}
