package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// keptLines is how many lines wait for a reader. Later ones are counted instead.
	keptLines = 10_000

	// lastWait is how long the end of a command waits for a reader of what it printed.
	lastWait = time.Second
)

// output is the standard output of the process. A reader that goes, such as head -n 1, has what it wanted,
// and decides nothing about the command. What cannot be written for another reason is in the exit status.
type output struct {
	file *os.File

	mu     sync.Mutex
	failed error
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.file.Write(text)
	if isClosed(err) {
		return len(text), nil
	}
	if err != nil {
		o.mu.Lock()
		o.failed = err
		o.mu.Unlock()
	}
	return n, err
}

// Stat and Name are those of the file; see isTerminal.
func (o *output) Stat() (os.FileInfo, error) { return o.file.Stat() }
func (o *output) Name() string               { return o.file.Name() }

// status returns the exit status of a command that has ended with one.
func (o *output) status(status int, errs io.Writer) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil || status != 0 {
		return status
	}
	fmt.Fprintln(errs, "ramp: the output could not be written:", o.failed)
	return 1
}

// isClosed reports whether an error of writing means that nobody reads any more.
func isClosed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
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
	if isClosed(a.failed) {
		return nil
	}
	return a.failed
}
