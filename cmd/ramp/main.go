// Ramp is the test kit of package ramp for a command line: for people, and for
// servers in any language.
//
//	go run github.com/token-ramp/ramp-go/cmd/ramp emulate -game http://127.0.0.1:8080
//	go run github.com/token-ramp/ramp-go/cmd/ramp check -url http://127.0.0.1:8080
//
// Emulate plays the service for a game's server, and check judges one: see -help
// of each, and docs/testing.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

const usage = `usage:
  ramp emulate [flags]   play the service for a game's server
  ramp check [flags]     judge a game's server

-help after a command lists its flags.
`

// run returns the exit status: 2 if it was called in a way that makes no sense.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "emulate":
			return emulate(ctx, args[1:], out)
		case "check":
			return check(ctx, args[1:], out, errs)
		case "help", "-h", "-help", "--help":
			fmt.Fprint(out, usage)
			return 0
		}
	}
	fmt.Fprint(errs, usage)
	return 2
}
