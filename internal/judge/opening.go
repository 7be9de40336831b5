package judge

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Ready checks that the server can be judged: a player is available who owns enough, a
// plain mint is approved and signed by the registered key, and its result is confirmed.
// If not, every case would fail in the same way, so the error says what the server
// answered and lists likely causes.
//
// Ready then tries each basic ability. The other cases are judged through the faults that
// it finds. A case that proves nothing without an ability is unproven until the ability
// works. Ready also measures how long effects take, and which assets move without an
// order.
func (j *Judge) Ready(ctx context.Context) error {
	nothing := func(err error) error { return fmt.Errorf("conformance: nothing to judge: %w", err) }
	clear(j.opening)
	j.known = unknown()
	j.logs.Store(0)
	if err := j.begin(ctx); err != nil {
		return nothing(j.whyLayered(err))
	}
	cases := Cases()
	for _, id := range abilities {
		c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.ID == id })]
		v := c.verdict(InputVerdict{Outcome: Unproven, Until: j.waits(c.after...)})
		if v.Until == "" {
			v = j.ask(ctx, c)
		}
		if err := j.Err(); err != nil {
			if v.Call != nil {
				err = fmt.Errorf("%w; it stopped after %s %s, and its log says why", err, v.Call.Method,
					v.Call.Path)
			}
			return nothing(err)
		}
		if v.Outcome == Unproven {
			j.known.broken[id] = v.Until
		}
		j.opening[id] = v
	}
	j.leaveOpen(ctx)
	if err := ctx.Err(); err != nil {
		return nothing(err)
	}
	return nil
}

// ask tries an ability, learns what is wrong, and tries it again with that knowledge, until
// it learns nothing more. The verdict is that of the first time.
func (j *Judge) ask(ctx context.Context, c Case) Verdict {
	var v Verdict
	in := c.tries()[0]
	const most = 6 // things to learn of an ability
	for round := range most {
		tried, found := j.tried(ctx, c, in)
		if round == 0 {
			v = c.verdict(tried)
		} else if found != nil && found.off != nil && v.Outcome == Failed && tried.Call.Path != v.Call.Path {
			// another fault, which the first one hid
			v.Saw += "; later (" + string(found.kind) + ") " + tried.Saw
		}
		if found == nil || j.Err() != nil {
			break
		}
		root, more := j.learn(c.ID, found, j.target.Amount)
		if round == 0 && root != c.ID {
			v.Outcome, v.Until = Unproven, root
		}
		if !more {
			break
		}
	}
	if j.waives(c, in) && (v.Outcome == Failed || v.Outcome == Noted) {
		v.Outcome = Waived
	}
	return v
}

// begin has one plain mint approved, checks who signed it, and ends it. Where the target names no
// amount, begin tries the largest first that the player can pay of every asset to move.
func (j *Judge) begin(ctx context.Context) error {
	trade := func(amount, tokens int64) {
		j.target.Amount, j.target.Tokens, j.target.BurnTokens = amount, tokens, tokens
	}
	if largest := j.largest(ctx); largest > leastAmount {
		trade(largest, largest/2)
		switch approved, err := j.beginPlainly(ctx); {
		case err == nil && j.burns(ctx):
			return nil
		case err != nil && approved:
			return err
		}
		trade(leastAmount, leastAmount/2)
	}
	_, err := j.beginPlainly(ctx)
	return err
}

