// Command testrun runs the tests of modules, three modules at a time:
//
//	go run ./internal/test/testrun [-race] [-short] MODULE... [-- MODULE...]
//
// It prints a line when a module begins and when it ends, with the output of each test
// that failed, and at the end how many tests passed, failed and were skipped, and why. The
// exit status is 1 if a test failed.
//
// The modules after -- are tested without the race detector. So are, after the others of their module, the
// tests that skip themselves for a reason that names the race detector.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	log.SetFlags(0)
	race := flag.Bool("race", false, "run the tests with the race detector")
	short := flag.Bool("short", false, "skip tests that take long")
	flag.Parse()
	modules := flag.Args()
	watched := len(modules) // those before --
	if at := slices.Index(modules, "--"); at >= 0 {
		modules, watched = slices.Delete(modules, at, at+1), at
	}
	if len(modules) == 0 {
		log.Fatal("testrun: which modules?")
	}
	var flags, watch []string
	all := []string{"./..."}
	// Many tests wait for a clock, a server or a process, so fewer modules would not keep
	// the processors busy.
	const beside = 3
	if *race {
		// SQLite is C translated to Go, and takes three times as long if the detector watches it. What
		// calls it is still watched.
		watch = append(watch, "-race", "-gcflags=modernc.org/...=-race=false")
		// A server that a test starts stops at a race, and nobody waits a second at the end of each process.
		os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0")
	}
	if *short {
		flags = append(flags, "-short")
	}
	// If garbage is collected less often, tests with the race detector need a tenth less of the
	// processor. The short ones without it need little memory.
	collect := "400"
	if *short && !*race {
		flags = append(flags, fmt.Sprintf("-p=%d", runtime.NumCPU()+1))
		collect = "800"
	}
	os.Setenv("GOGC", collect)
	// git status, which go build runs for each program, would write .git/index. Tests that list the root of
	// the repository would then never come from the cache, and who commits could find the index locked.
	os.Setenv("GIT_OPTIONAL_LOCKS", "0")
	r := report{out: os.Stdout, modules: len(modules), skips: map[string]int{}}
	var running sync.WaitGroup
	free := make(chan bool, beside)
	for n, module := range modules {
		free <- true
		r.begin(module)
		// The next module begins when a test of this one does, or both would compile the same.
		testing := make(chan bool)
		begins := sync.OnceFunc(func() { close(testing) })
		running.Go(func() {
			begun := time.Now()
			results := results{skips: map[string]int{}, left: map[event]bool{}}
			if (*short || n < watched) && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
				// The C compiler links in half as much time again, also in the tests that run the go
				// command. Only it can link some of what make test-all has after --.
				results.env = []string{"GO_EXTLINK_ENABLED=0"}
			}
			if *race && n < watched {
				results.test(module, slices.Concat(flags, watch, all), begins)
				results.testLeft(module, flags)
			} else {
				results.test(module, slices.Concat(flags, all), begins)
			}
			r.end(module, &results, time.Since(begun))
			<-free
		})
		<-testing
	}
	running.Wait()
	r.summarize()
	if r.failed > 0 {
		os.Exit(1)
	}
}

// report is what has been said about all modules. It is safe for concurrent use.
type report struct {
	out     io.Writer
	modules int

	mu             sync.Mutex
	begun          int
	passed, failed int
	skips          map[string]int // tests by the reason for which they were skipped
}

func (r *report) begin(module string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	fmt.Fprintf(r.out, "[%d/%d] %s begins\n", r.begun, r.modules, module)
}

func (r *report) end(module string, m *results, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := "ok"
	if m.failed > 0 {
		result = "FAILED"
	}
	fmt.Fprintf(r.out, "%s      %s: %s in %.0f s (processors: %.0f s)\n", m.output.String(), module, result,
		took.Seconds(), m.processor.Seconds())
	r.passed, r.failed = r.passed+m.passed, r.failed+m.failed
	for reason, n := range m.skips {
		r.skips[reason] += n
	}
}

