package judge

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// begin gets a player and measures the balances.
func (t *trial) begin() {
	switch {
	case t.needs&aRestart != 0 && t.Restart == nil:
		t.lacks("no restart of the server was configured", "-restart")
	case t.needs&aProject != 0 && t.ProjectID == "":
		t.lacks("no project was configured (-project)", "-project")
	case t.needs&aToken != 0 && !t.given.token:
		t.lacks("no token contract was configured", "-token")
	case t.needs&aRate != 0 && !(t.given.token && t.given.rate):
		t.lacks("no rate was configured", "-token, -amount and -tokens")
	case t.needs&(aSecondAsset|aListedAsset) != 0 && t.OneAsset:
		t.skip("the game has one asset only (-one-asset)")
	}
	t.player = t.newPlayer()
	holdings, enough := t.holdings(t.player), t.enough()
	t.asset, t.second = t.choose(holdings)
	t.before = snapshot{owner: t.player, assets: sums(holdings)}
	if _, listed := t.before.assets[t.asset]; t.asset != "" && !listed {
		t.untried("the player does not list the asset %s of the order (-asset); it lists %s", t.said(t.asset),
			t.listed(holdings))
	}
	if t.asset == "" || t.before.of(t.asset).Cmp(enough) < 0 {
		t.untried(
			"the player owns too little: a case needs %s of an asset, %d times the amount of an order "+
				"(-amount; -asset names the asset; -unique needs 1); the player lists %s",
			show(enough), reserve, t.listed(holdings))
	}
	switch poor := t.before.of(t.second).Cmp(enough) < 0; {
	case t.OneAsset && t.second != "":
		t.untried("the player lists a second asset, %s, but the game has one only (-one-asset)",
			t.said(t.second))
	case t.needs&(aSecondAsset|aListedAsset) == 0:
	case t.second == "":
		t.lacks("the player lists no second asset",
			"a player who owns "+show(enough)+" of a second one (-login), "+
				"or -one-asset if the game has one only")
	case t.needs&aSecondAsset != 0 && poor:
		t.lacks("the player owns too little of a second asset", "a smaller -amount, or a player who owns "+
			show(enough)+" of "+t.said(t.second)+" (-login, -second-asset)")
	}
}

// newPlayer gets a player from Config.Player.
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
		if !t.server.take(s.ID, t) {
			t.untried("another case is using the same player")
			return s
		}
		if t.server.meets(s.ID) {
			if open, late := t.server.late.LoadAndDelete(s.ID); late { // the player is not left alone
				o := open.(lateOrder)
				t.report(o.order, failure)
			}
			t.ledger.called() // by another case, whose effects may be late
			t.outwait()
		}
	}
	return s
}

// renew continues with a new player, because the order before could be a reason to
// reject the next one.
func (t *trial) renew() {
	t.player = t.newPlayer()
	t.before = t.look(t.player)
	t.asset = t.assetOf(t.player)
}

// finish reports every unfinished order as failed, because a game may allow a player only
// one open order. It includes rejected orders, because a faulty server may keep them
// open.
func (t *trial) finish() {
	after := *t
	after.err = nil
	for _, o := range t.ledger.unfinished() {
		unknown := !t.ledger.known(o).approved
		if unknown && t.server.hangs.Load() {
			continue
		}
		if a := after.report(o, failure); a.err != nil {
			if unknown {
				t.server.hangs.Store(true)
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
		return order{body: object{"user_sig": ramp.Signature{}.String(), "digest": digestOf("0"),
			"uuid": uuid.Nil.String(), "intent": intent}}
	}
	id, page, err := t.openPage(s)
	if err != nil {
		t.untried("no UUID is available: %s", t.said(err.Error()))
	}
	digest := randomDigest()
	key, address := wallet(s)
	address = cmp.Or(t.wallets[s.ID], address)
	if t.Wallet != nil {
		address = cmp.Or(t.Wallet(s), address)
	}
	logs := int(t.server.logs.Load())
	o := order{owner: s, page: page, token: t.Token, wallet: address, logs: logs, body: object{
		"user_sig": signedBy(key, digest), "user_address": address,
		"project_id": cmp.Or(t.ProjectID, "judge"),
		"digest":     digest.String(), "uuid": id.String(), "intent": intent,
	}}
	t.ledger.asks(o)
	return o
}

// openPage gets the UUID of a new order of a session, and what its page sends.
func (t *trial) openPage(s ramp.Session) (id uuid.UUID, page ramp.Session, err error) {
	opener := s
	if t.opener.ID != "" {
		opener = t.opener
	}
	id, token, err := t.UUID(t.ctx, opener)
	if page = s; token.Reveal() != "" {
		page.Token = token
		t.secrets = append(t.secrets, token.Reveal())
	}
	return id, page, err
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

func randomDigest() (d ramp.Digest) {
	_, _ = rand.Read(d[:]) // never fails
	return d
}

// digestOf returns a digest that repeats a pattern of hex digits.
func digestOf(pattern string) string { return "0x" + strings.Repeat(pattern, 64/len(pattern)) }

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

// approvedAtOnce reports whether the answer to a validate call is an approval. A call that
// got no answer at the same time as others is made again alone, and must then be answered.
// If it is rejected, the first one may have been approved, so the order ends.
func (t *trial) approvedAtOnce(o order, a answer) bool {
	if t.err != nil || a.err == nil || errors.Is(a.err, errBusy) {
		return t.either(a)
	}
	again := t.offer(o)
	if t.err == nil && !again {
		t.report(o, failure)
	}
	return again
}

// confirmedAtOnce requires that a result was confirmed at the same time as others, or is
// when it is reported again alone, as the service does after HTTP 500 or no answer.
func (t *trial) confirmedAtOnce(o order, status string, a answer) {
	switch {
	case t.ledger.known(o).ended != "":
	case a.err == nil && a.status != http.StatusInternalServerError:
		t.mismatch(a, confirmedOrAgain)
	default:
		t.confirm(o, status)
	}
}

const lockedOut = "and answer HTTP 500, never 4xx, to a result that waits too long for a lock: the " +
	"service delivers it again only then."

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

// restart restarts the server and waits until it answers. A connection that stays open
// until the server stops, unless the server keeps none open, shows that it did stop.
func (t *trial) restart() {
	if t.err != nil {
		return
	}
	old, client := *t, *t.client
	transport, reused := &http.Transport{DialContext: t.server.dial}, false
	defer transport.CloseIdleConnections()
	client.Transport, old.client = transport, &client
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }}
	old.ctx = httptrace.WithClientTrace(t.ctx, trace)
	old.assets(t.player)
	if err := t.Restart(t.ctx); err != nil {
		t.untried("the server could not be restarted: %s", t.said(err.Error()))
		return
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		switch a := old.assets(t.player); {
		case a.err == nil && !reused:
			return
		case a.err == nil && time.Since(began) > 500*time.Millisecond:
			t.untried("nothing was restarted: a connection from before the restart is still open")
			return
		}
		if !sleep(t.ctx, 100*time.Millisecond) {
			break
		}
	}
	t.failAt(answer{step: "assets"}, "no answer within 30 seconds of the restart",
		"a server that answers again")
}
