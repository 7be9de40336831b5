package items

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"modernc.org/sqlite"
)

// power fails at one of the moments before and after each statement and each call of the service.
type power struct {
	at      int  // the moment; negative for none
	returns bool // only this statement or call fails, as if its answer was lost
	moments int  // so far
}

var errOff = errors.New("the power is off")

// around makes a statement or a call, of which a failure before or after it tells nothing.
func around[T any](p *power, do func() (T, error)) (made T, err error) {
	off := func() bool {
		if p == nil {
			return false
		}
		p.moments++
		return p.at >= 0 && (p.moments == p.at+1 || p.moments > p.at && !p.returns)
	}
	if off() {
		return made, errOff
	}
	if made, err = do(); err == nil && off() {
		err = errOff
	}
	return made, err
}

// connector connects to a file of SQLite.
type connector struct {
	file  string
	power *power
}

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	const options = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	conn, err := c.Driver().Open("file:" + c.file + options)
	return connection{conn, c.power}, err
}

type connection struct {
	driver.Conn
	power *power
}

func (c connection) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return around(c.power, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
	})
}

func (c connection) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return around(c.power, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	})
}

// weak is a service behind the same power.
type weak struct {
	*bank
	power *power
}

func (w weak) Apply(ctx context.Context, key string, step ramp.Step) error {
	_, err := around(w.power, func() (struct{}, error) { return struct{}{}, w.bank.Apply(ctx, key, step) })
	return err
}

const token = "0x00000000000000000000000000000000000070c3"

// request returns the validate call of a mint or a burn of 4 gold.
func request(d ramp.Direction) *ramp.ValidateRequest {
	r := &ramp.ValidateRequest{UserAddress: "0xaa", ProjectID: "project-1", UUID: uuid.New(), Intent: ramp.Intent{
		Method: ramp.MethodMint, Type: ramp.Assemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(4)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}}}
	if d == ramp.Burn {
		r.Intent.Method, r.Intent.Type = ramp.MethodBurnPermit, ramp.Disassemble
		r.Intent.From, r.Intent.To = r.Intent.To, r.Intent.From
	}
	return r
}

// transitions returns those of alice's validate call and its result.
func transitions(r *ramp.ValidateRequest, status uint64) (accept, finish ramp.Transition) {
	now := time.Now()
	result := &ramp.Result{UUID: r.UUID, TxHash: fmt.Sprintf("0x%064x", 7)}
	result.Receipt.Status = ramp.NewQuantity(status)
	return ramp.Accept(ramp.Session{ID: "alice"}, r, now), ramp.Finish(result, now.Add(time.Minute))
}

// Whatever the moment at which a server stops: what the orders say has moved has moved, and nothing
// else, as soon as another server has settled. Nobody need repeat the call.
func TestAServerMayStopAtEveryMoment(t *testing.T) {
	stops := 0
	for _, returns := range []bool{false, true} {
		for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			for _, status := range []uint64{0, 1} {
				for at := 0; ; at++ {
					name := fmt.Sprintf("%s, status %d, moment %d, returns %t", direction, status, at, returns)
					if !stopAt(t, name, &power{at: at, returns: returns}, direction, status) {
						break
					}
					stops++
				}
			}
		}
	}
	if stops < 100 {
		t.Errorf("only %d stops", stops)
	}
	t.Logf("%d stops", stops)
}

// stopAt runs an order of 4 of 10 gold, and reports whether the power failed.
func stopAt(t *testing.T, name string, p *power, direction ramp.Direction, status uint64) bool {
	t.Helper()
	ctx, file, b := t.Context(), filepath.Join(t.TempDir(), "orders.db"), newBank(nil)
	_ = b.give(ctx, "alice", "gold", 10)
	after := open(t, file, b) // another server, or this one when it has started again
	stopped := &Store{DB: openDB(t, connector{file, p}), Items: weak{b, p}}

	r := request(direction)
	accept, finish := transitions(r, status)
	_, err := stopped.Update(ctx, r.UUID, accept)
	if err == nil {
		_, err = stopped.Update(ctx, r.UUID, finish)
	}
	if err := after.Settle(ctx); err != nil {
		t.Errorf("%s: Settle: %v", name, err)
	}
	check := func(when string) {
		t.Helper()
		want, state := int64(10), ramp.OrderState("none")
		stored, err := after.read(ctx, "uuid", r.UUID.String())
		if stored.order != nil {
			state = stored.order.State
		}
		switch {
		case direction == ramp.Mint && (state == ramp.OrderAccepted || state == ramp.OrderSucceeded):
			want = 6
		case direction == ramp.Burn && state == ramp.OrderSucceeded:
			want = 14
		}
		if got, _ := b.balance(ctx, "alice", "gold"); got != want || err != nil || stored.step != nil {
			t.Errorf("%s, %s: %d gold instead of %d; the order is %q, under way %v, %v",
				name, when, got, want, state, stored.step, err)
		}
	}
	check("settled")
	for _, next := range []ramp.Transition{accept, finish} {
		if _, err := after.Update(ctx, r.UUID, next); err != nil && !errors.Is(err, ramp.ErrOrderFinished) {
			t.Errorf("%s: the repeat failed: %v", name, err)
		}
	}
	check("repeated")
	return err != nil || p.moments > p.at
}
