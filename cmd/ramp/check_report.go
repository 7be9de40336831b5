package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/token-ramp/ramp-go/internal/judge"
)

// report is the result of a check, as -json writes it.
type report struct {
	Target string `json:"target"`
	counts
	Causes []cause   `json:"causes"`
	Cases  []verdict `json:"cases"`

	paint       painter
	again       string // the command of the run, to which a case is added
	interrupted bool   // so that nothing is known of the other cases
	causes      []judge.Cause
	verdicts    []judge.Verdict
}

type counts struct {
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Noted    int `json:"noted"`
	Unproven int `json:"unproven"`
	Unasked  int `json:"unasked"`
	Waived   int `json:"waived"`
	Skipped  int `json:"skipped"`
	Untried  int `json:"untried"`
}

// cause is a [judge.Cause] in JSON.
type cause struct {
	Outcome judge.Outcome `json:"outcome"`
	Level   judge.Level   `json:"level"`
	Fix     string        `json:"fix"`
	Cases   []string      `json:"cases"` // the first one represents the cause
	Waiting int           `json:"waiting"`
}

type verdict struct {
	listed
	judge.InputVerdict
	Input        string  `json:"input,omitempty"`
	Milliseconds int64   `json:"milliseconds"`
	Inputs       []input `json:"inputs,omitempty"`
}

// input is a [judge.InputVerdict] in JSON.
type input struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	judge.InputVerdict
}

// listed is what -json writes of a case.
type listed struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Title   string `json:"title"`
	Section string `json:"section"`
	Fix     string `json:"fix,omitempty"`
}

// listedCase is a case as -list -json writes it.
type listedCase struct {
	listed
	Level judge.Level `json:"level"`
	Names []string    `json:"names,omitempty"` // of its inputs
}

// newReport returns a report of the verdicts. It includes a basic ability that does
// not work, even if its case was not chosen, if a chosen case waits for it.
func newReport(paint painter, target string, opening, verdicts []judge.Verdict) *report {
	tried, awaited := make(map[string]bool), make(map[string]bool)
	for _, v := range verdicts {
		tried[v.Case.ID], awaited[v.Until] = true, true
	}
	all := slices.DeleteFunc(slices.Clone(opening),
		func(v judge.Verdict) bool { return !awaited[v.Case.ID] || tried[v.Case.ID] })
	all = append(all, verdicts...)
	r := &report{paint: paint, Target: target, Causes: []cause{}, Cases: []verdict{},
		causes: judge.Causes(all), verdicts: all}
	for _, c := range r.causes {
		shown := cause{Outcome: c.Outcome, Level: c.Level, Fix: c.Fix, Waiting: c.Waiting}
		for _, v := range c.Failed {
			shown.Cases = append(shown.Cases, v.Case.ID)
		}
		r.Causes = append(r.Causes, shown)
	}
	for _, v := range all {
		*r.count(v.Outcome)++
		shown := verdict{listed: listing(v.Case), InputVerdict: v.InputVerdict, Input: v.Input.Name,
			Milliseconds: v.Took.Milliseconds()}
		if v.Want == "" {
			shown.Fix = ""
		}
		if len(v.Inputs) > 0 || !wrong(v.Outcome) {
			shown.Calls = nil
		}
		for _, in := range v.Inputs {
			if !wrong(in.Outcome) {
				in.Calls = nil
			}
			if in.Outcome == judge.Waived && v.Outcome != judge.Waived {
				r.Waived++
			}
			shown.Inputs = append(shown.Inputs, input{in.Input.Name, in.Input.Title, in})
		}
		r.Cases = append(r.Cases, shown)
	}
	return r
}

// wrong reports whether an outcome says that the server did something wrong.
func wrong(o judge.Outcome) bool { return o == judge.Failed || o == judge.Noted }

func listing(c judge.Case) listed { return listed{c.ID, c.Subject, c.Title, c.Section, c.Fix} }

func (c *counts) count(o judge.Outcome) *int {
	return map[judge.Outcome]*int{judge.Passed: &c.Passed, judge.Failed: &c.Failed, judge.Noted: &c.Noted,
		judge.Unproven: &c.Unproven, judge.Unasked: &c.Unasked, judge.Waived: &c.Waived,
		judge.Skipped: &c.Skipped, judge.Untried: &c.Untried}[o]
}

// writeText writes the details of what failed, then what was not tried, and last, on one
// screen, what to fix.
func (r *report) writeText(out io.Writer, verbose bool) error {
	var b strings.Builder
	if verbose {
		r.writeAll(&b)
	} else {
		r.writeDetails(&b)
	}
	r.writeOthers(&b, verbose)
	r.writeCauses(&b)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	return r.writeLine(out)
}

