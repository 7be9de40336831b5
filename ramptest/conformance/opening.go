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

// abilities are the cases that nearly every other one builds on, in the order
// in which to fix them. Each shows one kind of event; what is wrong at it is
// wrong in every case that has it.
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

// Ready opens the judgement. It says whether there is something to judge: a
// player can be had who owns enough, a plain mint is approved with a signature
// of the registered key, and its result is taken in. If not, every case would
// say the same, so the error says what was answered, and what the cause may be.
//
// Ready then tries each basic ability once, and remembers what it saw: a case
// that sees no more than that is not provable until the ability works. It also
// measures how long effects take, and which assets move without an order.
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
			panic("conformance: no such case: " + ability.id) // a table of ours is wrong
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

// learn remembers how an ability fails. One that fails as an earlier one does
// is not another root cause.
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
		// What the faults that are known do already is not this one's.
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

// begin has one plain mint approved and ends it.
func (j *Judge) begin(ctx context.Context) error {
	t := j.trial(ctx, Case{})
	defer j.release(t)
	t.begin()
	signer, err := t.firstMint()
	if err != nil {
		return err
	}
	if t.err == nil && signer != (common.Address{}) && signer != t.target.Validator {
		// By the same key over another digest, too? Then it signs what it should.
		if again, failed := t.firstMint(); failed == nil && t.err == nil && again == signer {
			t.untried("the approval of a plain mint is signed by %s, but -validator is %s: one of them is not what the console has",
				signer.Hex(), t.target.Validator.Hex())
		}
	}
	return t.err
}

// firstMint has a plain mint approved, ends it as failed, and returns who signed
// the approval, if that can be said.
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
  the server confirms results by a chain, where the judge's transactions are not: switch that off for the judge, and nothing else
  the result handler has a fault: the server's log should name it`

// A cause is why a plain mint may have been declined.
type cause struct {
	text string
	hint []string // parts of an errorCode that speak for it
	at   []int    // HTTP statuses that do
}

var (
	wrongPath = cause{"the path of the endpoint is another one (-validate), or something in front of the server answers for it (-url)",
		[]string{"NOT_FOUND", "NO_ROUTE"}, []int{404, 405, 301, 302, 307, 308}}
	wrongKey = cause{"the HMAC key is another one (-key), or the server makes bytes of its text in another way (-key-encoding)",
		[]string{"HMAC", "MAC", "SIGNATURE"}, []int{401, 403}}
	wrongToken = cause{"the access token or the session is not accepted at validate, though it is at assets",
		[]string{"TOKEN", "SESSION", "ACCESS", "USER", "LOGIN"}, []int{401, 403}}
	// In this order when nothing speaks for any.
	otherCauses = []cause{
		{"the project is another one (-project)", []string{"PROJECT"}, nil},
		{"the token contract is another one (-token)", []string{"CONTRACT", "TOKEN", "NETWORK"}, nil},
		{"the order is not at the rate of the game (-amount, -tokens), or is about an asset that cannot be minted (-asset)",
			[]string{"RATE", "AMOUNT", "BALANCE", "QUANTITY", "ASSET", "ITEM", "RECIPE", "LIMIT", "MATERIAL"}, nil},
		{"the server approves only UUIDs that it got itself (in Go, Target.UUID gets them from it)", []string{"UUID", "ORDER", "REQUEST", "EXPIRED"}, nil},
		{"the server expects another wallet than the judge's, or verifies the wallet's signature", []string{"WALLET", "ADDRESS", "USER_SIG"}, nil},
	}
	ownFault = cause{"the server has a fault in its validate handler: its log should name it", []string{"INTERNAL"}, []int{500, 502, 503, 504}}
)

// whyDeclined lists the likely causes, the likeliest first: what the answer
// speaks for, then the rest. The key is tried: an answer that a wrong HMAC does
// not get was given to the right one.
func (t *trial) whyDeclined(o order, a answer) string {
	causes := slices.Concat([]cause{wrongPath, wrongKey, wrongToken}, otherCauses, []cause{ownFault})
	keyIsRight := false
	if a.envelope != nil {
		body := o.body.bytes()
		header := t.signed(o.owner, body)
		unsigned(header, body)
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
			n = -1 // the endpoint answered by itself
		}
		return n
	}
	slices.SortStableFunc(causes, func(x, y cause) int { return score(y) - score(x) })
	text := "\nThe likely causes, the likeliest first:"
	for _, c := range causes {
		if score(c) >= 0 {
			text += "\n  " + c.text
		}
	}
	if keyIsRight {
		text += "\nThe HMAC key is the right one: a wrong HMAC is answered in another way."
	}
	return text
}

// caseOf returns the case of an ID.
func caseOf(id string) (Case, bool) {
	for _, c := range Cases() {
		if c.ID == id {
			return c, true
		}
	}
	return Case{}, false
}

// decode reads JSON, and reports whether it could.
func decode(raw json.RawMessage, into any) bool { return json.Unmarshal(raw, into) == nil }
