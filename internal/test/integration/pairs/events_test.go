package pairs

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// event is something ordinary. It happens between two calls, or within one.
type event struct {
	name string
	do   func(w *world)
	when func(w *world) bool // in this world it means something; by what is true, never by an answer of the product
	none int                 // in how many of the scenes that it has alone it means nothing
}

// What is true of an order.
func asked(o *order) bool                      { return o.asked > 0 }
func pending(o *order) bool                    { return o.asked > 0 && o.tx == nil && !o.closed }
func (w *world) sent(o *order) bool            { return o.told > 0 }
func (w *world) has(is func(*order) bool) bool { return w.any(is) != nil }

const (
	day   = 24 * time.Hour
	grace = 5 * time.Minute // for which a former price counts
)

var events = []event{
	// The service.
	{"repeats its last call", func(w *world) { w.again() }, (*world).called, 16},
	{"makes its last call twice at once", func(w *world) { w.both(w.again, w.again) }, (*world).called, 16},
	{"loses an answer", func(w *world) { w.service.deaf = true }, nil, 0},
	{"sends no result for 11 hours",
		func(w *world) { w.service.out = true; w.pass(11 * time.Hour); w.service.out = false }, nil, 0},
	{"never sends a result",
		func(w *world) { w.each(asked, func(o *order) { o.over = true }); w.pass(14 * time.Hour) }, nil, 0},
	{"asks for the assets", func(w *world) { w.assets("alice") }, nil, 0},
	{"reaches the other server", func(w *world) { w.service.server = 1 - w.service.server }, nil, 0},
	{"signs with the former key", func(w *world) { w.game.former, w.game.key = "key", "new key"; w.deploy() }, nil, 0},
	{"sends another Content-Type", func(w *world) { w.service.form = "text/plain" }, nil, 0},
	{"copies the logs in another order", func(w *world) { w.service.copies = "reversed" }, nil, 0},
	{"copies the logs too early", func(w *world) { w.service.copies = "early" }, nil, 0},

	// Players.
	{"alice closes the page", func(w *world) { w.each(pending, func(o *order) { o.closed = true }) }, nil, 0},
	{"alice mints again", func(w *world) { w.second(false, false) }, nil, 0},
	{"alice mints again, and it fails", func(w *world) { w.second(false, true) }, nil, 0},
	{"alice burns again", func(w *world) { w.second(true, false) }, nil, 0},
	{"alice batches two burns", func(w *world) { w.batches(burning) },
		func(w *world) bool { return w.has(burning) }, 70},
	{"alice batches a burn with her mint", func(w *world) { w.batches(minting) },
		func(w *world) bool { return w.has(minting) }, 62},
	{"alice mints on two devices at once", (*world).twice, nil, 0},
	{"bob mints with her wallet", (*world).shares, nil, 0},
	{"bob's mint is in her transaction", (*world).bundles, func(w *world) bool { return w.has(minting) }, 62},
	{"alice mints again with what failed", (*world).resends, (*world).unsentMint, 80},
	{"alice mints again, and closes the page", (*world).hangs, nil, 0},
	{"alice mints again, and it is pruned",
		func(w *world) { w.second(false, false); w.pass(8 * day); w.prune() },
		func(w *world) bool { return !w.calling }, 40}, // no call lasts for days
	{"alice sends again what failed", (*world).sendsAgain, func(w *world) bool { return w.has(hasFailed(w)) }, 88},
	{"alice has a new session", (*world).renames, nil, 0},
	{"the accounts of alice and bob merge", (*world).merges, nil, 0},
	{"alice moves to another database", (*world).movesAway, (*world).oneDatabase, 0},
	{"alice gives gold away", func(w *world) { w.trade("alice", "bob", 100) }, nil, 0},
	{"alice spends all", func(w *world) { w.trade("alice", "", w.gold("alice")) }, nil, 0},
	{"alice is banned", func(w *world) { w.game.banned = true }, nil, 0},

	// The game.
	{"the price goes up", func(w *world) { w.reprice(200, 200, grace, w.servers...) }, nil, 0},
	{"the price goes down", func(w *world) { w.reprice(50, 50, grace, w.servers...) }, nil, 0},
	{"a sale", func(w *world) { w.reprice(50, 100, grace, w.servers...) }, nil, 0},
	{"mints and burns have two prices", func(w *world) { w.reprice(120, 80, grace, w.servers...) }, nil, 0},
	{"a canary has another price", (*world).tries, func(w *world) bool { return !w.game.canary }, 0},
	{"the canary is rolled back", (*world).rollsBack, func(w *world) bool { return w.game.canary }, 92},
	{"the project moves", (*world).movesProject, nil, 0},
	{"the key of the validator moves", (*world).movesKey, nil, 0},
	{"a KYC ends", func(w *world) { w.game.rule = true }, nil, 0},
	{"a cap is reached", func(w *world) { w.game.capped = true }, nil, 0},
	{"the shop closes", func(w *world) { w.game.closed = true }, nil, 0},
	{"the shop opens", func(w *world) { w.game.closed = false }, func(w *world) bool { return w.game.closed }, 92},
	{"a deployment", (*world).deploy, nil, 0},
	{"Apply is slow", func(w *world) { w.game.slow = true }, nil, 0},
	{"Apply panics", func(w *world) { w.game.panics = true }, nil, 0},
	{"Apply fails", func(w *world) { w.game.breaks = true }, nil, 0},
	{"a purse is full", func(w *world) { w.game.full = true }, nil, 0},
	{"the purse has room", func(w *world) { w.game.full = false }, func(w *world) bool { return w.game.full }, 92},

	// Persons.
	{"a person obeys", func(w *world) { w.obeys(heard) }, nil, 0},
	{"a person obeys, and the service is silent", func(w *world) { w.obeys(unheard) }, nil, 0},
	{"a person obeys after 14 hours", func(w *world) { w.pass(14 * time.Hour); w.obeys(unheard) }, nil, 0},
	{"a person takes another's hash", func(w *world) { w.errs("another's hash") }, asking, 16},
	{"a person takes the hash of her other order",
		func(w *world) { w.errs("the hash of her other order") }, asking, 16},
	{"a person takes the hash that failed", func(w *world) { w.errs("the hash that failed") },
		func(w *world) bool { return w.has(func(o *order) bool { return o.failed != nil }) }, 92},
	{"a person abandons", func(w *world) { w.errs("abandons") }, asking, 16},
	{"a person abandons after 14 hours", func(w *world) { w.pass(14 * time.Hour); w.errs("abandons") }, asking, 16},
	{"a scheduler finishes what fits after 14 hours",
		func(w *world) { w.pass(14 * time.Hour); w.finishFitting() }, nil, 0},
	{"a person settles by mail after 14 hours", func(w *world) { w.pass(14 * time.Hour); w.mails() }, asking, 16},
	{"old mints are pruned", func(w *world) { w.pass(8 * day); w.prune() }, nil, 0},
	{"alice is erased", (*world).isErased, nil, 0},
	{"a month is closed", (*world).close, nil, 0},
	{"the first backup is restored", func(w *world) { w.restore(w.backups[0]) }, nil, 0},
	{"the last backup is restored", func(w *world) { w.restore(w.backups[len(w.backups)-1]) }, nil, 0},
	{"the first backup is restored, and the service sends all again",
		func(w *world) { w.restore(w.backups[0]); w.resend() }, nil, 0},

	// The chain and its node.
	{"the chain has stood still", func(w *world) { // for 14 hours, and goes on, for ten minutes
		w.chain.stop()
		w.pass(14 * time.Hour)
		w.chain.goOn()
		w.sleep(10 * time.Minute)
	}, (*world).lives, 0},
	{"the chain stands still", func(w *world) { w.chain.stop(); w.pass(14 * time.Hour) }, (*world).lives, 0},
	{"the chain goes on", func(w *world) { w.chain.goOn(); w.sleep(10 * time.Minute) },
		func(w *world) bool { return w.chain.stands() }, 92},
	{"the chain reorganizes", (*world).reorganizes, (*world).unsent, 78},
	{"a transaction is dropped", (*world).drops, (*world).unsent, 78},
	{"a transaction is replaced", (*world).replaces, (*world).unsent, 78},
	{"the node is down", func(w *world) { w.chain.set(func(n *node) { n.down = true }) }, nil, 0},
	{"the node lags", func(w *world) { w.chain.set(func(n *node) { n.behind = 100 }) }, nil, 0},
	{"the node cuts its lists", func(w *world) { w.chain.set(func(n *node) { n.cuts = 1 }) }, nil, 0},
	{"the node forgets", func(w *world) { w.chain.set(func(n *node) { n.forgets = time.Hour }) }, nil, 0},
	{"the node recovers", func(w *world) { w.chain.set(func(n *node) { *n = node{} }) },
		func(w *world) bool { return w.chain.node != node{} }, 92},

	// Databases.
	{"the answer of a COMMIT is lost", func(w *world) { w.store.loses = true }, nil, 0},
	{"a write fails", func(w *world) { w.store.fails = true }, nil, 0},
	{"a deadlock", func(w *world) { w.game.aborts = true }, nil, 0},
	{"a refusal is not stored", func(w *world) { w.store.forgot = true }, nil, 0},
	{"the database is down", func(w *world) { w.store.down = true }, nil, 0},
	{"a failover loses the last writes", func(w *world) { w.lose(w.backups[len(w.backups)-1]) },
		func(w *world) bool { return w.backups[len(w.backups)-1].at.After(w.now().Add(-time.Hour)) }, 0},
	{"the books read a replica that lags", func(w *world) { w.books.lag = 10 * time.Minute }, nil, 0},
	{"the database is back", func(w *world) { w.store.down = false },
		func(w *world) bool { return w.store.down }, 92},
	{"the tables are migrated", (*world).migrates, nil, 0},

	// Clocks.
	{"the clock of the servers is ahead", func(w *world) { w.game.clock = 10 * time.Minute }, nil, 0},
	{"the clock of the servers is far ahead",
		func(w *world) { w.game.clock, w.game.ahead, w.books.blames = 3*time.Hour, 3*time.Hour, true }, nil, 0},
	{"the clock of the servers is behind", func(w *world) { w.game.clock = -10 * time.Minute }, nil, 0},
	{"midnight", func(w *world) { w.pass(w.now().Truncate(day).Add(day + time.Minute).Sub(w.now())) }, nil, 0},
}

