package judgetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fault is a bug of a server, and what the judge must say of it.
type fault struct {
	language, name string

	// first matches the case that the judge must name first, and related the others
	// that may fail. says matches a part of the error if exit is 2.
	first, related, says string
	noted                string // a case that it notes
	exit                 int

	policy   string   // of the server
	flags    []string // of ramp check
	restarts bool     // the judge may restart the server
	always   bool     // it is among those that run with every go test
}

const (
	exitRight   = 0
	exitWrong   = 1
	exitUnknown = 2
)

// terms tell the judge what the policy price checks.
var terms = []string{"-token", contract, "-amount", "2", "-tokens", "1"}

var faults = []fault{
	// Who calls.
	{language: "python", name: "no-hmac", first: "validate-hmac-wrong", related: "(validate|result)-hmac-.*",
		exit: exitWrong, always: true},
	{language: "python", name: "no-hmac-at-result", first: "result-hmac-wrong", related: "result-hmac-.*",
		exit: exitWrong},
	{language: "node", name: "no-hmac-at-validate", first: "validate-hmac-wrong", related: "validate-hmac-.*",
		exit: exitWrong},
	{language: "python", name: "hmac-reencoded", first: "validate-hmac-raw", related: "result-hmac-raw",
		exit: exitWrong},
	{language: "python", name: "empty-hmac-accepted", first: "validate-hmac-wrong",
		related: "(validate|result)-hmac-wrong", exit: exitWrong},
	{language: "python", name: "hmac-echoed", first: "validate-hmac-kept-secret", related: "result-hmac-kept-secret",
		exit: exitWrong},
	{language: "node", name: "hmac-decoded-leniently", first: "validate-hmac-wrong",
		related: "(validate|result)-hmac-wrong", exit: exitWrong},
	{language: "node", name: "hmac-prefix", first: "validate-hmac-wrong", related: "(validate|result)-hmac-wrong",
		exit: exitWrong},
	{language: "python", name: "hmac-after-body", says: "HMAC key", exit: exitUnknown},
	{language: "node", name: "key-decoded", says: "HMAC key", exit: exitUnknown},
	{language: "python", name: "no-token", first: "assets-token-wrong",
		related: "validate-token-wrong|rejection-envelope|(assets|validate)-foreign-token", exit: exitWrong},
	{language: "python", name: "token-of-anyone", first: "assets-foreign-token", related: "validate-foreign-token",
		exit: exitWrong},
	{language: "node", name: "no-token-at-validate", first: "validate-token-wrong", related: "validate-foreign-token",
		exit: exitWrong},
	{language: "node", name: "token-prefix", first: "assets-token-wrong", related: "validate-token-wrong",
		exit: exitWrong},
	{language: "node", name: "assets-of-another", first: "mint-succeeds", related: ".*", exit: exitWrong},

	// Balances.
	{language: "python", name: "no-balance-check", first: "balance", related: "intent-s.*", exit: exitWrong},
	{language: "python", name: "balance-clamped", first: "balance", related: "intent-s.*", exit: exitWrong},
	{language: "python", name: "balance-checked-early", first: "mints-at-once", exit: exitWrong, always: true},
	{language: "node", name: "balance-read-early", first: "(mints|orders)-at-once", related: ".*-at-once.*",
		exit: exitWrong},
	{language: "python", name: "sum-unchecked", first: "intent-sum-too-much", exit: exitWrong},
	{language: "python", name: "first-balance-compared", first: "intent-second-short", exit: exitWrong},
	{language: "python", name: "empty-balances-deleted", first: "mint-amount-all-back", exit: exitWrong},
	{language: "node", name: "first-asset-kept", first: "intent-second-short", exit: exitWrong, always: true},
	{language: "node", name: "unknown-assets-free", first: "intent-unknown-asset",
		related: "intent-second-short|rejection-envelope", exit: exitWrong},
	{language: "python", name: "first-entry-only", first: "intent-.*", related: "intent-.*", exit: exitWrong},
	{language: "node", name: "last-entry-only", first: "intent-.*", related: "intent-.*", exit: exitWrong},

	// Amounts.
	{language: "python", name: "amounts-truncated", first: "amount-exact", exit: exitWrong},
	{language: "node", name: "amounts-truncated", first: "amount-exact|mint-amount-too-much",
		related: "amount-exact|mint-amount-too-much", exit: exitWrong, always: true},
	{language: "node", name: "amounts-rounded", first: "amount-exact", exit: exitWrong},
	{language: "python", name: "negative-amounts", first: "mint-amount", related: "burn-amount", exit: exitWrong},
	{language: "python", name: "zero-amounts", first: "mint-amount", related: "burn-amount", exit: exitWrong},
	{language: "python", name: "missing-is-zero", first: "mint-amount", related: "burn-amount", exit: exitWrong},
	{language: "node", name: "32-bits", first: "mint-amount-too-much",
		related: "intent-sum-too-much|amount-exact|mint-amount|burn-amount", exit: exitWrong},
	{language: "node", name: "64-bits", first: "mint-amount-too-much", related: "intent-sum-too-much", exit: exitWrong},
	{language: "node", name: "text-added", first: "mint-fails",
		related: "burn-.*|mint-amount.*|mint-spent-twice|mints-at-once|validate-twice-balance", exit: exitWrong},

	// Outcomes.
	{language: "python", name: "never-takes", first: "mint-succeeds", exit: exitWrong, always: true},
	{language: "python", name: "never-gives-back", first: "mint-fails", exit: exitWrong},
	{language: "python", name: "gives-back-on-success", first: "mint-succeeds", exit: exitWrong},
	{language: "python", name: "never-grants", first: "burn-succeeds", exit: exitWrong},
	{language: "python", name: "grants-at-validate", first: "burn-fails", related: "burn-spent-early", exit: exitWrong},
	{language: "python", name: "grants-early", first: "burn-spent-early", exit: exitWrong},
	{language: "python", name: "grants-on-failure", first: "burn-fails", exit: exitWrong},
	{language: "python", name: "mint-burn-confused", first: "mint-succeeds", related: "mint-fails|burn-.*|balance",
		exit: exitWrong},
	{language: "python", name: "missing-status-pays", first: "receipt-no-status", exit: exitWrong},
	{language: "node", name: "not-0x0-is-success", first: "receipt-.*status.*",
		related: "receipt-.*status.*|result-not-lost", exit: exitWrong},
	{language: "python", name: "type-7-is-failure", first: "receipt", exit: exitWrong},
	{language: "node", name: "type-7-is-success", first: "receipt", exit: exitWrong},

	// Several at once.
	{language: "python", name: "session-shared", first: "players-at-once", exit: exitWrong, always: true},
	{language: "node", name: "result-shared", first: "players-at-once", related: "(results|orders)-at-once",
		exit: exitWrong},
	{language: "node", name: "endpoints-locked-apart", first: "orders-at-once", exit: exitWrong},
	{language: "python", name: "assets-locked-as-listed", first: "orders-at-once", flags: []string{"-timeout", "2s"},
		exit: exitWrong},

	{language: "python", name: "lock-timeout", first: "players-at-once", related: ".*-at-once.*", exit: exitWrong},

	// Repeats.
	{language: "python", name: "takes-again", first: "repeats", exit: exitWrong},
	{language: "python", name: "gives-back-again", first: "repeats", exit: exitWrong, always: true},
	{language: "python", name: "grants-again", first: "repeats", exit: exitWrong},
	{language: "python", name: "repeats-by-transaction", first: "result-again-changed", related: "result-odd",
		exit: exitWrong},
	{language: "node", name: "repeats-by-body", first: "result-again-changed", related: "(result|receipt)-.*|http",
		exit: exitWrong},
	{language: "python", name: "repeats-forgotten", first: "result-again-late", exit: exitWrong},
	{language: "node", name: "outcome-changes", first: "result-contrary", exit: exitWrong},
	{language: "node", name: "state-checked-early", first: "result-at-once", related: "results-at-once.*",
		exit: exitWrong},
	{language: "node", name: "uuid-checked-early", first: "validate-at-once", related: ".*-at-once.*", exit: exitWrong},
	{language: "node", name: "second-digest-signed", first: "validate-other", related: "validate-.*", exit: exitWrong},
	{language: "node", name: "orders-of-anyone", exit: exitRight},         // it repeats the same signature
	{language: "node", name: "finished-orders-approved", exit: exitRight}, // so does this
	{language: "node", name: "finished-orders-forgotten", first: "repeats",
		related: "validate-after-end|result-contrary", exit: exitWrong},

	// Whose order it is, and what it is about.
	{language: "python", name: "unknown-order-pays", first: "unknown-order", exit: exitWrong},
	{language: "python", name: "amounts-of-result", first: "result-other-intent", exit: exitWrong},
	{language: "node", name: "direction-of-result", first: "result-other-intent", related: "result-odd",
		exit: exitWrong},
	{language: "node", name: "owner-of-result", first: "result-other-owner", related: "result-odd", exit: exitWrong},
	{language: "node", name: "owner-of-header", first: "result-other-(owner|session)", related: "result-other-.*",
		exit: exitWrong},
	{language: "python", name: "latest-order-ended", first: "mint-several", related: "orders-at-once", exit: exitWrong},
	{language: "python", name: "uuid-cut", first: "mint-several", exit: exitWrong},
	{language: "python", name: "fee-kept", first: "receipt", exit: exitWrong},
	{language: "python", name: "rejected-orders-kept", policy: "price", flags: terms, first: "result-rejected",
		exit: exitWrong},

	// Terms.
	{language: "python", name: "ignores-contract", policy: "price", flags: terms, first: "terms-token",
		exit: exitWrong},
	{language: "node", name: "ignores-rate", policy: "price", flags: terms, first: "terms-rate", exit: exitWrong,
		always: true},
	{language: "node", name: "ignores-more-items", policy: "price", flags: terms, first: "terms-rate", exit: exitWrong},
	{language: "node", name: "tokens-32-bits", policy: "price", flags: terms, first: "terms-rate", exit: exitWrong},
	{language: "node", name: "one-token-free", policy: "price", flags: terms, first: "terms-rate", exit: exitWrong},
	{language: "python", name: "double-outputs", policy: "price", flags: terms, first: "terms-rate", exit: exitWrong},

	// Signatures.
	{language: "python", name: "wrong-key", says: "is signed by", exit: exitUnknown, always: true},
	{language: "python", name: "wrong-digest", first: "sign-unchanged", related: "sign-.*", exit: exitWrong},
	{language: "node", name: "digest-prefixed", first: "sign-unchanged", related: "sign-.*", exit: exitWrong},
	{language: "node", name: "digest-shared", first: "players-at-once", related: "sign-every", exit: exitWrong},
	{language: "node", name: "digest-padded", first: "digest-wrong", exit: exitWrong},
	{language: "python", name: "v-0-1", noted: "sign-v"},
	{language: "node", name: "v-always-27", first: "sign-.*", related: "sign-.*", exit: exitWrong},
	{language: "python", name: "high-s", noted: "sign-low-s"},
	{language: "node", name: "signature-without-0x", first: "sign-form", exit: exitWrong},
	{language: "python", name: "user-sig-replaced", first: "user-sig(-odd)?", related: "user-sig(-odd)?",
		exit: exitWrong},
	{language: "node", name: "user-sig-in-lower-case", first: "user-sig", exit: exitWrong},
	{language: "python", name: "signed-rejection", first: "rejection-envelope", related: "balance|sign-rejected",
		exit: exitWrong},

	// Answers.
	{language: "python", name: "success-in-rejections", first: "refusal", related: ".*-envelope|result-not-lost",
		exit: exitWrong, always: true},
	{language: "node", name: "rejections-without-code", first: ".*-envelope", related: ".*-envelope", exit: exitWrong},
	{language: "python", name: "confirms-with-201", first: "result-answer", exit: exitWrong, always: true},
	{language: "python", name: "confirms-with-text", first: "result-answer", exit: exitWrong},
	{language: "python", name: "confirms-with-false", first: "result-answer", exit: exitWrong},
	{language: "python", name: "balances-as-numbers", first: "assets-balance-string", exit: exitWrong},
	{language: "node", name: "error-code-empty", first: "assets", related: "result-answer|null-fields",
		exit: exitWrong},
	{language: "node", name: "assets-flat", says: "data.v1", exit: exitUnknown},
	{language: "node", name: "type-7-unknown", first: "receipt", exit: exitWrong},
	{language: "node", name: "fee-required", first: "receipt", exit: exitWrong},
	{language: "node", name: "receipt-pinned", noted: "receipt-odd"},
	{language: "node", name: "orders-in-memory", first: "restart", exit: exitWrong, restarts: true},
	{language: "node", name: "hashes-in-memory", policy: "one-hash", noted: "restart", restarts: true, always: true},
	{language: "node", name: "uuid-kept-in-small-letters", first: "validate-uuid", exit: exitWrong, always: true},
	{language: "node", name: "assets-found-with-in", noted: "intent-burn-unknown-asset"},
	{language: "node", name: "intent-optional", first: "validate-intent", exit: exitWrong, always: true},
	{language: "node", name: "unknown-fields-rejected", noted: "unknown-fields"},

	// In front of the handler.
	{language: "python", name: "not-found", says: "404", exit: exitUnknown},
	{language: "python", name: "html-rejections", first: ".*-envelope", related: ".*-envelope", exit: exitWrong},
	{language: "node", name: "redirects", says: "redirect|301", exit: exitUnknown},
	{language: "node", name: "csrf", says: "403", exit: exitUnknown, always: true},
	{language: "node", name: "proxy-limits-bodies", says: "413", exit: exitUnknown},
	{language: "node", name: "limits-all", says: "429", exit: exitUnknown},
	{language: "node", name: "result-unanswered", says: "no answer", exit: exitUnknown,
		flags: []string{"-timeout", "2s"}},
	{language: "node", name: "headers-in-lower-case", first: "header-case", exit: exitWrong},
	{language: "node", name: "headers-in-upper-case", says: "names of headers in one case only", exit: exitUnknown,
		always: true},
	{language: "python", name: "dies", says: "stopped answering", related: ".*", exit: exitUnknown},
	{language: "node", name: "dies-of-exponents", first: "mint-amount.*", related: ".*-amount.*",
		says: "stopped answering", exit: exitUnknown},
}

