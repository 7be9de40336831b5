package judge_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/ownledger"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: "project-1"})

// game is a game that is right, in memory: orders are recorded once, what was
// stored at validate counts, and they are settled once. A bug makes it wrong in
// one point.
type game struct {
	bug bug

	mu      sync.Mutex
	players map[string]*player // by session
	orders  map[uuid.UUID]*order
	hashes  map[string]uuid.UUID   // the order that a transaction ended
	purse   map[string]ramp.Amount // of everybody, for one bug
	queue   []*time.Timer          // what is not stored yet, for one bug

	last    *uuid.UUID    // the order that ended last
	waiting int           // calls that have come to the meeting
	meeting chan struct{} // where racing calls wait for each other, for some bugs

	caller ramp.Session             // of the latest call, for some bugs
	result *ramp.Result             // the latest, for some bugs
	locks  map[string]chan struct{} // by name, for some bugs
	closed chan struct{}            // when it is, nobody waits for a lock
}

// is reports whether the game has a bug; it may have several, joined by " + ".
func (g *game) is(b bug) bool {
	return slices.Contains(strings.Split(string(g.bug), " + "), string(b))
}

type player struct {
	token    string
	balances map[string]ramp.Amount
	held     map[string]ramp.Amount // what failed mints never released, for one bug
}

type order struct {
	owner   string
	request *ramp.ValidateRequest
	state   string // "", success or failure
	number  int    // of orders before it
	seen    int    // results since it was settled
}

func newGame() *game {
	return &game{players: map[string]*player{}, orders: map[uuid.UUID]*order{}, meeting: make(chan struct{}),
		hashes: map[string]uuid.UUID{}, locks: map[string]chan struct{}{}, closed: make(chan struct{})}
}

func (g *game) login(_ context.Context, _ string) (ramp.Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := ramp.Session{ID: "session-" + rand.Text(), Token: ramp.NewAccessToken(strings.Repeat(rand.Text(), 5))}
	p := &player{token: s.Token.Reveal(), held: map[string]ramp.Amount{}, balances: map[string]ramp.Amount{
		"item_gold": ramp.NewAmount(1_000_000), "item_gem": ramp.NewAmount(10_000)}}
	if g.unique() {
		clear(p.balances)
		for _, id := range []string{"item_axe", "item_bow", "item_sword"} {
			if g.is("items of their own") {
				id += s.ID
			}
			p.balances[id] = ramp.NewAmount(1)
		}
	}
	if g.is("one purse for all") {
		if g.purse == nil {
			g.purse = p.balances
		}
		p.balances = g.purse
	}
	g.players[s.ID] = p
	return s, nil
}

// unique reports whether there is one of each item, which is listed while a player owns it.
func (g *game) unique() bool { return g.is("unique items") || g.is("items of their own") }

func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.players[s.ID]; p == nil || p.token != s.Token.Reveal() {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *game) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.is("lists for the latest caller") {
		s = g.latest(s)
	}
	p := g.players[s.ID]
	if g.unique() {
		owns := &ramp.Player{PlayerID: s.ID}
		for _, id := range slices.Sorted(maps.Keys(p.balances)) {
			if p.balances[id].Sign() > 0 {
				owns.Assets = append(owns.Assets, ramp.Asset{ID: id, Balance: p.balances[id]})
			}
		}
		return owns, nil
	}
	switch {
	case g.is("holds until the result"):
		p = g.withHeld(s.ID, ramp.Mint)
	case g.is("shows burns at validate"):
		p = g.withHeld(s.ID, ramp.Burn)
	}
	if g.is("lists one asset") {
		return &ramp.Player{PlayerID: s.ID, Assets: []ramp.Asset{{ID: "item_gold", Balance: p.balances["item_gold"]}}},
			nil
	}
	return &ramp.Player{PlayerID: s.ID, Name: "Name", Assets: []ramp.Asset{
		{ID: "item_gold", Balance: p.balances["item_gold"]}, {ID: "item_gem", Balance: p.balances["item_gem"]},
		{ID: "item_third", Balance: p.balances["item_third"]},
	}}, nil
}

// withHeld counts what open mints have taken, or open burns will grant, as owned.
func (g *game) withHeld(id string, direction ramp.Direction) *player {
	shown := &player{balances: maps.Clone(g.players[id].balances)}
	for _, o := range g.orders {
		if d, _ := o.request.Intent.Direction(); o.owner == id && o.state == "" && d == direction {
			effect, _ := moves(o.request.Intent)
			for _, asset := range effect.Assets {
				shown.balances[asset.ID], _ = shown.balances[asset.ID].Add(asset.Amount)
			}
		}
	}
	return shown
}

