package conformance

import (
	"cmp"
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
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	crowd      = 8       // concurrent calls of a case
	mostAnswer = 1 << 20 // bytes; the rest of an answer is not read
)

// trial drives the target through one case. After the first failure, every method does
// nothing, so that a case reads as a story without error handling.
type trial struct {
	*Target
	ctx     context.Context
	client  *http.Client
	judge   *Judge
	name    string // of what it tries
	needs   need
	secrets []string // texts that no verdict may show
	calls   *calls   // what it asked

	player  ramp.Session      // the player of the case
	asset   string            // the asset to move
	second  string            // another asset; empty if there is none
	items   map[string]string // the assets to move where each player owns others, by session ID
	before  snapshot          // what the player owned at the beginning
	wallets map[string]string // wallet addresses that the server reports, by session ID
	ledger  *ledger           // what the server agreed to

	err error
}

// finding is the error of a trial whose server did something wrong.
type finding struct {
	saw, want string
	grave     bool // something is lost, doubled or given away, so it counts even for a SHOULD

	// If an answer is wrong, step is what was asked, and status the HTTP status of
	// the answer. The status is 0 if there was no answer.
	step   string
	status int

	// If a balance is wrong, off is how much too much is owned, and predicted is
	// what the known faults of the opening account for.
	off, predicted difference
	asset          string    // the asset of the case's orders
	late           bool      // it may be what an approved mint took late
	side           bool      // the wrong balance is of an asset that no order was about
	kind           eventKind // the last event before it

	note      string // an explanation
	confusing string // the path of the endpoint whose rejections look like successes
	look      string // of a wrong answer
	call      *Call  // the call that failed, if it is not the last one
}

// unreachable reports whether the server may be unreachable.
func (f *finding) unreachable() bool {
	return f.step != "" && (f.status == 0 || isUnavailable(f.status))
}

func (f *finding) Error() string { return "saw " + f.saw + ", want " + f.want }

// skip is the error of a trial whose case does not apply to the target.
type skip string

func (s skip) Error() string { return string(s) }

func (j *Judge) trial(ctx context.Context, in Input) *trial {
	return &trial{ctx: ctx, Target: &j.target, client: j.client, judge: j, needs: in.needs, calls: new(calls),
		secrets: slices.Clone(j.target.Secrets), items: make(map[string]string), wallets: make(map[string]string), ledger: new(ledger)}
}

// begin gets a player and measures the balances.
func (t *trial) begin() {
	switch {
	case t.needs&aRestart != 0 && t.Restart == nil:
		t.skip("no restart of the server was configured (-restart)")
	case t.needs&aProject != 0 && t.ProjectID == "":
		t.skip("no project was configured (-project)")
	case t.needs&aToken != 0 && !t.given.token:
		t.skip("no token contract was configured (-token)")
	case t.needs&aRate != 0 && !(t.given.token && t.given.rate):
		t.skip("no rate was configured (-token, -amount and -tokens)")
	}
	t.player = t.newPlayer()
	holdings, enough := t.holdings(t.player), t.enough()
	t.asset, t.second = t.choose(holdings)
	t.before = snapshot{owner: t.player, assets: sums(holdings)}
	if _, listed := t.before.assets[t.asset]; t.asset != "" && !listed {
		t.untried("the player does not list the asset %s of the order (-asset); it lists %s", t.said(t.asset), t.listed(holdings))
	}
	if t.asset == "" || t.before.of(t.asset).Cmp(enough) < 0 {
		t.untried("the player owns too little: a case needs %s of an asset, 20 times the amount of an order (-amount; -asset names the asset; -unique needs 1); the player lists %s",
			show(enough), t.listed(holdings))
	}
	if t.needs&aSecondAsset != 0 && (t.second == "" || t.before.of(t.second).Cmp(enough) < 0) {
		t.skip("the player owns too little of a second asset")
	}
}

// enough returns how much a player must own of an asset to move.
func (t *trial) enough() *big.Rat {
	if t.Unique {
		return t.amounts(1)
	}
	return t.amounts(20)
}

