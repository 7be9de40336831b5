package rampbooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// If books go on where others ended, as with [Reconciler.KeepBooks] and the command reconcile with a
// position, Overlap is how much earlier than their totals their findings begin. It catches late writes
// and reorganizations. Totals never overlap, so that they can be added up.
const Overlap = 2 * time.Hour

// ErrNotFinal is wrapped by the error of [Reconciler.Reconcile] if the period ends after the newest
// block that is final: what still happens before the end of the period would be in neither its
// books nor the next ones.
var ErrNotFinal = errors.New("the period is not final")

// Reconcile compares the orders of a period with the events of their tokens: the mints and burns in the
// blocks of the period, and the orders that ended in it. It also reports the orders that wait, and whose
// 13 hours ended in the period. It changes nothing. The period ends just before to, which must be final:
// otherwise the error wraps [ErrNotFinal]. If to is zero, it ends after the newest block that is final.
// [Reconciler.KeepBooks], and the command reconcile with -position, also report again what earlier books have
// found for orders that wait still, if they have an event.
//
// An order and an event belong together by their transaction, or else by user, token, direction,
// amount and time. If that leaves a choice, it is a finding. Orders and events are each read once
// and in order, and leave memory once they are matched. Blocks that are not final are not judged:
// those with fewer confirmations than [Config].Proof demands, if it demands more than 1, or else
// those after the node's "finalized" block.
//
// [Config] needs Proof, and Products or Tokens. Tokens come from
// and go to the zero address or Contracts of the proof. The chain is asked for the decimals of each
// token, and they are compared with Decimals of the proof, so a token without a contract on this
// chain is an error. Transfers of zero, which anybody can make, are skipped.
func (o *Reconciler) Reconcile(ctx context.Context, from, to time.Time) (*Reconciliation, error) {
	books, _, err := o.reconcile(ctx, span{from: from, to: to})
	return books, err
}

// ReconcileLines is like [Reconciler.Reconcile], and also returns the lines that the totals add up:
// first the orders by their end, and then the events in the order of the chain. All of them are in
// memory.
func (o *Reconciler) ReconcileLines(
	ctx context.Context, from, to time.Time,
) (*Reconciliation, []Line, error) {
	return o.reconcile(ctx, span{from: from, to: to, lines: true})
}

// span is the time that books are about.
type span struct {
	from, to time.Time
	overlap  time.Duration // how much earlier the findings begin
	lines    bool          // whether the lines are asked for
	waiting  waiting       // what earlier books have found for orders that wait
}

func (o *Reconciler) reconcile(ctx context.Context, p span) (*Reconciliation, []Line, error) {
	if err := o.made(); err != nil {
		return nil, nil, err
	}
	var wrong invalid.Fields
	wrong.Require(o.config.Proof != nil, "Config.Proof", "is required")
	wrong.Require(len(o.config.Tokens)+len(o.config.Products) > 0, "Config.Products", "is required")
	wrong.Require(!p.from.IsZero(), "from", "is required")
	if err := wrong.Err(); err != nil {
		return nil, nil, err
	}
	r := o.newComparison(p)
	books, err := r.run(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ramp: reconcile: %w", err)
	}
	return books, r.lines.sorted(), nil
}

func (o *Reconciler) newComparison(p span) *comparison {
	game := o.config.catalog()
	r := &comparison{matcher: newMatcher(game, p.from.Add(-p.overlap), p.to),
		o: o, chain: o.chain, store: o.config.Store, reader: newEventReader(o, game, p.from),
		waited: p.waiting}
	r.counted = p.from
	if p.lines {
		r.matcher.lines = newLines(game)
	}
	return r
}

// about says what the books of these orders are about.
func (o *Reconciler) about() About {
	about := About{Network: o.config.Network, ProjectID: o.config.ProjectID,
		Tokens: o.config.catalog().Tokens}
	if o.chain != nil {
		about.ChainID = o.chain.RequiredChainID()
	}
	return about
}

