package ramptest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

var (
	games   = flag.Int("games", 1000, "how many random games TestVerdictsAgreeWithTheLedger plays")
	verbose = flag.Bool("timeline", false, "log what happened in those that fail")
	only    = flag.Int("mode", -1, "play only this mode")
	seed    = flag.Uint64("seed", 0, "the first of them")
)

// habit is what a game does wrongly with an order.
type habit int

const (
	honest    habit = iota
	skips           // its result moves nothing
	doubles         // each of its results has its effect
	tips            // its result moves one more
	grabs           // its validate call takes twice
	keeps           // its validate call takes, and is rejected
	forgets         // its validate call takes nothing, and its result neither
	turnsDown       // its result is answered 404, without an effect
	creates         // its result is answered 201, with its effect
	fails           // its result is answered 500, always, without an effect
	passesOn        // a proxy answers its first result with 502, without an effect
	aborts          // its validate call takes, and is answered 500
	overdraws       // its mint is approved for more than the player owns
	habits
)

// bank is a game that keeps a ledger of what it does for each order.
type bank struct {
	mu      sync.Mutex
	owns    map[string]int64 // by player
	entries map[uuid.UUID]*bankEntry
	expired map[string]bool // sessions
	outage  int             // assets calls that fail with 503
	hold    bool            // takes with the result
	late    time.Duration   // at most, how long effects follow the answers
	random  *rand.Rand
}

// bankEntry is an order in the ledger.
type bankEntry struct {
	player  string
	habit   habit
	mint    bool
	amount  int64
	moved   int64 // so far
	coming  int64 // what is late
	asked   int
	results int
	taken   bool
	over    bool
	paid    bool // that of the first result
}

func (b *bank) Authenticate(_ context.Context, s ramp.Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expired[s.ID] {
		return ramp.Reject("SESSION_EXPIRED")
	}
	return nil
}

// playerOf returns the player of a session, whose ID is the player and a number.
func playerOf(s ramp.Session) string {
	player, _, _ := strings.Cut(s.ID, "/")
	return player
}

func (b *bank) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage > 0 {
		b.outage--
		return nil, errors.New("the database is unreachable")
	}
	player := playerOf(s)
	return &ramp.Player{PlayerID: player,
		Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(b.owns[player])}}}, nil
}

// move moves what belongs to an order, now or later.
func (b *bank) move(e *bankEntry, n int64) {
	if b.late == 0 {
		b.owns[e.player] += n
		e.moved += n
		return
	}
	e.coming += n
	time.AfterFunc(time.Duration(1+b.random.Int64N(int64(b.late))), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.owns[e.player] += n
		e.moved += n
		e.coming -= n
	})
}

func (b *bank) Validate(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[r.UUID]
	if e.asked++; e.asked > 1 && e.habit != grabs {
		return nil
	}
	if !e.mint {
		return nil
	}
	if e.habit == overdraws {
		return nil
	}
	if b.owns[e.player] < e.amount {
		return ramp.Reject("INVALID_BALANCE")
	}
	if e.habit != forgets && !b.hold {
		e.taken = true
		b.move(e, -e.amount)
	}
	switch {
	case e.habit == grabs && e.asked == 1:
		b.move(e, -e.amount)
	case e.habit == keeps:
		return ramp.Reject("MAINTENANCE")
	}
	return nil
}

func (b *bank) Result(_ context.Context, _ ramp.Session, r *ramp.Result) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[r.UUID]
	switch e.results++; {
	case e.over && r.Succeeded() != e.paid:
		return errors.New("the first result stated another outcome")
	case e.over && e.habit != doubles:
		return nil
	}
	e.over, e.paid = true, r.Succeeded()
	var n int64
	switch {
	case e.habit == skips || e.habit == forgets || e.habit == overdraws:
	case e.mint && !r.Succeeded() && e.taken:
		n = e.amount
	case e.mint && r.Succeeded() && !e.taken:
		n = -e.amount
		e.taken = true
	case !e.mint && r.Succeeded():
		n = e.amount
	}
	if e.habit == tips {
		n++
	}
	if n != 0 {
		b.move(e, n)
	}
	return nil
}