// choose returns the assets to move of a player who owns all: those that the target names,
// or the first ones of which there is enough. They are empty if there are none.
func (t *trial) choose(all []holding) (asset, second string) {
	asset, second = t.Asset, t.Second
	for _, h := range all {
		switch {
		case h.balance.Cmp(t.enough()) < 0, t.judge.drifts(h.id):
		case asset == "" && h.id != second:
			asset = h.id
		case second == "" && h.id != asset:
			second = h.id
		}
	}
	return asset, second
}

// assetOf returns the asset to move of a player. Each unique item may have an ID of its
// own.
func (t *trial) assetOf(s ramp.Session) string { return cmp.Or(t.items[s.ID], t.asset) }

// listed describes what a player owns.
func (t *trial) listed(all []holding) string {
	if len(all) == 0 {
		return "no asset"
	}
	var texts []string
	for _, h := range all[:min(len(all), 10)] {
		texts = append(texts, show(h.balance)+" "+t.said(h.id))
	}
	return strings.Join(texts, ", ")
}

// renew continues with a new player, because the order before could be a reason to
// reject the next one.
func (t *trial) renew() {
	t.player = t.newPlayer()
	t.before = t.look(t.player)
	t.asset = t.assetOf(t.player)
}

// end ends the case, unless it has ended.
func (t *trial) end(why error) { t.err = cmp.Or(t.err, why) }

func (t *trial) fail(saw, want string) { t.end(&finding{saw: saw, want: want}) }

// gives records that something is given away, which counts even for a SHOULD.
func (t *trial) gives(saw, want string) {
	t.end(&finding{saw: saw, want: want, grave: true})
}

// mismatch records a wrong answer.
func (t *trial) mismatch(a answer, want string) { t.failAt(a, a.String(), want) }

func (t *trial) failAt(a answer, saw, want string) {
	t.end(&finding{saw: saw, want: want, step: a.step, status: a.status, look: a.look(), call: a.call, note: t.strange(a)})
}

// untried ends a case for a reason that is not the server's fault.
func (t *trial) untried(format string, args ...any) {
	t.end(fmt.Errorf(format, args...))
}

func (t *trial) skip(why string) { t.end(skip(why)) }

// newPlayer gets a player from Target.Player.
func (t *trial) newPlayer() ramp.Session {
	if t.err != nil {
		return ramp.Session{}
	}
	s, err := t.Player(t.ctx, "judge-"+strings.ToLower(rand.Text()[:12]))
	switch token := s.Token.Reveal(); {
	case err != nil:
		t.untried("no player is available: %s", t.said(err.Error()))
	case s.ID == "" || token == "":
		t.untried("no player is available: the session or its token is empty")
	default:
		t.secrets = append(t.secrets, token)
		if !t.judge.take(t, s.ID) {
			t.untried("another case is using the same player")
			return s
		}
		if t.judge.meets(s.ID) {
			if open, late := t.judge.late.LoadAndDelete(s.ID); late { // the player is not left alone
				o := open.(lateOrder)
				t.report(o.order, failure)
			}
			t.ledger.called() // by another case, whose effects may be late
			t.outwait()
		}
	}
	return s
}

// finish reports every unfinished order as failed, because a game may allow a player only
// one open order. It includes rejected orders, because a faulty server may keep them
// open.
func (t *trial) finish() {
	after := *t
	after.err = nil
	for _, o := range t.ledger.unfinished() {
		unknown := !t.ledger.known(o).approved
		if unknown && t.judge.hangs.Load() {
			continue
		}
		if a := after.report(o, failure); a.err != nil {
			if unknown {
				t.judge.hangs.Store(true)
			}
			return // each of the others could take as long as the timeout
		}
	}
}

