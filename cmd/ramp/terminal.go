package main

import (
	"io"
	"os"
)

// Colors for a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	violet = "\x1b[35m"
	gray   = "\x1b[90m"
	normal = "\x1b[0m"
)

// colored returns text in a color if w is a terminal. NO_COLOR turns colors off.
func colored(w io.Writer, color, text string) string {
	if color == "" || !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return color + text + normal
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	if queue, is := w.(*aside); is {
		w = queue.out
	}
	file, ok := w.(interface { // a file, or the output
		Stat() (os.FileInfo, error)
		Name() string
	})
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull
}