// pause takes its time.
func (b *bank) pause() {
	b.mu.Lock()
	d := time.Duration(b.random.IntN(20)) * time.Millisecond
	b.mu.Unlock()
	time.Sleep(d)
}

// serve stands before the handler, and answers what the habit of an order wants.
func (b *bank) serve(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.pause() // calls overlap
		defer b.pause()
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var named struct{ UUID uuid.UUID }
		_ = json.Unmarshal(body, &named)
		b.mu.Lock()
		status, through := 0, false
		if e := b.entries[named.UUID]; e != nil {
			switch result := r.URL.Path == ramp.PathResult; {
			case result && e.habit == turnsDown:
				status = 404
			case result && e.habit == creates:
				status, through = 201, true
			case result && e.habit == fails:
				status = 500
			case result && e.habit == passesOn && e.results == 0:
				status = 502
				e.results++
			case !result && e.habit == aborts && e.mint:
				status, through = 500, true
			}
		}
		b.mu.Unlock()
		if status == 0 {
			inner.ServeHTTP(w, r)
			return
		}
		if through {
			inner.ServeHTTP(&discard{header: http.Header{}}, r)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":null}`)
	})
}

// mode is a kind of random games.
type mode struct {
	wrong   float64 // how many orders meet a habit
	workers int     // for each player, at most
	outage  float64 // how often the assets cannot be read
	equal   bool    // all orders are about the same amount
	hold    bool
	late    time.Duration
	expire  bool // sessions expire, and players log in again
	logins  bool // players log in often, and their new session keeps the old ones
	income  bool // players earn something between the orders
	habit   habit
	orders  int     // in a game; 6 unless set
	vague   float64 // the share of the right orders that may be unknown
	blamed  float64 // the share of them that may be called a loss
}

// tally counts what the verdicts say about right and wrong orders.
type tally struct{ right, accused, unknown, wrong, done int }

func (t *tally) String() string {
	return fmt.Sprintf("right orders called a loss: %d of %d; unknown: %d; wrong orders called done: %d of %d",
		t.accused, t.right, t.unknown, t.done, t.wrong)
}

// wallets are those of sessions. The games share them, because a key is a tenth of a game.
var wallets sync.Map

func walletsOf(t testing.TB) func(ramp.Session) *ramp.Signer {
	return func(s ramp.Session) *ramp.Signer {
		known, ok := wallets.Load(s.ID)
		if !ok {
			signer, err := ramp.NewKeySigner(fmt.Sprintf("0x%x", sha256.Sum256([]byte(s.ID))))
			if err != nil {
				t.Errorf("the wallet of session %s: %v", s.ID, err)
			}
			known, _ = wallets.LoadOrStore(s.ID, signer)
		}
		return known.(*ramp.Signer)
	}
}

