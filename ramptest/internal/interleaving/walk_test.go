package interleaving

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// program is what the servers send: the names of the rows of each statement.
type program [][]string

// walked returns the interleavings that a walk runs, as the letters of the servers in their order. A
// fault is shown behind its letter.
func walked(p program, faults bool) (runs []string) {
	w := Walk{Faults: faults}
	for more := true; more; more = w.Next() {
		run, next := "", make([]int, len(p))
		for {
			var options []Option
			for n, statements := range p {
				if next[n] == len(statements) {
					continue
				}
				rows := Rows{statements[next[n]]: true}
				options = append(options, Option{Server: n, rows: rows}, Option{n, "", Refused, rows})
			}
			if options == nil {
				break
			}
			o := options[w.Choose(options)]
			next[o.Server]++
			if run += Letter(o.Server); o.Fault != None {
				run += "!"
			}
		}
		if w.Whole() {
			runs = append(runs, run)
		}
	}
	return runs
}

func TestAWalkRunsEveryOrder(t *testing.T) {
	one := []string{"x", "x"}
	assert.Equal(t, []string{"AABB", "ABAB", "ABBA", "BAAB", "BABA", "BBAA"}, walked(program{one, one}, false))
	assert.Len(t, walked(program{{"x", "x", "x"}, {"x", "x", "x"}}, false), 20, "6 over 3")
	assert.Len(t, walked(program{one, one, one}, false), 90, "6! / 2!^3")
}

func TestAWalkSwapsNothingThatSharesNoRow(t *testing.T) {
	assert.Equal(t, []string{"AABB"}, walked(program{{"x", "x"}, {"y", "y"}}, false))
	assert.Equal(t, []string{"AABB", "ABBA"}, walked(program{{"x", "y"}, {"z", "y"}}, false),
		"only the last statements share a row")
	assert.Len(t, walked(program{{everything}, {"x"}}, false), 2)
}

func TestAWalkMakesEverySingleFault(t *testing.T) {
	assert.ElementsMatch(t, []string{"AB", "A!B", "AB!", "BA", "B!A", "BA!"}, walked(program{{"x"}, {"x"}}, true))
	assert.ElementsMatch(t, []string{"AB", "A!B", "AB!"}, walked(program{{"x"}, {"y"}}, true))
}
