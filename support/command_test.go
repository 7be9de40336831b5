package support_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

func TestTheListIsOfAPlayerAWalletATimeOrWaits(t *testing.T) {
	s := rig.NewShop(t)
	done := s.Place(t, s.Service.Mint, 1)
	wallet := s.Service.Wallet(ramp.Session{ID: "session-1"}).Hex()
	middle := s.Service.Now()
	mint, burn := s.Place(t, s.Service.Mint, 1, ramptest.ResultNever()),
		s.Place(t, s.Service.Burn, 1, ramptest.ResultNever())
	day := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		args []string
		want []*ramptest.PlacedOrder
	}{
		"waiting for an hour": {[]string{"-older", "30m"}, []*ramptest.PlacedOrder{mint, burn}},
		"waiting mints":       {[]string{"-older", "30m", "-direction", "mint"}, []*ramptest.PlacedOrder{mint}},
		"of a player":         {[]string{"-player", "alice"}, []*ramptest.PlacedOrder{burn, mint, done}},
		"of a session":        {[]string{"-session", "session-1"}, []*ramptest.PlacedOrder{burn, mint, done}},
		"of a wallet":         {[]string{"-address", wallet}, []*ramptest.PlacedOrder{burn, mint, done}},
		"ended since a day": {[]string{"-from", s.Begin.UTC().Format(time.DateOnly)},
			[]*ramptest.PlacedOrder{done}},
		"ended since a time":     {[]string{"-from", day(middle)}, nil},
		"ended between":          {[]string{"-from", day(s.Begin), "-to", day(middle)}, []*ramptest.PlacedOrder{done}},
		"ended before":           {[]string{"-to", day(middle)}, []*ramptest.PlacedOrder{done}},
		"ended between too soon": {[]string{"-from", day(s.Begin), "-to", day(s.Begin.Add(time.Minute))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			listed := must.Get(rig.RunCommand(t, s.Office, "list", c.args...))(t)
			printed, _, _ := strings.Cut(listed, "Orders that wait")
			rows := strings.Split(strings.TrimSpace(printed), "\n")[1:]
			require.Len(t, rows, len(c.want), printed)
			for i, o := range c.want {
				assert.Contains(t, rows[i], o.UUID.String())
			}
		})
	}

	_, err := rig.RunCommand(t, s.Office, "list", "-player", "bob")
	assert.EqualError(t, err, `there is no player "bob" with a session`)
	printed := must.Get(rig.RunCommand(t, s.Office, "list"))(t)
	assert.True(t, strings.HasPrefix(printed, "UUID ") &&
		strings.HasSuffix(printed,
			"\nOrders that wait, but not yet for 13h0m0s, are not listed: use -older 0s.\n"), printed)
	assert.Equal(t, 2, strings.Count(printed, "\n"))

	s.Change(mint.UUID, func(o *ramp.Order) { o.Direction, o.Intent, o.Assets = "", ramp.Intent{}, nil })
	printed = must.Get(rig.RunCommand(t, s.Office, "list", "-player", "alice"))(t)
	assert.Regexp(t, mint.UUID.String()+"  unknown direction", printed, "a damaged row hides no other")
	assert.Equal(t, 4, strings.Count(printed, "\n"))
}

// Who ended an order by hand, and why, is found years later, without a log.
func TestTheListSaysWhoEndedAnOrderAndWhy(t *testing.T) {
	s := rig.NewShop(t)
	done := s.Place(t, s.Service.Mint, 1)
	finished := s.Place(t, s.Service.Burn, 1, ramptest.ResultNever())
	abandoned := s.Place(t, s.Service.Mint, 1, ramptest.StaysPending())
	s.Service.Advance(13 * time.Hour)
	lost := support.Decision{Who: "alice", Reason: "case 41: the proxy\nlost it"}
	must.Get(s.Finish(t.Context(), finished.UUID, finished.TxHash, lost))(t)
	s.Service.Advance(time.Minute)
	must.Get(s.Abandon(t.Context(), abandoned.UUID, support.Decision{Who: "bob", Reason: "case 42"}))(t)

	from := []string{"-from", s.Begin.UTC().Format(time.RFC3339)}
	rows := func(args ...string) []string {
		return strings.Split(strings.TrimSpace(must.Get(rig.RunCommand(t, s.Office, "list", args...))(t)), "\n")
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
	_, err := rig.RunCommand(t, s.Office, "list", "-by-hand")
	assert.ErrorContains(t, err, "-by-hand needs -from")

	require.NoError(t, s.Service.Resend(t.Context(), finished), "the result, after all")
	report := must.Get(s.Show(t.Context(), finished.UUID))(t)
	assert.Equal(t, "alice: case 41: the proxy\nlost it", report.Order.Reason)
	assert.Contains(t, report.Text(), "\nby hand   alice: case 41: the proxy\\nlost it\n")

	s.Place(t, s.Service.Mint, 1, ramptest.MintedByStranger())
	s.Change(abandoned.UUID, func(o *ramp.Order) { o.Direction, o.Intent, o.Assets = "", ramp.Intent{}, nil })
	books := s.Books(t, s.Begin, time.Time{})
	at := slices.IndexFunc(books.Findings, func(f rampbooks.Finding) bool { return f.Kind == rampbooks.Differs })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, "bob: case 42", books.Findings[at].Orders[0].Reason)
	assert.Contains(t, books.Text(), "bob: case 42")
}