// play plays a game, adds to the tally, and returns what contradicts the ledger.
func (m mode) play(t *testing.T, seed uint64, sum *tally) (problems []string) {
	random := rand.New(rand.NewPCG(seed, 44))
	b := &bank{owns: map[string]int64{"alice": 1 << 60, "bob": 1 << 60}, entries: make(map[uuid.UUID]*bankEntry),
		expired: make(map[string]bool),
		hold:    m.hold, late: m.late, random: random}
	test := &judged{TB: t}
	joined := newCounterOf(test, b, func(c *ramptest.Config) {
		c.Wallet, c.Handler = walletsOf(t), b.serve(c.Handler)
	})
	service, client := joined.service, joined.client

	var mu sync.Mutex // of random and what follows
	chance := func(p float64) bool {
		mu.Lock()
		defer mu.Unlock()
		b.mu.Lock() // it draws too
		defer b.mu.Unlock()
		return random.Float64() < p
	}
	breaks := func() {
		if chance(m.outage) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.outage = 1 + random.IntN(4)
		}
	}
	amount, logins := int64(1), 0
	session := map[string]ramp.Session{}
	login := func(player string) {
		logins++
		session[player] = ramp.Session{ID: fmt.Sprintf("%s/%d", player, logins),
			Token: ramp.NewAccessToken(fmt.Sprint("token-", logins))}
	}
	placed, left := map[uuid.UUID]*ramptest.PlacedOrder{}, cmp.Or(m.orders, 6)
	work := func(player string) {
		for range max(2, m.orders/m.workers/4) {
			again := m.logins && chance(0.6)
			mu.Lock()
			if left--; left < 0 {
				mu.Unlock()
				return
			}
			if again {
				login(player)
			}
			if amount *= 5; m.equal {
				amount = 100
			}
			e, s := &bankEntry{player: player, amount: amount}, session[player]
			mu.Unlock()
			e.mint = chance(0.6)
			failed := chance(0.5)
			if chance(m.wrong) && m.habit != honest {
				e.habit = m.habit
			} else if m.habit == honest && chance(m.wrong) {
				e.habit = habit(1 + int(seed+uint64(e.amount))%int(habits-1))
				for f := habit(1); f < habits; f++ { // any, but from random
					if chance(0.15) {
						e.habit = f
						break
					}
				}
			}
			if e.habit == overdraws && (!e.mint || m.outage > 0) { // what the player owned must be known
				e.habit = honest
			}
			if e.habit == overdraws {
				e.amount = 1 << 61
			}
			asked := request()
			item := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(e.amount), IconURL: "https://example.com/gold.png"}}
			asked.Intent.Materials, asked.Intent.Outputs = item, item
			started, err := client.Initialize(t.Context(), asked)
			if err != nil {
				t.Error(err)
				return
			}
			b.mu.Lock()
			b.entries[started.UUID] = e
			b.mu.Unlock()
			breaks()
			var faults []ramptest.Fault
			if failed {
				faults = append(faults, ramptest.Perhaps(ramptest.TransactionFails()))
			}
			for _, f := range []func() ramptest.Fault{ramptest.ResultTwice, ramptest.ValidateTwice,
				ramptest.Reorganized,
				func() ramptest.Fault { return ramptest.TamperedBody(ramptest.OnResult) },
				func() ramptest.Fault { return ramptest.LostAnswer(ramptest.OnResult) },
				func() ramptest.Fault { return ramptest.ResultAtOnce(2) }} {
				if chance(0.15) {
					faults = append(faults, ramptest.Perhaps(f()))
				}
			}
			place := service.Burn
			if e.mint {
				place = service.Mint
			}
			o, _ := place(t.Context(), started.UUID, s, ramp.NewAmount(1), faults...)
			time.Sleep(m.late) // a transaction takes longer
			if o != nil {
				mu.Lock()
				placed[o.UUID] = o
				mu.Unlock()
				outcome, other := ramptest.Succeeded, ramptest.Failed
				if failed {
					outcome, other = other, outcome
				}
				if chance(0.4) { // others work at the same time
					breaks()
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					// the caller does not wait; what then moves wrongly may be other income
					if chance(0.2) && e.habit == honest {
						ctx, cancel = context.WithTimeout(ctx, 30*time.Millisecond)
					}
					_ = service.Deliver(ctx, o, outcome)
					cancel()
				}
				if service.State(o) == ramptest.Confirmed && chance(0.5) { // which the game must reject
					_ = service.Deliver(t.Context(), o, other)
				}
			}
			if m.income && chance(0.3) {
				b.mu.Lock()
				b.owns[player] += 3
				b.mu.Unlock()
			}
		}
	}
	for range 2 {
		for _, player := range []string{"alice", "bob"} {
			login(player)
		}
		var working sync.WaitGroup
		for _, player := range []string{"alice", "bob"} {
			for range m.workers {
				working.Go(func() { work(player) })
			}
		}
		working.Wait()
		if m.expire {
			b.mu.Lock()
			for _, s := range session {
				b.expired[s.ID] = chanceOf(random, 0.5)
			}
			b.mu.Unlock()
			for _, player := range []string{"alice", "bob"} {
				login(player)
				_, _ = service.Assets(t.Context(), session[player])
			}
		}
		service.Advance(24 * time.Hour)
	}
	time.Sleep(5 * time.Second)                       // what is late has come
	for _, player := range []string{"alice", "bob"} { // the next reading
		b.mu.Lock()
		b.outage = 0
		b.mu.Unlock()
		if !m.expire { // which can be read with the newest session
			login(player)
			_, _ = service.Assets(t.Context(), session[player])
		}
	}
	listed := make(map[uuid.UUID]control.OrderReport)
	answer, err := service.Client().Get(service.URL() + "/control/orders?limit=1000")
	require.NoError(t, err)
	var list control.OrderList
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
	for _, o := range list.Orders {
		listed[o.UUID] = o
	}
	failed, said := test.end()
	timeline := func(id uuid.UUID) string {
		var lines []string
		for _, line := range strings.Split(service.Timeline(), "\n") {
			if strings.Contains(line, id.String()[:8]) && !strings.Contains(line, "asked:") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	}
	wrong, unclear := false, false
	for id, e := range b.entries {
		o, isListed := listed[id]
		var due int64
		switch success := isListed && o.TxStatus == "succeeded"; {
		case e.mint && success:
			due = -e.amount
		case !e.mint && success:
			due = e.amount
		}
		lost := e.moved != due || e.habit == creates && isListed || e.habit == fails && isListed ||
			e.habit == passesOn && isListed && o.Delivery != "confirmed" || e.habit == turnsDown && isListed ||
			e.habit == overdraws
		bad := func(format string, args ...any) {
			problems = append(problems,
				fmt.Sprintf("seed %d, order %s (%+v, due %d): %s; the verdict is %q: %s\n%s", seed, id, *e, due,
					fmt.Sprintf(format, args...), o.State, o.Said, timeline(id)))
		}
		wrong = wrong || lost
		unclear = unclear || e.habit == passesOn &&
			!lost // of results sent at once, the 502 may look like the later answer
		if lost {
			sum.wrong++
		} else {
			sum.right++
		}
		switch {
		case lost && !isListed && m.equal:
		case lost && !isListed:
			bad("a loss before the transaction is not listed")
		case !isListed:
		case lost && o.State == "done":
			sum.done++
			if !m.equal && m.outage == 0 && !m.expire || *verbose {
				bad("a wrong order is called done")
			}
		case !lost && (o.State == "loss" || o.Loss):
			sum.accused++
			if m.blamed == 0 || *verbose {
				bad("a right order is called a loss")
			}
		case !lost && o.State == "unknown":
			sum.unknown++
			unclear = true
			if m.outage == 0 && !m.equal && (m.late == 0 || *verbose) && !m.expire && m.wrong == 0 {
				bad("nothing hides what it moved")
			}
		}
		if isListed && o.State != "done" && strings.Contains(o.Said, "Done.") {
			bad("it says that it is done")
		}
		for sentence, must := range map[string]bool{
			"Done.":             !lost,
			"has not granted":   due > e.moved,
			"did not grant":     due > e.moved,
			"did not give back": due > e.moved,
			"gave back":         e.mint && (due == 0 || due < e.moved),
		} {
			if isListed && strings.Contains(o.Said, sentence) && !must && !m.equal && m.outage == 0 {
				bad("it says %q", sentence)
			}
		}
	}
	defer func() {
		if *verbose && len(problems) > 0 {
			problems = append(problems, service.Timeline())
		}
	}()
	switch {
	case wrong && !failed && !m.equal: // equal amounts can cancel, and the share of what is called done is bounded
		problems = append(problems, fmt.Sprintf("seed %d: something is lost, and the test is green", seed))
	// with outages, the share of those accused is bounded
	case !wrong && !unclear && failed && !m.equal && m.outage == 0:
		problems = append(problems, fmt.Sprintf("seed %d: nothing is lost, and the test says:\n%s", seed, said))
	}
	return problems
}

