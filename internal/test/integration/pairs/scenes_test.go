package pairs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// scene is an order, or two, from the page to the repeated result.
type scene struct {
	name  string
	steps []step
	make  func() []func(w *world) // what each step does, of new orders
}

type step struct {
	name string
	kind kind
}

// silent reports whether a step has no call.
func (s step) silent() bool { return strings.HasPrefix(s.name, "page") || s.name == "mined" }

// kind is what can happen around a step.
type kind int

const (
	plain kind = iota
	short      // of the places that the short run has, one is after it
	call       // likewise, and something can happen within it
	quick      // a call after which the short run has no place
)

func oneOrder(name string, burn, fails bool) scene {
	return scene{name,
		[]step{{"page", short}, {"validate", call}, {"mined", short}, {"result", call}, {"result again", plain}},
		func() []func(w *world) {
			var o *order
			return []func(w *world){
				func(w *world) { o = w.page("alice", burn); o.fails = fails },
				func(w *world) { w.validate(o) },
				func(w *world) { w.mined(o) },
				func(w *world) { w.deliver(o) },
				func(w *world) { w.next(o) },
			}
		}}
}

var scenes = []scene{
	oneOrder("mint", false, false),
	oneOrder("failed mint", false, true),
	oneOrder("burn", true, false),
	{"mint and burn", []step{{"pages", plain}, {"validate mint", quick}, {"validate burn", call}, {"mined", short},
		{"result burn", call}, {"result mint", quick}, {"results again", plain}},
		func() []func(w *world) {
			var m, b *order
			return []func(w *world){
				func(w *world) { m, b = w.page("alice", false), w.page("alice", true) },
				func(w *world) { w.validate(m) },
				func(w *world) { w.validate(b) },
				func(w *world) { w.mined(m); w.mined(b) },
				func(w *world) { w.deliver(b) },
				func(w *world) { w.deliver(m) },
				func(w *world) { w.next(b); w.next(m) },
			}
		}},
}

// place is where an event happens: before all, after a step, or within a call, when it asks or when it moves.
type place struct {
	step int // -1 is before all
	in   string
}

// extent says which places of a scene are tried.
type extent int

const (
	few     extent = iota // after the most important steps
	between               // before all, and after each step
	within                // and within the calls
)

// places are those of a scene, in their order.
func (s *scene) places(x extent) (list []place) {
	if x > few {
		list = append(list, place{step: -1})
	}
	for i, step := range s.steps {
		if x == within && step.kind >= call {
			list = append(list, place{i, "asks"}, place{i, "moves"})
		}
		if x > few || step.kind == short || step.kind == call {
			list = append(list, place{step: i})
		}
	}
	return list
}

func (s *scene) placeName(p place) string {
	switch {
	case p.step < 0:
		return "before"
	case p.in != "":
		return s.steps[p.step].name + ", when it " + p.in
	default:
		return s.steps[p.step].name
	}
}

// placed is an event at a place.
type placed struct {
	place
	*event
}

// later reports whether an event of a scene is a switch before a step without a call, and nothing happens between them:
// the scene is then the same as the one in which it happens after the step.
func (s *scene) later(list []placed) bool {
	for i, p := range list {
		alone := i == len(list)-1 || list[i+1].place != p.place
		if next := p.step + 1; alone && p.in == "" && next < len(s.steps) && s.steps[next].silent() &&
			slices.Contains(switches, p.name) {
			return true
		}
	}
	return false
}

// tooLong reports whether an event within a call lasts longer than any call.
func tooLong(list []placed) bool {
	return slices.ContainsFunc(list, func(p placed) bool { return p.in != "" && slices.Contains(hours, p.name) })
}

// restores reports whether an event needs backups.
func (p placed) restores() bool {
	return strings.Contains(p.name, "backup is restored") || p.name == "a failover loses the last writes"
}

// nameOf is how a scene is called, and found again.
func (s *scene) nameOf(gap time.Duration, list []placed) string {
	name := s.name
	if gap > time.Minute {
		name += " " + gap.String()
	}
	for _, p := range list {
		name += fmt.Sprintf(" | %s @ %s", p.name, s.placeName(p.place))
	}
	return name
}

// find returns the scene of a name.
func find(t testing.TB, name string) (s *scene, gap time.Duration, list []placed) {
	parts := strings.Split(name, " | ")
	for i := range scenes {
		rest, ok := strings.CutPrefix(parts[0], scenes[i].name)
		if d, err := time.ParseDuration(strings.TrimSpace(rest)); ok && (rest == "" || err == nil) {
			s, gap = &scenes[i], max(d, 20*time.Second)
		}
	}
	for _, part := range parts[1:] {
		name, at, _ := strings.Cut(part, " @ ")
		e := slices.IndexFunc(events, func(e event) bool { return e.name == name })
		if s == nil || e < 0 {
			t.Fatalf("no scene %q", name)
		}
		p := slices.IndexFunc(s.places(within), func(p place) bool { return s.placeName(p) == at })
		if p < 0 {
			t.Fatalf("no place %q", at)
		}
		list = append(list, placed{s.places(within)[p], &events[e]})
	}
	return s, gap, list
}

// play plays a scene with events in their places, and reports whether each of them meant something.
func (w *world) play(s *scene, list []placed) bool {
	w.restores = slices.ContainsFunc(list, placed.restores)
	w.backUp()
	steps := s.make()
	happen := func(now place) bool {
		for len(list) > 0 && list[0].place == now {
			e := list[0]
			list = list[1:]
			w.tell("%s (%s)", e.name, s.placeName(e.place))
			w.calling = now.in != ""
			if e.when != nil && !e.when(w) {
				return false
			}
			e.do(w)
			if now.in == "" {
				w.sleep(w.gap)
			}
		}
		return true
	}
	if !happen(place{step: -1}) {
		return false
	}
	for i := range steps {
		meant := true
		when := func(in string) func() {
			at := place{i, in}
			if !slices.ContainsFunc(list, func(p placed) bool { return p.place == at }) {
				return nil
			}
			return func() { meant = meant && happen(at) }
		}
		w.tell("%s", s.steps[i].name)
		w.during(func() { steps[i](w) }, when("asks"), when("moves"))
		w.sleep(w.gap)
		for _, in := range []string{"asks", "moves"} { // no call was made, or it did not come so far
			meant = meant && happen(place{i, in})
		}
		w.backUp()
		if !meant || !happen(place{step: i}) {
			return false
		}
	}
	w.settle()
	return true
}

// during makes a call, and lets something happen within it: when it asks, before anything is stored, or when the
// game moves assets, in a transaction that takes six seconds.
func (w *world) during(call, asks, moves func()) {
	var asking chan bool
	if asks != nil {
		asked := func() {
			delete(w.inside, "asks")
			w.chain.asked, asking = nil, make(chan bool)
			defer close(asking)
			asks()
		}
		w.inside["asks"], w.chain.asked = asked, asked
	}
	if moves == nil {
		call()
	} else {
		moving, done := make(chan bool, 1), make(chan bool)
		w.inside["moves"] = func() { moving <- true; w.sleep(6 * time.Second) }
		go func() { defer close(done); call() }()
		select {
		case <-moving:
			moves()
		case <-done:
		}
		<-done
	}
	if asking != nil { // the call may have been answered meanwhile
		<-asking
	}
	clear(w.inside)
	w.chain.asked, w.repriced = nil, false
}