// switches are the events that change nothing before the next call, or the next question to the node. So they could as
// well happen after a step in which there is none.
var switches = []string{
	"loses an answer", "reaches the other server", "signs with the former key", "sends another Content-Type",
	"copies the logs in another order", "copies the logs too early", "alice is banned", "a KYC ends", "the shop closes",
	"the shop opens", "a cap is reached", "Apply is slow", "Apply panics", "Apply fails", "a purse is full",
	"the purse has room",
	"the node is down", "the node lags", "the node cuts its lists", "the node forgets", "the node recovers",
	"the answer of a COMMIT is lost", "a write fails", "a deadlock", "a refusal is not stored",
	"the database is down", "the database is back", "the books read a replica that lags",
	"the clock of the servers is ahead", "the clock of the servers is far ahead", "the clock of the servers is behind",
}

// hours are the events that last longer than a call can. Alone, they are played within calls, too.
var hours = []string{
	"sends no result for 11 hours", "never sends a result", "alice mints again, and it is pruned",
	"a person obeys after 14 hours", "a person abandons after 14 hours",
	"a scheduler finishes what fits after 14 hours", "a person settles by mail after 14 hours",
	"old mints are pruned", "alice is erased", "the chain has stood still", "the chain stands still", "midnight",
}

// core are the events of which every pair is played before each change lands.
var core = []string{
	"repeats its last call", "loses an answer", "never sends a result",
	"alice mints again, and it fails", "alice mints again with what failed", "alice mints again, and it is pruned",
	"alice sends again what failed", "alice moves to another database", "alice is erased",
	"the price goes up", "a KYC ends", "a deployment",
	"a person obeys after 14 hours", "a person obeys, and the service is silent",
	"a person takes the hash of her other order", "a person takes the hash that failed",
	"a person abandons", "a person abandons after 14 hours", "a month is closed",
	"the first backup is restored", "the first backup is restored, and the service sends all again",
	"a failover loses the last writes", "the chain has stood still",
	"the answer of a COMMIT is lost", "a write fails",
}

