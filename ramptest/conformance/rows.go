package conformance

import (
	"net/http"
	"slices"
)

// row is an input that is one edit of a call. What the edit changes is its type: an
// order or a result (edit), the bytes of a body, the headers, or a single value.
type row[E any] struct {
	name, title string
	level       Level
	edit        E
}

type rows[E any] []row[E]

// inputs returns an input for each row. They wait for the abilities in after.
func (rs rows[E]) inputs(run func(*trial, E), after ...string) []Input {
	all := make([]Input, len(rs))
	for i, r := range rs {
		all[i] = Input{Name: r.name, Title: r.title, Level: r.level, after: after, run: func(t *trial) { run(t, r.edit) }}
	}
	return all
}

// ofBoth returns two inputs for each row: for a mint that fails, and for a burn that
// succeeds.
func (rs rows[E]) ofBoth(mint, burn func(*trial, E)) []Input {
	return slices.Concat(prefixed("mint-", rs.inputs(mint, "mint-fails")), prefixed("burn-", rs.inputs(burn, "burn-succeeds")))
}

// prefixed returns inputs whose names begin with prefix.
func prefixed(prefix string, all []Input) []Input {
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}

// mild returns inputs whose failure never counts as a MUST.
func mild(all []Input) []Input {
	for i := range all {
		all[i].mild = true
	}
	return all
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