// comparison is one run of [Reconciler.Reconcile].
type comparison struct {
	*matcher
	o      *Reconciler
	chain  *ramp.RPC
	store  OrderLister
	reader *eventReader
	waited waiting            // what earlier books have found
	older  [][]ChainEvent     // of it, the events that are older than those that are read
	shown  []ramp.Order       // whose events are in a receipt, and were not listed when it was read
	fits   []candidate        // events that fit an order, but not by their transaction
	lost   map[uuid.UUID]bool // orders whose transaction has ended another
	user   common.Address     // whose orders are in orders
	orders []ramp.Order
	first  uint64 // block
	last   uint64 // block that is judged
	final  *ramp.Block
}

func (r *comparison) run(ctx context.Context) (*Reconciliation, error) {
	if err := r.askDecimals(ctx, r.o.prover.Config.Decimals); err != nil {
		return nil, err
	}
	if err := r.readJournal(ctx); err != nil {
		return nil, err
	}
	final, err := r.finalBlock(ctx, r.o.prover.Confirmations)
	if err != nil {
		return nil, err
	}
	r.final = final
	r.last, _ = final.Number.Uint64()
	end := evidence.TimeOf(final.Timestamp)
	switch after := end.Add(time.Second); {
	case r.to.IsZero():
		r.to = after
	case r.to.After(after):
		return nil, fmt.Errorf("%w: it ends at %s, and the newest block that is final is of %s: "+
			"wait, or end there", ErrNotFinal, r.to.UTC().Format(time.RFC3339), end.Format(time.RFC3339))
	default:
		if r.last, err = evidence.LastBlockBefore(ctx, r.chain, r.to, final); err != nil {
			return nil, err
		}
	}
	if r.to.Before(r.counted) { // nothing is final since
		r.to = r.counted
	}
	if r.first, err = evidence.LastBlockBefore(ctx, r.chain, r.begin(), final); err != nil {
		return nil, err
	}
	books := &Reconciliation{About: r.o.about(), From: r.counted.UTC(), To: r.to.UTC(),
		FindingsFrom: r.from.UTC(), FirstBlock: r.first, LastBlock: r.last}
	if err := r.remember(ctx); err != nil {
		return nil, err
	}
	if err := r.compare(ctx); err != nil {
		return nil, err
	}
	newest, err := evidence.BlockAt(ctx, r.chain, "latest")
	if err != nil {
		return nil, err
	}
	at := evidence.TimeOf(newest.Timestamp)
	if at.Before(r.to.Add(-skew)) { // of a fallback, which leaves out what it has not seen
		return nil, fmt.Errorf("the node is behind: its newest block is of %s", at.Format(time.RFC3339))
	}
	if r.to.After(end) && at.After(end.Add(maxFinality)) {
		books.Stalled = fmt.Sprintf("the newest block that is final is of %s, and the newest of all of %s: "+
			"use another node, or set Config.Confirmations above 1", end.Format(time.RFC3339),
			at.Format(time.RFC3339))
	}
	if err := r.second(ctx); err != nil {
		return nil, err
	}
	for d, count := range map[ramp.Direction]*int{ramp.Mint: &books.WaitingMints,
		ramp.Burn: &books.WaitingBurns} {
		if *count, _, err = r.store.CountWaiting(ctx, d, r.to.Add(-maxDelay)); err != nil {
			return nil, err
		}
	}
	if err := r.addInFlight(ctx); err != nil {
		return nil, err
	}
	r.report(books)
	books.waiting = r.waiting
	if err := r.describe(ctx, books.Decisions); err != nil {
		return nil, err
	}
	if err := r.o.addRefusals(ctx, books.Findings); err != nil {
		return nil, err
	}
	fitter := &fitter{matcher: r.matcher, o: r.o, store: r.store, events: r.fits, lost: r.lost}
	books.Fitting, err = fitter.mark(ctx, books.Findings)
	return books, err
}

