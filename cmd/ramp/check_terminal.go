package main

import (
	"fmt"
	"io"
	"os"

	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// painter writes an outcome, in color on a terminal.
type painter func(conformance.Outcome) string

func paint(out io.Writer) painter {
	if !isTerminal(out) || os.Getenv("NO_COLOR") != "" {
		return func(o conformance.Outcome) string { return string(o) }
	}
	colors := map[conformance.Outcome]int{conformance.Passed: 32, conformance.Failed: 31, conformance.Noted: 33, conformance.Untried: 35}
	return func(o conformance.Outcome) string {
		if color := colors[o]; color != 0 {
			return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, o)
		}
		return string(o)
	}
}

// isTerminal reports whether somebody watches.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull
}

// progress is one line on a terminal that says how far a check is. Elsewhere it
// writes nothing.
type progress struct {
	out           io.Writer
	tried, failed int
	of            int
}

func newProgress(out io.Writer, cases int) *progress {
	p := &progress{of: cases}
	if isTerminal(out) {
		p.out = out
	}
	return p
}

// show says that a case has its verdict. The judge calls it one at a time.
func (p *progress) show(v conformance.Verdict) {
	p.tried++
	if v.Outcome == conformance.Failed {
		p.failed++
	}
	if p.out != nil {
		fmt.Fprintf(p.out, "\r\x1b[K%d of %d cases, %d failed: %s", p.tried, p.of, p.failed, v.Case.ID)
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p.out != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
