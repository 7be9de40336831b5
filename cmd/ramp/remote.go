package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// defaultAt is where emulate listens by default.
const defaultAt = "http://127.0.0.1:8090"

// caller is a command that calls a running emulator.
type caller struct {
	*call
	*control.Client // set by connect

	at                string
	json, wait, quiet bool
	still             bool // the emulator's clock
	timeout           time.Duration
}

func newCaller(of *call) *caller {
	c := &caller{call: of}
	c.StringVar(&c.at, "at", "", "`URL` of the emulator, with ?token=… if it has one (default "+defaultAt+")")
	return c
}

// canPrintJSON adds the flag of a command that prints something.
func (c *caller) canPrintJSON() { c.BoolVar(&c.json, "json", false, "print JSON") }

// canWait adds the flags of a command that can wait for an order.
func (c *caller) canWait() {
	c.BoolVar(&c.wait, "wait", false, "wait until nothing more happens to the order by itself")
	c.DurationVar(&c.timeout, "timeout", 30*time.Second, "how long -wait waits")
}

// connect finds the emulator. It verifies that an emulator answers, because an access
// token must not go to another server that happens to listen there.
func (c *caller) connect(ctx context.Context) error {
	address, token, err := emulatorAt(cmp.Or(c.at, defaultAt))
	if err != nil {
		return err
	}
	if token == "" {
		if token, err = environment("RAMP_CONTROL_TOKEN"); err != nil {
			return err
		}
	}
	c.Client = &control.Client{URL: address, Token: token}
	about, err := c.Describe(ctx)
	c.still = about.Speed == 0
	var reported *control.Error
	if err == nil || errors.As(err, &reported) {
		return err
	}
	seen := "another server answers there"
	if !errors.Is(err, control.ErrNoEmulator) {
		seen = cmp.Or(reach.Why(ctx, c.URL, err), redact.New(c.Token).Line(err.Error(), redact.MaxError))
	}
	return fmt.Errorf("there is no emulator at %s (%s): start one with ramp emulate, or name it with -at",
		c.URL, seen)
}

// emulatorAt reads the address of an emulator, which may have a token and nothing else.
func emulatorAt(text string) (address, token string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", "",
			errors.New("-at, or RAMP_API_URL, must be the address of an emulator, such as " + defaultAt)
	case strings.Trim(u.Path, "/") != "" || u.User != nil || u.Fragment != "":
		return "", "",
			errors.New("-at, or RAMP_API_URL, must be the address of an emulator alone, without a path")
	}
	if _, problem := transport.ParseURL(text, true); problem != "" {
		return "", "", errors.New("-at, or RAMP_API_URL, " + problem)
	}
	q := u.Query()
	token = q.Get("token")
	if q.Del("token"); len(q) > 0 {
		return "", "", errors.New("-at, or RAMP_API_URL, may have a token, and no other parameter")
	}
	return u.Scheme + "://" + u.Host, token, nil
}

// failed prints why a command failed, and returns the exit status.
func (c *call) failed(err error) int {
	var wrong misuse
	var reported *control.Error
	word := ""
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusDone
	case errors.As(err, &wrong):
		fmt.Fprintf(c.errs, "ramp %s: %v (see: ramp help %[1]s)\n", c.Name(), err)
		return statusNotReached
	case errors.As(err, &reported):
		word = map[control.ErrorCode]string{control.CodeRejected: "REJECTED",
			control.CodeGame: "FAILED"}[reported.Code]
	}
	if word == "" {
		if reported != nil {
			err = errors.New(byFlag(reported.Message))
		}
		fmt.Fprintf(c.errs, "ramp %s: %s\n", c.Name(),
			redact.New().Line(strings.TrimPrefix(err.Error(), "conformance: "), 2000))
		return statusNotReached
	}
	fmt.Fprintln(c.errs, colored(c.errs, red, word), oneLine(reported.Message))
	return statusLoss
}

// byFlag returns a message of the API with the flags that set the fields which it names.
func byFlag(message string) string {
	flags := map[string]string{
		"access_token": "RAMP_ACCESS_TOKEN, or the token of -session ID=TOKEN,", "session_id": "-session",
		"amount": "-amount", "limit": "-n", "outcome": "-outcome", "state": "-state", "uuid": "-uuid",
		"terms.network": "-network", "terms.project_id": "-project", "terms.token": "-token",
		"terms.materials": "-material", "terms.outputs": "-output",
	}
	field, rest, _ := strings.Cut(message, " ")
	if flag, ok := flags[field]; ok {
		return flag + " " + rest
	}
	return message
}

// noRedirects is for a client whose secrets must not reach another address.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// moved describes what the game moved for an order in total.
func moved(o *control.OrderReport) string {
	if o.Moved == nil {
		return "unknown"
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(o.Moved)) {
		amount := o.Moved[id]
		if !strings.HasPrefix(amount, "-") {
			amount = "+" + amount
		}
		parts = append(parts, amount+" "+redact.Isolate(id))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// word returns the state of an order as it is printed.
func word(w io.Writer, o *control.OrderReport) string {
	color := map[string]string{"good": green, "bad": red, "warn": yellow, "unknown": violet}[string(o.Tone)]
	return colored(w, cmp.Or(color, gray), strings.ToUpper(string(o.State)))
}

// show prints an order on one line.
func show(w io.Writer, o *control.OrderReport) {
	fmt.Fprintf(w, "%s  %s  %s\n", o.UUID, word(w, o), oneLine(o.Verdict.String()))
}

// statusOf returns the exit status of a command that shows orders.
func statusOf(orders ...control.OrderReport) int {
	status := statusDone
	for _, o := range orders {
		switch {
		case o.State == "disputed" && status == statusDone:
			status = statusDisputed
		case o.Attention && o.State != "disputed":
			status = statusLoss
		}
	}
	return status
}
