package pairs

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
)

// stage is where scenes are played, in bubbles of testing/synctest: several at once, each with a seed of its own.
type stage struct{ seeds chan *seed }

// newStage makes a stage on SQLite.
func newStage(t *testing.T) *stage { return newStageOn(t, sqlite) }

func newStageOn(t *testing.T, data func(*testing.T) database) *stage {
	keepMemory()
	n := runtime.GOMAXPROCS(0) + 2
	s := &stage{make(chan *seed, n)}
	for range n {
		of := data(t)
		synctest.Test(t, func(t *testing.T) { s.seeds <- plant(t, of) })
	}
	return s
}

// job is a scene that is to be played.
type job struct {
	scene *scene
	gap   time.Duration
	list  []placed
}

// play plays a scene in a bubble.
func (s *stage) play(t *testing.T, j job) *played {
	p := &played{scene: j.scene, list: j.list, name: j.scene.nameOf(j.gap, j.list)}
	ended := false
	defer func() {
		if !ended {
			t.Errorf("it did not end: PAIRS='%s' go test -run TestOne .", p.name)
		}
	}()
	seed := <-s.seeds
	defer func() { s.seeds <- seed }()
	synctest.Test(t, func(t *testing.T) {
		w := seed.grow(t)
		defer w.end()
		w.gap = j.gap
		p.meant = w.play(j.scene, j.list)
		if !p.meant {
			return
		}
		p.faults, p.story = w.faults, w.story
		for _, player := range []string{"alice", "bob"} {
			p.has += fmt.Sprintf("%s has %d of %d gold; ", player, w.gold(player), w.owes(player))
		}
		p.heard = w.last["alice"]
		if os.Getenv("PAIRS") != "" {
			t.Log(w.log.String())
		}
	})
	ended = true
	return p
}

// all plays scenes on all processors, and returns them in their order.
func (s *stage) all(t *testing.T, jobs []job) []*played {
	list := make([]*played, len(jobs))
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	t.Run("all", func(t *testing.T) {
		var mu sync.Mutex
		next := 0
		for worker := range cap(s.seeds) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					n := next
					next++
					mu.Unlock()
					if n >= len(jobs) || t.Failed() {
						return
					}
					list[n] = s.play(t, jobs[n])
				}
			})
		}
	})
	return slices.DeleteFunc(list, func(p *played) bool { return p == nil }) // of a test that has failed
}

// spacings are the times between two calls: seconds, and beyond the five minutes for which a former price counts.
var spacings = []time.Duration{20 * time.Second, 6 * time.Minute}

// alone are all scenes with one event or none.
func alone(among []event, x extent) (jobs []job) {
	for i := range scenes {
		s := &scenes[i]
		for _, gap := range spacings {
			jobs = append(jobs, job{s, gap, nil})
			for e := range among {
				for _, at := range s.places(x) {
					jobs = append(jobs, job{s, gap, []placed{{at, &among[e]}}})
				}
			}
		}
	}
	return jobs
}

// chosen reports whether an event is one of those that PAIRS_WITH names, separated by " | ", if it names any. Who adds
// events plays only their pairs.
func chosen(list []placed) bool {
	names := os.Getenv("PAIRS_WITH")
	return names == "" || slices.ContainsFunc(list, func(p placed) bool {
		return slices.Contains(strings.Split(names, " | "), p.name)
	})
}

// inOrder are all scenes with n events, in each order of them, but those that are the same as another.
func inOrder(among []event, n int, x extent, gap time.Duration) (jobs []job) {
	for i := range scenes {
		s := &scenes[i]
		places := s.places(x)
		var add func(list []placed, from int)
		add = func(list []placed, from int) {
			if len(list) == n {
				if !s.later(list) && !tooLong(list) && chosen(list) {
					jobs = append(jobs, job{s, gap, slices.Clone(list)})
				}
				return
			}
			for e := range among {
				for at := from; at < len(places); at++ {
					add(append(list, placed{places[at], &among[e]}), at)
				}
			}
		}
		add(nil, 0)
	}
	return jobs
}

// named returns events by their names.
func named(t testing.TB, names []string) (list []event) {
	for _, name := range names {
		at := slices.IndexFunc(events, func(e event) bool { return e.name == name })
		if at < 0 {
			t.Fatalf("no event %q", name)
		}
		list = append(list, events[at])
	}
	return list
}

// TestPairs plays each event alone in all places, and then pairs: of the core or, with PAIRS_ALL=1, of all between the
// calls, and of the core within them and with the other spacing.
// With -short, it plays two events alone in a few places.
func TestPairs(t *testing.T) {
	racedetector.Skip(t)
	all := os.Getenv("PAIRS_ALL") != ""
	s, found := newStage(t), newFindings()
	if testing.Short() {
		s.singly(t, found, alone(named(t, core)[:2], few))
		found.judge(t)
		return
	}
	checkNone(t, s.singly(t, found, alone(events, within)))
	if all {
		s.together(t, found, inOrder(events, 2, between, spacings[0]))
		s.together(t, found, inOrder(named(t, core), 2, within, spacings[0]))
		s.together(t, found, inOrder(named(t, core), 2, few, spacings[1]))
	} else {
		s.together(t, found, inOrder(named(t, core), 2, few, spacings[0]))
	}
	found.judge(t)
}

