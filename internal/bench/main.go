// Command bench compares the costs of this SDK with the costs of alternatives, and
// prints them as Markdown:
//
//	go -C internal/bench run .
//	go -C internal/bench run . -run ParseResult -rounds 201
//	go -C internal/bench run . load -db postgres://user@host/empty
//
// The last command runs examples/gameserver under load; see load.go.
//
// The two sides take turns, round by round, so that other work on the machine slows
// both alike. Compare the ratios; the times depend on the machine. The command is in
// a module of its own, so that importing ramp does not require the libraries that it
// is compared with. It requires Unix, for the CPU time of a process.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
)

// comparisons returns the rows of the table in order.
func comparisons() []comparison {
	var all []comparison
	all = append(all, hmacComparisons()...)
	all = append(all, parseComparisons()...)
	all = append(all, handlerComparisons()...)
	all = append(all, rpcComparisons()...)
	all = append(all, orderComparisons()...)
	return append(all, urlComparison())
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "load" {
		if err := loadMain(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	pattern := flag.String("run", "", "measure only the rows whose subject or rival matches this regular `expression`")
	rounds := flag.Int("rounds", 41, "`number` of rounds in which the two sides take turns")
	flag.Parse()
	chosen, err := regexp.Compile(*pattern)
	if err != nil || *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}

	fmt.Printf("%s, %s/%s, %d CPUs, %d rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *rounds)
	printed := 0
	for _, c := range comparisons() {
		if !chosen.MatchString(c.subject + " " + c.rival) {
			continue
		}
		if printed++; printed == 1 {
			fmt.Println("| subject | compared with | ours | theirs | ratio | quartiles |")
			fmt.Println("|---|---|---|---|---|---|")
		}
		s, err := c.run(*rounds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s compared with %s: %v\n", c.subject, c.rival, err)
			os.Exit(1)
		}
		fmt.Printf("| %s | %s | %s | %s | %.2f | %.2f to %.2f |\n", c.subject, c.rival, s.ours, s.theirs, s.ratio, s.low, s.high)
	}
	if chosen.MatchString(importSubject) {
		if printed > 0 {
			fmt.Println()
		}
		printImportCost()
	}
}