func (g *game) Validate(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.is("approves for the latest caller"):
		s = g.latest(s)
	case g.is("locks in another order"):
		defer g.lock("player " + s.ID)()
		g.rest()
		defer g.lock("order " + r.UUID.String())()
	case g.is("locks assets as they are listed"):
		for _, from := range r.Intent.From {
			defer g.lock(s.ID + from.ID)()
			g.rest()
		}
	case g.is("looks at balances first"):
		for _, from := range r.Intent.From {
			if from.Type == ramp.TypeAsset && g.players[s.ID].balances[from.ID].Cmp(from.Amount) < 0 {
				return ramp.Reject("INVALID_BALANCE")
			}
		}
	}
	known := g.orders[r.UUID]
	if g.is("looks, then takes") {
		g.meet()
	}
	if known != nil && !(g.is("reuses settled orders") && known.state != "") {
		switch {
		case g.is("takes again"):
			return g.move(known, entered(r.Intent, ramp.OrderAccepted))
		case g.is("rejects repeats"), g.is("remembers rejected orders") && known.state == "rejected":
			return ramp.Reject("INVALID_MESSAGE")
		case g.is("approves whatever is known"):
		case g.is("keeps the last amount") && known.owner == s.ID && known.state == "":
			known.request = r
		case g.is("pins no amount") && known.owner == s.ID && known.state == "":
		case known.owner != s.ID, !same(known.request, r), known.state != "":
			return ramp.Reject("INVALID_MESSAGE")
		}
		return nil
	}
	if d, _ := r.Intent.Direction(); d == ramp.Burn {
		for _, to := range r.Intent.To {
			if balance, known := g.players[s.ID].balances[to.ID]; !known || g.unique() && balance.Sign() > 0 {
				return ramp.Reject("INVALID_MESSAGE")
			}
		}
	}
	if g.is("one open order") {
		for _, other := range g.orders {
			if other.owner == s.ID && other.state == "" {
				return ramp.Reject("ORDER_PENDING")
			}
		}
	}
	o := &order{owner: s.ID, request: r, number: len(g.orders)}
	switch err := g.take(o); {
	case err != nil && g.is("remembers rejected orders"):
		o.state = "rejected"
	case err != nil:
		return err
	}
	if g.is("one order a player") {
		for id, other := range g.orders {
			if other.owner == s.ID {
				delete(g.orders, id)
			}
		}
	}
	g.orders[r.UUID] = o
	if g.is("expires") {
		time.AfterFunc(2*time.Second, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.is("deletes what expires") {
				delete(g.orders, r.UUID)
				return
			}
			if d, _ := o.request.Intent.Direction(); o.state == "" && d == ramp.Mint {
				if o.state = "failure"; !g.is("keeps what expires") {
					_ = g.move(o, settled(o.request.Intent, false))
				}
			}
			o.state = cmp.Or(o.state, "success") // without a grant
		})
	}
	if o.state == "rejected" {
		return ramp.Reject("INVALID_BALANCE")
	}
	return nil
}

// take moves what the approval of an order moves.
func (g *game) take(o *order) error {
	d, _ := o.request.Intent.Direction()
	switch {
	case g.is("takes nothing"):
		return nil
	case g.is("takes at the result") && d == ramp.Mint:
		if err := g.move(o, entered(o.request.Intent, ramp.OrderAccepted)); err != nil {
			return err
		}
		return g.move(o, settled(o.request.Intent, false))
	case g.is("knows orders by their intent") &&
		slices.ContainsFunc(slices.Collect(maps.Values(g.orders)), func(other *order) bool {
			return other.owner == o.owner && other.state == "" &&
				string(jsonOf(other.request.Intent)) == string(jsonOf(o.request.Intent))
		}):
		return nil
	case g.is("grants at validate") && d == ramp.Burn:
		return g.move(o, settled(o.request.Intent, true))
	default:
		return g.move(o, entered(o.request.Intent, ramp.OrderAccepted))
	}
}

func same(a, b *ramp.ValidateRequest) bool {
	return a.Digest == b.Digest && string(jsonOf(a.Intent)) == string(jsonOf(b.Intent))
}

