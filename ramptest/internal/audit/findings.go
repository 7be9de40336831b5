package audit

import (
	"slices"

	"github.com/google/uuid"
)

// maxFound bounds the findings of a service that runs for weeks.
const maxFound = 1_000

// Take returns the findings about an order that it has not returned before.
func (b *Books) Take(id uuid.UUID) (found []*Finding) {
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
func (b *Books) Found() []*Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.found)
}

// About returns the findings about an order.
func (b *Books) About(id uuid.UUID) []*Finding {
	return slices.DeleteFunc(b.Found(), func(f *Finding) bool { return !slices.Contains(f.Orders, id) })
}
