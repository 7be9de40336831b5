package ramptest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
)

// This file plays servers that a studio might write against the test of the README, with closed books.
// losing_games_test.go has those that lose assets or move them twice, right_games_test.go those that do
// not, and those whose answers have another form.

// skipUnderTheDetector leaves the games to a run without it: their code is in this package's tests only, and
// other tests play the same parts of the emulator with the detector.
func skipUnderTheDetector(t *testing.T) {
	t.Helper()
	if racedetector.On {
		t.Skip("the race detector makes the games ten times as slow")
	}
}

// TestGamesThatLoseAreRed measures how many losing games pass.
func TestGamesThatLoseAreRed(t *testing.T) {
	skipUnderTheDetector(t)
	t.Parallel()
	document := string(must.Get(os.ReadFile("../docs/testing.md"))(t))
	all := losingGames()
	pass := 0
	for _, g := range all {
		if g.green != "" {
			pass++
			assert.Contains(t, document, "- The game "+g.green, "docs/testing.md does not list it")
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, second := range []bool{false, true} {
				for _, faults := range [][]ramptest.Fault{nil, {ramptest.ResultBeforeAnswer()}} {
					red, said := g.played(t, closed, second, faults...)
					green := g.green != "" && !(g.seesSecond && second)
					assert.Equal(t, !green, red, "%v, is the second player asked: %t\n%s", faults, second, said)
				}
			}
		})
	}
	t.Logf("of %d losing games, %d pass", len(all), pass)
	assert.LessOrEqual(t, pass, 3)
}

// hides names the losing games that a fault hides: they do nothing wrong then. Without names it is any of them,
// because orders are not placed, or all end in the same way.
var hides = map[string][]string{
	"transaction-fails": nil, "burns-less": nil, // nothing is granted
	"stays-pending": nil, "result-never": nil, "result-after-next": nil, // no order ends, so every test is red
	"expired-uuid": nil, "lost-answer=validate": nil, "slow-answer=validate:11s": nil, "store-fails": nil,
	"validate-other-token": nil, "validate-other-rate": nil, "validate-extra-item": nil, // these games approve them
	"reorganized":           {"ramp.Handler: a cache answers each second result"},
	"reorganized-unnoticed": {"idempotent by the block"},
	"result-at-once=3":      {"500 becomes a success"},
}

// TestNoFaultHidesALosingGame plays each losing game under each fault.
func TestNoFaultHidesALosingGame(t *testing.T) {
	skipUnderTheDetector(t)
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	t.Parallel()
	for _, fault := range everyFault(t) {
		hidden, some := hides[fault.String()]
		if some && hidden == nil {
			continue
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			for _, g := range losingGames() {
				if red, _ := g.played(t, closed, false, ramptest.Perhaps(fault)); !red && g.green == "" {
					assert.Contains(t, hidden, g.name, "a test with this fault does not see what the game loses: "+
						"mend the verdict, or name the game in hides if it does nothing wrong then")
				}
			}
		})
	}
}

// everyFault returns each fault that a text can name, with an argument.
func everyFault(t *testing.T) (faults []ramptest.Fault) {
	t.Helper()
	arguments := strings.NewReplacer("NUMBER", "0x7", "COUNT", "3", "DURATION", "11s")
	for _, form := range ramptest.FaultForms() {
		result := strings.Replace(form[0], "CALL", string(ramptest.OnResult), 1)
		validate := strings.Replace(form[0], "CALL", string(ramptest.OnValidate), 1)
		for _, text := range slices.Compact([]string{result, validate}) {
			faults = append(faults, must.Get(ramptest.ParseFault(arguments.Replace(text)))(t))
		}
	}
	return faults
}

// TestAnswersOfAnotherFormAreRed plays servers whose answers break interface 4.3 or 2.4.
func TestAnswersOfAnotherFormAreRed(t *testing.T) {
	skipUnderTheDetector(t)
	t.Parallel()
	for _, g := range wrongForms() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			red, said := g.played(t, closed, false)
			assert.True(t, red, said)
		})
	}
}