// writeAll writes each case with its inputs and all their calls.
func (r *report) writeAll(out io.Writer) {
	for _, v := range r.verdicts {
		fmt.Fprintf(out, "%-8s %-6s %-4s %s\n", v.Outcome, v.Level, v.Case.Section, v.Case.ID)
		for _, in := range v.Inputs {
			fmt.Fprintf(out, "         %s: %s (%s)\n", in.Input.Name, in.Outcome, in.Input.Title)
			writeCalls(out, in.Calls)
		}
		if len(v.Inputs) == 0 {
			writeCalls(out, v.Calls)
		}
		if wrong(v.Outcome) {
			r.writeDetail(out, v, true)
		}
	}
}

func writeCalls(out io.Writer, calls []judge.Call) {
	for _, c := range calls {
		fmt.Fprintf(out, "           %s\n             %s\n", c, c.Answer)
	}
}

// mostDetails is the number of causes that are shown in detail before what to fix. What
// to fix fits on one screen: mostCauses, with the fixes of the first mostFixes.
const (
	mostDetails = 10
	mostCauses  = 12
	mostFixes   = 5
)

// writeDetails writes a paragraph for each of the first causes that count.
func (r *report) writeDetails(out io.Writer) {
	for i, c := range r.failed() {
		if i == mostDetails {
			fmt.Fprint(out, "The details of the other failures are in the output of -json, and with -v.\n\n")
			return
		}
		r.writeDetail(out, c.First(), i == 0) // commands are long
	}
}

// failed returns the causes that count.
func (r *report) failed() []judge.Cause {
	return slices.DeleteFunc(slices.Clone(r.causes),
		func(c judge.Cause) bool { return c.Outcome != judge.Failed })
}

// writeDetail writes a paragraph about a case that failed, if wanted with a command that
// tries it again.
func (r *report) writeDetail(out io.Writer, v judge.Verdict, command bool) {
	fmt.Fprintf(out, "%s %s: %s\n", r.paint(v.Outcome), v.Case.ID, v)
	if c := v.Call; c != nil {
		fmt.Fprintf(out, "  call: %s\n  answer: %s\n", c, cmp.Or(c.Answer, "(empty)"))
		if c.UUID != "" || c.Session != "" {
			fmt.Fprintf(out, "  uuid %s, session %s\n", cmp.Or(c.UUID, "-"), cmp.Or(c.Session, "-"))
		}
	}
	if command && r.again != "" {
		only := v.Case.ID
		if v.Input.Name != "" {
			only += "/" + v.Input.Name
		}
		fmt.Fprintf(out, "  repeat it: %s -run '^%s$' -v\n", r.again, only)
	}
	fmt.Fprintln(out)
}

// writeOthers writes which cases were noted, waived, skipped or not tried, by reason.
func (r *report) writeOthers(out io.Writer, verbose bool) {
	type group struct {
		outcome judge.Outcome
		why     string
	}
	var order []group
	ids := make(map[group][]string)
	add := func(o judge.Outcome, why, id string) {
		g := group{o, why}
		if ids[g] == nil {
			order = append(order, g)
		}
		ids[g] = append(ids[g], id)
	}
	for _, c := range r.causes {
		for _, v := range c.Failed {
			why := v.Case.Title + " (a SHOULD, which counts with -strict)"
			if v.Outcome == judge.Noted && len(v.Inputs) == 0 {
				add(v.Outcome, why, v.Case.ID)
			}
			for _, in := range v.Inputs {
				if v.Outcome == judge.Noted && in.Outcome == v.Outcome {
					add(v.Outcome, why, v.Case.ID+"/"+in.Input.Name)
				}
			}
		}
	}
	for _, v := range r.verdicts {
		switch v.Outcome {
		case judge.Waived, judge.Skipped, judge.Untried:
			add(v.Outcome, v.Saw, v.Case.ID)
		case judge.Unasked: // which the last line names
		default:
			for _, in := range v.Inputs {
				if in.Outcome == judge.Waived || in.Outcome == judge.Skipped && verbose {
					add(in.Outcome, in.Saw, v.Case.ID+"/"+in.Input.Name)
				}
			}
		}
	}
	for _, g := range order {
		shown := ids[g]
		const most = 6
		text := strings.Join(shown[:min(len(shown), most)], ", ")
		if more := len(shown) - most; more > 0 && !verbose {
			text += fmt.Sprintf(" and %d more", more)
		} else if verbose {
			text = strings.Join(shown, ", ")
		}
		fmt.Fprintf(out, "%s %s: %s\n", r.paint(g.outcome), text, g.why)
	}
	if len(order) > 0 {
		fmt.Fprintln(out)
	}
}

