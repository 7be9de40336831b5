package pairs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampsql"
)

// game is what the studio has set, and what its servers do wrong.
type game struct {
	price        price
	key, former  string
	projects     []string // the one of now, and those of before
	canary       bool     // one server has another price
	rule, closed bool     // players need a KYC that has ended; the shop is closed
	capped       bool     // no more may leave the game today
	banned       bool     // alice
	full         bool     // no purse takes anything more
	clock        time.Duration
	ahead        time.Duration // the clock was; what was accepted then waits later, and an alert has named the clock

	accounts map[string]string // the player of each session
	place    rampsql.Place     // of alice
	session  map[string]string // the session of a player's new pages, if it is not their name
	trades   []trade           // what players do besides

	slow, panics, aborts, breaks bool // the next Apply
}

// price is what a token costs and pays. A former one counts until a time.
type price struct {
	mint, burn int64
	until      time.Time
}

// trade is gold that moved in the game, without an order; from or to is empty for the game itself.
type trade struct {
	from, to string
	gold     int64
}

const startGold = 1000

// server is a process of the game.
type server struct {
	handler *ramp.Handler
	terms   *ramp.Terms
	price   price
	formers []price
}

func item(n int64) []ramp.Item {
	return []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(n), IconURL: "https://example.com/gold.png"}}
}

func (w *world) product() ramp.Product {
	return ramp.Product{Name: "gold", Token: token.Hex(), Materials: item(w.game.price.mint),
		Outputs: item(w.game.price.burn)}
}

// newServer starts a process, with what is set now.
func (w *world) newServer() *server {
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: w.game.projects[0],
		Former: w.game.projects[1:], Network: ramp.Testnet,
		Products: []ramp.Product{w.product()}}))(w.t)
	key := must.Get(ramp.TextKey(w.game.key))(w.t)
	if w.game.former != "" {
		key = key.WithPrevious(must.Get(ramp.TextKey(w.game.former))(w.t))
	}
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Players: w, Store: w.store,
		Terms: terms, Key: key, Wallet: w.wallet, Policy: w.policy, Confirm: w.proof(), Signer: w.signer,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)), OnConflict: w.conflict,
		Now: func() time.Time { return w.now().Add(w.game.clock) }}))(w.t)
	return &server{handler: handler, terms: terms, price: w.game.price}
}

// deploy replaces all processes. The new ones do not know a former price, unless a call may still be signed at it, as
// docs/operations.md says.
func (w *world) deploy() {
	for i, former := range w.servers {
		w.servers[i] = w.newServer()
		if w.repriced {
			w.servers[i] = w.successor(former)
		}
	}
	w.game.canary = false
}

// successor starts a process that changes the price again, as the one before did or would have done.
func (w *world) successor(former *server) *server {
	price, list := w.game.price, former.formers
	if former.price != price {
		former.price.until = w.now().Add(grace)
		list = append(list, former.price)
	}
	w.game.price = list[len(list)-1]
	s := w.newServer()
	w.game.price = price
	w.check(s.terms.Replace([]ramp.Product{w.product()}, list[len(list)-1].until.Sub(w.now())))
	s.price, s.formers = price, list
	return s
}

// reprice changes the price at all servers or, in a canary, at one. If the terms refuse it, as they must if a burn
// pays more than a mint costs, the studio keeps the former price.
func (w *world) reprice(mint, burn int64, grace time.Duration, servers ...*server) {
	former := w.game.price
	w.game.price = price{mint: mint, burn: burn}
	for _, s := range servers {
		if err := s.terms.Replace([]ramp.Product{w.product()}, grace); err != nil {
			w.game.price = former
			w.tell("  refused: %v", err)
			return
		}
	}
	former.until, w.repriced = w.now().Add(grace), w.calling
	for _, s := range servers {
		own := s.price
		own.until = former.until
		s.price, s.formers = w.game.price, append(s.formers, own)
	}
	w.sells(former.until)
}

// sells notes for the books what is sold from now on, and until when the former price counts.
func (w *world) sells(until time.Time) {
	w.books.sold[len(w.books.sold)-1].To = until
	w.books.sold = append(w.books.sold, rampbooks.Offer{Product: w.product(), From: w.now()})
}

// tries: one of two servers has a higher price, as docs/operations.md says, for as long as its deployment may take.
func (w *world) tries() {
	w.reprice(200, 200, 90*day, w.servers[0])
	w.game.canary = true
}

// rollsBack: that server has the former price again.
func (w *world) rollsBack() {
	w.game.price, w.game.canary = w.servers[1].price, false
	w.servers[0] = w.newServer()
	w.sells(w.now().Add(day)) // a page of the other price may be open, and what was accepted for it ends
}

// here is the server that the service and the player reach.
func (w *world) here() *server { return w.servers[w.service.server] }

// offers are the prices that a server has: that of now, and former ones that count.
func (w *world) offers(s *server) []price {
	list := []price{s.price}
	for _, p := range s.formers {
		if w.now().Before(p.until) {
			list = append(list, p)
		}
	}
	return list
}

// costs is what a mint costs now, and pays is what a burn pays. While a former price counts, it is the one that is
// worse for the player.
func (w *world) costs(s *server) (n int64) {
	for _, p := range w.offers(s) {
		n = max(n, p.mint)
	}
	return n
}

func (w *world) pays(s *server) int64 {
	n := s.price.burn
	for _, p := range w.offers(s) {
		n = min(n, p.burn)
	}
	return n
}

func (w *world) Authenticate(_ context.Context, s ramp.Session) error {
	if w.game.banned && strings.HasPrefix(s.ID, "alice") {
		return ramp.Reject("BANNED")
	}
	return nil
}