// largest returns the largest amount, in whole tokens, of which a player owns enough of both assets
// to move, or of the first alone if there is no second one. It is 0 if the target names an amount.
func (j *Judge) largest(ctx context.Context) int64 {
	if j.target.given.amount {
		return 0
	}
	t := j.trial(ctx, Input{})
	defer j.release(t)
	var named, others []int64
	for _, h := range t.holdings(t.newPlayer()) {
		tokens := product(h.balance, big.NewRat(1, reserve*leastAmount))
		amount := int64(usualAmount)
		if tokens.Cmp(big.NewRat(usualAmount/leastAmount, 1)) < 0 {
			amount = leastAmount * new(big.Int).Quo(tokens.Num(), tokens.Denom()).Int64()
		}
		switch {
		case amount < leastAmount:
		case h.id == t.Asset, h.id == t.Second:
			named = append(named, amount)
		default:
			others = append(others, amount)
		}
	}
	slices.Sort(others)
	slices.Reverse(others)
	payable := append(named, others...)
	if len(payable) == 0 {
		return 0
	}
	return slices.Min(payable[:min(len(payable), 2)])
}

// burns reports whether a plain burn is approved.
func (j *Judge) burns(ctx context.Context) bool {
	t := j.trial(ctx, Input{})
	defer j.release(t)
	t.begin()
	if !t.has("burn") {
		return true
	}
	o := t.burn()
	approved := t.offer(o)
	t.report(o, failure)
	return approved
}

// beginPlainly reports whether the first mint was approved.
func (j *Judge) beginPlainly(ctx context.Context) (approved bool, err error) {
	t := j.trial(ctx, Input{})
	defer j.release(t)
	t.begin()
	if t.err != nil {
		return false, named(t.err, t.whyNoAssets)
	}
	o := t.plain()
	signer, err := j.firstMint(t, o)
	approved = t.ledger.known(o).approved
	if err != nil {
		return approved, named(err, func(*finding) string { return "" })
	}
	if t.err == nil && signer != (common.Address{}) && signer != t.Validator {
		// A second mint tells a wrong key, which signs again, from a wrong digest,
		// which recovers to a random signer.
		t.renew()
		if again, failed := j.firstMint(t, t.plain()); failed == nil && t.err == nil && again == signer {
			t.untried(
				"the approval of a plain mint is signed by %s, but -validator is %s; one of them is not "+
					"the key in the console",
				signer.Hex(), t.Validator.Hex())
		}
	}
	return approved, t.err
}

// named adds the call to an error of the opening, and an explanation.
func named(err error, why func(*finding) string) error {
	if f, ok := err.(*finding); ok && f.call != nil {
		return fmt.Errorf("%s %s: %w%s", f.call.Method, f.call.URL, f, why(f))
	}
	return err
}

// firstMint has a plain mint approved and ends it as failed. It returns the signer of the
// approval, or the zero address if the signature cannot be read.
func (j *Judge) firstMint(t *trial, o order) (signer common.Address, err error) {
	a := t.validate(o)
	if t.answered(a) && !a.succeeded {
		what := fmt.Sprintf("mint of %d %s for %d of the token", t.Amount, t.said(t.asset), t.Tokens)
		if o.burns() {
			what = fmt.Sprintf("burn of %d of the token for %d %s", t.BurnTokens, t.Amount, t.said(t.asset))
		}
		t.untried("a plain %s was not approved: %s%s", what, t.describe(a), t.whyRejected(o, a))
	}
	if t.err != nil {
		return signer, t.err
	}
	signer, _ = signerOf(o, a.approval().ValidatorSig) // zero if there is none
	a = t.report(o, failure)
	switch strange := t.strange(a); {
	case a.err != nil && !errors.Is(a.err, errBusy) && j.answers(t.ctx, t.player):
		return signer, fmt.Errorf("the result of a plain mint got no answer (%s)%s", a.shown, whyNoResult)
	case a.err == nil && a.status == http.StatusInternalServerError:
		why := whyNoResult
		if t.pause(watchTime); t.report(o, failure).succeeded {
			why = whyNotYet
		}
		return signer, fmt.Errorf("the result of a plain mint was answered with %s%s", t.describe(a), why)
	case a.status >= 300 && strange != "":
		return signer,
			fmt.Errorf("the result of a plain mint was not confirmed: %s%s\n%s", t.describe(a),
				whyNoHandler, strange)
	default:
		t.answered(a)
	}
	return signer, t.err
}

