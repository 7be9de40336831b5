package conformance

import (
	"fmt"
	"net/http"
)

// row is a case that is one edit of a call. What the edit changes is its type: an order
// or a result (edit), the bytes of a body, the headers, or a single value.
type row[E any] struct {
	id, title string // what is edited, for the %s of a want
	level     Level
	edit      E
}

type rows[E any] []row[E]

// want is what must be answered to the edited calls of a table.
type want[E any] struct {
	id, title    string // of the cases; %s stands for that of the row
	section, fix string
	run          func(*trial, E)
}

// cases returns a case for each row and each want: first all cases of the first row.
func (rs rows[E]) cases(wants ...want[E]) []Case {
	var cases []Case
	for _, r := range rs {
		for _, w := range wants {
			cases = append(cases, Case{ID: fmt.Sprintf(w.id, r.id), Title: fmt.Sprintf(w.title, r.title),
				Level: r.level, Section: w.section, Fix: w.fix, run: func(t *trial) { w.run(t, r.edit) }})
		}
	}
	return cases
}

// edit changes a copy of a message.
type edit func(object) object

func set(path string, value any) edit {
	return func(o object) object { return o.with(path, value) }
}

func drop(path string) edit {
	return func(o object) object { return o.without(path) }
}

// bytesEdit returns the body to send instead of the right one.
type bytesEdit func(right []byte) []byte

// headerEdit changes the headers of a call that has been signed.
type headerEdit func(t *trial, header http.Header, body []byte)
