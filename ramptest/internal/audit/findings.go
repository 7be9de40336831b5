package audit

import (
	"slices"

	"github.com/google/uuid"
)

// maxFound bounds the findings of a service that runs for weeks.
const maxFound = 1_000

// find enters what was found in a window, or between windows. The caller must hold the lock.
func (b *Auditor) find(opened uuid.UUID, found *Finding) {
	if len(b.found) == maxFound {
		delete(b.returned, b.found[0])
		b.found = slices.Delete(b.found, 0, 1)
	}
	b.found = append(b.found, found)
	b.config.Judged(opened, found.Problem, found)
}

// Asides returns what moved between calls for no order, and is no finding. It has the first 100.
func (b *Auditor) Asides() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asides)
}

// Take returns the findings about an order that it has not returned before.
func (b *Auditor) Take(id uuid.UUID) (found []*Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.found {
		if !b.returned[f] && slices.Contains(f.Orders, id) {
			b.returned[f] = true
			found = append(found, f)
		}
	}
	return found
}

// Found returns the last 1,000 findings.
func (b *Auditor) Found() []*Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.found)
}

// About returns the findings about an order.
func (b *Auditor) About(id uuid.UUID) []*Finding {
	return slices.DeleteFunc(b.Found(), func(f *Finding) bool { return !slices.Contains(f.Orders, id) })
}
