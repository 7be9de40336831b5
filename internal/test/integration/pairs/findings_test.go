package pairs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// finding is what a scene showed.
type finding struct {
	fault
	cause string // the events without which it is not there
	scene string // the first in which it showed
	count int    // in how many scenes
	text  string
}

func (f *finding) key() string { return f.cause + ": " + f.String() }

// causeOf names the events of a scene, in no order.
func causeOf(list []placed) string {
	var names []string
	for _, p := range list {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " × ")
}

// findings groups what scenes showed by their cause, of which player and amount are part. What a scene shows counts
// only for what no part of its events shows in the same kind of order.
type findings struct {
	shown map[string]bool // by scene.name, the events of a part, and fault
	found map[string]*finding
}

func newFindings() *findings { return &findings{map[string]bool{}, map[string]*finding{}} }

// add adds what a scene showed.
func (f *findings) add(p *played) {
	for _, fault := range p.faults {
		if f.known(p.scene.name, p.list, fault) {
			continue
		}
		n := &finding{fault: fault, cause: causeOf(p.list), scene: p.name, text: p.text(fault)}
		if first := f.found[n.key()]; first != nil {
			first.count++
			continue
		}
		n.count = 1
		f.found[n.key()] = n
	}
}

// learn remembers what a part of the events shows: what more events show, too, is not theirs.
func (f *findings) learn(p *played) {
	for _, fault := range p.faults {
		f.shown[p.scene.name+": "+causeOf(p.list)+": "+fault.String()] = true
	}
}

// known reports whether a part of the events showed a fault before.
func (f *findings) known(scene string, list []placed, is fault) bool {
	for part := range 1<<len(list) - 1 {
		var rest []placed
		for i, p := range list {
			if part&(1<<i) != 0 {
				rest = append(rest, p)
			}
		}
		if f.shown[scene+": "+causeOf(rest)+": "+is.String()] {
			return true
		}
	}
	return false
}

func (f *findings) sorted() []*finding {
	return slices.SortedFunc(maps.Values(f.found), func(a, b *finding) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key(), b.key()))
	})
}

// unknown returns a finding that is not known to be red, or nil.
func (f *findings) unknown(t *testing.T) *finding {
	known := redKeys(t)
	for _, n := range f.sorted() {
		if _, is := known[n.key()]; !is {
			return n
		}
	}
	return nil
}

// judge fails for what is found and is not known to be red.
func (f *findings) judge(t *testing.T) {
	known := redKeys(t)
	for _, n := range f.sorted() {
		if issue, is := known[n.key()]; is {
			t.Logf("%d × %s (%s)", n.count, n.key(), issue)
			continue
		}
		t.Errorf("%d × %s\n%s", n.count, n.key(), n.text)
	}
}

// played is a scene that was played.
type played struct {
	scene  *scene
	list   []placed
	name   string
	meant  bool // each event meant something there
	faults []fault
	story  []string
	has    string
	heard  string
}

// text are the five lines of a failure.
func (p *played) text(f fault) string {
	detail, _, _ := strings.Cut(f.detail, "\n")
	return fmt.Sprintf("%s: %s\n  played: %s\n  players: %s\n  persons heard last: %s\n  alone: %s", f, detail,
		strings.Join(p.story, "; "), p.has, cmp.Or(p.heard, "nothing"), command(p.name))
}

func command(name string) string { return fmt.Sprintf("PAIRS='%s' go test -run TestOne .", name) }