func chanceOf(random *rand.Rand, p float64) bool { return random.Float64() < p }

// Random games, right ones and wrong ones, each with a ledger of its own: the verdicts, the
// sentences and the test itself must agree with it. make long plays 20,000.
func TestVerdictsAgreeWithTheLedger(t *testing.T) {
	racedetector.Skip(t)
	count := *games
	if testing.Short() {
		count /= 10
	}
	agreeWithTheLedger(t, count)
}

func TestNothingRacesInRandomGames(t *testing.T) {
	if !racedetector.On {
		t.Skip("a run with -race looks for races")
	}
	agreeWithTheLedger(t, *games/10)
}

func agreeWithTheLedger(t *testing.T, count int) {
	modes := []mode{
		{workers: 1, wrong: 0.2, vague: 0.02},
		{workers: 3, wrong: 0.2, vague: 0.04},
		{workers: 2},
		{workers: 3, hold: true},
		{workers: 2, late: time.Second},
		{workers: 2, wrong: 0.1, equal: true, vague: 0.1, blamed: 0.005},
		{workers: 1, wrong: 0.2, outage: 0.2, vague: 0.18},
		{workers: 3, outage: 0.1, vague: 0.06},
		{workers: 1, expire: true},
		{workers: 2, wrong: 0.1, hold: true, vague: 0.02},
		// by what comes late for a player who was unknown
		{workers: 4, outage: 0.4, logins: true, orders: 30, vague: 0.24, blamed: 0.0002},
		{workers: 1, outage: 0.2, income: true, vague: 0.2},
		{workers: 1, hold: true, late: time.Second, income: true, vague: 0.1},
		// two that forget may look like one
		{workers: 1, wrong: 0.6, habit: forgets, equal: true, vague: 0.2, blamed: 0.04},
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // collecting so little takes a fifth of the time
	sums := make([]tally, len(modes))
	var shown atomic.Int64
	t.Run("games", func(t *testing.T) {
		for i, m := range modes {
			t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) {
				t.Parallel()
				for n := *seed + uint64(i); n < *seed+uint64(count); n += uint64(len(modes)) {
					if *only >= 0 && i != *only {
						return
					}
					if shown.Load() > 5 {
						return
					}
					var problems []string
					hung := time.AfterFunc(time.Minute,
						func() { panic(fmt.Sprintf("seed %d does not end", n)) }) // in real time
					synctest.Test(t, func(t *testing.T) { problems = m.play(t, n, &sums[i]) })
					hung.Stop()
					for _, problem := range problems {
						if shown.Add(1) <= 5 || *verbose {
							t.Error(problem)
						}
					}
				}
			})
		}
	})
	for i, m := range modes {
		t.Logf("%+v: %s", m, &sums[i])
		mean := m.vague * float64(sums[i].right)
		assert.LessOrEqual(t, float64(sums[i].unknown), mean+3+2*math.Sqrt(mean), "%+v", m)
		assert.LessOrEqual(t, sums[i].done, 1+sums[i].wrong/100, "%+v", m)
		if m.blamed > 0 {
			assert.LessOrEqual(t, float64(sums[i].accused), 1+m.blamed*float64(sums[i].right), "%+v", m)
		}
	}
	if n := shown.Load(); n > 5 {
		t.Errorf("%d problems", n)
	}
}