// TestTriples plays three events of a dozen.
func TestTriples(t *testing.T) {
	racedetector.Skip(t)
	if os.Getenv("PAIRS_ALL") == "" {
		t.Skip("PAIRS_ALL is not set")
	}
	s, found := newStage(t), newFindings()
	dozen := named(t, dozen)
	s.singly(t, found, alone(dozen, within))
	s.together(t, found, inOrder(dozen, 2, between, spacings[0]))
	s.together(t, found, inOrder(dozen, 3, few, spacings[0]))
	found.judge(t)
}

// checkNone fails if an event means nothing in more scenes, or fewer, than it says: what the product answers must not
// decide what is played.
func checkNone(t *testing.T, list []*played) {
	none := map[string]int{}
	for _, p := range list {
		if !p.meant {
			none[p.list[0].name]++
		}
	}
	for _, e := range events {
		if none[e.name] != e.none {
			t.Errorf("%q means nothing in %d scenes, and says %d", e.name, none[e.name], e.none)
		}
	}
}

// singly plays each event alone.
func (s *stage) singly(t *testing.T, found *findings, jobs []job) (list []*played) {
	begun := time.Now()
	list = s.all(t, jobs)
	for _, p := range list {
		if len(p.list) == 0 && len(p.faults) > 0 {
			t.Errorf("without any event: %s", p.text(p.faults[0]))
		}
		found.add(p)
	}
	for _, p := range list {
		found.learn(p)
	}
	t.Logf("alone: %d scenes in %v", len(list), time.Since(begun).Round(time.Second))
	for _, f := range found.sorted() {
		t.Logf("%d × %s: %s", f.count, f.key(), f.scene)
	}
	return list
}

// part returns one of several parts of the scenes, such as 3/20 of PAIRS_PART, so that a long run can be cut.
func part(t *testing.T, jobs []job) (mine []job) {
	asked := os.Getenv("PAIRS_PART")
	if asked == "" {
		return jobs
	}
	var n, of int
	if _, err := fmt.Sscanf(asked, "%d/%d", &n, &of); err != nil || n < 1 || n > of {
		t.Fatalf("PAIRS_PART must be like 3/20, not %s", asked)
	}
	for i := n - 1; i < len(jobs); i += of {
		mine = append(mine, jobs[i])
	}
	return mine
}

// together plays several events in each scene.
func (s *stage) together(t *testing.T, found *findings, jobs []job) {
	jobs = part(t, jobs)
	begun, n := time.Now(), 0
	var shown []*played
	for chunk := range slices.Chunk(jobs, 5000) {
		for _, p := range s.all(t, chunk) {
			n++
			if len(p.faults) > 0 {
				found.add(p)
				shown = append(shown, p)
			}
		}
		if os.Getenv("PAIRS_PROGRESS") != "" {
			fmt.Fprintf(os.Stderr, "%d of %d scenes, %v\n", n, len(jobs), time.Since(begun).Round(time.Second))
			for _, f := range found.sorted() {
				fmt.Fprintf(os.Stderr, "%d × %s: %s\n", f.count, f.key(), f.scene)
			}
		}
	}
	for _, p := range shown {
		found.learn(p)
	}
	t.Logf("together: %d scenes in %v", len(jobs), time.Since(begun).Round(time.Second))
}

// TestServers plays a few events on the servers: each alone, and all pairs of them with PAIRS_ALL=1.
func TestServers(t *testing.T) {
	racedetector.Skip(t)
	for _, d := range []rampsql.Dialect{rampsql.PostgreSQL, rampsql.MySQL} {
		t.Run(string(d), func(t *testing.T) {
			s, found := newStageOn(t, func(t *testing.T) database { return served(t, d) }), newFindings()
			among := named(t, onServers)
			if testing.Short() {
				among = among[:2]
			}
			s.singly(t, found, alone(among, few))
			if os.Getenv("PAIRS_ALL") != "" {
				s.together(t, found, inOrder(among, 2, few, spacings[0]))
			}
			found.judge(t)
		})
	}
}

// TestOne plays the scene that PAIRS names.
func TestOne(t *testing.T) {
	name := os.Getenv("PAIRS")
	if name == "" {
		t.Skip("PAIRS names no scene")
	}
	scene, gap, list := find(t, name)
	p := newStage(t).play(t, job{scene, gap, list})
	t.Logf("%s", strings.Join(p.story, "\n"))
	for _, f := range p.faults {
		t.Error(p.text(f))
	}
}
