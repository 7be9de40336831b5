package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/interleaving"
)

// price is how many of each asset an order moves.
const price = 5

// explorer tries every interleaving of a scenario.
type explorer struct {
	Interleavings
	scheduler *interleaving.Scheduler
	plain     ramp.Store    // whose statements do not stop
	stores    [3]ramp.Store // of the servers
	prefix    [6]byte       // of the IDs
	last      uint64        // ID
}

func (e *explorer) open(plain *sql.DB) (err error) {
	_, _ = rand.Read(e.prefix[:]) // never fails
	if e.plain, err = e.Open(plain); err != nil {
		return fmt.Errorf("storetest: Interleavings.Open: %w", err)
	}
	for n := range e.stores {
		if err := e.restart(n); err != nil {
			return err
		}
	}
	return nil
}

// restart starts a server.
func (e *explorer) restart(n int) error {
	store, err := e.Open(e.scheduler.DB(n))
	if err != nil {
		return fmt.Errorf("storetest: Interleavings.Open: %w", err)
	}
	e.stores[n] = store
	return nil
}

// explore tries a scenario in every interleaving. It returns what went wrong first.
func (e *explorer) explore(ctx context.Context, of *scenario, walk *interleaving.Walk) string {
	for more := true; more; more = walk.Next() {
		p := &execution{explorer: e, scenario: of, walk: walk}
		if err := p.prepare(ctx); err != nil {
			var declined *ramp.Rejection
			if errors.As(err, &declined) && of.has < 0 {
				return "" // the game does not let a player burn who has no balance
			}
			return fmt.Sprintf("before the calls: %v", err)
		}
		p.run(ctx)
		if !walk.Whole() {
			continue
		}
		if len(p.wrong) == 0 {
			p.judge(ctx)
		}
		if len(p.wrong) > 0 {
			return p.report()
		}
	}
	return ""
}

// execution is one interleaving of a scenario.
type execution struct {
	*explorer
	*scenario
	walk    *interleaving.Walk
	session string
	orders  []*ramp.ValidateRequest
	answers []reply             // to the calls
	first   []reply             // to the calls before they were repeated
	parts   []interleaving.Part // the calls, and then their repeats
	wrong   []string
}

// reply is what a store answers to a call.
type reply struct {
	heard bool
	step  ramp.Step
	err   error
}

// kind names what a call came to; "" if the service must repeat it.
func (a reply) kind() string {
	var conflict *ramp.ConflictError
	var rejection *ramp.Rejection
	switch {
	case !a.heard:
		return ""
	case a.err == nil:
		return "success"
	case errors.As(a.err, &conflict):
		return "a conflict in " + conflict.Field
	case errors.As(a.err, &rejection):
		return "a rejection"
	case errors.Is(a.err, ramp.ErrOrderFinished):
		return "that the order is finished"
	case errors.Is(a.err, ramp.ErrOrderUnknown):
		return "that the order is unknown"
	}
	return ""
}

func (a reply) String() string { return cmp.Or(a.kind(), "an error") }

// prepare creates the player and the orders that are there before.
func (p *execution) prepare(ctx context.Context) error {
	names := map[string]string{}
	p.answers = make([]reply, len(p.calls))
	var assets []ramp.AssetAmount
	for _, id := range p.Assets {
		assets = append(assets, ramp.AssetAmount{ID: id, Amount: ramp.NewAmount(price)})
	}
	for n, kind := range p.scenario.orders {
		r := mint(assets...)
		if strings.Contains(kind, "burn") {
			r = burn(assets...)
		}
		r.UUID, r.Digest = p.nextID(), ramp.Digest{1}
		p.orders = append(p.orders, r)
		names[r.UUID.String()] = fmt.Sprint("order ", n)
	}
	for tx := range 3 {
		names[p.txHash(tx)] = fmt.Sprint("transaction ", tx)
	}
	p.scheduler.Name(names)
	p.session = "player " + p.orders[0].UUID.String()
	for _, id := range p.Assets {
		if p.has < 0 {
			continue
		}
		if err := p.Give(ctx, p.session, id, p.has); err != nil {
			return fmt.Errorf("Interleavings.Give: %w", err)
		}
	}
	for n, kind := range p.scenario.orders {
		if strings.HasPrefix(kind, "accepted") {
			next := p.transition(action{order: n, kind: validate})
			if _, err := p.plain.Update(ctx, p.orders[n].UUID, next); err != nil {
				return fmt.Errorf("the order is accepted: %w", err)
			}
		}
	}
	return nil
}

// nextID returns IDs in the order of their index, so that in each run new rows lock the same gaps.
func (e *explorer) nextID() uuid.UUID {
	e.last++
	id := uuid.UUID{6: 0x40, 8: 0x80}
	copy(id[:], e.prefix[:])
	binary.BigEndian.PutUint32(id[12:], uint32(e.last))
	return id
}

// txHash returns the hash of a transaction, in the order of the index too.
func (p *execution) txHash(n int) string {
	id := p.orders[0].UUID
	return fmt.Sprintf("0x%x%032x", id[:], n+1)
}