// TestRightGamesAreGreen allows a right game to be red only if docs/testing.md says why.
func TestRightGamesAreGreen(t *testing.T) {
	skipUnderTheDetector(t)
	t.Parallel()
	document := string(must.Get(os.ReadFile("../docs/testing.md"))(t))
	for _, g := range rightGames() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				closed bool
				faults []ramptest.Fault
				why    string
			}{
				{true, nil, g.closed},
				{false, nil, g.open},
				{true, []ramptest.Fault{ramptest.ResultBeforeAnswer()}, cmp.Or(g.closed, g.beforeAnswer)},
				{false, []ramptest.Fault{ramptest.ResultBeforeAnswer()}, cmp.Or(g.open, g.beforeAnswer)},
			} {
				if test.closed && g.earns {
					continue // it moves assets between calls, which closed books do not allow
				}
				red, said := g.played(t, func(c *ramptest.Config) { c.Closed = test.closed }, true, test.faults...)
				assert.Equal(t, test.why != "", red, "closed books: %t, %v\n%s", test.closed, test.faults, said)
				if test.why != "" {
					assert.Contains(t, document, "\n| "+test.why+" |", "docs/testing.md does not list it")
				}
			}
		})
	}
}

// kind is a kind of game. A nil field does what a right game does.
type kind struct {
	name   string
	check  func(s *server, o *booking) (rejection string) // the first validate call of an order
	repeat func(s *server, o *booking) (rejection string) // one that follows
	finish func(s *server, o *booking, ok bool) int       // a result; returns the HTTP status
	status int                                            // of a result of an unknown order
	list   func(s *server, player string) assets          // what the assets endpoint lists
	admit  func(s *server, session, path string) string   // returns a rejection
	answer func(s *server, path string, a *written)       // changes an answer
	job    func(s *server, when moment)                   // acts between the calls
	around func(s *server, h http.Handler) http.Handler   // middleware
	behind func(s *server) http.Handler                   // a ramp.Handler instead of the server
	config func(s *server, c *ramptest.Config)            // of the test
	script func(p *trial)                                 // what the test does
	owns   assets                                         // of alice at the beginning
	two    bool                                           // orders are about two assets
	noID   bool                                           // the assets endpoint returns no player_id

	green      string // of a losing one: why it passes; "" if it does not
	seesSecond bool   // of such a one: it does not pass if the second player is asked for assets
	closed     string // of a right one: the row of docs/testing.md about why it fails with closed books
	open       string // the same with open ones
	// of a right one: the row about why it fails if a result comes before the answer of a validate call
	beforeAnswer string
	earns        bool // of a right one: it is not for closed books
}

// A moment is when a job acts.
type moment string

const (
	placed   moment = "placed"   // an order has just been placed
	advanced moment = "advanced" // its result has been delivered
	atEnd    moment = "at end"   // all orders have ended
)

type assets = map[string]int64

// server is the server of a game, written by hand.
type server struct {
	sync.Mutex
	*kind
	t       testing.TB
	key     ramp.HMACKey
	signer  *ramp.Signer
	service *ramptest.Service
	players map[string]string // by session
	balance map[string]assets // by player
	mail    map[string]assets // what waits for a player
	orders  map[string]*booking
	all     []*booking // oldest first
	count   assets     // whatever a kind counts
	last    string     // the player who asked for assets last
}

// booking is what a server keeps of an order.
type booking struct {
	t testing.TB

	id, session, player, wallet, digest, block string

	mint, ended bool
	marked      bool // whatever a kind marks
	items       []ramp.AssetAmount
	before      assets // what the player owned before
	at          time.Time
}

// move moves assets of a player: +1 gives them, -1 takes them.
func (s *server) move(player string, items []ramp.AssetAmount, sign int64) {
	if s.balance[player] == nil {
		s.balance[player] = assets{}
	}
	for _, a := range items {
		s.balance[player][a.ID] += sign * units(s.t, a)
	}
}

