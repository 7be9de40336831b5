package dbtest

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// An order is stored after its end. Who reads as docs/orders.md says has each order, also if its commit comes
// after a run that was later than its end; who begins where the last run ended misses it.
func TestTheQueryForWhatHasEnded(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../../docs/orders.md"))(t))
	_, section, _ := strings.Cut(page, "\n### Read what has ended\n")
	statement := regexp.MustCompile("(?s)```sql\n(.+?)```").FindStringSubmatch(section)[1]
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		end := time.Now().Truncate(time.Hour).Add(-24 * time.Hour)
		finish := func(before time.Duration) string {
			o := newOrder("alice", burn("gold", 5))
			take(t, store, o.id, acceptAt(o, end.Add(-2*time.Hour)))
			take(t, store, o.id, ramp.Finish(o.report(success), end.Add(-before)))
			return o.id.String()
		}
		read := func(from, to time.Time, into map[string]bool) {
			t.Helper()
			rows := must.Get(p.db.Query(bind(p.dialect, statement), from.UnixMilli(), to.UnixMilli()))(t)
			defer rows.Close()
			for rows.Next() {
				var id, project, network, state, direction, session string
				var finished int64
				check(t, rows.Scan(&id, &project, &network, &state, &direction, &session, &finished))
				into[id] = true
			}
			check(t, rows.Err())
		}
		const late, again = 2 * time.Minute, time.Hour
		asDocumented, inTurns := map[string]bool{}, map[string]bool{}
		last := end.Add(-3 * time.Hour)
		run := func(now time.Time) {
			read(last.Add(-again), now.Add(-late), asDocumented)
			read(last, now.Add(-late), inTurns)
			last = now.Add(-late)
		}
		want := []string{finish(59 * time.Minute), finish(50 * time.Minute)}
		run(end)
		want = append(want, finish(late+time.Second), finish(50*time.Minute-time.Millisecond)) // stored after the run
		missed := want[2:4]
		want = append(want, finish(time.Second), finish(-time.Minute))
		run(end.Add(time.Hour))
		for _, id := range want {
			equal(t, "read as documented", asDocumented[id], true)
		}
		for _, id := range missed {
			equal(t, "read in turns", inTurns[id], false)
		}
		equal(t, "orders", len(asDocumented), len(want))
	})
}
