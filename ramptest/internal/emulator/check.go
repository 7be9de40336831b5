package emulator

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
)

// Problems returns what Start fails a test for when it ends.
func (s *Service) Problems() string {
	if s.config.Closed {
		s.Audit.Sweep(s.Life.Alive)
	}
	stolen := s.Game.Thefts(s.Life.Alive)
	return text.Lines(append([]string{s.Report(), s.Shortfalls()}, stolen...)...)
}

// Shortfalls lists what a test shows less than it seems to: faults that had no effect, orders of which
// the service has not seen everything, and what its closed audit could not see.
func (s *Service) Shortfalls() string {
	return text.Lines(s.Orders.missed(), s.Orders.unseen().lines(s.Orders), s.spare(), s.notClosed())
}

// spare lists the scripted failures of calls that nobody has made, and settings of the nodes that changed
// nothing.
func (s *Service) spare() string {
	if s.config.Incomplete {
		return ""
	}
	var lines []string
	for _, left := range []struct {
		name  string
		count int
	}{
		{"FailInitialize", s.Console.Failing.Left()}, {"FailRPC", s.Node.Failing.Left()},
		{"FailAssets", s.Game.Failing.Left()},
	} {
		if left.count > 0 {
			lines = append(lines, fmt.Sprintf("ramptest: %d failures of service.%s had no effect, because "+
				"no such call came%s", left.count, left.name, incomplete))
		}
	}
	return strings.Join(append(lines, s.Node.idle()...), "\n")
}

// notClosed says why the closed books of a unit test could not see everything, or "".
func (s *Service) notClosed() string {
	if !s.config.Closed {
		return ""
	}
	session := s.Audit.Nameless()
	unseen, outside := s.Audit.Unseen()
	if session == "" && outside != "" {
		return "ramptest: Config.Closed could not look before and after service.Outside, because the game " +
			"did not say " + outside + ". What moves until it does looks as if the test had moved it: call " +
			"Outside while the game runs and the sessions are valid, or leave Closed out"
	}
	if session == "" && unseen != "" {
		return "ramptest: Config.Closed could not look when the test ended, because the game did not say " +
			unseen + ". Close the game by t.Cleanup before ramptest.Start, and not by defer, " +
			"let the session be valid until then, or leave Closed out"
	}
	if session == "" {
		return ""
	}
	return fmt.Sprintf("ramptest: Config.Closed cannot see what moves for session %s between two calls, "+
		"because the game's answer for it has no player_id, and another session may own the same assets: "+
		"return ramp.Player.PlayerID, or leave Closed out", session)
}

// Asides lists what the books do not judge, one per line: assets that move by themselves, and what
// moved between calls for no order.
func (s *Service) Asides() string {
	if s.config.Mode == Off || !s.config.IsUnitTest {
		return ""
	}
	var lines []string
	if needy, calls := s.Orders.Attention(); len(calls) > 0 {
		lines = append(lines, fmt.Sprintf("ramptest: %d need attention: orders %d, "+
			"calls that led to none %d; the newest of these: %s", len(needy)+len(calls), len(needy),
			len(calls), calls[0].Said))
	}
	for _, said := range s.Audit.Asides() {
		lines = append(lines, "ramptest: "+said)
	}
	for _, o := range slices.Backward(s.Orders.All()) {
		if _, ids := s.Audit.Judged(o.Entered().Sum); len(ids) > 0 {
			lines = append(lines, fmt.Sprintf("ramptest: %s: not judged, "+
				"because Config.Regenerating names it: %s", s.Orders.named(o), strings.Join(ids, ", ")))
		}
	}
	if more := len(lines) - maxAsides; more > 0 {
		lines = append(lines[:maxAsides], fmt.Sprintf("ramptest: and %d lines more like these", more))
	}
	return strings.Join(lines, "\n")
}

