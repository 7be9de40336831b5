package judge

import (
	"net/http"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/gamecall"
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
			in := Input{Name: r.name, Title: r.title, Level: level, after: after}
			in.run = func(t *trial) { run(t, r.edit) }
			all = append(all, in)
		}
	}
	return all
}

// of returns an input for each row, about an open order and the status with which it ends.
func (rs rows[E]) of(
	prefix string, e ending, run func(t *trial, o order, status string, change E), after ...string,
) []Input {
	return prefixed(prefix+"-", rs.inputs(func(t *trial, change E) {
		run(t, e.open(t), e.status, change)
	}, append(after, e.ability)...))
}

// ofBoth returns two inputs for each row: for a mint that fails, and for a burn that
// succeeds.
func (rs rows[E]) ofBoth(run func(*trial, order, string, E)) []Input {
	return slices.Concat(rs.of("mint", mintFails, run), rs.of("burn", burnEnds, run))
}

// leftOut returns two edits: without a field, and with null in it.
func leftOut(name, path string) []row[edit] {
	return []row[edit]{
		{"no-" + name, "without " + path, drop(path)},
		{"null-" + name, "whose " + path + " is null", set(path, nil)},
	}
}

// setHeader sets the values of a header. TOKEN, SESSION and HMAC in them are the right ones.
func setHeader(name string, values ...string) headerEdit {
	return func(t *trial, header http.Header, _ []byte) {
		right := strings.NewReplacer("TOKEN", tokenIn(header), "SESSION", t.player.ID,
			"HMAC", first(header, gamecall.Signature))
		delete(header, name)
		for _, value := range values {
			header[name] = append(header[name], right.Replace(value))
		}
	}
}

// tokenIn returns the token in the headers of a call.
func tokenIn(header http.Header) string {
	return strings.TrimPrefix(first(header, gamecall.Authorization), "Bearer ")
}

var (
	unknownToken   = setHeader(gamecall.Authorization, "Bearer nobody-has-this-token")
	unknownSession = setHeader(gamecall.SessionID, "nobody-has-this-session")
)
