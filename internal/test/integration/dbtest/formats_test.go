package dbtest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Property 12: servers of two releases run on one table during a deployment, and a
// release reads what every earlier one has stored.

const formats = "../../../../testdata/formats/"

// orderOf reads an order in its JSON form.
func orderOf(t *testing.T, file string) (o ramp.Order) {
	t.Helper()
	check(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), &o))
	return o
}

// contents returns the rows of the orders without their random claims.
func contents(t *testing.T, p *place) (rows []string) {
	t.Helper()
	list := must.Get(p.db.Query("SELECT * FROM ramp_orders ORDER BY uuid"))(t)
	defer list.Close()
	columns := must.Get(list.Columns())(t)
	for list.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		check(t, list.Scan(into...))
		var row []string
		for i, name := range columns {
			if name != "claim" {
				row = append(row, fmt.Sprint(name, "=", values[i]))
			}
		}
		slices.Sort(row)
		rows = append(rows, fmt.Sprint(row))
	}
	check(t, list.Err())
	return rows
}

// newPlaceOf creates a place with the tables and orders of a format, and brings them up to this release.
func newPlaceOf(t *testing.T, d database, format string) *place {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(formats, format, strings.ToLower(d.name)+".sql")))(t)
	p := newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders; DROP TABLE ramp_refusals;", string(text))
	p.migrate(t)
	return p
}

// migrate runs the migrations as a deployment does.
func (p *place) migrate(t *testing.T) {
	t.Helper()
	conn := must.Get(p.administrator().Conn(t.Context()))(t)
	defer conn.Close()
	if p.enter != "" {
		must.Get(conn.ExecContext(t.Context(), fmt.Sprintf(p.enter, p.schema)))(t)
	}
	for _, statement := range p.dialect.Migrations(must.Get(p.dialect.Version(t.Context(), conn))(t)) {
		must.Get(conn.ExecContext(t.Context(), statement))(t)
	}
}

// The tables of every release are read and written by this one. It writes the same rows
// as the newest.
func TestThisReleaseReadsTheTablesOfEveryRelease(t *testing.T) {
	directories := must.Get(os.ReadDir(formats))(t)
	number := func(directory os.DirEntry) int { return must.Get(strconv.Atoi(directory.Name()))(t) }
	newest := slices.MaxFunc(directories, func(a, b os.DirEntry) int { return cmp.Compare(number(a), number(b)) })
	for _, d := range databases {
		for _, directory := range directories {
			t.Run(d.name+"/"+directory.Name(), func(t *testing.T) {
				p := newPlaceOf(t, d, directory.Name())
				store := newStore(t, p, applyNothing)
				check(t, store.Check(t.Context(), ""))
				before := contents(t, p)
				documents := must.Get(filepath.Glob(filepath.Join(formats, directory.Name(), "order-*.json")))(t)
				if len(before) != len(documents) {
					t.Fatalf("%d rows and %d documents", len(before), len(documents))
				}
				fresh := newPlace(t, d, d.modes[0])
				for _, document := range documents {
					want := orderOf(t, document)
					if got := must.Get(store.Order(t.Context(), want.UUID))(t); !got.Equal(want) {
						t.Errorf("%+v is stored, not %+v", got, want)
					}
					replay(t, newStore(t, fresh, applyNothing), want)
					if want.State == ramp.OrderAccepted {
						take(t, store, want.UUID, ramp.Finish(&ramp.Result{UUID: want.UUID, TxHash: txHashOf(want.UUID),
							Receipt: ramp.Receipt{Status: ramp.NewQuantity(failure)}}, day0))
					}
				}
				if rewritten := contents(t, fresh); directory == newest && !slices.Equal(rewritten, before) {
					t.Errorf("this release writes\n%s\nnot\n%s", strings.Join(rewritten, "\n"),
						strings.Join(before, "\n"))
				}
			})
		}
	}
}

// replay takes the steps that lead to an order.
func replay(t *testing.T, store *rampsql.Store, o ramp.Order) {
	t.Helper()
	accept := ramp.Accept(ramp.Session{ID: o.SessionID}, requestOf(t, o, nil, ""), o.AcceptedAt)
	take(t, store, o.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := accept(stored)
		step.Order.Network = o.Network
		return step, err
	})
	status := map[ramp.OrderState]uint64{ramp.OrderSucceeded: success, ramp.OrderFailed: failure}
	switch o.State {
	case ramp.OrderAccepted:
	case ramp.OrderAbandoned:
		take(t, store, o.UUID, ramp.Abandon(o.Reason, o.FinishedAt))
	default:
		finish := ramp.Finish(&ramp.Result{UUID: o.UUID, TxHash: o.TxHash,
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(status[o.State])}}, o.FinishedAt)
		if o.Settled != "" {
			finish = ramp.Settled(o.Settled, finish)
		}
		take(t, store, o.UUID, func(stored *ramp.Order) (ramp.Step, error) {
			step, err := finish(stored)
			step.Order.Reason = o.Reason
			return step, err
		})
	}
}

