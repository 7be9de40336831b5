package judge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// httpCases returns the cases about HTTP itself, for what a proxy, a framework or a parser
// breaks (interface 4.3, 8).
func httpCases() []Case {
	ended := func(t *trial) answer { return t.report(t.approve(t.plain()), failure) }
	return []Case{
		{ID: "http", alone: true,
			Fix: "Read the whole body, however it arrives and whatever its Content-Type, also where a " +
				"gateway encodes it in base64; " +
				"reject one that is incomplete, too large or too deep, and every method but POST.",
			Inputs: slices.Concat(atValidate.httpInputs(), atResult.httpInputs(), assetsTypes()),
			Title: "A call is answered however HTTP carries it, and whatever its Content-Type is; an " +
				"impossible one is rejected, moves nothing and stops nothing."},
		{ID: "content-type",
			Fix:   "Set Content-Type to application/json on every answer, including rejections.",
			Title: "The Content-Type of an answer is application/json.",
			Inputs: rows[func(*trial) answer]{Should: {
				{"assets", "an assets answer", func(t *trial) answer { return t.assets(t.player) }},
				{"approval", "an approval", func(t *trial) answer { return t.validate(t.plain()) }},
				{"rejection", "a rejection", func(t *trial) answer { return t.validate(t.plain(ofNobody)) }},
				{"confirmation", "a confirmation", ended},
			}}.inputs(func(t *trial, ask func(*trial) answer) {
				a := ask(t)
				if got := a.header.Get("Content-Type"); t.answered(a) &&
					!strings.HasPrefix(strings.ToLower(got), "application/json") {
					t.fail("another Content-Type or none", "application/json")
				}
			})},
		{ID: "null-fields",
			Fix: "Write errorCode as null on success, and data as null in the answer to a result; do " +
				"not omit them.",
			Title: "The answer to a call that succeeds has errorCode null, and data null if there is none.",
			Inputs: []Input{
				nullFields("assets", "an assets call",
					func(t *trial) answer { return t.assets(t.player) }, "assets"),
				nullFields("validate", "a validate call",
					func(t *trial) answer { return t.validate(t.plain()) }),
				nullFields("result", "a result", ended, "result-answer", "mint-fails"),
			}},
		handlerCase(),
	}
}

// handlerCase is about all other cases.
func handlerCase() Case {
	return Case{ID: handlerID, Level: Must, Section: "6", last: true,
		Fix: "Exempt the service's endpoints from the breakers, limits and timeouts of your framework " +
			"and of proxies: the service delivers a result again only after HTTP 500 or no answer.",
		Title: "Every call that the judge made was answered by the game's handler.",
		run:   func(*trial) {}} // its verdict is that of [Judge.layered]
}

func nullFields(name, title string, ask func(*trial) answer, after ...string) Input {
	return must(name, title, func(t *trial) {
		a := ask(t)
		t.strict(a)
		for _, field := range []string{"errorCode", "data"} {
			if _, ok := a.envelope[field]; !ok {
				t.failAt(a, "a success without the field "+field, field+" null")
			}
		}
	}, after...)
}

func (e endpoint) httpInputs() []Input {
	answers := func(send func(t *trial, c call) answer) func(*trial) {
		return func(t *trial) {
			e.answers(t, func(v valid) answer { return v.noted(send(t, v.call(v.body.bytes()))) })
		}
	}
	arriving := func(length int64, pieces func(body []byte) io.Reader) func(*trial) {
		return answers(func(t *trial, c call) answer {
			c.length, c.arriving = max(length, length*int64(len(c.body))),
				func() io.Reader { return pieces(c.body) }
			return t.deliver(c)
		})
	}
	whose := "a " + string(e) + " call "
	of := func(types ...string) func(*trial) {
		return answers(func(t *trial, c call) answer {
			delete(c.header, "Content-Type")
			if len(types) > 0 {
				c.header["Content-Type"] = types
			}
			return t.deliver(c)
		})
	}
	// The interface gives the Content-Type of a validate call (4.3), and not that of a result (6).
	level := Should
	if e == atResult {
		level = Must
	}
	var typed []Input
	for _, in := range (rows[func(*trial)]{level: {
		{"type-none", whose + "without a Content-Type", of()},
		{"type-octets", whose + "of application/octet-stream", of("application/octet-stream")},
		{"type-text", whose + "of text/plain", of("text/plain; charset=utf-8")},
	}}).inputs(func(t *trial, run func(*trial)) { run(t) }) {
		in.mild = e == atValidate
		typed = append(typed, in)
	}
	return slices.Concat(prefixed(string(e)+"-", typed), prefixed(string(e)+"-", rows[func(*trial)]{Should: {
		{"method", whose + "with the method GET", func(t *trial) {
			e.rejects(t, func(v valid) answer {
				c := v.call(v.body.bytes())
				c.method, c.alone = http.MethodGet, true
				return t.try(c)
			})
		}},
		{"charset", whose + "with application/json; charset=utf-8", answers(func(t *trial, c call) answer {
			c.header.Set("Content-Type", "application/json; charset=utf-8")
			return t.deliver(c)
		})},
		{"chunked", whose + "whose body comes in chunks, without Content-Length",
			arriving(-1, func(body []byte) io.Reader { return pieces(body, 2, 0) })},
		{"slow", whose + "whose body comes in pieces, over a quarter of a second",
			arriving(1, func(body []byte) io.Reader { return pieces(body, 5, pause(50*time.Millisecond)) })},
		{"large", whose + "of 8 MiB that is not authentic, and the next one",
			answers(func(t *trial, c call) answer {
				large := c
				large.body, large.alone = append(bytes.Repeat([]byte(" "), 8<<20), c.body...), true
				t.rejected(readable(t.try(large))) // a server may hang up before it has read everything
				return t.deliver(c)
			})},
		{"deep", whose + "of 200,000 nested lists, and the next one", answers(func(t *trial, c call) answer {
			const depth = 200_000
			deep := `{"deep":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "," +
				string(c.body[1:])
			if a := t.deliver(t.call(c.path, t.player, []byte(deep))); t.either(a) {
				return a
			}
			return t.deliver(c)
		})},
	}}.inputs(func(t *trial, run func(*trial)) { run(t) })))
}

// assetsTypes are assets calls of other types: they have no body, so their type says nothing.
func assetsTypes() []Input {
	return mild(rows[[]string]{Should: {
		{"assets-type-none", "an assets call without a Content-Type", nil},
		{"assets-type-octets", "an assets call of application/octet-stream",
			[]string{"application/octet-stream"}},
		{"assets-type-text", "an assets call of text/plain", []string{"text/plain; charset=utf-8"}},
	}}.inputs(func(t *trial, types []string) {
		t.strict(t.assets(t.player, setHeader("Content-Type", types...)))
	})...)
}

// readable turns a closed connection into a rejection, because a server may hang up on a
// body or a header that it will not read.
func readable(a answer) answer {
	if a.err != nil && !errors.Is(a.err, context.DeadlineExceeded) && !errors.Is(a.err, errBusy) {
		return answer{status: http.StatusRequestEntityTooLarge}
	}
	return a
}

// pieces returns a body that arrives in pieces, each after a pause.
func pieces(body []byte, n int, between pause) io.Reader {
	var all []io.Reader
	for piece := range slices.Chunk(body, len(body)/n+1) {
		all = append(all, between, bytes.NewReader(piece))
	}
	return io.MultiReader(all...)
}

// pause is an empty reader that takes its time.
type pause time.Duration

func (p pause) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}
