package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
)

const (
	// keptLines is how many lines wait for a reader. Later ones are counted instead.
	keptLines = 10_000

	// lastWait is how long the end of a command waits for a reader of what it printed.
	lastWait = time.Second
)

// printer prints events, one at a time.
type printer struct {
	mu       sync.Mutex
	out      io.Writer
	terminal io.Writer // where out leads to; nil if it is out
	json     bool
	quiet    bool
	last     time.Time // the last time printed
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
	if at := e.Time.Add(e.Took); at.After(p.last) {
		p.last = at
	}
	line := oneEvent(e.String())
	if e.Failed {
		terminal := p.terminal
		if terminal == nil {
			terminal = p.out
		}
		line = colored(terminal, red, line)
	}
	fmt.Fprintln(p.out, p.last.Format("15:04:05"), line)
}

// aside is an output for which nobody waits: a terminal that is stopped, or a pipe that nobody reads,
// must not stop the emulator. Each Write is one line, or more.
type aside struct {
	out io.Writer
	gap string // says, with a number in it, how many lines are missing

	mu      sync.Mutex
	waiting []string
	skipped int           // lines that did not wait, because there were too many
	idle    chan struct{} // is closed when drain ends; nil if it does not run
	failed  error
}

// Write hands a text over to be written.
func (a *aside) Write(text []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.failed != nil:
	case len(a.waiting) == keptLines:
		a.skipped++
	default:
		a.waiting = append(a.waiting, string(text))
		if a.idle == nil {
			a.idle = make(chan struct{})
			go a.drain(a.idle)
		}
	}
	return len(text), nil
}

// drain writes what waits, and ends when nothing does.
func (a *aside) drain(idle chan struct{}) {
	defer close(idle)
	for {
		a.mu.Lock()
		text := strings.Join(a.waiting, "")
		if a.waiting = nil; a.skipped > 0 {
			text += fmt.Sprintf(a.gap, a.skipped)
			a.skipped = 0
		}
		if text == "" {
			a.idle = nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		if _, err := a.out.Write([]byte(text)); err != nil {
			a.mu.Lock()
			a.failed, a.waiting, a.idle = err, nil, nil
			a.mu.Unlock()
			return
		}
	}
}

// close waits shortly for a reader. The error is that of a write, except that nobody reads anymore:
// whoever took the first line and left did what they wanted.
func (a *aside) close() error {
	a.mu.Lock()
	idle := a.idle
	a.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-time.After(lastWait):
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.failed, syscall.EPIPE) || errors.Is(a.failed, io.ErrClosedPipe) {
		return nil
	}
	return a.failed
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
