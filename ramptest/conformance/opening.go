package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// abilities are the cases on which nearly all others build, in the order in which to
// fix them. Each shows one kind of event. What is wrong with that event is wrong in
// every case that contains it.
var abilities = []struct {
	id   string
	kind eventKind
}{
	{"assets-answer", ""},
	{"mint-succeeds", mintSucceeded},
	{"mint-fails", mintFailed},
	{"burn-succeeds", burnSucceeded},
	{"burn-fails", burnFailed},
	{"validate-twice-back", validateAgain},
	{"mint-failure-twice", resultAgain},
}

// Ready checks that the server can be judged: a player is available who owns enough, a
// plain mint is approved and signed by the registered key, and its result is confirmed.
// If not, every case would fail in the same way, so the error says what the server
// answered and lists likely causes.
//
// Ready then tries each basic ability once and remembers how it fails. A case that fails
// in the same way is unproven until the ability works. Ready also measures how long
// effects take, and which assets move without an order.
func (j *Judge) Ready(ctx context.Context) error {
	j.mu.Lock()
	clear(j.opening)
	j.faults, j.wrong = nil, nil
	j.mu.Unlock()
	if err := j.begin(ctx); err != nil {
		return fmt.Errorf("conformance: nothing to judge: %w", err)
	}
	for _, ability := range abilities {
		c, ok := caseOf(ability.id)
		if !ok {
			panic("conformance: no such case: " + ability.id) // a bug in abilities
		}
		v, found := j.tried(ctx, c)
		if err := j.Err(); err != nil {
			return fmt.Errorf("conformance: nothing to judge: %w", err)
		}
		if found != nil {
			if found.status == http.StatusInternalServerError && strings.HasPrefix(found.step, "result") && ability.kind != resultAgain {
				return fmt.Errorf("conformance: nothing to judge: the opening's result (%s) was answered with HTTP 500%s", c.ID, whyNoResult)
			}
			v = j.learn(c, ability.kind, found, v)
		}
		j.mu.Lock()
		j.opening[c.ID] = v
		j.mu.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("conformance: nothing to judge: %w", err)
	}
	return nil
}

// learn remembers how an ability fails. If an earlier ability fails in the same way, it
// is the root cause, and this one is unproven.
func (j *Judge) learn(c Case, kind eventKind, f *finding, v Verdict) Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v.Outcome != Failed && v.Outcome != Noted {
		return v
	}
	root := c.ID
	if f.off == nil {
		endpoint, _, _ := strings.Cut(f.step, ":")
		for _, known := range j.wrong {
			if earlier, _, _ := strings.Cut(known.step, ":"); endpoint != "" && earlier == endpoint && known.saw == f.saw {
				root = known.waits
			}
		}
		if f.step != "" {
			j.wrong = append(j.wrong, finding{step: f.step, saw: f.saw, waits: root})
		}
	} else {
		// Subtract the effect of the faults that are already known.
		rest := make(difference)
		for id, by := range f.off {
			rest.add(id, by)
		}
		for id, by := range f.predicted {
			rest.add(id, new(big.Rat).Neg(by))
		}
		found := fault{ability: root, kind: kind, perUnit: new(big.Rat), perEvent: make(difference)}
		for id, by := range rest {
			if id == f.asset {
				found.perUnit.Quo(by, big.NewRat(j.target.Amount, 1))
			} else {
				found.perEvent[id] = by
			}
		}
		for _, known := range j.faults {
			if len(rest) > 0 && found.perUnit.Sign() == 0 && known.perUnit.Sign() == 0 && known.perEvent.equal(found.perEvent) {
				root = known.ability
			}
		}
		found.ability = root
		j.faults = append(j.faults, found)
	}
	if root != c.ID {
		v.Outcome, v.Until = Unproven, root
	}
	return v
}

// begin has one plain mint approved, checks who signed it, and ends it.
func (j *Judge) begin(ctx context.Context) error {
	t := j.trial(ctx, Case{})
	defer j.release(t)
	t.begin()
	signer, err := t.firstMint()
	if err != nil {
		return err
	}
	if t.err == nil && signer != (common.Address{}) && signer != t.target.Validator {
		// A second mint tells a wrong key, which signs again, from a wrong digest,
		// which recovers to a random signer.
		if again, failed := t.firstMint(); failed == nil && t.err == nil && again == signer {
			t.untried("the approval of a plain mint is signed by %s, but -validator is %s; one of them is not the key in the console",
				signer.Hex(), t.target.Validator.Hex())
		}
	}
	return t.err
}