func (r *report) summarize() {
	skipped := 0
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		skipped += r.skips[reason]
		fmt.Fprintf(r.out, "skipped %d: %s\n", r.skips[reason], reason)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, skipped)
}

// detector is part of the reasons for which tests are left for a run without it.
const detector = "race detector"

// results are those of one module.
type results struct {
	env            []string      // for the go command, beside ours
	processor      time.Duration // that the go command and all its children have used
	output         bytes.Buffer  // of tests that failed
	passed, failed int
	skips          map[string]int
	left           map[event]bool // the Package and Test of those that are to run without the detector
}

// testLeft runs the tests that were left for a run without the race detector. Each must run there.
func (r *results) testLeft(module string, flags []string) {
	if len(r.left) == 0 {
		return
	}
	for reason := range r.skips {
		if strings.Contains(reason, detector) {
			delete(r.skips, reason)
		}
	}
	r.test(module, slices.Concat(flags, only(r.left)), func() {})
	for e := range r.left {
		fmt.Fprintf(&r.output, "FAILED %s %s: it did not run without the race detector\n", e.Package, e.Test)
		r.failed++
	}
}

// only returns the arguments with which go test runs these tests and no others.
func only(tests map[event]bool) []string {
	var names, packages []string
	for e := range tests {
		names, packages = append(names, e.Test), append(packages, e.Package)
	}
	slices.Sort(names)
	slices.Sort(packages)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"},
		slices.Compact(packages)...)
}

// test runs the tests of a module, without go vet, which make check runs. The go command
// does not see that a nested module's test depends on a file outside of the module, such as
// a document, so only the results of the root module may come from its cache.
func (r *results) test(module string, args []string, begins func()) {
	defer begins()
	// The usual timeout of 10 minutes was too short for a machine that compiles beside the
	// tests and is slower than ours.
	first := []string{"-C", module, "test", "-json", "-vet=off", "-timeout=30m"}
	if module != "." {
		first = append(first, "-count=1")
	}
	command := exec.Command("go", slices.Concat(first, args)...)
	command.Env = append(os.Environ(), r.env...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		log.Fatal("testrun: ", err)
	}
	r.read(events, begins)
	err = command.Wait()
	r.processor += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	if err != nil && r.failed == 0 {
		fmt.Fprintln(&r.output, "go test:", err)
		r.failed++
	}
}

// event is an event of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// read counts the tests of a stream of events. A package that fails by itself, because
// it does not compile or panics, counts as a test. read calls begins when a test begins.
func (r *results) read(events io.Reader, begins func()) {
	output := map[event][]string{} // by Package and Test
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	failedIn := map[string]bool{} // packages with a test that failed
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(&r.output, lines.Text())
			continue
		}
		key := event{Package: e.Package, Test: e.Test}
		switch e.Action {
		case "run":
			begins()
			delete(r.left, event{Package: e.Package, Test: e.Test})
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
				why := reason(output[key])
				r.skips[why]++
				if strings.Contains(why, detector) {
					test, _, _ := strings.Cut(e.Test, "/")
					r.left[event{Package: e.Package, Test: test}] = true
				}
			}
			delete(output, key)
		case "fail":
			if e.Test != "" || !failedIn[e.Package] {
				r.failed++
				fmt.Fprintf(&r.output, "FAILED %s %s\n", e.Package, e.Test)
				r.print(output[key])
			}
			if e.Test == "" && !failedIn[e.Package] {
				r.unfinished(e.Package, output)
			}
			failedIn[e.Package] = true
		}
	}
}

// unfinished prints what the tests said that were running when their package ended, for
// example with a panic after a timeout. The first lines say which tests; many goroutines
// follow.
func (r *results) unfinished(name string, output map[event][]string) {
	const most = 60
	for key, lines := range output {
		if key.Package == name && key.Test != "" {
			fmt.Fprintf(&r.output, "NOT ENDED %s %s\n", name, key.Test)
			r.print(lines[:min(len(lines), most)])
		}
	}
}

func (r *results) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(&r.output, "    ", line)
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
