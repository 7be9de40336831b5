package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/typed"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

const triggerUsage = `usage: ramp trigger mint|burn
         [-page URL | -uuid UUID | -like UUID | -token ADDRESS …] [flags]

Starts an order at a running emulator, as a player does on the exchange page.

If the game called initialize, the terms of the order come from that call:
  -page URL            the address of the exchange page that the game created; it holds
                       everything. "-" reads it from standard input, alone or as the
                       "url" of a JSON object
  -uuid UUID -session  the UUID that the game received, and the player's session
Otherwise they come from an earlier order or from flags. A game that accepts only the
UUIDs of its own initialize calls rejects such an order.
  -like UUID           the terms, the session and the amount of an earlier order
  -token ADDRESS -network NAME -project ID -material ITEM=AMOUNT -output ITEM=AMOUNT

Example: curl -s http://127.0.0.1:8080/exchange -d @session.json | ramp trigger mint -page - -wait

Exit status: 0 if all is well, 1 if the order needs attention, the game rejected it or
failed, or -wait timed out, 2 if the emulator is unreachable, 3 if the order is disputed.
`

// trigger starts an order.
func trigger(ctx context.Context, of *call) (int, error) {
	c := newCaller(of)
	c.canPrintJSON()
	c.about += "\nFaults (CALL is validate or result):\n"
	for _, form := range ramptest.FaultForms() {
		c.about += fmt.Sprintf("  %-27s %s\n", form[0], form[1])
	}
	var s control.StartRequest
	t := control.Terms{Materials: []control.Item{}, Outputs: []control.Item{}}
	var session, page string
	c.group("The terms")
	c.StringVar(&page, "page", "", "`URL` of the exchange page that the game created")
	c.StringVar(&s.UUID, "uuid", "", "`UUID` of the game's own initialize call")
	c.StringVar(&s.Like, "like", "",
		"`UUID`, or its first characters, of an order to repeat under a new UUID")
	c.StringVar(&session, "session", "",
		"`ID=TOKEN` of the player; an ID alone uses $RAMP_ACCESS_TOKEN, or else a token that the "+
			"emulator has seen")
	c.group("The order")
	amount := c.String("amount", "", "`number` of tokens (default 1, or that of -like)")
	c.repeatedFunc("fault", "a `fault` from the list above", func(text string) error {
		if _, err := ramptest.ParseFault(text); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "ramptest: "))
		}
		s.Faults = append(s.Faults, text)
		return nil
	})
	c.group("The terms by flags")
	c.StringVar(&t.Token, "token", "", "contract `address` of the token, to set the terms by flags")
	c.StringVar((*string)(&t.Network), "network", "testnet", "`network` of the token")
	c.StringVar(&t.ProjectID, "project", "", "`ID` of the project")
	c.IntVar(&t.MintFeeBps, "fee", 0, "mint fee in basis `points`")
	c.repeatedFunc("material", "`ITEM=AMOUNT` that a mint takes", items(&t.Materials))
	c.repeatedFunc("output", "`ITEM=AMOUNT` that a burn grants", items(&t.Outputs))
	c.group("Output")
	c.canWait()
	c.BoolVar(&c.quiet, "q", false, "print only the UUID")
	rest, err := c.parse(1, 1)
	if err != nil {
		return 0, err
	}
	s.Do, s.Amount = rest[0], json.Number(*amount)
	if _, wrong := ramp.ParseAmount(*amount); *amount != "" && wrong != nil {
		return 0, misuse{errors.New("-amount must be a number, such as 1.5")}
	}
	if problem := typed.Address(t.Token); t.Token != "" && problem != "" {
		return 0, misuse{fmt.Errorf("%s %s", c.sourceOf(c.Lookup("token")), problem)}
	}
	for name, text := range map[string]string{"uuid": s.UUID, "like": s.Like} {
		if problem := typed.Cut(text); problem != "" {
			return 0, misuse{fmt.Errorf("-%s %s", name, problem)}
		}
	}
	if s.Do != "mint" && s.Do != "burn" {
		return 0, misuse{errors.New("the argument must be mint or burn")}
	}
	s.SessionID, s.AccessToken, _ = strings.Cut(session, "=")
	if s.SessionID != "" {
		access, err := environment("RAMP_ACCESS_TOKEN")
		if err != nil {
			return 0, err
		}
		s.AccessToken = cmp.Or(s.AccessToken, access)
	}
	if page != "" {
		host, err := open(&s, page, c.in)
		if err != nil {
			return 0, misuse{err}
		}
		if !c.given["at"] {
			c.at = host
		}
	}
	// RAMP_TOKEN alone, which an order of the game's own may find in the environment, sets no terms.
	if c.given["token"] || len(t.Materials)+len(t.Outputs) > 0 {
		s.Terms = &t
	}
	given := 0
	for _, is := range []bool{s.UUID != "", s.Like != "", s.Terms != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return 0, misuse{errors.New("give the terms with one of -page, -uuid, -like and -token")}
	}
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	o, err := c.Start(ctx, s)
	if err == nil && c.wait {
		o, err = c.waitFor(ctx, o)
	}
	var lost *control.Error
	if errors.As(err, &lost) && lost.Code == control.CodeLostAnswer {
		fmt.Fprintln(c.errs, "WAITING", oneLine(lost.Message))
		if c.json {
			printJSON(c.out, lost)
		} else {
			fmt.Fprintln(c.out, lost.UUID)
		}
		return statusDone, nil
	}
	if err != nil {
		return 0, err
	}
	return c.finish(&o), nil
}

