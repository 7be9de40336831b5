package pairs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/must"
)

// planted is a fault in a copy of the product: one of its guards, or the mend of a fault that we had, is gone.
type planted struct {
	name     string
	file     string // from the root of the module
	old, new string // what the file has once, and what the copy has instead
}

var plants = []planted{
	// What keeps a person from a mistake.
	{"abandon does not wait", "support/abandon.go",
		"!until.After(o.config.Now()) || d.Early {", "true {"},
	{"abandon sees no transaction", "support/abandon.go",
		`c.Objection != "" && !d.AgainstEvidence`, `c.Objection == "no"`},
	{"abandon believes an incomplete search", "support/abandon.go",
		`if report.Incomplete != "" {`, `if report.Incomplete == "no" {`},
	{"abandon believes a node that is down", "support/abandon.go",
		"	case err != nil:\n		return err\n	}\n	for _, c := range report.Candidates {",
		"	}\n	for _, c := range report.Candidates {"},
	{"abandon moves nothing", "order.go",
		"d == Mint && (entered == OrderFailed || entered == OrderAbandoned)", "d == Mint && entered == OrderFailed"},
	{"finish does not look for another mint", "support/finish.go",
		"if isMint && result.Outcome() == ramp.OrderFailed {", "if isMint && result.Outcome() == \"\" {"},
	{"finish proves nothing", "support/finish.go",
		"if unproven != nil && !d.AgainstEvidence {", "if unproven != nil && d.Who == \"\" {"},
	{"finish takes an older transaction", "support/finish.go",
		"if unproven == nil && age > skew {", "if unproven == nil && age > 100*maxDelay {"},
	{"a refusal hides the table of Advise", "support/advice.go",
		`if refused != "" && now.Sub(o.AcceptedAt) < maxDelay {`, `if refused != "" {`},
	{"Advise takes any transaction", "support/advice.go",
		`return c.Hidden == "" && c.Unproven == "" && c.EndedOther == nil && !older(c)`, `return c.Hidden == ""`},

	// What answers the service.
	{"a contradiction ends an order once more", "order.go",
		"		case stored.State == OrderAccepted:\n			return stored.end(outcome,",
		"		case stored.State != outcome:\n			return stored.end(outcome,"},
	{"an order that has ended is signed again", "order.go",
		"		case stored.State != OrderAccepted:\n			return Step{}, fmt.Errorf(",
		"		case stored.State == \"\":\n			return Step{}, fmt.Errorf("},
	{"today's rules judge a repeat", "webhook.go",
		"|| rejection.Repeats {", "|| true {"},
	{"whatever is rejected passes", "webhook.go",
		"	accept = repeatOnly(accept)\n", ""},
	{"a former price pays for a new one", "terms.go",
		"	t.separate(offers)\n", ""},
	{"a failed mint is given back unseen", "rampproof/rampproof.go",
		"if r.Outcome() != ramp.OrderFailed {\n		return false, nil",
		"if r.Outcome() != \"\" {\n		return true, nil"},
	{"a grant is not rehearsed", "rampsql/store.go",
		"	err = s.rehearsals.tryGrant(ctx, t, &step, row.claim)\n", ""},
	{"one transaction ends two orders", "rampsql/schema/sqlite.sql",
		"CREATE UNIQUE INDEX IF NOT EXISTS ramp_orders_tx_hash", "CREATE INDEX IF NOT EXISTS ramp_orders_tx_hash"},

	// What a person knows afterwards.
	{"a restored order has not ended", "support/restore.go",
		"{o.reopen, o.endAgain}", "{o.reopen}"},
	{"what was lost is restored in any order", "support/restore.go",
		"map[ramp.OrderState]int{ramp.OrderSucceeded: -1}", "map[ramp.OrderState]int{ramp.OrderSucceeded: 1}"},
	{"the log does not have the order", "handler.go",
		"	if op.Step != nil {\n		attrs = append(attrs, slog.Any(\"order\", &op.Step.Order))\n	}\n", ""},
	{"an erased player's transactions are forgotten", "support/erase.go",
		"if err := o.config.Books.KeepMatches(ctx, orders, d.Who, d.Reason); err != nil {",
		"if err := ctx.Err(); err != nil {"},
}

// apply returns the file with the fault.
func (p *planted) apply(t *testing.T, root string) string {
	text, err := os.ReadFile(filepath.Join(root, p.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		t.Errorf("%s: %s has what is replaced %d times", p.name, p.file, n)
	}
	return strings.Replace(string(text), p.old, p.new, 1)
}

// TestEachPlantFits fails if the code has changed so that a fault cannot be planted any more.
func TestEachPlantFits(t *testing.T) {
	for _, p := range plants {
		p.apply(t, root(t))
	}
}

func root(t *testing.T) string { return must.Get(filepath.Abs("../../../.."))(t) }

// TestPlants plays the pairs of the core with each fault, until one shows it. PAIRS_PLANT names one of them.
func TestPlants(t *testing.T) {
	only := os.Getenv("PAIRS_PLANT")
	if os.Getenv("PAIRS_ALL") == "" && only == "" {
		t.Skip("PAIRS_ALL is not set")
	}
	for _, p := range plants {
		if only != "" && only != p.name {
			continue
		}
		dir := t.TempDir()
		copied, overlay := filepath.Join(dir, "copy"+filepath.Ext(p.file)), filepath.Join(dir, "overlay.json")
		replaced := map[string]string{filepath.Join(root(t), p.file): copied}
		text := must.Get(json.Marshal(map[string]any{"Replace": replaced}))(t)
		if err := os.WriteFile(copied, []byte(p.apply(t, root(t))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, text, 0o600); err != nil {
			t.Fatal(err)
		}
		test := exec.Command("go", "test", "-count", "1", "-vet=off", "-overlay", overlay, "-timeout", "30m", "-v",
			"-run", "TestUntilOneIsFound", ".")
		test.Env = append(os.Environ(), "PAIRS_PLANTED=1")
		said, err := test.CombinedOutput()
		found := strings.Contains(string(said), "found after")
		if err == nil || !found {
			t.Errorf("%s: nothing shows it: %v\n%s", p.name, err, said)
			continue
		}
		_, shown, _ := strings.Cut(string(said), "found after")
		t.Logf("%s: found after%s", p.name, strings.Join(strings.SplitN(shown, "\n", 3)[:2], ";"))
	}
}

// TestUntilOneIsFound plays each event alone, and then the pairs of the core, until one shows what is not known to be
// red.
func TestUntilOneIsFound(t *testing.T) {
	if os.Getenv("PAIRS_PLANTED") == "" {
		t.Skip("nothing is planted: it would find nothing")
	}
	s, known, played := newStage(t), newFindings(), 0
	until := func(what string, jobs []job) {
		const stride, chunk = 1117, 250 // which shares no factor with their number: they come mixed
		for from := 0; from < len(jobs); from += chunk {
			var some []job
			for n := from; n < min(from+chunk, len(jobs)); n++ {
				some = append(some, jobs[n*stride%len(jobs)])
			}
			list := s.all(t, some)
			for _, p := range list {
				known.add(p)
			}
			played += len(some)
			if n := known.unknown(t); n != nil {
				t.Fatalf("found after %d scenes, by %s: %s\n%s", played, what, n.key(), n.text)
			}
			for _, p := range list {
				known.learn(p)
			}
		}
	}
	until("one event", alone(events, few))
	until("a pair", inOrder(named(t, core), 2, few, spacings[0]))
	until("three", inOrder(named(t, dozen), 3, few, spacings[0]))
	t.Logf("nothing found in %d scenes", played)
}
