package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// report is the result of a check, as -json writes it.
type report struct {
	Target string `json:"target"`
	counts
	Causes []cause   `json:"causes"`
	Cases  []verdict `json:"cases"`

	causes   []conformance.Cause
	verdicts []conformance.Verdict
}

type counts struct {
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Noted    int `json:"noted"`
	Unproven int `json:"unproven"`
	Skipped  int `json:"skipped"`
	Untried  int `json:"untried"`
}

// cause is a [conformance.Cause] in JSON.
type cause struct {
	Level   conformance.Level `json:"level"`
	Fix     string            `json:"fix"`
	Cases   []string          `json:"cases"`
	Waiting int               `json:"waiting"`
}

type verdict struct {
	listed
	Outcome      conformance.Outcome `json:"outcome"`
	Saw          string              `json:"saw,omitempty"`
	Want         string              `json:"want,omitempty"`
	Until        string              `json:"until,omitempty"`
	Milliseconds int64               `json:"milliseconds"`
}

// listed is a case as -list -json writes it.
type listed struct {
	ID      string            `json:"id"`
	Subject string            `json:"subject"`
	Title   string            `json:"title"`
	Level   conformance.Level `json:"level"`
	Section string            `json:"section"`
	Fix     string            `json:"fix,omitempty"`
}

// newReport returns a report of the verdicts. It includes a basic ability that does
// not work, even if its case was not chosen, if a chosen case waits for it.
func newReport(target string, opening, verdicts []conformance.Verdict) *report {
	tried, awaited := make(map[string]bool), make(map[string]bool)
	for _, v := range verdicts {
		tried[v.Case.ID], awaited[v.Until] = true, true
	}
	var all []conformance.Verdict
	for _, v := range opening {
		if awaited[v.Case.ID] && !tried[v.Case.ID] {
			all = append(all, v)
		}
	}
	all = append(all, verdicts...)
	r := &report{Target: target, Causes: []cause{}, Cases: []verdict{}, causes: conformance.Causes(all), verdicts: all}
	for _, c := range r.causes {
		shown := cause{Level: c.Level, Fix: c.Fix, Waiting: c.Waiting}
		for _, v := range c.Failed {
			shown.Cases = append(shown.Cases, v.Case.ID)
		}
		r.Causes = append(r.Causes, shown)
	}
	for _, v := range all {
		r.counts.add(v.Outcome)
		shown := verdict{listed: listing(v.Case), Outcome: v.Outcome, Saw: v.Saw, Want: v.Want, Until: v.Until,
			Milliseconds: v.Took.Milliseconds()}
		if shown.Level = v.Level; v.Want == "" {
			shown.Fix = ""
		}
		r.Cases = append(r.Cases, shown)
	}
	return r
}

func listing(c conformance.Case) listed {
	return listed{ID: c.ID, Subject: c.Subject, Title: c.Title, Level: c.Level, Section: c.Section, Fix: c.Fix}
}

func (c *counts) add(o conformance.Outcome) {
	switch o {
	case conformance.Passed:
		c.Passed++
	case conformance.Failed:
		c.Failed++
	case conformance.Noted:
		c.Noted++
	case conformance.Unproven:
		c.Unproven++
	case conformance.Skipped:
		c.Skipped++
	case conformance.Untried:
		c.Untried++
	}
}

func (r *report) writeJSON(out io.Writer) error { return writeJSON(out, r) }

func writeJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// writeText writes what to fix, a paragraph for each case that failed or could not be
// tried, a table, and the verdict.
func (r *report) writeText(out io.Writer, paint painter, verbose bool) error {
	var b strings.Builder
	r.writeCauses(&b, paint)
	for _, v := range r.verdicts {
		if verbose {
			fmt.Fprintf(&b, "%-8s %-6s %-4s %s\n", v.Outcome, v.Level, v.Case.Section, v.Case.ID)
		}
		switch v.Outcome {
		case conformance.Failed, conformance.Noted:
			fmt.Fprintf(&b, "%s %s: %s\n\n", paint(v.Outcome), v.Case.ID, v)
		case conformance.Skipped, conformance.Untried:
			fmt.Fprintf(&b, "%s %s: %s\n", paint(v.Outcome), v.Case.ID, v.Saw)
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if err := r.writeTable(out); err != nil {
		return err
	}
	return r.writeLine(out, paint)
}

// writeCauses writes what to fix, in the order in which to fix it. Noted causes are
// left out, because each has a paragraph below.
func (r *report) writeCauses(out io.Writer, paint painter) {
	n := 0
	for _, c := range r.causes {
		first := c.Failed[0]
		if first.Outcome != conformance.Failed {
			continue
		}
		if n++; n == 1 {
			fmt.Fprint(out, "What to fix, in this order:\n\n")
		}
		fmt.Fprintf(out, "%d. %s (%s, interface %s, %s)\n   saw:  %s\n   want: %s\n   fix:  %s\n",
			n, first.Case.Title, c.Level, first.Case.Section, concerns(c), first.Saw, first.Want, c.Fix)
	}
	if n > 0 {
		fmt.Fprintln(out)
	}
}

// concerns describes the cases that a cause affects.
func concerns(c conformance.Cause) string {
	text := c.Failed[0].Case.ID
	if more := len(c.Failed) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if c.Waiting == 1 {
		text += "; 1 case waits for it"
	} else if c.Waiting > 1 {
		text += fmt.Sprintf("; %d cases wait for it", c.Waiting)
	}
	return text
}

// writeTable writes a table with one row per subject.
func (r *report) writeTable(out io.Writer) error {
	var subjects []string
	of := make(map[string]*counts)
	for _, v := range r.verdicts {
		subject := v.Case.Subject
		if of[subject] == nil {
			subjects, of[subject] = append(subjects, subject), &counts{}
		}
		of[subject].add(v.Outcome)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "subject\tpassed\tfailed\tnoted\tunproven\tskipped\tuntried")
	row := func(name string, c counts) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", name, c.Passed, c.Failed, c.Noted, c.Unproven, c.Skipped, c.Untried)
	}
	for _, subject := range subjects {
		row(subject, *of[subject])
	}
	row("all", r.counts)
	return table.Flush()
}

// writeLine writes the verdict on one line.
func (r *report) writeLine(out io.Writer, paint painter) error {
	outcome, rest := conformance.Passed, ""
	switch {
	case r.Failed > 0:
		outcome = conformance.Failed
		for _, c := range r.causes {
			if c.Failed[0].Outcome == conformance.Failed {
				rest = ", first " + c.Failed[0].Case.ID
				break
			}
		}
	case r.Untried > 0:
		outcome = conformance.Untried
	}
	_, err := fmt.Fprintf(out, "%s: %d of %d cases failed%s; %d noted, %d unproven, %d skipped, %d untried\n",
		paint(outcome), r.Failed, len(r.verdicts), rest, r.Noted, r.Unproven, r.Skipped, r.Untried)
	return err
}

// list writes the cases as a table.
func list(out io.Writer, cases []conformance.Case) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range cases {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.ID, c.Level, c.Section, c.Title)
	}
	return table.Flush()
}

func listJSON(out io.Writer, cases []conformance.Case) error {
	all := make([]listed, len(cases))
	for i, c := range cases {
		all[i] = listing(c)
	}
	return writeJSON(out, all)
}

// The elements of a JUnit report that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Seconds string     `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Error   *junitText `xml:"error"`
		Skipped *junitText `xml:"skipped"`
		Output  string     `xml:"system-out,omitempty"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func (r *report) writeJUnit(name string) error {
	suite := junitSuite{Name: "ramp check", Tests: len(r.verdicts), Failures: r.Failed, Errors: r.Untried, Skipped: r.Skipped + r.Unproven}
	for _, v := range r.verdicts {
		c := junitCase{Class: v.Case.Subject, Name: v.Case.ID, Seconds: fmt.Sprintf("%.3f", v.Took.Seconds())}
		switch v.Outcome {
		case conformance.Failed:
			c.Failure = &junitText{v.Saw, v.String()}
		case conformance.Untried:
			c.Error = &junitText{v.Saw, v.String()}
		case conformance.Skipped, conformance.Unproven:
			c.Skipped = &junitText{v.String(), ""}
		case conformance.Noted:
			c.Output = v.String()
		}
		suite.Cases = append(suite.Cases, c)
	}
	b, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(b, '\n')...), 0o644)
}