// newOrder returns a new order of a session with an intent.
func (t *trial) newOrder(s ramp.Session, intent object) order {
	if burns := intent["type"] == "disassemble"; burns && !t.has("burn") || !burns && !t.has("mint") {
		t.skip("the game has no such orders (-only)")
	}
	if t.err != nil {
		// Nothing is sent anymore, but the case may still edit the order.
		return order{body: object{"user_sig": ramp.Signature{}.String(), "digest": digestOf("0"), "uuid": uuid.Nil.String(), "intent": intent}}
	}
	id, err := t.UUID(t.ctx, s)
	if err != nil {
		t.untried("no UUID is available: %s", t.said(err.Error()))
	}
	digest := randomDigest()
	key, address := wallet(s)
	address = cmp.Or(t.wallets[s.ID], address)
	if t.Wallet != nil {
		address = cmp.Or(t.Wallet(s), address)
	}
	o := order{owner: s, token: t.Token, wallet: address, logs: int(t.judge.logs.Load()), body: object{
		"user_sig": signedBy(key, digest), "user_address": address, "project_id": cmp.Or(t.ProjectID, "judge"),
		"digest": digest.String(), "uuid": id.String(), "intent": intent,
	}}
	t.ledger.asks(o)
	return o
}

// wallet returns the wallet of a player for whom the server reports none. It is the same
// for every order of the player.
func wallet(s ramp.Session) (key *ecdsa.PrivateKey, address string) {
	key = crypto.ToECDSAUnsafe(crypto.Keccak256([]byte("the judge's wallet of " + s.ID)))
	return key, crypto.PubkeyToAddress(key.PublicKey).Hex()
}

// signedBy returns a signature over d by a player's wallet.
func signedBy(key *ecdsa.PrivateKey, d ramp.Digest) string {
	sig := ramp.Must(crypto.Sign(d[:], key))
	sig[64] += 27
	return fmt.Sprintf("0x%x", sig)
}

// has reports whether the game has orders of a direction, mint or burn.
func (t *trial) has(direction string) bool {
	return t.Only == "" || t.Only == direction
}

// plain returns an edited mint, or a burn for a game that only burns.
func (t *trial) plain(edits ...edit) order { return t.plainOf(t.player).bent(edits...) }

func (t *trial) plainOf(s ramp.Session) order {
	if t.has("mint") {
		return t.mintOf(s)
	}
	return t.burnOf(s)
}

// mint returns an edited order of the case's player that turns assets into tokens.
func (t *trial) mint(edits ...edit) order { return t.mintOf(t.player).bent(edits...) }

func (t *trial) mintOf(s ramp.Session) order {
	kind := "ERC20"
	if t.Unique {
		kind = "NFT"
	}
	return t.newOrder(s, object{
		"method": "mint", "type": "assemble", "target_candidate": object{},
		"from": list{entry("asset", t.assetOf(s), number(t.Amount))},
		"to":   list{entry(kind, t.Token, number(t.Tokens))},
	})
}

// burn returns an edited order of the case's player that turns tokens into assets.
func (t *trial) burn(edits ...edit) order { return t.burnOf(t.player).bent(edits...) }

// A unique item is minted first, because a burn returns it.
func (t *trial) burnOf(s ramp.Session) order {
	if t.Unique && t.has("mint") {
		if o := t.mintOf(s); t.offer(o) {
			t.confirm(o, success)
		} else if t.err == nil {
			t.skip("the player owns no more of the unique item")
		}
		if s.ID == t.player.ID {
			t.before = t.nowOf(s)
		}
	}
	return t.newOrder(s, object{
		"method": "burn-permit", "type": "disassemble", "target_candidate": object{},
		"from": list{entry("ERC20", t.Token, number(t.BurnTokens))},
		"to":   list{entry("asset", t.assetOf(s), number(t.Amount))},
	})
}

// approve makes the validate call of an order and requires an approval.
func (t *trial) approve(o order) order {
	t.approved(t.validate(o))
	return o
}

// confirm reports the edited result of an order and requires a confirmation.
func (t *trial) confirm(o order, status string, edits ...edit) {
	t.confirmed(t.report(o, status, edits...))
}

// tell reports the result of an order and requires an answer of any kind.
func (t *trial) tell(o order, status string) { t.answered(t.report(o, status)) }

