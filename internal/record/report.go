package record

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what the calls have shown so far.
type Report struct {
	Calls      int       // that were recorded
	Lost       int       // that passed, but were not recorded, because there were too many
	At         time.Time // of the report
	Deviations []Finding // from the interface
	Fresh      []Finding // fields that the interface does not have
	Points     []Point   // the open points of the interface
}

// Finding is something that occurred in some calls.
type Finding struct {
	Text  string
	Call  int // the number of the first call
	Times int
}

// report sums up.
func report(h *history, lost int) *Report {
	r := &Report{Calls: len(h.calls), Lost: lost, At: h.now, Points: h.Points()}
	note := func(list *[]Finding, c *call, text string) {
		text = fmt.Sprintf("%s: %s", c.kind, text)
		if n := slices.IndexFunc(*list, func(f Finding) bool { return f.Text == text }); n >= 0 {
			(*list)[n].Times++
			return
		}
		*list = append(*list, Finding{text, c.number, 1})
	}
	for _, c := range h.calls {
		if c.kind == elsewhere {
			note(&r.Deviations, c, fmt.Sprintf("%s at no endpoint (HTTP %d)", c.method, c.status))
		}
		for _, text := range c.deviation {
			note(&r.Deviations, c, text)
		}
		for _, text := range c.fresh {
			note(&r.Fresh, c, text)
		}
	}
	return r
}

// String returns the report in Markdown.
func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# What the service does\n")
	line("%d calls until %s. Made by `ramp record`; docs/interface.md explains the points.", r.Calls,
		r.At.Format(time.RFC3339))
	line("Signatures in the files are made anew: HMACs with the text `%s` as the key, those of the",
		TestHMACKey)
	line("validator with the key `%s`.", TestValidatorKey)
	if r.Lost > 0 {
		line("\n**%d more calls passed and were not recorded, because there were too many.**", r.Lost)
	}
	list := func(title, none string, findings []Finding) {
		line("\n## %s\n", title)
		if len(findings) == 0 {
			line("%s", none)
		}
		for _, f := range findings {
			line("- %s (call %04d%s)", f.Text, f.Call, also(f.Times-1))
		}
	}
	list("Deviations from the interface", "None.", r.Deviations)
	list("Fields that the interface does not have", "None.", r.Fresh)
	line("\n## Open points that were answered\n")
	line("| open point | seen | setting of ramp-go |\n|---|---|---|")
	for _, p := range r.Points {
		if p.Seen != "" {
			line("| %s | %s | %s |", p.Name, p.Seen, p.Setting)
		}
	}
	line("\n## Open points that are still open\n")
	line("| open point | what would answer it |\n|---|---|")
	for _, p := range r.Points {
		if p.Seen == "" {
			line("| %s | %s |", p.Name, p.Missing)
		}
	}
	return b.String()
}

func also(more int) string {
	switch more {
	case 0:
		return ""
	case 1:
		return ", and 1 more"
	}
	return fmt.Sprintf(", and %d more", more)
}
