// Command testrun runs the tests of modules, one after the other:
//
//	go run ./internal/testrun [-race] MODULE...
//
// It prints a line when a module begins and when it ends, the output of each test that
// fails, and at the end how many tests passed, failed and were skipped, and why. The
// exit status is 1 if a test failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	race := flag.Bool("race", false, "run the tests with the race detector")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("testrun: which modules?")
	}
	r := run{out: os.Stdout, skips: map[string]int{}}
	for n, module := range flag.Args() {
		r.begin(n+1, flag.NArg(), module)
		begun := time.Now()
		ok := r.test(module, *race)
		r.end(module, ok, time.Since(begun))
	}
	r.summarize()
	if r.failed > 0 {
		os.Exit(1)
	}
}

// run is what the tests have said so far.
type run struct {
	out                     io.Writer
	passed, failed, skipped int
	skips                   map[string]int // tests by the reason for which they were skipped
}

func (r *run) begin(n, of int, module string) {
	fmt.Fprintf(r.out, "[%d/%d] %s\n", n, of, module)
}

func (r *run) end(module string, ok bool, took time.Duration) {
	result := "ok"
	if !ok {
		result = "FAILED"
	}
	fmt.Fprintf(r.out, "      %s in %.0f s\n", result, took.Seconds())
}

func (r *run) summarize() {
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Fprintf(r.out, "skipped %d: %s\n", r.skips[reason], reason)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}

// test runs the tests of a module. The go command does not see that a nested module's
// test depends on a file outside of the module, such as a document, so only the results
// of the root module may come from its cache.
func (r *run) test(module string, race bool) bool {
	args := []string{"-C", module, "test", "-json"}
	if race {
		args = append(args, "-race")
	}
	if module != "." {
		args = append(args, "-count=1")
	}
	command := exec.Command("go", append(args, "./...")...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		log.Fatal("testrun: ", err)
	}
	failed := r.failed
	r.read(events)
	if err := command.Wait(); err != nil && r.failed == failed {
		fmt.Fprintln(r.out, "go test:", err)
		r.failed++
	}
	return r.failed == failed
}

// event is an event of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// read counts the tests of a stream of events. A package that fails by itself, because
// it does not compile or panics, counts as a test.
func (r *run) read(events io.Reader) {
	output := map[event][]string{} // by Package and Test
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	failedIn := map[string]bool{} // packages with a test that failed
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(r.out, lines.Text())
			continue
		}
		key := event{Package: e.Package, Test: e.Test}
		switch e.Action {
		case "output", "build-output":
			key.Package += e.ImportPath
			output[key] = append(output[key], e.Output)
		case "build-fail":
			r.print(output[event{Package: e.ImportPath}])
		case "pass":
			if e.Test != "" {
				r.passed++
			}
			delete(output, key)
		case "skip":
			if e.Test != "" {
				r.skipped++
				r.skips[reason(output[key])]++
			}
			delete(output, key)
		case "fail":
			if e.Test != "" || !failedIn[e.Package] {
				r.failed++
				fmt.Fprintf(r.out, "FAILED %s %s\n", e.Package, e.Test)
				r.print(output[key])
			}
			failedIn[e.Package] = true
		}
	}
}

func (r *run) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(r.out, "    ", line)
	}
}

// reason returns the text of t.Skip, without the place.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "---") || strings.HasPrefix(line, "===") || line == "" {
			continue
		}
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok := strings.Cut(text, ": "); ok {
				return text
			}
		}
		return line
	}
	return "no reason given"
}