// Ten results that are skipped do not take ten times as long as one, and the books stay patient.
// Real time is asserted by the clock of the bubble.
func TestTenWrongResultsTakeLessThanFourSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		game := newShop()
		// real time is that of the bubble
		c := newCounterOf(t, game, func(c *ramptest.Config) { c.Audit = ramptest.AuditReport })
		game.gold = 10_000
		begun := time.Now()
		for range 10 {
			o := c.mint(t, ramptest.TransactionFails())
			game.mu.Lock()
			game.done[o.UUID] = true // it gives nothing back
			game.mu.Unlock()
			c.service.Advance(time.Minute)
		}
		assert.Len(t, c.service.Imbalances(), 10)
		assert.Less(t, time.Since(begun), 4*time.Second)
		t.Log(time.Since(begun))

		owned := game.owns() // an effect that is a little late is still awaited
		o := c.mint(t, ramptest.TransactionFails())
		cost := owned - game.owns()
		game.mu.Lock()
		game.done[o.UUID] = true
		game.mu.Unlock()
		time.AfterFunc(100*time.Millisecond, func() {
			game.mu.Lock()
			defer game.mu.Unlock()
			game.gold += cost
		})
		c.service.Advance(time.Minute)
		assert.Len(t, c.service.Imbalances(), 10)
	})
}
