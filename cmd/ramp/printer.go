package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
)

// printer prints events, one at a time.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	json  bool
	quiet bool
	last  time.Time // the last time printed
}

// event prints an event with the time at which it ended, because that is when it is
// printed. The printed times never run backwards.
func (p *printer) event(e control.Event) {
	if e.Routine() && !p.json || p.quiet && !e.Failed {
		return // routine events would bury the others
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json {
		printJSON(p.out, e)
		return
	}
	if at := e.Time.Add(time.Duration(e.Took)); at.After(p.last) {
		p.last = at
	}
	line := oneEvent(e.String())
	if e.Failed {
		line = colored(p.out, red, line)
	}
	fmt.Fprintln(p.out, p.last.Format("15:04:05"), line)
}

// oneEvent replaces unprintable characters, so that a game's text cannot control the
// terminal. Newlines stay.
func oneEvent(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