// open sets the UUID and the session from the address of an exchange page. It returns
// the address of the emulator that serves the page.
func open(s *control.StartRequest, page string, in io.Reader) (at string, err error) {
	stdin := page == "-"
	if stdin {
		const most = 1 << 20
		text, err := io.ReadAll(io.LimitReader(in, most))
		if err != nil {
			return "", err
		}
		var answer struct{ URL string } // a missing URL is rejected below
		if page = string(text); json.Unmarshal(text, &answer) == nil {
			page = answer.URL
		}
		page = strings.TrimSpace(page)
	}
	if problem := typed.Problem(page); problem != "" {
		return "", errors.New("-page " + problem)
	}
	for _, other := range []string{"&amp;", `\u0026`, "^&"} {
		if strings.Contains(page, other) {
			return "", fmt.Errorf("-page has %s where its address has &: a page, JSON or a shell writes "+
				"it so", other)
		}
	}
	address, err := url.Parse(page)
	if err != nil {
		return "", errors.New("-page must be the address of an exchange page") // not quoted: it has a token
	}
	q := address.Query()
	s.UUID, s.SessionID, s.AccessToken = q.Get("uuid"), q.Get("sessionId"), q.Get("accessToken")
	if s.UUID == "" && stdin {
		return "",
			errors.New(
				"-page - found no exchange page on standard input: the game's own call may have failed")
	}
	if s.UUID != "" && !strings.Contains(page, "&") {
		return "",
			errors.New(
				"-page ends after its uuid: put the address in quotes, because a shell ends it at " +
					"its first &")
	}
	if s.UUID == "" || s.SessionID == "" || s.AccessToken == "" {
		return "", errors.New("-page must have a uuid, a sessionId and an accessToken")
	}
	if address.Host == "" || address.Path != "/exchange" {
		return "", errors.New("-page must be a whole address: that of the emulator, followed by /exchange")
	}
	if _, problem := transport.ParseURL(page, true); problem != "" {
		return "", errors.New("-page " + problem)
	}
	return address.Scheme + "://" + address.Host, nil
}

// items parses ITEM=AMOUNT into a list. The item itself may contain equals signs.
func items(list *[]control.Item) func(string) error {
	return func(text string) error {
		i := strings.LastIndexByte(text, '=')
		if i < 1 || !json.Valid([]byte(text[i+1:])) || strings.ContainsAny(text[i+1:], "\"{}[]ntf ") {
			return errors.New("it must be ITEM=AMOUNT")
		}
		*list = append(*list, control.Item{ID: text[:i], Amount: json.Number(text[i+1:])})
		return nil
	}
}

// waitFor waits until an order is over, for at most the timeout.
func (c *caller) waitFor(ctx context.Context, o control.OrderReport) (control.OrderReport, error) {
	if isTerminal(c.errs) && !o.Over {
		fmt.Fprintf(c.errs, "%s%s%s\r", gray, oneLine(o.Verdict.String()), normal)
		defer fmt.Fprint(c.errs, "\x1b[K")
	}
	for end := time.Now().Add(c.timeout); ; {
		rest := max(0, min(time.Until(end), time.Hour)).Round(time.Millisecond)
		o, err := c.Order(ctx, o.UUID.String(), control.OrderQuery{Wait: rest.String()})
		if err != nil || c.timeout <= time.Hour || o.Over || rest == 0 {
			return o, err
		}
	}
}

// finish prints an order, and returns the exit status.
func (c *caller) finish(o *control.OrderReport) int {
	switch {
	case c.json:
		printJSON(c.out, o)
	case c.quiet:
		fmt.Fprintln(c.out, o.UUID)
	default:
		show(c.out, o)
	}
	if c.wait && !o.Over {
		if c.still {
			fmt.Fprintln(c.errs,
				"The emulator's clock stands still: ramp advance 15m lets what is due happen.")
		}
		return statusLoss
	}
	return statusOf(*o)
}