func (g *game) Result(_ context.Context, s ramp.Session, r *ramp.Result) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.is("ends what the latest caller ends"):
		g.result = r
		s = g.latest(s)
		r = g.result
	case g.is("locks in another order"):
		defer g.lock("order " + r.UUID.String())()
		g.rest()
		defer g.lock("player " + s.ID)()
	}
	known := g.orders[r.UUID]
	if g.is("ends the latest order") && known != nil {
		for _, other := range g.orders {
			if other.owner == known.owner && other.state == "" && other.number > known.number {
				known = other
			}
		}
	}
	state := "failure"
	if r.Succeeded() {
		state = "success"
	}
	if known == nil {
		switch o := (&order{owner: s.ID, state: state,
			request: &ramp.ValidateRequest{UUID: r.UUID, Intent: r.Intent}}); {
		case g.is("believes in unknown orders"):
			return g.move(o, entered(r.Intent, r.Outcome()))
		case g.is("confirms unknown orders"):
			return nil
		case g.is("ends unknown orders"):
			g.orders[r.UUID] = o
		}
		return errors.New("no such order")
	}
	reported, err := moves(r.Intent)
	if err != nil && !g.is("ignores the result's intent") {
		return err
	}
	stored, err := moves(known.request.Intent)
	if err != nil {
		return err
	}
	contradiction := errors.New("the result contradicts the order")
	intent := known.request.Intent
	switch {
	case g.is("pays the session"):
		known.owner = s.ID
	case g.is("pays the owner"):
	case known.owner != s.ID:
		return contradiction
	}
	switch {
	case g.is("believes the result"):
		intent = r.Intent
	case g.is("ignores the result's intent"):
	case string(jsonOf(reported)) != string(jsonOf(stored)):
		return contradiction
	}
	was := known.state
	if g.is("looks, then settles") {
		g.meet()
	}
	d, _ := intent.Direction()
	switch {
	case g.is("remembers the last order only") && g.last != nil && *g.last != r.UUID && was == state:
	case g.is("settles each time"), g.is("forgets after ten") && known.seen == 10:
		known.seen = 0
	case g.is("the last outcome counts") && was != "" && was != state:
		return g.move(known, flipped(intent, r.Succeeded()))
	case g.is("a repeat is an error") && was == state:
		return errors.New("the order is over")
	case was != "" && was != state && g.is("confirms contradictions"):
		return nil
	case was != "" && was != state:
		return contradiction
	case was == state:
		known.seen++
		return nil
	}
	if other, used := g.hashes[r.TxHash]; used && r.TxHash != "" && other != r.UUID &&
		!g.is("ends two orders by one transaction") {
		return errors.New("the transaction ended another order")
	}
	g.hashes[r.TxHash] = r.UUID
	known.seen++
	g.last = &r.UUID
	effect := settled(intent, r.Succeeded())
	switch {
	case g.is("takes at the result") && d == ramp.Mint:
		if effect = settled(intent, true); r.Succeeded() {
			effect = entered(intent, ramp.OrderAccepted)
		}
	case g.is("keeps what failed") && d == ramp.Mint,
		g.is("never grants") && d == ramp.Burn,
		g.is("grants at validate") && d == ramp.Burn && state == "success":
		effect = settled(intent, d == ramp.Mint) // nothing
	case g.is("grants at validate") && d == ramp.Burn:
		effect = flipped(intent, false)
	case g.is("keeps the fee of large mints") && d == ramp.Mint && state == "failure" && r.Intent.FeeRate == "2001":
		effect = func() (ramp.Effect, error) {
			e, err := settled(intent, false)()
			if n := e.Assets[0].Amount; n.Cmp(ramp.NewAmount(1000)) > 0 {
				e.Assets[0].Amount, err = n.Add(ramp.NewAmount(-1))
			}
			return e, err
		}
	case g.is("grants what failed") && d == ramp.Burn:
		effect = settled(intent, true)
	}
	if g.is("acts later") || g.is("acts later, each time") {
		known.state = state
		if !g.is("acts later") {
			known.state = ""
		}
		time.AfterFunc(3*time.Millisecond, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			_ = g.move(known, effect)
		})
		return nil
	}
	if g.is("stores later") {
		g.queue = append(g.queue, time.AfterFunc(400*time.Millisecond, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			_ = g.move(known, effect)
			known.state = state
		}))
		return nil
	}
	if g.is("keeps a hold") && d == ramp.Mint && state == "failure" {
		for _, from := range intent.From {
			p := g.players[known.owner]
			p.held[from.ID], _ = p.held[from.ID].Add(from.Amount)
		}
	}
	if err := g.move(known, effect); err != nil {
		return err
	}
	known.state = state
	return nil
}

