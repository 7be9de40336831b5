package interleaving

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// column is the width of a server's column.
const column = 52

// Part is a call of a server: what it sent, and how it was answered.
type Part struct {
	Server   int
	Name     string
	Sent     []*Statement
	Approved bool // it was answered with success
	Moved    bool // and had to move something
}

// Table shows the statements of a run, with a column for each call, and under each statement what
// went wrong with it. Then it shows those of the repeats.
func Table(calls []string, sent []*Statement, repeats []Part) string {
	var b strings.Builder
	line := func(number string, server int, text string) {
		fmt.Fprintf(&b, "%3s  %s%s\n", number, strings.Repeat(" ", server*column), text)
	}
	heads := ""
	for n, call := range calls {
		heads += pad(fmt.Sprintf("%s: %s", Letter(n), call), column)
	}
	line("", 0, strings.TrimSpace(heads))
	number := 0
	show := func(sent []*Statement) {
		for _, st := range sent {
			number++
			line(fmt.Sprint(number), st.Server, Short(st.Text, column-2))
			for _, remark := range st.remarks() {
				line("", st.Server, "  ^ "+remark)
			}
		}
	}
	show(sent)
	for _, part := range repeats {
		line("", part.Server, fmt.Sprintf("%s: %s, repeated", Letter(part.Server), part.Name))
		show(part.Sent)
	}
	return b.String()
}

// remarks returns what is remarkable about a statement.
func (st *Statement) remarks() (remarks []string) {
	if st.Waited {
		remarks = append(remarks, "waits for a lock")
	}
	if st.Outside {
		remarks = append(remarks, "not sent with tx")
	}
	switch {
	case st.Fault != None:
		remarks = append(remarks, strings.ToUpper(string(st.Fault)))
	case st.Err != nil:
		remarks = append(remarks, Short(st.Err.Error(), 3*column))
	case st.Affected == 0 && st.OfGame():
		remarks = append(remarks, "changed no row")
	}
	return remarks
}

// Letter returns the name of a server.
func Letter(n int) string { return string(rune('A' + n)) }

// Short returns a statement on one line, with at most so many characters.
func Short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// Mistakes returns what a run shows that no game must do, whatever came of it.
func Mistakes(sent []*Statement) (mistakes []string) {
	for _, st := range sent {
		switch {
		case st.Outside && st.verb() != "BEGIN":
			mistakes = append(mistakes, fmt.Sprintf("%s sends %q to the database, instead of tx: "+
				"it sees and does what is not in the transaction", Letter(st.Server), Short(st.Text, column)))
		case st.aborted():
			mistakes = append(mistakes,
				fmt.Sprintf("the database ended a transaction, because the calls lock "+
					"rows in two orders (at %q of %s): lock them in a fixed order",
					Short(st.Text, column), Letter(st.Server)))
		}
	}
	return mistakes
}

// Causes returns what may have caused that something is wrong.
func Causes(parts []Part) (causes []string) {
	for _, part := range parts {
		for _, cause := range part.causes() {
			if cause = Letter(part.Server) + ": " + cause; !slices.Contains(causes, cause) {
				causes = append(causes, cause)
			}
		}
	}
	return causes
}

func (p Part) causes() (causes []string) {
	say := func(st *Statement, what string) {
		causes = append(causes, fmt.Sprintf("%q %s", Short(st.Text, column), what))
	}
	var read *Statement
	changed := false
	for _, st := range p.Sent {
		if !st.OfGame() {
			continue
		}
		reads := st.verb() == "SELECT"
		switch {
		case st.Err != nil && st.Fault != Killed && p.Approved:
			say(st, "failed, and Apply ignored the error")
		case !reads && st.Affected == 0 && p.Approved:
			say(st, "changed no row, and Apply approved: look at RowsAffected; a grant creates a missing row")
		case reads && !strings.Contains(strings.ToUpper(st.Text), " FOR UPDATE"):
			read = st
		case !reads && read != nil:
			say(read, "is read and then written: another call can change it in between. "+
				"Change it in one statement, or lock it with FOR UPDATE")
		}
		changed = changed || !reads
	}
	if p.Moved && !changed {
		causes = append(causes, "Apply approved without any statement that changes a row: "+
			"only the transaction may remember what was applied, because it can be rolled back")
	}
	return causes
}