// onServers are the events of which every pair is played on PostgreSQL and MariaDB in a long run.
var onServers = []string{
	"repeats its last call", "never sends a result", "alice mints again, and it fails",
	"alice moves to another database", "a person abandons after 14 hours", "the last backup is restored",
	"the answer of a COMMIT is lost", "a write fails",
}

// dozen are the events of which every three are played in a long run: two that hide what happened, and a person who
// errs.
var dozen = []string{
	"repeats its last call", "never sends a result", "alice closes the page", "alice mints again, and closes the page",
	"alice mints again, and it fails", "a person takes the hash of her other order",
	"a person abandons after 14 hours", "the first backup is restored", "the chain has stood still",
	"the node forgets", "the node is down", "a write fails",
}

func asking(w *world) bool { return w.has(asked) }

func burning(o *order) bool { return o.burn && o.tx == nil && o.batch == nil && !o.closed }
func minting(o *order) bool { return !o.burn && o.tx == nil && o.batch == nil && !o.closed }

// second is another order of alice, from another page or device.
func (w *world) second(burn, fails bool) {
	o := w.page("alice", burn)
	o.fails = fails
	w.validate(o)
	w.mined(o)
	w.deliver(o)
}

// hangs: another order of hers is signed, and she does not send it.
func (w *world) hangs() {
	o := w.page("alice", false)
	w.validate(o)
	o.closed = true
}