// units returns the amount of an asset. It may be called on any goroutine.
func units(t testing.TB, a ramp.AssetAmount) int64 {
	n, err := a.Amount.Int64()
	if err != nil {
		t.Errorf("%s: %v", a.ID, err)
	}
	return n
}

// affords returns the rejection of a mint of more than the player owns.
func (s *server) affords(o *booking) (rejection string) {
	for _, a := range o.items {
		if o.mint && s.balance[o.player][a.ID] < units(s.t, a) {
			return "INVALID_BALANCE"
		}
	}
	return ""
}

// take takes what a mint costs.
func (s *server) take(o *booking) (rejection string) {
	if rejection = s.affords(o); rejection == "" && o.mint {
		s.move(o.player, o.items, -1)
	}
	return rejection
}

// due reports whether the end of an order gives assets: it fails and is a mint, or succeeds and is a burn.
func (o *booking) due(ok bool) bool { return o.mint != ok }

// end ends an order, once.
func (s *server) end(o *booking, ok bool) (status int) {
	if !o.ended && o.due(ok) {
		s.move(o.player, o.items, 1)
	}
	o.ended = true
	return http.StatusOK
}

// written is an answer that a kind may change.
type written struct {
	status int
	body   string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorded := httptest.NewRecorder()
	s.Lock()
	s.serve(recorded, r)
	a := &written{recorded.Code, recorded.Body.String()}
	if s.answer != nil {
		s.answer(s, r.URL.Path, a)
	}
	s.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answersWith(a.status, a.body)(w)
}

func refuses(w http.ResponseWriter, status int, code string) {
	answersWith(status, fmt.Sprintf(`{"success":false,"errorCode":%q,"data":null}`, code))(w)
}

// succeeds answers with an envelope.
func succeeds(w io.Writer, data any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "errorCode": nil, "data": data})
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	session, err := ramp.ParseSession(r.Header)
	player := s.players[session.ID]
	known := err == nil && player != "" && session.Token.Reveal() == "token-"+session.ID
	if r.URL.Path != ramp.PathResult && !known { // a result needs no token
		refuses(w, http.StatusUnauthorized, "INVALID_TOKEN")
		return
	}
	if s.admit != nil {
		if code := s.admit(s, session.ID, r.URL.Path); code != "" {
			refuses(w, http.StatusUnauthorized, code)
			return
		}
	}
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPost && s.key.Verify(body, r.Header.Get("X-HMAC-Signature")) != nil {
		refuses(w, http.StatusUnauthorized, "INVALID_HMAC")
		return
	}
	switch r.URL.Path {
	case ramp.PathAssets:
		succeeds(w, map[string]any{"v1": s.listed(player)})
	case ramp.PathValidate:
		s.validate(w, r, session.ID, body)
	case ramp.PathResult:
		s.result(w, body)
	}
}