func TestEveryFaultIsFoundAndNamed(t *testing.T) {
	for _, f := range faults {
		if !all && !f.always {
			continue
		}
		t.Run(f.language+"/"+f.name, func(t *testing.T) {
			t.Parallel()
			url, restart := start(t, f.language, "-fault", f.name, "-policy", f.policy)
			flags := append([]string{"-settle", "300ms"}, f.flags...)
			if f.restarts {
				flags = append(flags, "-restart", restart)
			}
			v := check(t, url, flags...)
			t.Log(v)
			assert.Equal(t, f.exit, v.exit, "the exit status")
			if f.says != "" {
				assert.Regexp(t, f.says, v.stderr)
			}
			if f.noted != "" {
				assert.Contains(t, v.with("noted"), f.noted)
			}
			if f.exit == exitWrong {
				assert.True(t, matches(f.first, v.first()), "the first cause is %q, want %s", v.first(), f.first)
			}
			for _, id := range v.with("failed") {
				assert.True(t, matches(f.first+"|"+f.related, id), "an unrelated case failed: %s", id)
			}
		})
	}
}

// TestEveryFaultIsTried makes sure that no fault of a server is left out.
func TestEveryFaultIsTried(t *testing.T) {
	for language := range servers {
		var tried []string
		for _, f := range faults {
			if f.language == language {
				tried = append(tried, f.name)
			}
		}
		slices.Sort(tried)
		assert.Equal(t, faultsOf(t, language), tried, language)
	}
}

// TestAServerThatStopsIsOneScreen counts what a person has to read.
func TestAServerThatStopsIsOneScreen(t *testing.T) {
	for _, f := range []fault{
		{language: "python", name: "dies"},
		{language: "python", name: "not-found"},
		{language: "node", name: "limits-all"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			url, _ := start(t, f.language, "-fault", f.name)
			out, errs, exit := ramped(t, url)
			assert.Equal(t, exitUnknown, exit)
			assert.LessOrEqual(t, strings.Count(out+errs, "\n"), 40, out+errs)
		})
	}
}
