package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// rows are inputs by their level, each of which is one edit of a call. What the edit
// changes is its type: an order or a result (edit), the headers, or a single value.
type rows[E any] map[Level][]row[E]

type row[E any] struct {
	name, title string
	edit        E
}

// inputs returns an input for each row. They wait for the abilities in after.
func (rs rows[E]) inputs(run func(*trial, E), after ...string) []Input {
	var all []Input
	for _, level := range []Level{Must, Should} {
		for _, r := range rs[level] {
			all = append(all, Input{Name: r.name, Title: r.title, Level: level, after: after, run: func(t *trial) { run(t, r.edit) }})
		}
	}
	return all
}

// of returns an input for each row, about an open order and the status with which it ends.
func (rs rows[E]) of(prefix string, e ending, run func(t *trial, o order, status string, change E), after ...string) []Input {
	return prefixed(prefix+"-", rs.inputs(func(t *trial, change E) {
		run(t, e.open(t), e.status, change)
	}, append(after, e.ability)...))
}

// ofBoth returns two inputs for each row: for a mint that fails, and for a burn that
// succeeds.
func (rs rows[E]) ofBoth(run func(*trial, order, string, E)) []Input {
	return slices.Concat(rs.of("mint", mintFails, run), rs.of("burn", burnEnds, run))
}

// must returns an input that is a MUST.
func must(name, title string, run func(*trial), after ...string) Input {
	return Input{Name: name, Title: title, Level: Must, run: run, after: after}
}

// should returns an input that is a SHOULD.
func should(name, title string, run func(*trial), after ...string) Input {
	return Input{Name: name, Title: title, Level: Should, run: run, after: after}
}

// prefixed returns inputs whose names begin with prefix.
func prefixed(prefix string, all []Input) []Input {
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}

// mild returns inputs whose failure never counts as a MUST.
func mild(all ...Input) []Input {
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

// changed changes a text.
func changed(path string, change func(string) string) edit {
	return func(o object) object { return o.with(path, change(literalText(o.at(path)))) }
}

// multiplied multiplies an amount.
func multiplied(path string, n int64) edit {
	return func(o object) object { return o.with(path, scaled(o.at(path).(json.Number), n)) }
}

// edits makes several edits.
func edits(all ...edit) edit {
	return func(o object) object { return o.bent(all...) }
}

// leftOut returns two edits: without a field, and with null in it.
func leftOut(name, path string) []row[edit] {
	return []row[edit]{
		{"no-" + name, "without " + path, drop(path)},
		{"null-" + name, "whose " + path + " is null", set(path, nil)},
	}
}

// headerEdit changes the headers of a call that has been signed.
type headerEdit func(t *trial, header http.Header, body []byte)

// setHeader sets the values of a header. TOKEN, SESSION and HMAC in them are the right ones.
func setHeader(name string, values ...string) headerEdit {
	return func(t *trial, header http.Header, _ []byte) {
		right := strings.NewReplacer("TOKEN", t.player.Token.Reveal(), "SESSION", t.player.ID, "HMAC", first(header, signature))
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