// transition returns the step of a call.
func (p *execution) transition(a action) ramp.Transition {
	r := p.orders[a.order]
	switch a.kind {
	case abandon:
		return ramp.Abandon("the test said so", validatedAt.Add(time.Hour))
	case settledAbandon, settledSuccess:
		a.kind = strings.TrimSuffix(a.kind, ", settled by mail")
		return ramp.Settled("sent by mail", p.transition(a))
	case anotherValidate:
		another := *r
		another.Digest[0]++
		r = &another
		fallthrough
	case validate:
		return ramp.Accept(ramp.Session{ID: p.session}, r, validatedAt)
	}
	status := uint64(0)
	if a.kind == success {
		status = 1
	}
	return ramp.Finish(&ramp.Result{
		SessionID: p.session, UUID: r.UUID, TxHash: p.txHash(a.tx), Intent: r.Intent,
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)},
	}, validatedAt.Add(time.Hour))
}

// run makes the calls at once.
func (p *execution) run(ctx context.Context) {
	calls := make([]interleaving.Call, len(p.calls))
	for n, a := range p.calls {
		calls[n] = func(ctx context.Context) {
			step, err := p.stores[n].Update(ctx, p.orders[a.order].UUID, p.transition(a))
			p.answers[n] = reply{step: step, err: err}
		}
	}
	if err := p.scheduler.Run(calls, p.walk.Choose); err != nil {
		p.wrong = append(p.wrong, err.Error())
	}
	for n := range calls {
		p.answers[n].heard = p.scheduler.Heard(n)
		if p.scheduler.Dead(n) {
			if err := p.restart(n); err != nil {
				p.wrong = append(p.wrong, err.Error())
			}
		}
	}
	p.first = slices.Clone(p.answers)
	for n := range calls {
		var sent []*interleaving.Statement
		for _, st := range p.scheduler.Sent {
			if st.Server == n {
				sent = append(sent, st)
			}
		}
		p.parts = append(p.parts, p.part(n, n, sent))
	}
	p.wrong = append(p.wrong, interleaving.Mistakes(p.scheduler.Sent)...)
}

// part returns what a server sent for a call that was answered.
func (p *execution) part(n, server int, sent []*interleaving.Statement) interleaving.Part {
	a := p.answers[n]
	approved := a.heard && a.err == nil
	return interleaving.Part{Server: server, Name: p.name(n), Sent: sent, Approved: approved,
		Moved: approved && a.step.New && a.step.Effect.Kind != ramp.Nothing}
}

// judge checks the answers, repeats the calls, and checks the balances.
func (p *execution) judge(ctx context.Context) {
	for n, a := range p.calls {
		stored, err := p.stored(ctx, a.order)
		if err != nil {
			p.fail("order %d cannot be read: %v", a.order+1, err)
			return
		}
		p.promised(n, stored)
	}
	p.restored(ctx)
	if len(p.wrong) > 0 {
		return
	}
	p.repeat(ctx)
	p.audit(ctx)
}

