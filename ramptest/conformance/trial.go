package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	crowd      = 8       // calls at once, where a case sends several
	mostAnswer = 1 << 20 // bytes of an answer that are read
)

// trial drives the target through one case. The first thing that is wrong ends
// it: every method does nothing after that, so that a case reads as the story
// that it tells.
type trial struct {
	ctx     context.Context
	target  *Target
	client  *http.Client
	judge   *Judge
	needs   need
	secrets []string // which no verdict may hold

	player  ramp.Session      // whose case it is
	asset   string            // what is moved
	second  string            // another asset; empty if there is none
	before  snapshot          // what the player owned at first
	wallets map[string]string // by session ID, what the server says of its players
	ledger  *ledger           // what the server agreed to
	lenient bool              // a balance may be wrong for a time: nothing is lost by it

	err error
}

// finding is something that a server must not do.
type finding struct {
	saw, want string
	grave     bool // something is lost, doubled or given away, so that it counts in any case

	// What was asked, and the HTTP status of the answer, if an answer is wrong.
	// No answer has the status 0.
	step   string
	status int

	// What is owned too much, if a balance is wrong, and what the faults that
	// the opening found make of it.
	off, predicted difference
	asset          string // that the case's orders are about
	side           bool   // it is an asset that no order was about
	waits          string // the ability without which the case proves nothing
}

// unreachable reports whether the server may be gone.
func (f *finding) unreachable() bool {
	return f.step != "" && (f.status == 0 || isUnavailable(f.status))
}

func (f *finding) Error() string { return "saw " + f.saw + ", want " + f.want }

// skip is why a case is not for this target.
type skip string

func (s skip) Error() string { return string(s) }

func (j *Judge) trial(ctx context.Context, c Case) *trial {
	return &trial{ctx: ctx, target: &j.target, client: j.client, judge: j, needs: c.needs,
		secrets: slices.Clone(j.target.Secrets), wallets: make(map[string]string), ledger: newLedger()}
}

// begin gets a player and measures what they own.
func (t *trial) begin() {
	switch {
	case t.needs&aRestart != 0 && t.target.Restart == nil:
		t.skip("no way to restart the server was given")
	case t.needs&aProject != 0 && t.target.ProjectID == "":
		t.skip("no project was given")
	}
	t.player = t.newPlayer()
	t.asset, t.second = t.target.Asset, t.target.Second
	holdings := t.holdings(t.player)
	enough := new(big.Rat).SetInt64(20 * t.target.Amount)
	for _, h := range holdings {
		switch {
		case h.balance.Cmp(enough) < 0, t.judge.drifts(h.id):
		case t.asset == "" && h.id != t.second:
			t.asset = h.id
		case t.second == "" && h.id != t.asset:
			t.second = h.id
		}
	}
	t.before = snapshot{owner: t.player, assets: sums(holdings)}
	if t.err == nil && (t.asset == "" || t.before.of(t.asset).Cmp(enough) < 0) {
		t.untried("the player owns too little: a case needs %s of an asset, 20 times the amount of an order (-amount; -asset names the asset)", show(enough))
	}
	if t.needs&aSecondAsset != 0 && (t.second == "" || owned(holdings, t.second).Cmp(enough) < 0) {
		t.skip("the player owns too little of a second asset")
	}
}

func (t *trial) fail(saw, want string) {
	if t.err == nil {
		t.err = &finding{saw: saw, want: want}
	}
}

// gives records that something is given away, which counts in any case.
func (t *trial) gives(saw, want string) {
	if t.err == nil {
		t.err = &finding{saw: saw, want: want, grave: true}
	}
}

// mismatch records an answer that is wrong.
func (t *trial) mismatch(a answer, want string) { t.failAt(a, a.String(), want) }

func (t *trial) failAt(a answer, saw, want string) {
	if t.err == nil {
		t.err = &finding{saw: saw, want: want, step: a.step, status: a.status}
	}
}

// untried ends a case by no fault of the server's.
func (t *trial) untried(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *trial) skip(why string) {
	if t.err == nil {
		t.err = skip(why)
	}
}

// newPlayer returns another player.
func (t *trial) newPlayer() ramp.Session {
	if t.err != nil {
		return ramp.Session{}
	}
	s, err := t.target.Player(t.ctx, "judge-"+strings.ToLower(rand.Text()[:12]))
	switch token := s.Token.Reveal(); {
	case err != nil:
		t.untried("no player could be had: %s", t.said(err.Error()))
	case s.ID == "" || token == "":
		t.untried("no player could be had: the session or its token is empty")
	default:
		t.secrets = append(t.secrets, token)
		if !t.judge.take(t, s.ID) {
			t.untried("another case that is being tried has the same player")
			return s
		}
		if t.judge.meets(s.ID) {
			t.outwait() // for what another case left behind
		}
	}
	return s
}

// finish reports a failure of every order that did not end, so that the player
// can have others: a game may let each have one at a time. That goes for one
// that was declined too, for a wrong server may have it open.
func (t *trial) finish() {
	after := *t
	after.err = nil
	for _, o := range t.ledger.unfinished() {
		after.report(o, o.result(failure))
	}
}