// entered is the effect of a state.
func entered(intent ramp.Intent, state ramp.OrderState) func() (ramp.Effect, error) {
	return func() (ramp.Effect, error) { return intent.Effect(state) }
}

// settled is the effect of an outcome.
func settled(intent ramp.Intent, succeeded bool) func() (ramp.Effect, error) {
	if succeeded {
		return entered(intent, ramp.OrderSucceeded)
	}
	return entered(intent, ramp.OrderFailed)
}

// flipped is what a change of mind moves: what the other outcome did is undone.
func flipped(intent ramp.Intent, succeeded bool) func() (ramp.Effect, error) {
	return func() (ramp.Effect, error) {
		d, err := intent.Direction()
		effect, _ := moves(intent)
		effect.Kind = ramp.Take
		if (d == ramp.Mint) != succeeded {
			effect.Kind = ramp.Grant
		}
		return effect, err
	}
}

// meet waits, without the lock, until as many calls have come as a case sends
// at once. It happens once: the calls after that are not kept.
func (g *game) meet() {
	if g.waiting++; g.waiting > 8 {
		return
	}
	if g.waiting == 8 {
		close(g.meeting)
	}
	g.mu.Unlock()
	defer g.mu.Lock()
	<-g.meeting
}

// latest returns who called last, after other calls had time to.
func (g *game) latest(s ramp.Session) ramp.Session {
	g.caller = s
	g.rest()
	return g.caller
}

// rest lets other calls run.
func (g *game) rest() {
	g.mu.Unlock()
	defer g.mu.Lock()
	time.Sleep(time.Millisecond)
}

// lock takes a lock with a name. It is a channel, because the virtual clock of package
// synctest stands still while a goroutine waits for a mutex.
func (g *game) lock(name string) (unlock func()) {
	if g.locks[name] == nil {
		g.locks[name] = make(chan struct{}, 1)
	}
	lock := g.locks[name]
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }
	case <-g.closed:
		return func() {}
	}
}

// saves takes a lock of its own for some calls of a player, and then saves the balances as
// it read them.
func (g *game) saves(owner string, effect ramp.Effect) (unlock func()) {
	name := owner + effect.Assets[0].ID
	if g.is("locks validate and result apart") {
		name = fmt.Sprint(owner, effect.Kind == ramp.Take)
	}
	unlock = g.lock(name)
	read := maps.Clone(g.players[owner].balances)
	g.rest()
	g.players[owner].balances = read
	return unlock
}

// moves is what an intent is about for the game.
func moves(i ramp.Intent) (ramp.Effect, error) {
	if d, _ := i.Direction(); d == ramp.Burn {
		return i.Effect(ramp.OrderSucceeded)
	}
	return i.Effect(ramp.OrderAccepted)
}

// move applies an effect for the owner of an order, atomically.
func (g *game) move(o *order, what func() (ramp.Effect, error)) error {
	effect, err := what()
	if err != nil {
		return err
	}
	if len(effect.Assets) > 0 && (g.is("locks validate and result apart") || g.is("locks each asset apart")) {
		defer g.saves(o.owner, effect)()
	}
	p := g.players[o.owner]
	after := map[string]ramp.Amount{}
	if len(effect.Assets) > 0 {
		entries := o.request.Intent.From
		if effect.Kind == ramp.Grant {
			entries = o.request.Intent.To
		}
		last := entries[len(entries)-1]
		switch {
		case g.is("takes the last entry") && effect.Kind == ramp.Take,
			g.is("gives back the last entry") && effect.Kind == ramp.GiveBack,
			g.is("grants the last entry") && effect.Kind == ramp.Grant:
			effect.Assets = []ramp.AssetAmount{{ID: last.ID, Amount: last.Amount}}
		}
	}
	if g.is("takes one asset after the other") { // as the intent lists them
		place := func(a ramp.AssetAmount) int {
			return slices.IndexFunc(o.request.Intent.From, func(e ramp.IntentAsset) bool { return e.ID == a.ID })
		}
		slices.SortFunc(effect.Assets, func(a, b ramp.AssetAmount) int { return cmp.Compare(place(a), place(b)) })
	}
	for _, asset := range effect.Assets {
		balance, known := p.balances[asset.ID]
		if g.is("reads, then writes") {
			g.meet()
		}
		sum, err := balance.Add(effect.Delta(asset))
		if held := p.held[asset.ID]; held.Sign() > 0 && effect.Kind == ramp.Take && held.Cmp(sum) > 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		if g.is("gives back whole numbers") && effect.Kind == ramp.GiveBack {
			whole := new(big.Int).Quo(asset.Amount.Rat().Num(), asset.Amount.Rat().Denom())
			sum, err = balance.Add(ramp.NewAmount(whole.Int64()))
		}
		if g.is("gives back rounded up") && effect.Kind == ramp.GiveBack && asset.Amount.Cmp(ramp.NewAmount(1)) < 0 {
			sum, err = balance.Add(ramp.NewAmount(1))
		}
		if g.is("gives nothing back to who has nothing") && effect.Kind == ramp.GiveBack && balance.Sign() == 0 {
			sum = balance
		}
		if g.is("looks at the first asset's balance") && effect.Kind == ramp.Take {
			if gold := p.balances["item_gold"]; gold.Cmp(asset.Amount) >= 0 && sum.Sign() < 0 {
				sum = ramp.Amount{}
			}
		}
		if sum.Sign() < 0 &&
			(g.is("takes more than there is") || g.is("takes one more than there is") &&
				sum.Cmp(ramp.NewAmount(-1)) == 0) {
			sum = ramp.Amount{}
		}
		if err != nil || !known || sum.Sign() < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		after[asset.ID] = sum
		if g.is("takes one asset after the other") {
			p.balances[asset.ID] = sum
		}
	}
	for id, balance := range after {
		p.balances[id] = balance
	}
	return nil
}

