//go:build race

package locks

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Mutex is a [sync.Mutex] with a place in the order.
type Mutex struct {
	place  Place
	mu     sync.Mutex
	holder string // of a mutex with a place, while it is locked
}

// At returns a mutex with a place. The zero Mutex has none, and is not checked.
func At(p Place) Mutex { return Mutex{place: p} }

// Lock panics if the goroutine holds a lock of the same place or a later one.
func (m *Mutex) Lock() {
	if m.place == 0 {
		m.mu.Lock()
		return
	}
	id := goroutine()
	list, _ := held.Load(id)
	places, _ := list.([]Place)
	if i := slices.IndexFunc(places, func(p Place) bool { return p >= m.place }); i >= 0 {
		panic(fmt.Sprintf("locks: place %d is taken while %d is held", m.place, places[i]))
	}
	held.Store(id, append(slices.Clone(places), m.place))
	m.mu.Lock()
	m.holder = id
}

// Unlock must be called by the goroutine that called Lock.
func (m *Mutex) Unlock() {
	id := m.holder
	m.mu.Unlock()
	if m.place == 0 {
		return
	}
	list, _ := held.Load(id)
	places, _ := list.([]Place)
	places = slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return p == m.place })
	if held.Store(id, places); len(places) == 0 {
		held.Delete(id)
	}
}

// held has the places of the locks that each goroutine holds.
var held sync.Map

// goroutine returns the number of the goroutine, of which only its stack tells. To write the
// stack takes longer than all else here.
func goroutine() string {
	stack := make([]byte, 64)
	return string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
}
