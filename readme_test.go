package ramp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The studio of the README is the one that the compiler sees.
func TestTheStudioOfTheREADMEIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_sqlstore_test.go")
	require.NoError(t, err)
	_, studio, found := strings.Cut(string(readme), "```go\ntype studio struct{ db *sql.DB }\n")
	require.True(t, found)
	studio, _, found = strings.Cut(studio, "```")
	require.True(t, found)
	assert.Contains(t, string(example), strings.ReplaceAll(studio, "*studio)", "*SQLStudio)"))
}
