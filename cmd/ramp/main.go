// Ramp is the test kit of package ramp as a command, for use by hand and for
// servers written in any language.
//
//	go run github.com/token-ramp/ramp-go/cmd/ramp emulate -game http://127.0.0.1:8080
//	go run github.com/token-ramp/ramp-go/cmd/ramp check -url http://127.0.0.1:8080
//
// The commands:
//
//	emulate   play the service        check    judge a server
//	trigger   start a mint or burn    connect  first contact with the real service
//	orders    list, show, wait        sign     the HMAC of standard input
//	resend    send a result again     version  print the version
//	advance   let time pass           help     the flags of a command
//	ready     wait for an emulator    record   write down what the real service sends
//
// See "ramp help COMMAND", docs/control.md and docs/testing.md.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // see output
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		last := &aside{out: os.Stderr} // which may be stopped
		fmt.Fprintln(last, "ramp: ended at once; calls in progress were cut off")
		_ = last.close()
		os.Exit(statusInterrupted)
	}()
	out := &output{file: os.Stdout}
	os.Exit(out.status(run(ctx, os.Args[1:], out, os.Stderr), os.Stderr))
}

const usage = `usage: ramp COMMAND [flags]

Test a game's server against an emulated token ramp.

  emulate   play the service        check    judge a server
  trigger   start a mint or burn    connect  first contact with the real service
  orders    list, show, wait        sign     the HMAC of standard input
  resend    send a result again     version  print the version
  advance   let time pass           help     the flags of a command
  ready     wait for an emulator    record   write down what the real service sends

Start with "ramp emulate -game URL" beside your server, or "ramp check -url URL".
"ramp help COMMAND" lists the flags of a command. Each can be set by a variable, too: -game by RAMP_GAME.
The lines that emulate prints for the environment set what the other commands need.
`

// run runs a command and returns its exit status. The status is 2 if args are
// invalid.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	name, args := args[0], args[1:]
	switch name {
	case "-version", "--version":
		name = "version"
	case "help", "-h", "-help", "--help":
		if len(args) == 0 || args[0] == "help" {
			fmt.Fprint(out, usage)
			return 0
		}
		name, args = args[0], []string{"-help"}
	}
	return stdio{os.Stdin, out, errs}.run(ctx, name, args)
}

// commands are those of ramp, without help.
var commands = map[string]struct {
	about string
	run   func(context.Context, *call) (int, error)
}{
	"check": {checkUsage, check}, "emulate": {emulateUsage, emulate},
	"connect": {connectUsage, firstContact},
	"trigger": {triggerUsage, trigger}, "orders": {ordersUsage, orders}, "resend": {resendUsage, resend},
	"advance": {advanceUsage, advance}, "ready": {readyUsage, ready},
	"sign": {signUsage, sign}, "record": {recordUsage, recordCalls},
	"version": {versionUsage, version},
}

// run runs any other command than help.
func (std stdio) run(ctx context.Context, name string, args []string) int {
	command, known := commands[name]
	if !known {
		like := didYouMean(name, "ramp ", slices.Collect(maps.Keys(commands)))
		fmt.Fprintf(std.errs, "ramp: there is no command %q%s (see: ramp help)\n", name, like)
		return 2
	}
	c := newCall(std, name, command.about, args)
	status, err := command.run(ctx, c)
	if err != nil {
		return c.failed(err)
	}
	return status
}