func TestWaitingOrdersAreCountedByTheirAge(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 1)
	s.Place(t, s.Service.Mint, 1, ramptest.ResultNever())
	s.Service.Advance(14 * time.Hour)
	s.Place(t, s.Service.Mint, 1, ramptest.ResultNever())
	s.Place(t, s.Service.Burn, 1, ramptest.ResultNever())
	s.Service.Advance(10 * time.Minute)
	printed := must.Get(rig.RunCommand(t, s.Office, "count"))(t)
	assert.Equal(t, `WAITING LONGER THAN  MINTS  BURNS
0s                   2      1
5m0s                 2      1
1h0m0s               2      1
13h0m0s              1      0
168h0m0s             0      0
`, printed)
}

// viewer is a store whose user may only look.
type viewer struct{ *rig.Store }

func (v viewer) Update(context.Context, uuid.UUID, ramp.Transition) (ramp.Step, error) {
	return ramp.Step{}, errors.New("permission denied for table ramp_orders")
}

// Whoever may only look needs no right to write, and locks no order of a player who waits.
func TestLookingNeedsNoRightToWrite(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 1)
	lost := s.Place(t, s.Service.Burn, 1, ramptest.ResultNever())
	log := filepath.Join(t.TempDir(), "log")
	record := `{"msg":"ramp: call","uuid":"` + lost.UUID.String() + `","state":"succeeded"}`
	require.NoError(t, os.WriteFile(log, []byte(record), 0o600))
	looks := must.Get(rig.NewOffice(rig.Config{
		Store: viewer{s.Store}, Proof: rig.ProofOn(t, s.Chain, &rampproof.Config{AnyFailure: true}),
		Products: rampbooks.Always(rig.Product),
		Now:      s.Service.Now, Logger: rig.Quiet,
	}))(t)
	for want, args := range map[string][]string{
		lost.UUID.String() + "  burn":         {"list", "-older", "1m"},
		"5m0s                 0      1":       {"count"},
		"proves that the order has ended so":  {"show", lost.UUID.String()},
		lost.UUID.String() + " waits again":   {"missing", log},
		"not judged yet: 1, and all after 20": {"reconcile"},
	} {
		assert.Contains(t, must.Get(rig.RunCommand(t, looks, args[0], args[1:]...))(t), want, args)
	}
	s.Service.Advance(13 * time.Hour)
	for _, args := range [][]string{
		{"finish", "-tx", lost.TxHash.Hex()}, {"abandon", "-against-evidence", "-without-evidence"},
	} {
		args = append(args, "-who", "bob", "-reason", "case 43", lost.UUID.String())
		_, err := rig.RunCommand(t, looks, args[0], args[1:]...)
		assert.ErrorContains(t, err, "permission denied", args)
	}
}

// A list that could not be read to its end is none, and what was not kept is said.
func TestACommandSaysWhatFailed(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 24*time.Hour, rig.Paid)
	order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
	store.Keep(t, order)
	store.Witness(t, n)
	for _, args := range [][]string{{"list"}, {"list", "-session", "session-1"}, {"count"}} {
		store.Calls, store.Failing = 0, 0
		must.Get(rig.RunCommand(t, orders, args[0], args[1:]...))(t)
		for calls := store.Calls; calls > 0; calls-- {
			store.Calls, store.Failing = 0, calls
			_, err := rig.RunCommand(t, orders, args[0], args[1:]...)
			assert.ErrorContains(t, err, "the database is down", args)
		}
	}
	store.Failing, n.Down = 0, "eth_getLogs"
	for _, flags := range [][]string{nil, {"-json"}} {
		printed, err := rig.RunCommand(t, orders, "show", append(flags, order.UUID.String())...)
		assert.ErrorContains(t, err, "read the chain")
		assert.Contains(t, printed, order.UUID.String())
	}
	n.Down = ""
	position := filepath.Join(t.TempDir(), "position")
	require.NoError(t, os.MkdirAll(position+".new/full", 0o700))
	_, err := rig.RunCommand(t, orders, "reconcile", "-position", position, "-from",
		rig.Now.Add(-time.Minute).Format(time.RFC3339))
	assert.ErrorContains(t, err, "position.new")
	for _, want := range []string{"give back +500 item_gold", "it was so before, and nothing was moved now; at 20"} {
		assert.Contains(t,
			must.Get(rig.RunCommand(t, orders, "abandon", "-who", "alice", "-reason", "case 21",
				order.UUID.String()))(t),
			want)
	}
}

