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
	before  *big.Rat          // what the player owned of asset at first
	open    map[any]order     // by uuid, what has not ended, as it was last approved
	wallets map[string]string // by session ID, what the server says of its players

	err error
}

// finding is something that a server must not do.
type finding struct{ saw, want string }

func (f *finding) Error() string { return "saw " + f.saw + ", want " + f.want }

// skip is why a case is not for this target.
type skip string

func (s skip) Error() string { return string(s) }

func (j *Judge) trial(ctx context.Context, c Case) *trial {
	return &trial{ctx: ctx, target: &j.target, client: j.client, judge: j, needs: c.needs,
		secrets: slices.Clone(j.target.Secrets), open: make(map[any]order), wallets: make(map[string]string)}
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
		case h.balance.Cmp(enough) < 0:
		case t.asset == "" && h.id != t.second:
			t.asset = h.id
		case t.second == "" && h.id != t.asset:
			t.second = h.id
		}
	}
	t.before = owned(holdings, t.asset)
	if t.err == nil && (t.asset == "" || t.before.Cmp(enough) < 0) {
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
		if t.judge.met[s.ID] {
			t.outwait() // for what another case left behind
		}
		t.judge.met[s.ID] = true
	}
	return s
}

// finish reports a failure of every order that did not end, so that the player
// can have others: a game may let each have one at a time. That goes for one
// that was declined too, for a wrong server may have it open.
func (t *trial) finish() {
	after := *t
	after.err = nil
	for id, o := range t.open {
		_, isText := id.(string)
		if _, isObject := o.body.at("intent").(object); isText && isObject {
			after.report(o, o.result(failure))
		}
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
	var digest ramp.Digest
	_, _ = rand.Read(digest[:]) // it never fails
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
	t.open[id.String()] = o
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
		t.fail("no answer: "+a.shown, "an answer")
	}
	switch {
	case !a.succeeded():
	case a.begins != nil:
		t.open[a.begins.body.at("uuid")] = *a.begins
	case a.ends != nil:
		delete(t.open, a.ends.body.at("uuid"))
	}
	return t.err == nil
}

// approved wants the envelope of a success (interface 4.3, 7.2).
func (t *trial) approved(a answer) {
	if t.answered(a) && (!a.succeeded() || a.status != http.StatusOK || !a.null("errorCode")) {
		t.fail(a.String(), "HTTP 200 with success true and errorCode null")
	}
}

// confirmed wants the answer to a result that was taken in (interface 4.3, 6).
func (t *trial) confirmed(a answer) {
	if t.answered(a) && (!a.succeeded() || a.status != http.StatusOK || !a.null("errorCode") || !a.null("data")) {
		t.fail(a.String(), "HTTP 200 with success true, errorCode null and data null")
	}
}

// declined wants the envelope of a failed check, under any HTTP status
// (interface 7.2). Only cases about the envelope ask for so much.
func (t *trial) declined(a answer) {
	if t.answered(a) && !a.declined() {
		t.fail(a.String(), "success false, a string as errorCode and data null")
	}
}

// refused wants anything but a success: a framework, or what reads JSON, may
// answer before the game does.
func (t *trial) refused(a answer) {
	if t.answered(a) && a.succeeded() {
		t.fail(a.String(), "a refusal")
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