// firstMint has a plain mint approved and ends it as failed. It returns the signer of the
// approval, or the zero address if the signature cannot be read.
func (t *trial) firstMint() (signer common.Address, err error) {
	o := t.mint()
	a := t.validate(o)
	if t.answered(a) && !a.succeeded() {
		t.untried("a plain mint of %d %s for %d of the token was not approved: %s%s",
			t.target.Amount, t.said(t.asset), t.target.Tokens, a, t.whyDeclined(o, a))
	}
	if t.err != nil {
		return signer, t.err
	}
	var data approval
	if decode(a.envelope["data"], &data) {
		signer, _ = signerOf(o, data)
	}
	switch a := t.report(o, o.result(failure)); {
	case a.err != nil && !errors.Is(a.err, errBusy) && t.judge.answers(t.ctx):
		return signer, fmt.Errorf("the opening's result got no answer (%s)%s", a.shown, whyNoResult)
	case a.err == nil && a.status == http.StatusInternalServerError:
		return signer, fmt.Errorf("the opening's result was answered with %s%s", a, whyNoResult)
	default:
		t.answered(a)
	}
	return signer, t.err
}

const whyNoResult = `
There are two likely causes:
  the server confirms results on a chain, which does not have the judge's transactions: switch off only that for the judge
  the result handler has a bug: see the server's log`

// A cause is a reason why a plain mint may have been declined.
type cause struct {
	text string
	hint []string // parts of an errorCode that suggest it
	at   []int    // HTTP statuses that suggest it
}

var (
	wrongPath = cause{"the path of the endpoint is wrong (-validate), or a proxy in front of the server answers (-url)",
		[]string{"NOT_FOUND", "NO_ROUTE"}, []int{404, 405, 301, 302, 307, 308}}
	wrongKey = cause{"the HMAC key is wrong (-key), or the server decodes it differently (-key-encoding)",
		[]string{"HMAC", "MAC", "SIGNATURE"}, []int{401, 403}}
	wrongToken = cause{"the access token or the session is accepted at assets but not at validate",
		[]string{"TOKEN", "SESSION", "ACCESS", "USER", "LOGIN"}, []int{401, 403}}
	// In this order if nothing suggests any of them. INVALID_MESSAGE is the code of
	// [ramp.InitializeIntent.CheckTerms].
	otherCauses = []cause{
		{"the project is wrong (-project)", []string{"PROJECT"}, nil},
		{"the token contract is wrong (-token)", []string{"CONTRACT", "TOKEN", "NETWORK", "MESSAGE"}, nil},
		{"the order does not match the game's rate (-amount, -tokens), or its asset cannot be minted (-asset); " +
			"if orders move several assets, judge a server that approves every rate",
			[]string{"RATE", "MESSAGE", "AMOUNT", "BALANCE", "QUANTITY", "ASSET", "ITEM", "RECIPE", "LIMIT", "MATERIAL"}, nil},
		{"the server approves only UUIDs of its own initialize calls (in Go, set Target.UUID)", []string{"UUID", "ORDER", "REQUEST", "EXPIRED"}, nil},
		{"the server expects another wallet than the judge's, or verifies the wallet's signature", []string{"WALLET", "ADDRESS", "USER_SIG"}, nil},
	}
	ownFault = cause{"the validate handler has a bug: see the server's log", []string{"INTERNAL"}, []int{500, 502, 503, 504}}
)

// whyDeclined lists the likely causes, most likely first. It also tests the key: if a
// wrong HMAC gets a different answer, the key is right.
func (t *trial) whyDeclined(o order, a answer) string {
	causes := slices.Concat([]cause{wrongPath, wrongKey}, otherCauses, []cause{wrongToken, ownFault})
	keyIsRight := false
	if a.envelope != nil {
		body := o.body.bytes()
		header := t.signed(o.owner, body)
		unsigned(t, header, body)
		b := t.post(t.target.ValidatePath, header, body)
		keyIsRight = b.err == nil && b.envelope != nil && (b.status != a.status || b.code() != a.code())
	}
	score := func(c cause) int {
		n := 0
		for _, hint := range c.hint {
			if strings.Contains(strings.ToUpper(a.code()), hint) {
				n += 4 + len(hint)
			}
		}
		if slices.Contains(c.at, a.status) {
			n += 3
		}
		switch {
		case c.text == wrongKey.text && keyIsRight:
			n = -1
		case c.text == wrongPath.text && a.envelope == nil:
			n += 2
		case c.text == wrongPath.text && !slices.Contains(c.at, a.status),
			c.text == ownFault.text && !slices.Contains(c.at, a.status):
			n = -1 // the endpoint itself answered
		}
		return n
	}
	slices.SortStableFunc(causes, func(x, y cause) int { return score(y) - score(x) })
	text := "\nLikely causes, most likely first:"
	for _, c := range causes {
		if score(c) >= 0 {
			text += "\n  " + c.text
		}
	}
	if keyIsRight {
		text += "\nThe HMAC key is right: a wrong HMAC gets a different answer."
	}
	return text
}

// caseOf returns the case with an ID.
func caseOf(id string) (Case, bool) {
	for _, c := range Cases() {
		if c.ID == id {
			return c, true
		}
	}
	return Case{}, false
}

// decode unmarshals JSON into a value and reports whether it succeeded.
func decode(raw json.RawMessage, into any) bool { return json.Unmarshal(raw, into) == nil }
