package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheReportCountsAndExplains(t *testing.T) {
	events := `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: needs nginx, which is not installed\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q [q.test]","Output":"q.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"q [q.test]"}
{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}
`
	var out strings.Builder
	m := results{skips: map[string]int{}, left: map[event]bool{}}
	begun := 0
	m.read(strings.NewReader(events), func() { begun++ })
	assert.Equal(t, 1, begun)
	r := report{out: &out, modules: 2, skips: map[string]int{}}
	r.begin(".")
	r.begin("a")
	r.end("a", &results{passed: 1, processor: 1_900_000_000}, time.Second)
	r.end(".", &m, 3_400_000_000)
	r.summarize()
	assert.Equal(t, `[1/2] . begins
[2/2] a begins
      a: ok in 1 s (processors: 2 s)
FAILED p TestC
        c_test.go:9: got 1, want 2
    q.go:1: undefined: x
FAILED q 
      .: FAILED in 3 s (processors: 0 s)
skipped 1: needs nginx, which is not installed
2 passed, 2 failed, 1 skipped
`, out.String())
}

// What the detector is too slow for must run without it, also if a part of a test asked for that.
func TestWhatTheRaceDetectorLeavesOutRunsWithoutIt(t *testing.T) {
	const because = "the race detector needs memory of its own"
	skipped := func(pkg, test string) string {
		name := `"Package":"` + pkg + `","Test":"` + test + `"`
		return `{"Action":"run",` + name + `}
{"Action":"output",` + name + `,"Output":"    a_test.go:7: ` + because + `\n"}
{"Action":"skip",` + name + `}
`
	}
	r := results{skips: map[string]int{}, left: map[event]bool{}}
	r.read(strings.NewReader(skipped("q", "TestC/SQLite")+skipped("p", "TestA")+skipped("q", "TestA")), func() {})
	assert.Equal(t, []string{"-run", "^(TestA|TestC)$", "p", "q"}, only(r.left))

	r.read(strings.NewReader(`{"Action":"run","Package":"q","Test":"TestC"}
{"Action":"run","Package":"p","Test":"TestA"}
`), func() {})
	assert.Equal(t, map[event]bool{{Package: "q", Test: "TestA"}: true}, r.left, "what has not run")
}