// studio is a game behind a real HTTP server.
type studio struct {
	ctx    context.Context
	game   *game
	key    ramp.HMACKey
	signer *ramp.Signer
	server *httptest.Server
	wires  *wires // the network, if it is in memory
	target judge.Config
}

// newStudio starts one. Its network is in memory if wires are given.
func newStudio(t testing.TB, m mutant, wires ...*wires) *studio {
	t.Helper()
	s := &studio{ctx: t.Context(), game: newGame()}
	s.game.bug = m.bug
	var err error
	s.key, err = ramp.TextKey("the key of the console")
	require.NoError(t, err)
	s.signer, err = ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	handler := must.Get(ownledger.Handler(ramp.HandlerConfig{Terms: anyTerms, Key: s.key, Signer: s.signer,
		Logger: slog.New(slog.DiscardHandler)}, s.game))(t)
	outer := handler
	if m.wrap != nil {
		outer = m.wrap(s, handler)
	}
	s.server = httptest.NewUnstartedServer(outer)
	for _, w := range wires {
		_ = s.server.Listener.Close()
		s.server.Listener, s.wires = w, w
		if !m.hears {
			w.handler = outer
		}
	}
	if m.hears {
		s.server.Listener = listener{s.server.Listener}
		s.server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		}
	}
	s.server.Start()
	t.Cleanup(s.server.Close)
	if s.wires != nil {
		t.Cleanup(s.wires.running.Wait)
	}
	t.Cleanup(func() { close(s.game.closed) })
	s.target = judge.Config{
		URL: s.server.URL, Key: s.key, Validator: s.signer.Address(), ProjectID: "project-1",
		Player: s.game.login, Restart: s.restart, Strict: true,
		Settle: time.Millisecond, // nothing follows its answer here, unless a test says so
	}
	if m.terms {
		s.target.Token, s.target.Amount, s.target.Tokens = "0x0000000000000000000000000000000000007e57", 2, 1
	}
	return s
}

// unopened returns a judge of the studio that has tried nothing.
func (s *studio) unopened(t testing.TB) *judge.Judge {
	t.Helper()
	j, err := judge.New(s.target)
	require.NoError(t, err)
	if w := s.wires; w != nil {
		j.DialWith(w.dial)
		if w.handler != nil {
			j.CallWith(w)
		}
	}
	t.Cleanup(j.Close)
	return j
}

// restart forgets what a server keeps in memory; this one has it all stored.
func (s *studio) restart(context.Context) error {
	for _, later := range s.game.queue {
		later.Stop()
	}
	s.game.mu.Lock()
	if s.game.is("forgets orders") {
		clear(s.game.orders)
	}
	if s.game.is("forgets transactions") {
		clear(s.game.hashes)
	}
	s.game.mu.Unlock()
	s.server.CloseClientConnections()
	return nil
}

// listener wraps connections, so that a mutant can see what came over them.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: conn}, nil
}
