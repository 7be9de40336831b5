package main

import (
	"encoding/json"
	"io"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// printJSON prints an answer of the emulator on one line.
func printJSON(w io.Writer, answer any) {
	_ = writeJSON(w, "", answer) // if stdout is closed, nobody is reading
}

func writeJSON(w io.Writer, indent string, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(value)
}

// oneLine makes foreign text safe for one line of a terminal.
func oneLine(text string) string { return redact.New().Line(text, 300) }