// writeCauses writes what to fix, in the order in which to fix it.
func (r *report) writeCauses(out io.Writer) {
	causes := r.failed()
	for i, c := range causes {
		v := c.First()
		if i == 0 {
			fmt.Fprint(out, "What to fix, in this order:\n\n")
		} else if i == mostCauses {
			fmt.Fprintf(out, "%d more are in the output of -json.\n", len(causes)-i)
			break
		}
		fmt.Fprintf(out, "%d. %s (%s, interface %s, %s)\n", i+1, v.Case.Title, c.Level, v.Case.Section,
			concerns(c))
		if i < mostFixes {
			if v.Input.Name != "" {
				fmt.Fprintf(out, "   with: %s (%s)\n", v.Input.Name, v.Input.Title)
			}
			call := ""
			if v.Call != nil {
				call = v.Call.Method + " " + v.Call.Path + ": "
			}
			fmt.Fprintf(out, "   saw:  %s%s\n   want: %s\n   fix:  %s\n", call, v.Saw, v.Want, c.Fix)
		}
	}
	if len(causes) > 0 {
		fmt.Fprintln(out)
	}
}

// concerns describes the cases that a cause affects.
func concerns(c judge.Cause) string {
	text := c.First().Case.ID
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

// writeLine writes the verdict on one line.
func (r *report) writeLine(out io.Writer) error {
	outcome, rest := judge.Passed, ""
	switch {
	case r.Failed > 0:
		outcome = judge.Failed
		rest = ", first " + r.failed()[0].First().Case.ID
	case r.interrupted:
		outcome = "interrupted"
	case r.Untried > 0:
		outcome = judge.Untried
	case r.Unproven > 0:
		outcome = judge.Unproven
	case r.Unasked > 0:
		outcome = judge.Unasked
	}
	failed := "none"
	if r.Failed > 0 {
		failed = strconv.Itoa(r.Failed)
	}
	_, err := fmt.Fprintf(out, "%s: %s of %d cases failed%s; %d noted, %d unproven, %d unasked, %d waived, "+
		"%d skipped, %d untried%s\n", r.paint(outcome), failed, len(r.verdicts), rest, r.Noted, r.Unproven,
		r.Unasked, r.Waived, r.Skipped, r.Untried, r.unasked())
	return err
}

// unasked names what protects money and was not tried, and what to set.
func (r *report) unasked() string {
	var order []string // what to set
	ids := make(map[string][]string)
	add := func(set, id string) {
		if ids[set] == nil {
			order = append(order, set)
		}
		ids[set] = append(ids[set], id)
	}
	for _, v := range r.verdicts {
		all := v.Outcome == judge.Unasked
		for _, in := range v.Inputs {
			all = all && (in.Outcome == judge.Unasked && in.Set == v.Set || in.Outcome == judge.Skipped)
		}
		for _, in := range v.Inputs {
			if !all && in.Outcome == judge.Unasked {
				add(in.Set, v.Case.ID+"/"+in.Input.Name)
			}
		}
		if all || v.Outcome == judge.Unasked && len(v.Inputs) == 0 {
			add(v.Set, v.Case.ID)
		}
	}
	if len(order) == 0 {
		return ""
	}
	text := "; not tried, though money depends on it:"
	for _, set := range order {
		text += " " + strings.Join(ids[set], ", ") + " (set " + set + ");"
	}
	return text + " or waive it (-skip)"
}

// list writes the cases as a table.
func list(out io.Writer, cases []judge.Case) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range cases {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.ID, c.Level, c.Section, c.Title)
	}
	return table.Flush()
}

func listJSON(out io.Writer, cases []judge.Case) error {
	all := make([]listedCase, len(cases))
	for i, c := range cases {
		all[i] = listedCase{listed: listing(c), Level: c.Level}
		for _, in := range c.Inputs {
			all[i].Names = append(all[i].Names, in.Name)
		}
	}
	return writeJSON(out, "  ", all)
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
	suite := junitSuite{Name: "ramp check", Tests: len(r.verdicts), Failures: r.Failed,
		Errors: r.Untried + r.Unasked}
	for _, v := range r.verdicts {
		c := junitCase{Class: v.Case.Subject, Name: v.Case.ID, Seconds: fmt.Sprintf("%.3f", v.Took.Seconds())}
		switch v.Outcome {
		case judge.Failed:
			c.Failure = &junitText{v.Saw, v.String()}
		case judge.Untried, judge.Unasked:
			c.Error = &junitText{v.Saw, v.String()}
		case judge.Skipped, judge.Unproven, judge.Waived:
			c.Skipped = &junitText{v.String(), ""}
			suite.Skipped++
		case judge.Noted:
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
