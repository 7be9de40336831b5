// Package console writes orders for a person at a terminal, and reads what that person has typed, for the
// commands of packages support and rampbooks.
package console

import "fmt"

// Quote quotes foreign text, so that it cannot move the cursor or fake a line.
func Quote(text string) string {
	if text == "" {
		return "-"
	}
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}

// EmptyUnless returns a text if ok.
func EmptyUnless(ok bool, text string) string {
	if !ok {
		return ""
	}
	return text
}