// answered requires an answer of any kind.
func (t *trial) answered(a answer) bool {
	switch {
	case errors.Is(a.err, errBusy):
		t.untried("%w", a.err)
	case a.err != nil && a.status != 0: // it was cut off
		t.failAt(a, a.shown, "a whole answer")
	case a.err != nil:
		t.failAt(a, "no answer: "+a.shown, "an answer")
	}
	return t.err == nil
}

// approved requires an approval. Its envelope is judged by a case of its own.
func (t *trial) approved(a answer) { t.wantsSuccess(a, a.succeeded) }

// strict requires the envelope of a success.
func (t *trial) strict(a answer) { t.wantsSuccess(a, a.strictly()) }

func (t *trial) wantsSuccess(a answer, given bool) {
	if t.answered(a) && !given {
		t.mismatch(a, "HTTP 200 with success true and errorCode null")
	}
}

// confirmed requires the confirmation of a result (interface 4.3, 6), or the answer that
// the server is known to give instead.
func (t *trial) confirmed(a answer) {
	if t.answered(a) && !(a.strictly() && a.null("data")) && a.look() != t.judge.known.answers[a.kind()] {
		t.mismatch(a, "HTTP 200 with success true, errorCode null and data null")
	}
}

// kind returns the kind of event that an answer to a result is about.
func (a answer) kind() eventKind {
	kind, _ := strings.CutPrefix(a.step, "result: ")
	return eventKind(kind)
}

const notRejected = "it was not rejected, which is for another case"

// rejected requires any answer but a success, because a framework or a JSON parser may
// answer before the game does.
func (t *trial) rejected(a answer) {
	if t.either(a) && !(a.call != nil && a.call.Path == t.ResultPath && t.judge.known.confusing[a.call.Path]) {
		t.mismatch(a, "a rejection")
	}
}

// either requires an approval or a rejection, and reports whether it was an approval.
func (t *trial) either(a answer) (approved bool) {
	return t.answered(a) && a.succeeded
}

// several has up to n orders approved that are open at the same time. Where one is rejected,
// it tries the next way to start one. A game may reject all but the first; then the case is
// skipped.
func (t *trial) several(n int, starts ...func(...edit) order) []order {
	orders := []order{t.approve(starts[0]())}
next:
	for len(orders) < n {
		for _, start := range starts {
			if o := start(); t.offer(o) {
				orders = append(orders, o)
				continue next
			}
		}
		break
	}
	if len(orders) == 1 {
		t.skip("the server rejects a second order while one is open")
	}
	return orders
}

// severalSizes has up to 3 mints approved that are open at the same time. They differ in
// their amounts, so that one cannot be taken for another, unless the game approves one
// amount only.
func (t *trial) severalSizes() []order {
	size := int64(0)
	return t.several(3, func(...edit) order {
		size++
		return t.mint(t.of(t.times(size)))
	}, t.mint)
}

// atOnce validates orders at the same time and returns those that were approved.
func (t *trial) atOnce(orders []order) (approved []order) {
	for i, a := range t.together(crowd, func(i int) answer { return t.validate(orders[i]) }) {
		if t.approvedAtOnce(orders[i], a) {
			approved = append(approved, orders[i])
		}
	}
	return approved
}

// together makes n calls at the same time and returns their answers. All begin when the
// last one is ready.
func (t *trial) together(n int, call func(i int) answer) []answer {
	answers := make([]answer, n)
	start := make(chan struct{})
	var ready, wait sync.WaitGroup
	for i := range answers {
		ready.Add(1)
		wait.Go(func() {
			ready.Done()
			<-start
			answers[i] = call(i)
		})
	}
	ready.Wait()
	close(start)
	wait.Wait()
	return answers
}

// rounds repeats a race, each time with a new player, because one round may miss a
// narrow window.
func (t *trial) rounds(race func()) {
	const rounds = 3
	for i := 0; i < rounds && t.err == nil; i++ {
		if i > 0 {
			t.renew()
		}
		race()
	}
}

// digestOf returns a digest that repeats a pattern of hex digits.
func digestOf(pattern string) string { return "0x" + strings.Repeat(pattern, 64/len(pattern)) }
