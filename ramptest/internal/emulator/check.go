package emulator

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

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

// Shortfalls lists what a unit test shows less than it seems to: faults that had no effect, and what its
// closed audit could not see.
func (s *Service) Shortfalls() string { return text.Lines(s.Orders.missed(), s.notClosed()) }

// notClosed says why the closed books of a unit test could not see everything, or "".
func (s *Service) notClosed() string {
	if !s.config.Closed {
		return ""
	}
	session := s.Audit.Nameless()
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
			lines = append(lines, fmt.Sprintf("ramptest: %s %s: not judged, "+
				"because Config.Regenerating names it: %s",
				o.Trade().Direction, text.Short(o.UUID), strings.Join(ids, ", ")))
		}
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
			line := fmt.Sprintf("ramptest: %s %s: %s", o.Trade().Direction, text.Short(o.UUID), v.Said)
			if o.Delivery.Now().Status == http.StatusInternalServerError {
				line += s.Orders.hint(o)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + causes(found)
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