func (w *world) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{PlayerID: s.ID,
		Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(w.gold(w.game.accounts[s.ID]))}}}, nil
}

func (w *world) policy(context.Context, ramp.Session, *ramp.ValidateRequest) error {
	if w.game.rule {
		return ramp.Reject("KYC_EXPIRED")
	}
	if w.game.closed {
		return ramp.Reject("SHOP_CLOSED")
	}
	return nil
}

func (w *world) wallet(context.Context, ramp.Session, common.Address) error {
	w.within("asks")
	return nil
}

func (w *world) conflict(_ context.Context, _ *ramp.ConflictError, r *ramp.Result) error {
	w.conflicts = append(w.conflicts, w.of(r.UUID))
	return nil
}

// within lets happen what happens in a call.
func (w *world) within(what string) {
	if do := w.inside[what]; do != nil {
		delete(w.inside, what)
		do()
	}
}

var errFault = errors.New("a fault of the world")

// deadlock is an error with which a database has ended a transaction.
type deadlock struct{ error }

func (deadlock) SQLState() string { return "40P01" }

func (w *world) apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if !step.Rehearsal {
		w.within("moves")
		switch g := &w.game; {
		case g.slow:
			g.slow = false
			w.sleep(6 * time.Second)
		case g.panics:
			g.panics, w.service.excused = false, true
			panic("a fault of the world")
		case g.breaks:
			g.breaks, w.service.excused = false, true
			return errFault
		case g.aborts:
			g.aborts = false
			return deadlock{errFault}
		}
	}
	if w.game.full && step.Effect.Kind == ramp.Grant {
		return ramp.Reject("PURSE_FULL")
	}
	if w.game.capped && step.Effect.Kind == ramp.Take && !w.restoring {
		return ramp.Reject("CAP_REACHED")
	}
	for _, a := range step.Effect.Assets {
		n, err := step.Effect.Delta(a).Int64()
		if err != nil {
			return err
		}
		change := "UPDATE balances SET gold = gold + ? WHERE gold + ? >= 0 AND " +
			"player = (SELECT player FROM sessions WHERE session = ?)"
		done, err := tx.ExecContext(ctx, w.data.bind(change), n, n, step.Order.SessionID)
		if err != nil {
			return err
		}
		if changed, _ := done.RowsAffected(); changed == 0 && n < 0 {
			return ramp.Reject("INVALID_BALANCE")
		} else if changed == 0 { // the player has moved to another database
			_, err := tx.ExecContext(ctx, w.data.bind("INSERT INTO balances (player, gold) VALUES (?, ?)"),
				w.game.accounts[step.Order.SessionID], n)
			if err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, w.data.bind("INSERT INTO moves (uuid, gold) VALUES (?, ?)"),
			step.Order.UUID.String(), n); err != nil {
			return err
		}
	}
	return nil
}

// gold is what the game says that a player has.
func (w *world) gold(player string) int64 {
	return w.sum("SELECT coalesce(sum(gold), 0) FROM balances WHERE player = ?", player)
}

// moved is what the game has moved for an order.
func (w *world) moved(id uuid.UUID) int64 {
	return w.sum("SELECT coalesce(sum(gold), 0) FROM moves WHERE uuid = ?", id.String())
}

// trade moves gold in the game, if the one who gives it has it.
func (w *world) trade(from, to string, gold int64) {
	if from != "" &&
		w.exec("UPDATE balances SET gold = gold - ? WHERE player = ? AND gold >= ?", gold, from, gold) == 0 {
		return
	}
	w.exec("UPDATE balances SET gold = gold + ? WHERE player = ?", gold, to)
	w.game.trades = append(w.game.trades, trade{from, to, gold})
}

// store is that of the product, on a database that has faults.
type store struct {
	orders
	shards               []*rampsql.Store // of each database
	w                    *world
	down                 bool
	fails, loses, forgot bool // the next write, the answer of the next COMMIT, the next refusal
}

func newStore(w *world) *store {
	s := &store{w: w}
	s.open()
	return s
}

// gone reports whether the database is down, which excuses what fails.
func (s *store) gone() bool {
	s.w.service.excused = s.w.service.excused || s.down
	return s.down
}

func (s *store) Order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	if s.gone() {
		return ramp.Order{}, errFault
	}
	return s.orders.Order(ctx, id)
}

func (s *store) Waiting(
	ctx context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	if s.gone() {
		return nil, errFault
	}
	return s.orders.Waiting(ctx, d, before, page)
}

func (s *store) Refused(ctx context.Context, id uuid.UUID, reason string) error {
	s.w.taking <- true
	defer func() { <-s.w.taking }()
	if s.forgot || s.gone() {
		s.forgot = false
		return errFault
	}
	return s.orders.Refused(ctx, id, reason)
}

// program is the store of a person's program. A panic of Apply ends the program, and the person starts another one.
type program struct{ *store }

func (c program) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (step ramp.Step, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the program crashed: %v", v)
		}
	}()
	return c.store.Update(ctx, id, next)
}

func (s *store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	s.w.taking <- true
	defer func() { <-s.w.taking }()
	if s.fails || s.gone() {
		s.fails, s.w.service.excused = false, true
		return ramp.Step{}, errFault
	}
	step, err := s.orders.Update(ctx, id, next)
	if err == nil && step.New {
		s.w.versions.add(step.Order, s.w.now())
	}
	if s.loses && err == nil && step.New {
		s.loses, s.w.service.excused = false, true
		return ramp.Step{}, errFault
	}
	return step, err
}

func (s *store) EraseSession(ctx context.Context, session string, before time.Time) (int, error) {
	s.w.taking <- true
	defer func() { <-s.w.taking }()
	if s.gone() {
		return 0, errFault
	}
	return s.orders.EraseSession(ctx, session, before)
}
