package pairs

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stage is where scenes are played: in bubbles of testing/synctest, on SQLite.
type stage struct {
	dir  string
	seed *seed
}

func newStage(t *testing.T) *stage {
	s := &stage{dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) { s.seed = plant(t, s.dir) })
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
	synctest.Test(t, func(t *testing.T) {
		db, remove := copyFile(t, s.dir, s.seed.file)
		defer remove()
		w := s.seed.grow(t, db)
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
	return p
}

// all plays scenes on all processors, and returns them in their order.
func (s *stage) all(t *testing.T, jobs []job) []*played {
	list := make([]*played, len(jobs))
	t.Run("all", func(t *testing.T) {
		var mu sync.Mutex
		next := 0
		for worker := range runtime.GOMAXPROCS(0) + 2 {
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
					begun := time.Now()
					list[n] = s.play(t, jobs[n])
					if d := time.Since(begun); d > time.Second {
						t.Log("SLOW", list[n].name, d)
					}
				}
			})
		}
	})
	return list
}

// spacings are the times between two calls: seconds, and beyond the five minutes for which a former price counts.
var spacings = []time.Duration{20 * time.Second, 6 * time.Minute}

// alone are all scenes with one event or none.
func alone(among []event) (jobs []job) {
	for i := range scenes {
		s := &scenes[i]
		for _, gap := range spacings[:1] {
			jobs = append(jobs, job{s, gap, nil})
			for e := range among {
				for _, at := range s.places(true) {
					jobs = append(jobs, job{s, gap, []placed{{at, &among[e]}}})
				}
			}
		}
	}
	return jobs
}

// pairsOf are all scenes with two events, each before the other.
func pairsOf(among []event, within bool) (jobs []job) {
	for i := range scenes {
		s := &scenes[i]
		places := s.places(within)
		for a := range among {
			for b := range among {
				for n, first := range places {
					for _, second := range places[n:] {
						jobs = append(jobs, job{s, spacings[0], []placed{{first, &among[a]}, {second, &among[b]}}})
					}
				}
			}
		}
	}
	return jobs
}

func TestPairs(t *testing.T) {
	s := newStage(t)
	found := newFindings()
	begun := time.Now()
	list := s.all(t, alone(events))
	for _, p := range list {
		if len(p.list) == 0 && len(p.faults) > 0 {
			t.Errorf("without any event: %s", p.text(p.faults[0]))
		}
		found.add(p)
	}
	for _, p := range list {
		found.learn(p)
	}
	t.Logf("alone: %d scenes, %v", len(list), time.Since(begun))
	if os.Getenv("PAIRS_ALONE") == "" {
		begun = time.Now()
		jobs := pairsOf(events[:], false)
		for chunk := range slices.Chunk(jobs, 10000) {
			for _, p := range s.all(t, chunk) {
				found.add(p)
			}
			t.Logf("pairs: %d scenes, %v", len(chunk), time.Since(begun))
		}
	}
	for _, f := range found.sorted() {
		t.Logf("%d × %s\n%s", f.count, f.key(), f.text)
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
