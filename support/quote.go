package support

import "fmt"

// shown quotes foreign text, so that it cannot move the cursor or fake a line.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}
