package conformance

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
	return []Case{
		{ID: "http", Section: "4.3", alone: true,
			Fix: "Read the whole body, however it arrives and whatever the parameters of its Content-Type; " +
				"reject one that is incomplete, too large or too deep, and every method but POST.",
			Inputs: slices.Concat(atValidate.httpInputs(), atResult.httpInputs()),
			Title:  "A validate or result call is answered however HTTP carries it, and an impossible one is rejected, moves nothing and stops nothing."},
		{ID: "content-type", Section: "4.3", Fix: "Set Content-Type to application/json on every answer, including rejections.",
			Title: "The Content-Type of an answer is application/json.",
			Inputs: rows[func(*trial) answer]{
				{"assets", "an assets answer", Should, func(t *trial) answer { return t.assets(t.player) }},
				{"approval", "an approval", Should, func(t *trial) answer { return t.validate(t.plain()) }},
				{"rejection", "a rejection", Should, func(t *trial) answer { return t.validate(t.plain().bent(t.ofNobody())) }},
				{"confirmation", "a confirmation", Should, func(t *trial) answer { o := t.approve(t.plain()); return t.report(o, o.result(failure)) }},
			}.inputs(func(t *trial, ask func(*trial) answer) {
				a := ask(t)
				if got := a.header.Get("Content-Type"); t.answered(a) && !strings.HasPrefix(strings.ToLower(got), "application/json") {
					t.fail("another Content-Type or none", "application/json")
				}
			})},
		{ID: "null-fields", Section: "4.3", Fix: "Write errorCode as null on success, and data as null in the answer to a result; do not omit them.",
			Title: "The answer to a call that succeeds has errorCode null, and data null if there is none.",
			Inputs: slices.Concat(nullFields("assets", "an assets call", func(t *trial) answer { return t.assets(t.player) }, "assets"),
				nullFields("validate", "a validate call", func(t *trial) answer { return t.validate(t.plain()) }),
				nullFields("result", "a result", func(t *trial) answer { o := t.approve(t.plain()); return t.report(o, o.result(failure)) }, "result-answer", "mint-fails"))},
		handlerCase(),
	}
}

func nullFields(name, title string, ask func(*trial) answer, after ...string) []Input {
	return rows[func(*trial) answer]{{name, title, Must, ask}}.inputs(func(t *trial, ask func(*trial) answer) {
		a := ask(t)
		if t.answered(a) && !a.strictly() {
			t.mismatch(a, "HTTP 200 with success true and errorCode null")
		}
		for _, field := range []string{"errorCode", "data"} {
			if _, ok := a.envelope[field]; t.err == nil && !ok {
				t.failAt(a, "a success without the field "+field, field+" null")
			}
		}
	}, after...)
}

func (e endpoint) httpInputs() []Input {
	answers := func(send func(t *trial, header http.Header, body []byte) answer) func(*trial) {
		return func(t *trial) {
			e.answers(t, func(o order, right object) answer {
				body := right.bytes()
				return e.noted(t, o, right, send(t, t.signed(t.player, body), body))
			})
		}
	}
	whose := "a " + e.name + " call "
	return prefixed(e.name+"-", rows[func(*trial)]{
		{"method", whose + "with the method GET", Should, func(t *trial) {
			e.rejects(t, func(_ order, right object) answer {
				body := right.bytes()
				return t.try(call{method: http.MethodGet, path: e.path(t.target), header: t.signed(t.player, body),
					body: body, hmac: t.target.Key.Sign(body), alone: true})
			})
		}},
		{"charset", whose + "with application/json; charset=utf-8", Should, answers(func(t *trial, header http.Header, body []byte) answer {
			header.Set("Content-Type", "application/json; charset=utf-8")
			return t.post(e.path(t.target), header, body)
		})},
		{"chunked", whose + "whose body comes in chunks, without Content-Length", Should, answers(func(t *trial, header http.Header, body []byte) answer {
			return t.try(call{method: http.MethodPost, path: e.path(t.target), header: header, length: -1,
				arriving: func() io.Reader { return pieces(body, 2, 0) }})
		})},
		{"slow", whose + "whose body comes in pieces, over a quarter of a second", Should, answers(func(t *trial, header http.Header, body []byte) answer {
			return t.try(call{method: http.MethodPost, path: e.path(t.target), header: header, length: int64(len(body)),
				arriving: func() io.Reader { return pieces(body, 5, pause(50*time.Millisecond)) }})
		})},
		{"large", whose + "of 8 MiB that is not authentic, and the next one", Should, answers(func(t *trial, header http.Header, body []byte) answer {
			// A server may hang up before it has read everything.
			large := append(bytes.Repeat([]byte(" "), 8<<20), body...)
			t.rejected(readable(t.try(call{method: http.MethodPost, path: e.path(t.target), header: header,
				body: large, alone: true})))
			return t.post(e.path(t.target), t.signed(t.player, body), body)
		})},
		{"deep", whose + "of 200,000 nested lists, and the next one", Should, answers(func(t *trial, header http.Header, body []byte) answer {
			const depth = 200_000
			deep := []byte(`{"deep":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "," + string(body[1:]))
			if a := t.post(e.path(t.target), t.signed(t.player, deep), deep); t.answered(a) && a.succeeded() {
				return a
			}
			return t.post(e.path(t.target), header, body)
		})},
	}.inputs(func(t *trial, run func(*trial)) { run(t) }))
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