// describe returns an answer as the opening shows it.
func (t *trial) describe(a answer) string {
	if a.envelope != nil && t.strange(a) == "" || a.call == nil || a.call.Answer == "" {
		return a.String()
	}
	return a.String() + ", which begins " + beginning(a.call)
}

func beginning(c *Call) string { return "'" + c.Answer[:min(len(c.Answer), 100)] + "'" }

// whyNoAssets explains an assets call of the opening that failed.
func (t *trial) whyNoAssets(f *finding) string {
	text, again := "", *t
	again.err = nil
	if f.note != "" {
		text = "; the answer begins " + beginning(f.call) + "\n" + f.note
	}
	switch {
	case f.status >= 300 && f.status < 400, f.status == http.StatusNotFound,
		f.status == http.StatusMethodNotAllowed:
		return text +
			"\nThe path of the endpoint (-assets) or the address (-url) is wrong, or the server's router " +
			"strips or adds a prefix."
	case f.note != "":
		return text + whyLayer
	case again.assets(t.player, spelled(upperCase.Replace)).succeeded:
		return "\nThe server reads the names of headers in one case only: ignore it, because the service " +
			"writes them in several (interface 4.3)."
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return "; the answer begins " + beginning(f.call) +
			"\nThe server does not accept the access token or the session (-login, -session), " +
			"or wants a header that the service does not send; it sends X-Dapp-Authorization, not " +
			"Authorization."
	case f.status >= 500:
		return text + "\nThe assets handler has a bug: see the server's log."
	default:
		return text
	}
}

// upperCase writes the names of headers as section 4.3 does for an assets call.
var upperCase = strings.NewReplacer("x-dapp-a", "X-Dapp-A", "x-dapp-sessionid", "X-Dapp-SessionID")

const whyOneCall = "\nThe server has listed assets for this token in an earlier call. A token must last " +
	"for several calls: " +
	"a page makes at least two with it."

const whyNoHandler = "\nThe path of the endpoint (-result) or the address (-url) is wrong, or something " +
	"before the handler answers:"

const whyLayer = "\nMiddleware or a proxy before the handler answers, such as a login, a CSRF check or a " +
	"limit: exempt the service's endpoints from it."

const whyNoResult = `
There are two likely causes:
  the server confirms results on a chain, which does not have the judge's transactions: switch off
  only that for the judge
  the result handler has a bug: see the server's log`

const whyNotYet = "\nA moment later it was confirmed: the server approves an order before it is stored. " +
	"Store it first; otherwise, a crash in between leaves a signature for an order that nobody knows."

// A cause is a reason why a plain mint may have been rejected.
type cause struct {
	text string
	hint string // parts of an errorCode that suggest it
	at   []int  // HTTP statuses that suggest it
	rule rule
}

// rule is when a cause may be listed.
type rule int

const (
	always      rule = iota
	ifSuggested      // something suggests it
	ifStatus         // the status suggests it; otherwise, the endpoint itself answered
	ifKey            // the HMAC key may be wrong
	ifUnicode        // the asset's ID is not ASCII
)

const wrongPath = "the path of the endpoint is wrong (-validate), the server's router strips or adds a " +
	"prefix, or a proxy answers (-url)"

var otherPath = []int{404, 405, 301, 302, 307, 308}