// Every order that a release has stored gets every call of this one, also with the fields that were added
// later, which it does not have: the repeat of a validate call must be signed, or a mint's assets are taken
// and nobody gets a signature. See "Store a field with an order" in CONTRIBUTING.md.
func TestThisReleaseEndsTheOrdersOfEveryRelease(t *testing.T) {
	endings := map[string]func(o ramp.Order) ramp.Transition{
		"success": func(o ramp.Order) ramp.Transition { return resultOf(o, success) },
		"failure": func(o ramp.Order) ramp.Transition { return resultOf(o, failure) },
		"abandon": func(ramp.Order) ramp.Transition { return ramp.Abandon("bob: case 17", day0) },
		"settled": func(o ramp.Order) ramp.Transition { return ramp.Settled("by mail", resultOf(o, failure)) },
	}
	for _, directory := range must.Get(os.ReadDir(formats))(t) {
		format := directory.Name()
		var orders []ramp.Order
		for _, document := range must.Get(filepath.Glob(filepath.Join(formats, format, "order-*.json")))(t) {
			orders = append(orders, orderOf(t, document))
		}
		later := addedAfter(t, format)
		t.Logf("format %s does not have %q", format, later)
		play := func(t *testing.T, open func(t *testing.T) ramp.Store) {
			for ending, next := range endings {
				for _, value := range []string{"", "set by a later release"} {
					store := open(t)
					for _, o := range orders {
						repeat := ramp.Accept(ramp.Session{ID: o.SessionID}, requestOf(t, o, later, value), day0)
						step, err := store.Update(t.Context(), o.UUID, repeat)
						want := "repeat accepted"
						if o.State != ramp.OrderAccepted {
							want = "finished"
						}
						what := fmt.Sprintf("order %s (%s): ", o.UUID, o.State)
						call := fmt.Sprintf("the same validate call, with %q: %q", later, value)
						equal(t, what+call, outcome(step, err), want)
						stored := o
						wanted := outcome(next(o)(&stored)) // the rules, without a store
						step, err = store.Update(t.Context(), o.UUID, next(o))
						equal(t, what+ending, outcome(step, err), wanted)
						if ended := o.State != ramp.OrderAccepted; ended == step.New {
							t.Errorf("%s: %s is new: %v", what, ending, step.New)
						}
					}
				}
			}
		}
		t.Run("memory/"+format, func(t *testing.T) {
			play(t, func(t *testing.T) ramp.Store { return inMemory(t, orders) })
		})
		for _, d := range databases {
			t.Run(d.name+"/"+format, func(t *testing.T) {
				play(t, func(t *testing.T) ramp.Store { return newStore(t, newPlaceOf(t, d, format), applyNothing) })
			})
		}
	}
}

// inMemory returns a store with orders.
func inMemory(t *testing.T, orders []ramp.Order) ramp.Store {
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	for _, o := range orders {
		take(t, store, o.UUID, func(*ramp.Order) (ramp.Step, error) { return ramp.Step{Order: o, New: true}, nil })
	}
	return store
}

// addedAfter returns the fields of a validate call that an order stores, but no order of a format has.
func addedAfter(t *testing.T, format string) (fields []string) {
	t.Helper()
	var documents string
	for _, document := range must.Get(filepath.Glob(filepath.Join(formats, format, "order-*.json")))(t) {
		documents += string(must.Get(os.ReadFile(document))(t))
	}
	for _, field := range storedOfCall() {
		call, _ := reflect.TypeFor[ramp.ValidateRequest]().FieldByName(field)
		name, _, _ := strings.Cut(call.Tag.Get("json"), ",")
		if !strings.Contains(documents, `"`+name+`":`) {
			fields = append(fields, field)
		}
	}
	return fields
}

// storedOfCall returns the fields of a validate call that an order stores.
func storedOfCall() (fields []string) {
	order := reflect.TypeFor[ramp.Order]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ramp.ValidateRequest]()) {
		if stored, known := order.FieldByName(field.Name); known && stored.Type == field.Type {
			fields = append(fields, field.Name)
		}
	}
	return fields
}

// requestOf returns the validate call of an order, with all that the order stores of it and a value in some
// other fields.
func requestOf(t *testing.T, o ramp.Order, fields []string, value string) *ramp.ValidateRequest {
	t.Helper()
	r := &ramp.ValidateRequest{}
	into := reflect.ValueOf(r).Elem()
	for _, name := range storedOfCall() {
		into.FieldByName(name).Set(reflect.ValueOf(o).FieldByName(name))
	}
	for _, name := range fields {
		field := into.FieldByName(name)
		if field.Kind() != reflect.String {
			t.Fatalf("requestOf must set the field %s of type %s", name, field.Type())
		}
		field.SetString(value)
	}
	return r
}

func resultOf(o ramp.Order, status uint64) ramp.Transition {
	return ramp.Finish(&ramp.Result{SessionID: o.SessionID, UUID: o.UUID, TxHash: txHashOf(o.UUID), Intent: o.Intent,
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}}, day0)
}

// outcome says what a call did.
func outcome(step ramp.Step, err error) string {
	var conflict *ramp.ConflictError
	switch {
	case errors.Is(err, ramp.ErrOrderFinished):
		return "finished"
	case errors.As(err, &conflict):
		return "conflict " + conflict.Field
	case err != nil:
		return err.Error()
	case step.New:
		return "new " + string(step.Order.State)
	default:
		return "repeat " + string(step.Order.State)
	}
}
