// Package storable has the rules for a text that every database can keep with an order.
package storable

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The maximum lengths of an order's texts in bytes.
const (
	MaxText   = 1024 // a project, a session or an address
	MaxReason = 4096 // what a person writes
)

// Problem returns why some database cannot keep a text of at most limit bytes, or "". Check a text
// before a driver gets it, because its error could quote the text.
func Problem(text string, limit int) string {
	switch {
	case len(text) > limit:
		return fmt.Sprintf("must be at most %d bytes", limit)
	case !utf8.ValidString(text):
		return "must be valid UTF-8"
	case strings.ContainsRune(text, 0):
		return "must not contain a NUL character"
	}
	return ""
}