func (s *server) listed(player string) ramp.Player {
	owns := s.balance[player]
	if s.list != nil {
		owns = s.list(s, player)
	}
	p := ramp.Player{PlayerID: player, Name: player}
	if s.noID {
		p.PlayerID = ""
	}
	for id, n := range owns {
		p.Assets = append(p.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
	}
	return p
}

func (s *server) validate(w http.ResponseWriter, r *http.Request, session string, body []byte) {
	asked, err := ramp.ParseValidate(body)
	if err != nil {
		refuses(w, http.StatusOK, "INVALID_MESSAGE")
		return
	}
	o, rejection := s.orders[asked.UUID.String()], ""
	switch {
	case o == nil:
		if o = s.book(asked, session); s.check != nil {
			rejection = s.check(s, o)
		} else {
			rejection = s.take(o)
		}
		if rejection == "" {
			s.orders[o.id], s.all = o, append(s.all, o)
		}
	case o.digest != asked.Digest.String() || o.session != session:
		rejection = "DUPLICATE"
	case s.repeat != nil:
		rejection = s.repeat(s, o)
	}
	if rejection != "" {
		refuses(w, http.StatusOK, rejection)
		return
	}
	signature, err := s.signer.Sign(r.Context(), asked.Digest)
	if err != nil {
		s.t.Errorf("the validator does not sign: %v", err)
	}
	succeeds(w, ramp.Approval{UserSig: asked.UserSig, ValidatorSig: signature})
}

func (s *server) book(r *ramp.ValidateRequest, session string) *booking {
	direction, err := r.Intent.Direction()
	if err != nil {
		s.t.Errorf("an approved intent: %v", err)
	}
	o := &booking{t: s.t, id: r.UUID.String(), session: session, player: s.players[session], wallet: r.UserAddress,
		digest: r.Digest.String(), mint: direction == ramp.Mint,
		before: maps.Clone(s.balance[s.players[session]]), at: s.service.Now()}
	side := r.Intent.To
	if o.mint {
		side = r.Intent.From
	}
	for _, a := range side {
		o.items = append(o.items, ramp.AssetAmount{ID: a.ID, Amount: a.Amount})
	}
	return o
}

func (s *server) result(w http.ResponseWriter, body []byte) {
	r, err := ramp.ParseResult(body)
	if err != nil {
		refuses(w, http.StatusInternalServerError, "INVALID_MESSAGE")
		return
	}
	status := http.StatusInternalServerError
	switch o := s.orders[r.UUID.String()]; {
	case o == nil && s.status != 0:
		status = s.status
	case o == nil:
	default:
		if o.block = r.Receipt.BlockHash.Hex(); s.finish != nil {
			status = s.finish(s, o, r.Succeeded())
		} else {
			status = s.end(o, r.Succeeded())
		}
	}
	if status != http.StatusOK {
		refuses(w, status, "INTERNAL_ERROR")
		return
	}
	succeeds(w, nil)
}

// trial is a test of a studio.
type trial struct {
	*server
	t       *testing.T
	client  *ramp.Client
	library bool             // the game has a ramp.Handler
	faults  []ramptest.Fault // of each order, with those of the README
}

// played plays the test of a studio against a game, in memory and in no time, and reports whether it fails.
func (k *kind) played(t *testing.T, audit func(*ramptest.Config), second bool, faults ...ramptest.Fault) (red bool,
	said string) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		red, said = k.play(t, test, audit, second, faults)
	})
	return red, said
}

func (k *kind) play(t *testing.T, test *judged, audit func(*ramptest.Config), second bool,
	faults []ramptest.Fault) (bool, string) {
	start := func() assets { return assets{"item_gold": 1000, "item_gem": 50} }
	s := &server{kind: k, t: t, key: wayKey(t), signer: must.Get(ramp.NewKeySigner(
		"0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t),
		orders: map[string]*booking{}, count: assets{}, mail: map[string]assets{},
		players: map[string]string{"alice-1": "alice", "alice-2": "alice", "bob-1": "bob"},
		balance: map[string]assets{"alice": start(), "bob": start()}}
	if k.owns != nil {
		s.balance["alice"] = maps.Clone(k.owns)
	}
	c := ramptest.Config{Key: s.key, Validator: s.signer.Address(), Settle: 100 * time.Millisecond}
	audit(&c)
	if k.config != nil {
		k.config(s, &c)
	}
	s.service = ramptest.Start(test, c)
	var h http.Handler = s
	if k.behind != nil {
		h = k.behind(s)
	}
	if k.around != nil {
		h = k.around(s, h)
	}
	s.service.SetHandler(h)
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: s.key,
		HTTPClient: s.service.Client()}))(t)
	p := &trial{server: s, t: t, client: client, library: k.behind != nil, faults: faults}
	if second {
		p.asks("bob-1")
	}
	if k.script != nil {
		k.script(p)
	} else {
		p.placesOrders()
	}
	return test.end()
}

func (p *trial) session(id string) ramp.Session {
	return ramp.Session{ID: id, Token: ramp.NewAccessToken("token-" + id)}
}