// newOrder is what all orders of a session have in common.
func (t *trial) newOrder(s ramp.Session, intent object) order {
	if t.err != nil {
		// Nothing is sent any more, but a case may go on to bend the order.
		return order{body: object{"digest": "", "uuid": "", "intent": intent}}
	}
	id, err := t.target.UUID(t.ctx, s)
	if err != nil {
		t.untried("no UUID could be had: %s", t.said(err.Error()))
	}
	digest := randomDigest()
	key, address := wallet(s)
	if known := t.wallets[s.ID]; known != "" {
		address = known
	}
	project := t.target.ProjectID
	if project == "" {
		project = "judge"
	}
	o := order{owner: s, token: t.target.Token, wallet: address, body: object{
		"user_sig": signedBy(key, digest), "user_address": address, "project_id": project,
		"digest": digest.String(), "uuid": id.String(), "intent": intent,
	}}
	t.ledger.asks(o)
	return o
}

// wallet is the wallet of a player whose server knows none: the same for every
// order, as it is for players.
func wallet(s ramp.Session) (key *ecdsa.PrivateKey, address string) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("the judge's wallet of " + s.ID)))
	if err != nil {
		panic(err) // of 2^128 hashes, one is no key
	}
	return key, crypto.PubkeyToAddress(key.PublicKey).Hex()
}

// signedBy is the signature of a player's wallet.
func signedBy(key *ecdsa.PrivateKey, d ramp.Digest) string {
	sig, err := crypto.Sign(d[:], key)
	if err != nil {
		panic(err) // not with a key and 32 bytes
	}
	sig[64] += 27
	return fmt.Sprintf("0x%x", sig)
}

// mint is an order of the case's player that turns assets into tokens.
func (t *trial) mint() order { return t.mintOf(t.player) }

func (t *trial) mintOf(s ramp.Session) order {
	return t.newOrder(s, object{
		"method": "mint", "type": "assemble", "target_candidate": object{},
		"from": list{entry("asset", t.asset, number(t.target.Amount))},
		"to":   list{entry("ERC20", t.target.Token, number(t.target.Tokens))},
	})
}

// burn is an order of the case's player that turns tokens into assets.
func (t *trial) burn() order {
	return t.newOrder(t.player, object{
		"method": "burn-permit", "type": "disassemble", "target_candidate": object{},
		"from": list{entry("ERC20", t.target.Token, number(t.target.Tokens))},
		"to":   list{entry("asset", t.asset, number(t.target.Amount))},
	})
}

// approve asks for an order, and has it approved.
func (t *trial) approve(o order) order {
	t.approved(t.validate(o))
	return o
}

// confirm tells how an order ended, and has it confirmed.
func (t *trial) confirm(o order, status string) {
	t.confirmed(t.report(o, o.result(status)))
}

// answered wants any answer at all.
func (t *trial) answered(a answer) bool {
	switch {
	case errors.Is(a.err, errBusy):
		t.untried("%w", a.err)
	case a.err != nil:
		t.failAt(a, "no answer: "+a.shown, "an answer")
	}
	return t.err == nil
}

// approved wants the envelope of a success (interface 4.3, 7.2).
func (t *trial) approved(a answer) {
	if t.answered(a) && (!a.succeeded() || a.status != http.StatusOK || !a.null("errorCode")) {
		t.mismatch(a, "HTTP 200 with success true and errorCode null")
	}
}

// confirmed wants the answer to a result that was taken in (interface 4.3, 6).
func (t *trial) confirmed(a answer) {
	if t.answered(a) && (!a.succeeded() || a.status != http.StatusOK || !a.null("errorCode") || !a.null("data")) {
		t.mismatch(a, "HTTP 200 with success true, errorCode null and data null")
	}
}

// declined wants the envelope of a failed check, under any HTTP status
// (interface 7.2). Only cases about the envelope ask for so much.
func (t *trial) declined(a answer) {
	if t.answered(a) && !a.declined() {
		t.mismatch(a, "success false, a string as errorCode and data null")
	}
}

// refused wants anything but a success: a framework, or what reads JSON, may
// answer before the game does.
func (t *trial) refused(a answer) {
	if t.answered(a) && a.succeeded() {
		t.mismatch(a, "a refusal")
	}
}

// either wants an approval or a refusal, and says which it was.
func (t *trial) either(a answer) (approved bool) {
	if !t.answered(a) {
		return false
	}
	if a.succeeded() {
		t.approved(a)
	}
	return t.err == nil && a.succeeded()
}

// several has mints approved that are open at the same time. A game may decline
// the later ones: then it is skipped what they were for.
func (t *trial) several(n int, start func() order) []order {
	orders := []order{t.approve(start())}
	for len(orders) < n {
		o := start()
		if !t.either(t.validate(o)) {
			break
		}
		orders = append(orders, o)
	}
	if len(orders) == 1 {
		t.skip("the server declines a second order while one is open")
	}
	return orders
}

// atOnce asks for orders at the same time and returns those that were approved.
// One that got no answer may have been, so that it ends as failed: then it
// counts as nothing in either case.
func (t *trial) atOnce(orders []order) (approved []order) {
	for i, a := range t.crowd(func(i int) answer { return t.validate(orders[i]) }) {
		switch {
		case a.err != nil && t.err == nil:
			t.report(orders[i], orders[i].result(failure))
		case t.either(a):
			approved = append(approved, orders[i])
		}
	}
	return approved
}

// crowd makes calls at once and returns their answers.
func (t *trial) crowd(call func(i int) answer) []answer {
	answers := make([]answer, crowd)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = call(i) })
	}
	wait.Wait()
	return answers
}

// digestOf returns a digest that is given as text.
func digestOf(pattern string) string { return "0x" + strings.Repeat(pattern, 64/len(pattern)) }