func TestACommandThatIsUsedWronglySaysHow(t *testing.T) {
	s := rig.NewShop(t)
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
		printed, err := rig.RunCommand(t, s.Office, args[0], args[1:]...)
		assert.ErrorContains(t, err, want)
		assert.Empty(t, printed)
	}
	poor := must.Get(rig.NewOffice(rig.Config{Store: networked{s.Store}}))(t)
	_, err := rig.RunCommand(t, poor, "list")
	assert.EqualError(t, err, "ramp: Config.Store must be a rampbooks.OrderLister")
	poor = must.Get(rig.NewOffice(rig.Config{Store: s.Store}))(t)
	_, err = rig.RunCommand(t, poor, "finish", "-fitting")
	assert.EqualError(t, err, "ramp: Config.Books is required with -fitting")
	_, err = rig.RunCommand(t, poor, "list", "-player", "alice")
	assert.EqualError(t, err, "ramp: Config.Sessions is required to list the orders of a player")
}

// refusedPairs are, for each command, the pairs of flags of which one means nothing beside the other, and
// refusedAlone those that mean nothing without another one. Every other pair means what each flag says alone.
var (
	refusedPairs = map[string]string{
		"list": "address direction, address from, address older, address player, address session, address to, " +
			"direction from, direction player, direction session, direction to, from older, from player, " +
			"from session, older player, older session, older to, player session, player to, session to",
		"finish": "against-evidence fitting, batch fitting, file fitting, file tx, fitting settled, fitting tx, " +
			"fitting without-evidence",
		"decide": "finding reverse, reverse tx",
	}
	refusedAlone = map[string]string{"finish": "from to", "reconcile": "decimal"}
)

func TestEveryPairOfFlagsMeansSomething(t *testing.T) {
	s := rig.NewShop(t)
	values := map[string]string{"from": "2026-01-01", "to": "2026-02-01", "older": "1h", "direction": "mint",
		"tx": "0x" + strings.Repeat("1", 64), "reverse": uuid.NewString(), "moved": "gold=1", "format": "totals",
		"decimal": "comma", "position": filepath.Join(t.TempDir(), "position")}
	with := map[string]string{"from": "fitting", "to": "fitting", "decimal": "format"}
	for _, name := range []string{"list", "count", "find", "missing", "restore", "show", "finish", "abandon",
		"reconcile", "decide", "entries"} {
		flags := flag.NewFlagSet(name, flag.ContinueOnError)
		_, one := support.NewCommand(name, flags)
		_, books := rampbooks.NewCommand(name, flags)
		require.True(t, one == nil || books == nil)
		var names []string
		args := map[string][]string{}
		flags.VisitAll(func(f *flag.Flag) {
			names = append(names, f.Name)
			args[f.Name] = []string{"-" + f.Name}
			if boolean, ok := f.Value.(interface{ IsBoolFlag() bool }); !ok || !boolean.IsBoolFlag() {
				args[f.Name] = append(args[f.Name], cmp.Or(values[f.Name], "x"))
			}
		})
		refused := func(flags ...string) bool {
			var given []string
			for _, flag := range flags {
				given = append(given, args[flag]...)
			}
			_, err := rig.RunCommand(t, s.Office, name, given...)
			return err != nil && (strings.Contains(err.Error(), "mean nothing together") ||
				strings.Contains(err.Error(), "means nothing without"))
		}
		pairs, alone := strings.Split(refusedPairs[name], ", "), strings.Fields(refusedAlone[name])
		for i, a := range names {
			assert.Equal(t, slices.Contains(alone, a), refused(a), "%s -%s", name, a)
			for _, b := range names[i+1:] {
				want := slices.Contains(pairs, a+" "+b) || slices.Contains(alone, a) && with[a] != b ||
					slices.Contains(alone, b) && with[b] != a
				assert.Equal(t, want, refused(a, b), "%s -%s -%s", name, a, b)
			}
		}
	}
	_, err := rig.RunCommand(t, s.Office, "list", "-from", "2026-02-01", "-to", "2026-01-01")
	assert.ErrorContains(t, err, "-to must be after -from")
	_, err = rig.RunCommand(t, s.Office, "list", "-address", "\"0x1\"")
	assert.EqualError(t, err, "-address must not have quotes around it")
	_, err = rig.RunCommand(t, s.Office, "finish", "-who", "bob\u200b", uuid.NewString())
	assert.EqualError(t, err, "-who must not have a zero-width space (U+200B)")
}