// maxFinality is how long a block may take to be final before the books are said to stand
// still.
const maxFinality = 3 * time.Hour

// finalBlock returns the newest block that is judged.
func (r *comparison) finalBlock(ctx context.Context, confirmations uint64) (*ramp.Block, error) {
	if confirmations <= 1 {
		block, err := evidence.BlockAt(ctx, r.chain, "finalized")
		if err != nil {
			err = fmt.Errorf(
				"%w (for a node that knows no finalized block, set Config.Confirmations above 1)",
				err)
		}
		return block, err
	}
	block, err := evidence.BlockAt(ctx, r.chain, "latest")
	if err != nil {
		return nil, err
	}
	newest, err := block.Number.Uint64()
	if err != nil {
		return nil, err
	}
	return evidence.BlockAt(ctx, r.chain, ramp.AtBlock(newest-min(newest, confirmations-1)))
}

func (r *comparison) askDecimals(ctx context.Context, known map[common.Address]int) error {
	for _, token := range r.assets.Tokens {
		if _, piece := r.assets.Decimals[token]; piece {
			continue
		}
		expected, configured := known[token]
		decimals, err := evidence.Decimals(ctx, r.chain, token)
		switch {
		case configured && expected == 0:
			decimals = 0 // a contract of pieces may have none
		case err != nil:
			return err
		case configured && expected != decimals:
			return fmt.Errorf("Config.Decimals is %d for token %s, but its contract says %d", expected,
				token, decimals)
		}
		r.assets.Decimals[token] = decimals
	}
	return nil
}

// readJournal reads what persons have decided since the period began, and what is known of erased
// players.
func (r *comparison) readJournal(ctx context.Context) error {
	if r.o.config.Journal == nil {
		return nil
	}
	entries, err := r.o.config.Journal.Entries(ctx, r.begin().Add(-maxAhead))
	r.journal = newJournal(entries)
	return err
}

// keptOrder returns the order that belongs to a transaction as the journal says, or nil.
func (r *comparison) keptOrder(ctx context.Context, hash common.Hash) (*ramp.Order, error) {
	id, kept := r.journal.keptFor[hash]
	if !kept {
		return nil, nil
	}
	order, err := r.store.Order(ctx, id)
	if errors.Is(err, ramp.ErrOrderUnknown) { // it was deleted
		return nil, nil
	}
	return &order, err
}

// keptCandidates are the candidates of a transaction that belongs to an order as the journal says: of an
// erased player, as before, when the address of the player told, or as a person has decided.
func (r *comparison) keptCandidates(transaction []ChainEvent, o *ramp.Order) {
	own, share := ownOf(r.assets.Order(*o), transaction)
	var events []candidate
	for i, e := range transaction {
		c := candidate{ChainEvent: e}
		if i == own && share != nil {
			c.orders = []ramp.Order{*o}
		}
		events = append(events, c)
	}
	r.addCandidates(events)
}

// keptOlder reads the transactions of orders of erased players that are older than the events that
// were read.
func (r *comparison) keptOlder(ctx context.Context, orders []ramp.Order) ([][]ChainEvent, error) {
	var receipts []*ramp.Receipt
	var calls []ramp.BatchCall
	for i := range orders {
		if hash, kept := r.journal.kept[orders[i].UUID]; kept && r.isOld(&orders[i]) {
			receipts = append(receipts, new(ramp.Receipt))
			calls = append(calls, evidence.Call(receipts[len(receipts)-1], "eth_getTransactionReceipt", hash))
		}
	}
	if err := evidence.AskAll(ctx, r.o.chain, calls...); err != nil {
		return nil, err
	}
	var logs []ramp.Log
	for _, receipt := range receipts {
		logs = append(logs, receipt.Logs...)
	}
	transactions, err := r.reader.transactions(ctx, logs)
	return slices.DeleteFunc(transactions, func(events []ChainEvent) bool {
		return !events[0].Time.Before(r.begin())
	}), err
}

