package conformance

import (
	"net/http"
	"slices"
	"strings"
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

// of returns an input for each row, about an ending.
func (rs rows[E]) of(prefix string, e ending, run func(*trial, ending, E), after ...string) []Input {
	return prefixed(prefix+"-", rs.inputs(func(t *trial, change E) { run(t, e, change) }, append(after, e.ability)...))
}

// ofBoth returns two inputs for each row: for a mint that fails, and for a burn that
// succeeds.
func (rs rows[E]) ofBoth(run func(*trial, ending, E)) []Input {
	return slices.Concat(rs.of("mint", mintFails, run), rs.of("burn", burnEnds, run))
}

// must returns an input that is a MUST.
func must(name, title string, run func(*trial), after ...string) Input {
	return Input{Name: name, Title: title, Level: Must, run: run, after: after}
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

// with returns an input that needs something of the target.
func (in Input) with(needs need) Input {
	in.needs = needs
	return in
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

// leftOut returns two edits: without a field, and with null in it.
func leftOut(name, path string, level Level) rows[edit] {
	return rows[edit]{
		{"no-" + name, "without " + path, level, drop(path)},
		{"null-" + name, "whose " + path + " is null", level, set(path, nil)},
	}
}

// headerEdit changes the headers of a call that has been signed.
type headerEdit func(t *trial, header http.Header, body []byte)

// setHeader sets the values of a header. TOKEN and SESSION in them are those of the player.
func setHeader(name string, values ...string) headerEdit {
	return func(t *trial, header http.Header, _ []byte) {
		right := strings.NewReplacer("TOKEN", t.player.Token.Reveal(), "SESSION", t.player.ID)
		delete(header, name)
		for _, value := range values {
			header[name] = append(header[name], right.Replace(value))
		}
	}
}

var (
	unknownToken   = setHeader(authorization, "Bearer nobody-has-this-token")
	unknownSession = setHeader(sessionID, "nobody-has-this-session")
)