// Report lists the findings, and the other orders that need attention, one per line. It
// makes no calls.
func (s *Service) Report() string {
	var lines []string
	found := s.Audit.Found()
	for _, f := range found {
		lines = append(lines, "ramptest: "+f.Problem)
	}
	for _, o := range slices.Backward(s.Orders.All()) {
		if v := s.Orders.Verdict(o); v.Attention && len(s.Audit.About(o.UUID)) == 0 {
			line := fmt.Sprintf("ramptest: %s: %s", s.Orders.named(o), v.Said)
			if o.Delivery.Now().Status == http.StatusInternalServerError {
				line += s.Orders.hint(o)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + causes(found)
}

// The limits of what a test that failed shows. Who reads a log in a CI system sees its end.
const (
	maxLines  = 20 // findings
	maxStory  = 5  // orders whose events are shown
	maxRecent = 8  // events, if nothing was found
	maxAsides = 5  // lines about what is not judged
)

// Failure returns all that a test that failed must show, in one text: what was found, which ends with what
// was found first, and between the two the events of the orders that it is about.
func (s *Service) Failure(found string) string {
	lines := strings.Split(found, "\n")
	text := strings.Join(lines[:min(len(lines), maxLines)], "\n")
	if more := len(lines) - maxLines; more > 0 {
		text += fmt.Sprintf("\nand %d lines more, which service.Check() returns", more)
	}
	if asides := s.Asides(); asides != "" {
		text += "\n" + asides
	}
	about := s.involved()
	shown := about[:min(len(about), maxStory)]
	if all := s.Orders.All(); len(all) == 2 { // what is wrong with one may be the other one's doing
		shown = append(slices.Clone(shown), all[0].UUID, all[1].UUID)
	}
	timeline, others := s.History.Timeline(func(e *control.Event) bool {
		return slices.Contains(shown, e.UUID) || e.UUID == uuid.Nil && e.Failed
	})
	text += "\n" + timeline
	if more := len(about) - len(shown); more > 0 {
		text += fmt.Sprintf("\nand %d orders more with findings", more)
	}
	return text + elsewhere(others) + "\n" + lines[0]
}

// Recent returns the newest events, for a test that has failed otherwise.
func (s *Service) Recent() string {
	all := s.History.All()
	all = slices.DeleteFunc(all, func(e control.Event) bool { return e.Routine() })
	from := 0
	if len(all) > maxRecent {
		from = all[len(all)-maxRecent].Number
	}
	timeline, others := s.History.Timeline(func(e *control.Event) bool { return e.Number >= from })
	return timeline + elsewhere(others)
}

// elsewhere says how to see the events that are not shown.
func elsewhere(others int) string {
	if others == 0 {
		return ""
	}
	return fmt.Sprintf("\nand %d other events; t.Log(service.Timeline()) at the end of the test shows all",
		others)
}

// involved returns the orders that a finding is about, or that need attention, or whose faults had no
// effect, or of which the service has not seen everything, in this order.
func (s *Service) involved() (ids []uuid.UUID) {
	for _, f := range s.Audit.Found() {
		ids = append(ids, f.Orders...)
	}
	all := slices.Backward(s.Orders.All())
	for _, o := range all {
		if s.Orders.Verdict(o).Attention {
			ids = append(ids, o.UUID)
		}
	}
	for _, o := range all {
		if o.Tx != nil && len(s.Orders.without(o)) > 0 {
			ids = append(ids, o.UUID)
		}
	}
	ids = append(ids, s.Orders.unseen().ids()...)
	seen := make(map[uuid.UUID]bool)
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

const movedTwice = "\nAssets moved twice. Either the game moves them in two places, such as a handler and " +
	"a job. Or it uses a rampsql.Store, whose first attempt at each step was rolled back, and something " +
	"stayed: Apply must use tx for every statement, and tables with transactions, so not MyISAM."

// otherEmulator is the cause that no books can see.
const otherEmulator = "\nAn order of another emulator looks like this, too, because each emulator knows " +
	"only its own orders. If a second one uses this game, such as that of another test, give it a game of " +
	"its own."

// causes explains findings whose cause may be one that the books do not see. If assets moved exactly twice,
// two parts of the game may have moved them, or a rampsql.Store behind Config.Handler may have rolled back
// less than an Apply has done. These, and what moves for no order, may be orders of another emulator.
func causes(found []*audit.Finding) string {
	between := false
	for _, f := range found {
		between = between || len(f.Orders) == 0
		for _, a := range f.Assets {
			moved := new(big.Rat).Sub(a.After.Rat(), a.Before.Rat())
			due := new(big.Rat).Sub(a.Expected.Rat(), a.Before.Rat())
			if due.Sign() != 0 && moved.Cmp(due.Add(due, due)) == 0 {
				return movedTwice + otherEmulator
			}
		}
	}
	if between {
		return otherEmulator
	}
	return ""
}