// asks asks for the assets of a session.
func (p *trial) asks(session string) { _, _ = p.service.Assets(p.t.Context(), p.session(session)) }

// step is an order of the test.
type step struct{ burn, fails bool }

// steps are those of the README, and a mint that succeeds.
var steps = []step{{fails: true}, {}, {burn: true}}

// placesOrders places the orders of the README, one after the other.
func (p *trial) placesOrders() {
	for _, step := range steps {
		p.order(step)
		p.later(time.Hour)
	}
	p.ends()
}

// order places an order of 333 gold, with the faults of the README, and perhaps of 6 gems.
func (p *trial) order(s step, faults ...ramptest.Fault) { p.orderOf(s, 111, faults...) }

func (p *trial) orderOf(s step, gold int64, faults ...ramptest.Fault) {
	item := func(id string, n int64) ramp.Item {
		return ramp.Item{ID: id, Amount: ramp.NewAmount(n), IconURL: "https://example.com/i.png"}
	}
	items := []ramp.Item{item("item_gold", gold)}
	if p.two {
		items = append(items, item("item_gem", 2))
	}
	started, err := p.client.Initialize(p.t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		MintFeeBps: 2000, Materials: items, Outputs: items}})
	require.NoError(p.t, err)
	faults = append(faults, ramptest.ValidateTwice(), ramptest.LostAnswer(ramptest.OnResult))
	faults = append(faults, p.faults...)
	if s.fails {
		faults = append(faults, ramptest.TransactionFails())
	}
	if p.library {
		faults = append(faults, ramptest.StoreFails())
	}
	place := p.service.Mint
	if s.burn {
		place = p.service.Burn
	}
	// What is wrong with its answer is what Start says.
	_, _ = place(p.t.Context(), started.UUID, p.session("alice-1"), ramp.NewAmount(3), faults...)
	p.acts(placed)
}

func (p *trial) later(d time.Duration) {
	p.service.Advance(d)
	p.acts(advanced)
}

// ends lets what a game does at the end happen.
func (p *trial) ends() {
	p.acts(atEnd)
	p.later(time.Hour)
}

func (p *trial) acts(when moment) {
	if p.job != nil {
		p.does(func() { p.job(p.server, when) })
	}
}

// between is a script that does something after each order is placed.
func between(act func(p *trial, order int)) func(*trial) {
	return func(p *trial) {
		for i, step := range steps {
			p.order(step)
			p.does(func() { act(p, i) })
			p.later(time.Hour)
		}
		p.ends()
	}
}

// outside is between, and tells the books.
func outside(act func(p *trial, order int)) func(*trial) {
	return func(p *trial) {
		for i, step := range steps {
			p.order(step)
			p.service.Outside(func() { p.does(func() { act(p, i) }) })
			p.later(time.Hour)
		}
		p.ends()
	}
}

// once ends an order in another way, once.
func once(end func(s *server, o *booking, ok bool)) func(*server, *booking, bool) int {
	return func(s *server, o *booking, ok bool) int {
		if !o.ended {
			o.ended = true
			end(s, o, ok)
		}
		return http.StatusOK
	}
}

// gives ends an order with what it gives the player, if something is due.
func gives(items func(o *booking) []ramp.AssetAmount) func(*server, *booking, bool) int {
	return once(func(s *server, o *booking, ok bool) {
		if o.due(ok) {
			s.move(o.player, items(o), 1)
		}
	})
}

// scaled returns the items of an order in other amounts.
func (o *booking) scaled(change func(int64) int64) []ramp.AssetAmount {
	items := slices.Clone(o.items)
	for i, a := range items {
		items[i].Amount = ramp.NewAmount(change(units(o.t, a)))
	}
	return items
}

func eightTenths(n int64) int64 { return n * 8 / 10 }

// amount is how much of its first asset an order is about.
func (o *booking) amount() int64 { return units(o.t, o.items[0]) }