func (p *execution) fail(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// stored returns an order, or nil if there is none.
func (p *execution) stored(ctx context.Context, order int) (stored *ramp.Order, err error) {
	_, err = p.plain.Update(ctx, p.orders[order].UUID, func(o *ramp.Order) (ramp.Step, error) {
		if o == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		stored = o
		return ramp.Step{Order: *o}, nil
	})
	if errors.Is(err, ramp.ErrOrderUnknown) {
		return nil, nil
	}
	return stored, err
}

// promised checks that what a call was told is stored.
func (p *execution) promised(n int, stored *ramp.Order) {
	got, a := p.answers[n].kind(), p.calls[n]
	if got == "" && p.answers[n].heard && !p.walk.Failed() {
		p.fail("%s failed although nothing went wrong: %v", p.name(n), p.answers[n].err)
		return
	}
	for _, later := range []string{"rejection", "unknown", "tx_hash"} {
		if got == "" || strings.Contains(got, later) {
			return // the last repeat is checked
		}
	}
	step, err := p.transition(a)(stored)
	now := reply{true, step, err}.kind()
	switch ended := strings.Contains(a.kind, validate) && strings.Contains(now, "finished"); {
	case got == "success" && ended:
	case got != now, step.New:
		p.fail("%s was answered with %s, but that is not what is stored: %s",
			p.name(n), got, stateOf(stored))
	}
}

// restored checks that a connection that went back to a pool commits each statement again.
func (p *execution) restored(ctx context.Context) {
	autocommit := interleaving.DialectOf(p.Dialect).Autocommit
	for n := range p.calls {
		db := p.scheduler.DB(n)
		if autocommit == "" || db.Stats().Idle == 0 {
			continue
		}
		var on bool
		if err := db.QueryRowContext(ctx, autocommit).Scan(&on); err != nil {
			p.fail("a connection of %s cannot be used: %v", interleaving.Letter(n), err)
		} else if !on {
			p.fail("a connection of %s went back to the pool with autocommit turned off",
				interleaving.Letter(n))
		}
	}
	p.scheduler.Later() // of the repeats
}

func stateOf(o *ramp.Order) string {
	if o == nil {
		return "no order"
	}
	return fmt.Sprintf("the order is %s", o.State)
}

func (p *execution) name(n int) string {
	a := p.calls[n]
	kind := strings.TrimPrefix(p.scenario.orders[a.order], "accepted ")
	if len(p.orders) > 1 {
		return fmt.Sprintf("%s of %s %d", a.kind, kind, a.order+1)
	}
	return fmt.Sprintf("%s of the %s", a.kind, kind)
}

// repeat repeats each call until it is answered, as the service does, and then once more.
func (p *execution) repeat(ctx context.Context) {
	const rounds = 4
	for round := range rounds {
		for n, a := range p.calls {
			kind := p.answers[n].kind()
			if again := kind == "" || strings.Contains(kind, "unknown"); !again && round < rounds-1 {
				continue
			}
			server := (n + round) % len(p.calls)
			step, err := p.stores[server].Update(ctx, p.orders[a.order].UUID, p.transition(a))
			p.answers[n] = reply{true, step, err}
			p.parts = append(p.parts, p.part(n, server, p.scheduler.Later()))
		}
	}
}

// audit compares the last answers and the balances with what is stored.
func (p *execution) audit(ctx context.Context) {
	want := max(0, p.has)
	ended := map[string]bool{}
	stored := make([]*ramp.Order, len(p.orders))
	for n := range p.orders {
		o, err := p.stored(ctx, n)
		if err != nil {
			p.fail("order %d cannot be read: %v", n+1, err)
			return
		}
		if stored[n] = o; o == nil {
			continue
		}
		switch {
		case o.Direction == ramp.Mint &&
			(o.State == ramp.OrderAccepted || o.State == ramp.OrderSucceeded || o.Settled != ""):
			want -= price
		case o.Direction == ramp.Burn && o.State == ramp.OrderSucceeded && o.Settled == "":
			want += price
		}
		if ended[o.TxHash] {
			p.fail("two orders have ended by one transaction")
		}
		ended[o.TxHash] = o.TxHash != ""
	}
	for _, id := range p.Assets {
		got, err := p.Balance(ctx, p.session, id)
		if err != nil {
			p.fail("Interleavings.Balance: %v", err)
		} else if got != want {
			p.fail("the player has %d %s instead of %d: %s", got, id, want, states(stored))
		}
	}
	for n, a := range p.calls {
		p.expect(n, stored[a.order], want, ended)
	}
}

func states(orders []*ramp.Order) string {
	var all []string
	for n, o := range orders {
		all = append(all, fmt.Sprintf("order %d: %s", n+1, strings.TrimPrefix(stateOf(o), "the order is ")))
	}
	return strings.Join(all, ", ")
}

// expect checks the last answer to a call.
func (p *execution) expect(n int, stored *ramp.Order, balance int64, ended map[string]bool) {
	a, got := p.calls[n], p.answers[n].kind()
	step, err := p.transition(a)(stored)
	want := reply{true, step, err}.kind()
	if step.New { // so the game or the store must have refused it
		want = "a rejection"
		if stored != nil {
			want = "a conflict in tx_hash"
		}
		deserved := stored != nil && ended[p.txHash(a.tx)] || stored == nil && balance < price
		if got == want && !deserved {
			p.fail("%s was finally answered with %s, without a reason", p.name(n), got)
		}
	}
	if got != want {
		p.fail("%s was finally answered with %v instead of %s (%v)",
			p.name(n), p.answers[n], want, p.answers[n].err)
	}
}

// report says what went wrong, and when.
func (p *execution) report() string {
	var calls []string
	for n := range p.calls {
		calls = append(calls, p.name(n))
	}
	var b strings.Builder
	for _, one := range p.wrong {
		fmt.Fprintf(&b, "WRONG: %s\n", one)
	}
	for _, one := range interleaving.Causes(p.parts) {
		fmt.Fprintf(&b, "LIKELY CAUSE: %s\n", one)
	}
	repeats := p.parts[min(len(calls), len(p.parts)):]
	b.WriteString("\n" + interleaving.Table(calls, p.scheduler.Sent, repeats) + "\n")
	for n, a := range p.first {
		said := a.kind()
		switch {
		case !a.heard:
			said = "nothing"
		case a.err == nil && a.step.New:
			said = fmt.Sprintf("success, with a new step: %v", a.step.Effect)
		case a.err == nil:
			said = "success, as a repeat"
		case said == "":
			said = "the error " + interleaving.Short(a.err.Error(), 120)
		}
		fmt.Fprintf(&b, "%s answered %s\n", interleaving.Letter(n), said)
	}
	fmt.Fprintf(&b, "Before, the player had %d of each asset. An order moves %d.", max(0, p.has), price)
	return b.String()
}