func (w *world) unsentMint() bool { return w.has(isUnsentMint(w)) }

func isUnsentMint(w *world) func(o *order) bool {
	return func(o *order) bool { return !o.burn && w.chain.has(o.tx) && o.told == 0 }
}

// resends: the first transaction of a mint failed, and her wallet sends another one with the same signature. The
// service reports the first.
func (w *world) resends() {
	o := w.any(isUnsentMint(w))
	other := w.chain.mine(!o.tx.ok, o.moves())
	if o.failed = other; !o.tx.ok {
		o.failed, o.tx = o.tx, other
	}
	w.sleep(2 * blockTime)
}

// hasFailed: the service has said that a transaction failed, within this hour.
func hasFailed(w *world) func(o *order) bool {
	return func(o *order) bool {
		return o.heard && o.tx != nil && !o.tx.ok && w.now().Sub(w.chain.timeOf(o.tx.block)) < time.Hour
	}
}

// sendsAgain: after the service has reported that her transaction failed, her wallet sends another one with the same
// signature. The result contradicts the order.
func (w *world) sendsAgain() {
	o := w.any(hasFailed(w))
	o.tx, o.heard, o.over, o.sentAgain = w.chain.mine(true, o.moves()), false, false, true
	w.sleep(2 * blockTime)
	w.deliver(o)
}

// isErased: all that is known of her has ended, and a week later she is erased.
func (w *world) isErased() {
	w.pass(14 * time.Hour)
	w.obeys(heard)
	w.pass(8 * day)
	w.erase()
}

// movesKey: the servers sign with another key, as docs/operations.md says. The service knows both.
func (w *world) movesKey() {
	w.signer = must.Get(ramp.NewKeySigner(strings.Repeat("34", 32)))(w.t)
	w.service.validators = append(w.service.validators, w.signer.Address())
	w.deploy()
}

// batches: her wallet sends an order with a burn in one transaction.
func (w *world) batches(is func(*order) bool) {
	o := w.any(is)
	o.batch = w.page("alice", true)
	o.batch.batch = o
	w.validate(o.batch)
}