// describe says what the orders of decisions are about.
func (r *comparison) describe(ctx context.Context, decisions []DecisionRow) error {
	for i := range decisions {
		d := &decisions[i]
		if d.Order == uuid.Nil {
			continue
		}
		order, err := r.store.Order(ctx, d.Order)
		if errors.Is(err, ramp.ErrOrderUnknown) { // it was deleted
			continue
		}
		if err != nil {
			return err
		}
		t := r.assets.Order(order)
		d.Product, d.Token, d.Direction = t.Product(), t.Token, t.Direction
	}
	return nil
}

// addInFlight adds the mints that had not ended at the end of the period: those that wait still,
// and those that ended since.
func (r *comparison) addInFlight(ctx context.Context) error {
	now := r.o.config.Now()
	waiting := r.o.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
		return r.store.Waiting(ctx, ramp.Mint, r.to, page)
	})
	ended := r.o.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
		return r.store.Ended(ctx, r.to, now, page)
	})
	for _, all := range []iter.Seq2[[]ramp.Order, error]{waiting, ended} {
		for orders, err := range all {
			if err != nil {
				return err
			}
			for i := range orders {
				r.inFlight(&orders[i])
			}
		}
	}
	return nil
}

// compare reads both sides once, and pairs them by their transactions.
func (r *comparison) compare(ctx context.Context) error {
	begin := r.begin()
	next, stop := iter.Pull2(r.reader.between(ctx, nil, r.first, r.last))
	defer stop()
	events := stream[[]ChainEvent]{next: next}
	ended, stop := iter.Pull2(r.o.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order,
		error) {
		return r.store.Ended(ctx, begin, r.to, page)
	}))
	defer stop()
	orders := stream[ramp.Order]{next: ended}
	for n := 1; ; n++ {
		e, err := events.peek()
		if err != nil {
			return err
		}
		o, err := orders.peek()
		if err != nil {
			return err
		}
		var now time.Time
		switch {
		case e == nil && o == nil:
			r.settle(time.Time{})
			if err := r.checkUnseen(ctx); err != nil {
				return err
			}
			return r.checkListed()
		case o == nil, e != nil && !o.FinishedAt.Before((*e)[0].Time):
			if now = (*e)[0].Time; !now.Before(begin) && now.Before(r.to) {
				r.transaction(*e)
			}
			events.skip()
		default:
			now = o.FinishedAt
			r.order(*o)
			orders.skip()
		}
		if n%5000 == 0 {
			r.settle(now)
			if err := r.lookUp(ctx); err != nil {
				return err
			}
			if len(r.unseen) >= 100 {
				if err := r.checkUnseen(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// stream is a sequence of chunks that is read by element.
type stream[T any] struct {
	next func() (chunk []T, err error, more bool)
	head []T
}

// peek returns the next element, or nil at the end.
func (s *stream[T]) peek() (*T, error) {
	for len(s.head) == 0 {
		chunk, err, more := s.next()
		if !more || err != nil {
			return nil, err
		}
		s.head = chunk
	}
	return &s.head[0], nil
}

// skip removes the element that peek returned.
func (s *stream[T]) skip() { s.head = s.head[1:] }

// checkUnseen reads the receipts of orders that ended by a transaction without events in
// what was read. A failed order has none, unless its event is much older.
func (r *comparison) checkUnseen(ctx context.Context) error {
	var orders []ramp.Order
	for _, o := range r.unseen {
		slow := o.FinishedAt.Sub(o.AcceptedAt) > maxDelay-skew
		if o.State == ramp.OrderSucceeded || slow {
			orders = append(orders, o)
		}
		if o.State != ramp.OrderSucceeded && slow {
			r.sought = append(r.sought, o)
		}
	}
	r.unseen = nil
	receipts := make([]ramp.Receipt, len(orders))
	calls := make([]ramp.BatchCall, len(orders))
	for i, o := range orders {
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", o.TxHash)
	}
	if len(calls) == 0 {
		return nil
	}
	calls, err := evidence.Ask(ctx, r.chain, calls...)
	if err != nil {
		return err
	}
	for i := range orders {
		if err := r.checkReceipt(ctx, &orders[i], &receipts[i], calls[i].Err == nil); err != nil {
			return err
		}
	}
	return nil
}

// checkReceipt judges an order by the receipt of its transaction.
func (r *comparison) checkReceipt(ctx context.Context, o *ramp.Order, receipt *ramp.Receipt,
	found bool) error {
	why := "its transaction moved none of the tokens"
	block, err := receipt.BlockNumber.Uint64()
	switch {
	case !found, err != nil:
		why = "there is no such transaction on this chain"
	case block > r.last:
		r.open++
		return nil
	case !receipt.Succeeded():
		why = "its transaction failed"
	default:
		events, err := r.reader.transactions(ctx, receipt.Logs)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if block > r.first { // which was read in part
				r.shown = append(r.shown, *o)
			}
			r.pair(r.assets.Order(*o), slices.Concat(events...))
			orders, err := r.o.scope.All(orderlist.Of(ctx, r.store.UserOrders, o.UserAddress))
			if slices.ContainsFunc(orders,
				func(other ramp.Order) bool {
					return other.UUID != o.UUID &&
						strings.EqualFold(other.TxHash, o.TxHash)
				}) {
				r.shared = append(r.shared, *o) // with one that is older than those that were read
			}
			return err
		}
	}
	if o.State == ramp.OrderSucceeded {
		r.find(OrderWithoutEvent, "", why, nil, *o)
	}
	return nil
}

// checkListed returns an error if the node shows events that it did not list: it may hide any
// other, such as a stolen mint.
func (r *comparison) checkListed() error {
	for _, o := range r.shown {
		if hash := common.HexToHash(o.TxHash); !r.forsaken[maphash.Comparable(r.seed, hash)] {
			return fmt.Errorf("the node shows transaction %s of order %s, and lists none of its events: "+
				"its index is broken, pruned or not built yet, so ask another node", hash, o.UUID)
		}
	}
	return nil
}

// second looks up what has no partner by its transaction: the orders of the user of each
// event, and the older events of the user of each order.
func (r *comparison) second(ctx context.Context) error {
	var waiting []ramp.Order
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		list := func(page ramp.OrderPage) ([]ramp.Order, error) {
			if page.After.UUID == uuid.Nil { // what waited before the period was found then
				page.After = ramp.Order{UUID: uuid.Max, AcceptedAt: r.from.Add(-maxDelay - time.Millisecond)}
			}
			return r.store.Waiting(ctx, d, r.to.Add(-maxDelay), page)
		}
		orders, err := r.o.scope.All(list)
		if err != nil {
			return err
		}
		waiting = append(waiting, orders...)
	}
	ended := slices.Concat(r.noHash, r.sought)
	older, err := r.olderOf(ctx, ended)
	if err != nil {
		return err
	}
	kept, err := r.keptOlder(ctx, ended)
	if err != nil {
		return err
	}
	older = append(older, kept...)
	isKnown := func(transaction []ChainEvent) bool { return r.known[transaction[0].TxHash] }
	r.loose = append(append(r.loose, slices.DeleteFunc(older, isKnown)...), r.older...)
	if err := r.lookUp(ctx); err != nil {
		return err
	}
	for _, transaction := range r.extra {
		if err := r.candidates(ctx, transaction); err != nil {
			return err
		}
	}
	if r.lost, err = r.settleDifferences(ctx); err != nil {
		return err
	}
	for _, o := range r.shared {
		orders := []ramp.Order{o}
		hash := common.HexToHash(o.TxHash)
		other, err := orderlist.EndedOther(ctx, r.store.OrderByTransaction, o.UUID, hash)
		if err != nil {
			return err
		}
		if other != nil {
			orders = append(orders, *other)
		}
		r.find(SharedTransaction, ByTransaction, "its transaction has ended another order, too",
			nil, orders...)
	}
	r.resolve(r.fits, waiting, r.lost)
	return nil
}

// settleDifferences judges the orders whose transaction moved something else, together
// with the orders that it fits, which it returns: they have lost it.
func (r *comparison) settleDifferences(ctx context.Context) (lost map[uuid.UUID]bool, err error) {
	lost = map[uuid.UUID]bool{}
	for _, d := range r.differing {
		orders := []ramp.Order{d.order.Order}
		for _, e := range d.events {
			c, err := r.candidate(ctx, e)
			if err != nil {
				return nil, err
			}
			for _, o := range c.orders {
				if o.UUID != d.order.UUID {
					orders, lost[o.UUID] = append(orders, o), true
					d.detail += fmt.Sprintf("; it fits order %s, which is %s", o.UUID, o.State)
					d.judged = d.judged || r.waitedNow(&o)
				}
			}
		}
		if d.judged {
			r.find(Differs, ByTransaction, d.detail, d.events, orders...)
		}
	}
	return lost, nil
}

// lookUp judges the events without an order by their transaction, and keeps those that fit
// an order.
func (r *comparison) lookUp(ctx context.Context) error {
	for _, transaction := range r.loose {
		stored, err := r.store.OrderByTransaction(ctx, transaction[0].TxHash)
		if errors.Is(err, ramp.ErrOrderUnknown) {
			kept, failed := r.keptOrder(ctx, transaction[0].TxHash)
			if failed != nil {
				return failed
			}
			if kept != nil {
				r.keptCandidates(transaction, kept)
				continue
			}
		}
		switch {
		case err == nil && r.o.scope.Check(&stored) == nil && stored.State != ramp.OrderSucceeded &&
			stored.FinishedAt.Before(transaction[0].Time.Add(-maxDelay)):
			// the order was forgotten before its transaction came
			r.pair(r.assets.Order(stored), transaction)
		case err == nil && r.known[transaction[0].TxHash] && stored.FinishedAt.Before(r.from):
			r.pair(r.assets.Order(stored), transaction) // which an order has lost that waits
		case err == nil: // of another project, or judged with the order, now or later
		case !errors.Is(err, ramp.ErrOrderUnknown):
			return err
		default:
			if err := r.candidates(ctx, transaction); err != nil {
				return err
			}
		}
	}
	r.loose = nil
	return nil
}

// candidates looks up the orders that the events of a transaction may belong to, and judges
// the events without any.
func (r *comparison) candidates(ctx context.Context, transaction []ChainEvent) error {
	var events []candidate
	for _, e := range transaction {
		c, err := r.candidate(ctx, e)
		if err != nil {
			return err
		}
		events = append(events, c)
	}
	r.addCandidates(events)
	return nil
}

// addCandidates judges the events of a transaction without an order, and keeps the others.
func (r *comparison) addCandidates(events []candidate) {
	r.unordered(events)
	r.fits = append(r.fits,
		slices.DeleteFunc(events, func(c candidate) bool { return len(c.orders) == 0 })...)
}

// candidate returns an event and the orders that it may belong to. If some were accepted
// in the day before the event, the older ones are left out.
func (r *comparison) candidate(ctx context.Context, e ChainEvent) (candidate, error) {
	const near = 24 * time.Hour
	if r.user != e.User { // dust is often of one user
		orders, err := r.o.scope.All(orderlist.Of(ctx, r.store.UserOrders, e.User.Hex()))
		if err != nil {
			return candidate{}, err
		}
		r.user = e.User
		r.orders = slices.DeleteFunc(orders,
			func(o ramp.Order) bool { // what belongs to another transaction for long
				return o.State == ramp.OrderSucceeded && o.TxHash != "" && o.FinishedAt.Before(r.from)
			})
	}
	c := candidate{ChainEvent: e}
	for _, o := range r.orders { // newest first
		if r.journal.belongsElsewhere(o.UUID, e.TxHash) {
			continue
		}
		if len(c.orders) > 0 && o.AcceptedAt.Before(e.Time.Add(-near)) {
			break
		}
		may, late := r.belongs(&e, &o)
		switch {
		case may:
			c.orders = append(c.orders, o)
		case o.AcceptedAt.After(e.Time.Add(skew)) && r.mayFit(&e, &o):
			c.ahead = append(c.ahead, o)
		}
		c.late = c.late || late
	}
	return c, nil
}

// olderOf reads the events of the users of orders that were accepted before the events that
// were read.
func (r *comparison) olderOf(ctx context.Context, orders []ramp.Order) (older [][]ChainEvent, err error) {
	const perFilter = 100
	slices.SortFunc(orders, func(a, b ramp.Order) int { return a.AcceptedAt.Compare(b.AcceptedAt) })
	var users []common.Hash
	var since []time.Time // when the first of these orders of each user was accepted
	for _, o := range orders {
		user := common.BytesToHash(common.HexToAddress(o.UserAddress).Bytes())
		if r.isOld(&o) && common.IsHexAddress(o.UserAddress) && !slices.Contains(users, user) {
			users, since = append(users, user), append(since, o.AcceptedAt.Add(-skew))
		}
	}
	for part := range slices.Chunk(users, perFilter) {
		first, err := evidence.LastBlockBefore(ctx, r.chain, since[0], r.final)
		if err != nil {
			return nil, err
		}
		since = since[len(part):]
		for transactions, err := range r.reader.between(ctx, part, first, r.first) {
			if err != nil {
				return nil, err
			}
			for _, transaction := range transactions {
				if transaction[0].Time.Before(r.begin()) {
					older = append(older, transaction)
				}
			}
		}
	}
	return older, nil
}

// remember reads again the transactions that earlier books have found for orders that wait
// still. It costs a call for each, in batches.
func (r *comparison) remember(ctx context.Context) error {
	var orders []ramp.Order // of calls
	var calls []ramp.BatchCall
	var receipts []*ramp.Receipt
	inOrder := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(r.waited), inOrder) {
		order, err := r.o.order(ctx, id)
		switch {
		case errors.Is(err, ramp.ErrOrderUnknown), errors.Is(err, ramp.ErrOrderForeign):
			continue
		case err != nil:
			return err
		case order.State != ramp.OrderAccepted:
			continue
		}
		for _, transaction := range r.waited[id] {
			r.waits(id, transaction)
			r.known[transaction] = true
			receipt := new(ramp.Receipt)
			orders, receipts = append(orders, order), append(receipts, receipt)
			calls = append(calls, evidence.Call(receipt, "eth_getTransactionReceipt", transaction))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	calls, err := evidence.Ask(ctx, r.chain, calls...)
	if err != nil {
		return err
	}
	var logs []ramp.Log
	for i, call := range calls {
		if logs = append(logs, receipts[i].Logs...); call.Err != nil {
			r.find(WaitsWithEvent, "", fmt.Sprintf("earlier books found transaction %s, "+
				"which this node does not know: ask another one", call.Params[0]), nil, orders[i])
		}
	}
	transactions, err := r.reader.transactions(ctx, logs)
	for _, events := range transactions {
		if events[0].Time.Before(r.begin()) { // the others are read with all
			r.older = append(r.older, events)
		}
	}
	return err
}

// addRefusals says of the orders of findings that wait why their ends were refused.
func (o *Reconciler) addRefusals(ctx context.Context, findings []Finding) error {
	var orders []ramp.Order
	for _, f := range findings {
		for _, found := range f.Orders {
			orders = append(orders, ramp.Order{UUID: found.UUID, State: found.State})
		}
	}
	refused, err := orderlist.Refusals(ctx, o.config.Store, orders...)
	for _, f := range findings {
		for i := range f.Orders {
			if r, ok := refused[f.Orders[i].UUID]; ok {
				f.Orders[i].Refusal = &r
			}
		}
	}
	return err
}