// mintCauses are in this order if nothing suggests any of them. MESSAGE is of [ramp.CodeInvalidMessage],
// and RECEIPT_STATUS is of package ramp.
var mintCauses = []cause{
	{"the validate handler has a bug: see the server's log", "INTERNAL", []int{500, 502, 503, 504}, ifStatus},
	{wrongPath, "NOT_FOUND NO_ROUTE", append(otherPath, 502, 503, 504), ifStatus},
	{"the HMAC key is wrong (-key-file), or the server decodes it differently (-key-encoding)",
		"HMAC MAC SIGNATURE", []int{401, 403}, ifKey},
	{"middleware or a proxy before the handler reads, cuts or changes the body, or removes the HMAC header",
		"HMAC MAC SIGNATURE HMAC_MISSING", []int{401, 403}, ifKey},
	{"the server, or a proxy before it, limits the size of a body: raise the limit",
		"BODY_TOO_LARGE TOO_LARGE", []int{http.StatusRequestEntityTooLarge}, ifSuggested},
	{"the server takes a validate call for a result: its paths are swapped (-validate, -result)",
		"RECEIPT_STATUS", nil, ifSuggested},
	{"the project is wrong (-project)", "PROJECT", nil, always},
	{"the token contract is wrong (-token)", "CONTRACT TOKEN NETWORK MESSAGE", nil, always},
	{"the order does not match the game's rate (-amount, -tokens), or its asset cannot be minted (-asset); " +
		"if orders move several assets, judge a server that approves every rate",
		"RATE MESSAGE AMOUNT BALANCE QUANTITY ASSET ITEM RECIPE LIMIT MATERIAL", nil, always},
	{"the game has no mints (-only burn)", "MINT METHOD TYPE DIRECTION", nil, always},
	{"the item ID is not ASCII, and something decodes the body with losses before the HMAC is verified",
		"HMAC MAC SIGNATURE", nil, ifUnicode},
	{"the server approves only UUIDs of its own initialize calls (-uuid; in Go, Server.UUID)",
		"UUID ORDER REQUEST EXPIRED", nil, always},
	{
		"the server expects another wallet than the judge's (-login may name it), or verifies the " +
			"wallet's signature", "WALLET ADDRESS USER_SIG", nil, always},
	{"validate looks at another balance than the one that the assets endpoint lists",
		"INSUFFICIENT NOT_ENOUGH BALANCE", nil, always},
	{"the access token or the session is accepted at assets but not at validate",
		"TOKEN SESSION ACCESS USER LOGIN", []int{401, 403}, always},
}

// whyRejected lists the likely causes, most likely first. It also tests the key: if a
// wrong HMAC gets a different answer, the key is right.
func (t *trial) whyRejected(o order, a answer) string {
	if strange := t.strange(a); strange != "" && a.status < 500 {
		if a.status >= 400 && !slices.Contains(otherPath, a.status) {
			return "\n" + strange + whyLayer
		}
		return "\n" + strange + "\nLikely causes, most likely first:\n  " + wrongPath
	}
	if a.status == http.StatusInternalServerError && a.code() == "NOT_FOUND" {
		a.status = http.StatusNotFound // which package ramp makes 500, so that no result is lost
	}
	if again := *t; a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		if again.err = nil; !again.assets(t.player).succeeded {
			return whyOneCall
		}
	}
	keyIsRight := false
	if a.envelope != nil {
		b := valid{atValidate, t, o, o.body}.unsigned()
		keyIsRight = b.err == nil && b.envelope != nil && (b.status != a.status || b.code() != a.code())
	}
	score := func(c cause) int {
		n, status := 0, slices.Contains(c.at, a.status)
		for hint := range strings.FieldsSeq(c.hint) {
			if strings.Contains(strings.ToUpper(a.code()), hint) {
				n += 4 + len(hint)
			}
		}
		if status {
			n += 3
		}
		if c.rule == ifSuggested && n == 0 || c.rule == ifStatus && !status || c.rule == ifKey &&
			keyIsRight || c.rule == ifUnicode && ascii(t.asset) {
			return -1
		}
		return n
	}
	likely := slices.Clone(mintCauses)
	slices.SortStableFunc(likely, func(x, y cause) int { return score(y) - score(x) })
	text := "\nLikely causes, most likely first:"
	least := min(max(score(likely[0]), 0), 1) // if something suggests a cause, the others are not listed
	for _, c := range likely {
		if score(c) >= least {
			text += "\n  " + c.text
		}
	}
	if keyIsRight {
		text += "\nThe HMAC key is right: a wrong HMAC gets a different answer."
	}
	return text
}