// bundles: an operator sends her mint and one of bob in one transaction, as bundlers of ERC-4337 do.
func (w *world) bundles() {
	o := w.any(minting)
	o.batch = w.page("bob", false)
	o.batch.batch = o
	w.validate(o.batch)
}

// twice: two pages of her are open, and the service asks for both at the same time.
func (w *world) twice() {
	a, b := w.page("alice", false), w.page("alice", false)
	w.both(func() { w.validate(a) }, func() { w.validate(b) })
	for _, o := range []*order{a, b} {
		w.mined(o)
		w.deliver(o)
	}
}

// shares: two players of one family use one wallet.
func (w *world) shares() {
	o := w.page("bob", false)
	o.wallet = wallets["alice"]
	w.validate(o)
	w.mined(o)
	w.deliver(o)
}

// renames: from now on her pages have another session, which is the same player's.
func (w *world) renames() {
	if w.game.session["alice"] != "" {
		return
	}
	w.game.session["alice"], w.game.accounts["alice-2"] = "alice-2", w.game.accounts["alice"]
	w.exec("INSERT INTO sessions (session, player) VALUES (?, ?)", "alice-2", w.game.accounts["alice"])
}

// merges: bob's account becomes a part of hers.
func (w *world) merges() {
	if w.game.accounts["bob"] == "alice" {
		return
	}
	w.game.accounts["bob"] = "alice"
	w.exec("UPDATE sessions SET player = ? WHERE player = ?", "alice", "bob")
	w.exec("UPDATE balances SET gold = gold + ? WHERE player = ?", w.gold("bob"), "alice")
	w.exec("UPDATE balances SET gold = 0 WHERE player = ?", "bob")
	for i := range w.game.trades {
		for _, who := range []*string{&w.game.trades[i].from, &w.game.trades[i].to} {
			if *who == "bob" {
				*who = "alice"
			}
		}
	}
}

// movesProject: from now on the game has another project, and ends what it has begun for the former one, as
// docs/many-games.md says.
func (w *world) movesProject() {
	w.game.projects = slices.Concat([]string{fmt.Sprintf("p%d", len(w.game.projects))}, w.game.projects)
	w.store.open()
	w.deploy()
}

// migrates: the tables have the columns and indexes of the release after this one.
func (w *world) migrates() {
	if w.migrated {
		return
	}
	w.migrated = true
	for _, db := range w.dbs {
		w.migrate(db)
	}
}

func (w *world) migrate(db *sql.DB) {
	files, err := filepath.Glob("../../../../testdata/next/" + string(w.data.dialect) + "-*.sql")
	w.check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		w.check(err)
		w.execOn(db, string(text))
	}
}

// called reports whether the service has a call to repeat, one of its own choice.
func (w *world) called() bool { return w.again != nil }

func (w *world) lives() bool { return !w.chain.stands() }

// unsent reports whether a transaction is on the chain and the service has not yet said so of any of its orders.
func (w *world) unsent() bool { return w.unsentTx() != nil }

func (w *world) unsentTx() *tx {
	o := w.any(func(o *order) bool {
		return w.chain.has(o.tx) &&
			!slices.ContainsFunc(w.orders, func(b *order) bool { return b.tx == o.tx && b.told > 0 })
	})
	if o == nil {
		return nil
	}
	return o.tx
}

// reorganizes: a transaction is in a later block.
func (w *world) reorganizes() {
	t := w.unsentTx()
	w.chain.set(func(*node) { t.block = w.chain.head() + 3 })
	w.sleep(5 * blockTime)
}

// drops: a transaction is gone for good.
func (w *world) drops() {
	t := w.unsentTx()
	w.chain.set(func(*node) { t.dropped = true })
	w.sleep(5 * blockTime)
}

// replaces: the same is mined by another transaction.
func (w *world) replaces() {
	t := w.unsentTx()
	w.chain.set(func(*node) { t.dropped = true })
	other := w.chain.mine(t.ok, t.moved...)
	for _, o := range w.orders {
		if o.tx == t {
			o.tx = other
		}
	}
	w.sleep(5 * blockTime)
}
