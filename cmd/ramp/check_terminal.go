package main

import (
	"fmt"
	"io"

	"github.com/token-ramp/ramp-go/internal/judge"
)

// painter returns the text of an outcome, in color for a terminal.
type painter func(judge.Outcome) string

func paint(out io.Writer) painter {
	colors := map[judge.Outcome]string{judge.Passed: green, judge.Failed: red, judge.Noted: yellow,
		judge.Untried: violet}
	return func(o judge.Outcome) string { return colored(out, colors[o], string(o)) }
}

// progress shows the progress of a check on one line of a terminal.
type progress struct {
	out           io.Writer
	tried, failed int
	of            int
}

// show counts a verdict and updates the line. It is not safe for concurrent use; the
// judge does not call it concurrently.
func (p *progress) show(v judge.Verdict) {
	p.tried++
	if v.Outcome == judge.Failed {
		p.failed++
	}
	fmt.Fprintf(p.out, "\r\x1b[K%d of %d cases, %d failed: %s", p.tried, p.of, p.failed, v.Case.ID)
}

// clear erases the line.
func (p *progress) clear() { fmt.Fprint(p.out, "\r\x1b[K") }
