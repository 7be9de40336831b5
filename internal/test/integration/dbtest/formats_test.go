package dbtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Property 12: servers of two releases run on one table during a deployment, and a
// release reads what every earlier one has stored.

const formats = "../../../../testdata/formats/"

// orderOf reads an order in its JSON form.
func orderOf(t *testing.T, file string) (o ramp.Order) {
	t.Helper()
	check(t, json.Unmarshal(ramp.Must(os.ReadFile(file)), &o))
	return o
}

// contents returns the rows of the orders without their random claims.
func contents(t *testing.T, p *place) (rows []string) {
	t.Helper()
	list := ramp.Must(p.db.Query(
		"SELECT uuid, state, direction, network, project_id, session_id, user_address, digest, intent, tx_hash, " +
			"reason, settled, accepted_at, finished_at FROM ramp_orders ORDER BY uuid"))
	defer list.Close()
	for list.Next() {
		values := make([]sql.NullString, 14)
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		check(t, list.Scan(into...))
		rows = append(rows, fmt.Sprint(values))
	}
	check(t, list.Err())
	return rows
}

// The tables of every release are read and written by this one. It writes the same rows
// as the newest.
func TestThisReleaseReadsTheTablesOfEveryRelease(t *testing.T) {
	const newest = "1"
	directories := ramp.Must(os.ReadDir(formats))
	for _, d := range databases {
		for _, directory := range directories {
			t.Run(d.name+"/"+directory.Name(), func(t *testing.T) {
				file := strings.ToLower(d.name) + ".sql"
				text := ramp.Must(os.ReadFile(filepath.Join(formats, directory.Name(), file)))
				// A release with another table has its migrations here, after the text.
				p := newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders; DROP TABLE ramp_refusals;", string(text))
				store := newStore(t, p, applyNothing)
				check(t, store.Check(t.Context(), ""))
				before := contents(t, p)
				documents := ramp.Must(filepath.Glob(filepath.Join(formats, directory.Name(), "order-*.json")))
				if len(before) != len(documents) {
					t.Fatalf("%d rows and %d documents", len(before), len(documents))
				}
				fresh := newPlace(t, d, d.modes[0])
				for _, document := range documents {
					want := orderOf(t, document)
					text := ramp.Must(json.Marshal(ramp.Must(store.Order(t.Context(), want.UUID))))
					wanted := ramp.Must(json.Marshal(want))
					equal(t, want.UUID.String(), string(text), string(wanted))
					replay(t, newStore(t, fresh, applyNothing), want)
					if want.State == ramp.OrderAccepted {
						take(t, store, want.UUID, ramp.Finish(&ramp.Result{UUID: want.UUID, TxHash: txHashOf(want.UUID),
							Receipt: ramp.Receipt{Status: ramp.NewQuantity(failure)}}, day0))
					}
				}
				if rewritten := contents(t, fresh); directory.Name() == newest && !slices.Equal(rewritten, before) {
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
	accept := ramp.Accept(ramp.Session{ID: o.SessionID},
		&ramp.ValidateRequest{UserAddress: o.UserAddress, ProjectID: o.ProjectID,
			Digest: o.Digest, UUID: o.UUID, Intent: o.Intent}, o.AcceptedAt)
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
