package conformance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/common"
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

// redact takes out of a text what no verdict may hold.
func (t *trial) redact(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' { // a terminal would obey it
			return '.'
		}
		return r
	}, redact(text, t.secrets))
}

// redact takes secrets out of a text, and every piece of one that is long
// enough to tell something: what shows a secret may have cut it.
func redact(text string, secrets []string) string {
	const telling = 8
	hidden := make([]bool, len(text))
	for _, secret := range secrets {
		size := min(telling, len(secret))
		for i := 0; size > 0 && i+size <= len(text); i++ {
			if strings.Contains(secret, text[i:i+size]) {
				for j := range size {
					hidden[i+j] = true
				}
			}
		}
	}
	var out strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			out.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString("[redacted]")
		}
	}
	return out.String()
}

// newPlayer returns another player.
func (t *trial) newPlayer() ramp.Session {
	if t.err != nil {
		return ramp.Session{}
	}
	s, err := t.target.Player(t.ctx, "judge-"+strings.ToLower(rand.Text()[:12]))
	switch token := s.Token.Reveal(); {
	case err != nil:
		t.untried("no player could be had: %w", err)
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

// answer is what the server said to a call.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	envelope map[string]json.RawMessage // nil if the body is no JSON object
	shown    string                     // the errorCode, or the text of err, as a verdict may show it
	begins   *order                     // what it approves, if it is a success
	ends     *order                     // what is over by it, if it is a success
	err      error                      // there was no answer
}

// call is one call as it goes over the wire.
type call struct {
	method, path string
	header       http.Header // written as it is, in the case that it has
	body         io.Reader
	length       int64  // -1 sends the body in chunks
	alone        bool   // on a connection of its own: what a server leaves unread of it spoils no other call
	hmac         string // what would be the right one, for no verdict may hold it
}

// errBusy says that a server wants fewer calls, for longer than a call may take.
var errBusy = errors.New("the server answered HTTP 429, and asked for more patience than Target.Timeout (-timeout) allows")

// try makes a call, again if the server asks for patience. It leaves the trial
// alone, so that many may run at once.
func (t *trial) try(c call) answer {
	if t.err != nil {
		return answer{err: t.err}
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.target.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for {
		a := t.once(ctx, c)
		if a.status != http.StatusTooManyRequests {
			return a
		}
		wait := retryAfter(a.header.Get("Retry-After"))
		again, whole := c.body.(io.Seeker)
		if c.body != nil && !whole || time.Until(deadline) < wait || !sleep(ctx, wait) {
			return answer{err: errBusy}
		}
		if whole {
			_, _ = again.Seek(0, io.SeekStart)
		}
	}
}

// retryAfter reads the header of that name: seconds, or a time. A second is for
// those who do not say.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if when, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(when))
	}
	return time.Second
}

// sleep says whether it could sleep to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *trial) once(ctx context.Context, c call) answer {
	request, err := http.NewRequestWithContext(ctx, c.method, t.target.URL+c.path, c.body)
	if err != nil {
		return answer{err: err}
	}
	request.Header, request.ContentLength, request.Close = c.header, c.length, c.alone
	secrets := append(slices.Clone(t.secrets), c.hmac)
	for name, values := range c.header {
		if strings.EqualFold(name, signature) { // the case of names is what some calls are about
			secrets = append(secrets, values...)
		}
	}
	response, err := t.client.Do(request)
	if err != nil {
		return answer{err: err, shown: redact(err.Error(), secrets)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	a := answer{status: response.StatusCode, header: response.Header, body: body, err: err}
	if json.Unmarshal(body, &a.envelope) != nil {
		a.envelope = nil
	}
	a.shown = shown(a.code(), secrets)
	if err != nil {
		a.shown = redact(err.Error(), secrets)
	}
	return a
}

// plain is an errorCode that is one: what else a server writes there may hold
// what was sent to it.
var plain = regexp.MustCompile(`^[A-Za-z0-9_ .:-]{1,40}$`)

// shown is an errorCode as a verdict may show it.
func shown(code string, secrets []string) string {
	if !plain.MatchString(code) || redact(code, secrets) != code {
		return fmt.Sprintf("of %d bytes that are better not shown", len(code))
	}
	return strconv.Quote(code)
}

// signed are the headers of a validate or result call (interface 4.3).
func (t *trial) signed(s ramp.Session, body []byte) http.Header {
	header := t.headers(s)
	header[signature] = []string{t.target.Key.Sign(body)}
	return header
}

// The headers of the interface (4.3), in the case in which the service writes
// them.
const (
	authorization = "x-dapp-authorization"
	sessionID     = "x-dapp-sessionid"
	signature     = "x-hmac-signature"
)

// headers are those of an assets call (interface 4.3).
func (t *trial) headers(s ramp.Session) http.Header {
	return http.Header{
		"Content-Type": {"application/json"},
		authorization:  {"Bearer " + s.Token.Reveal()},
		sessionID:      {s.ID},
	}
}

func (t *trial) get(header http.Header) answer {
	return t.try(call{method: http.MethodGet, path: t.target.AssetsPath, header: header})
}

func (t *trial) assets(s ramp.Session) answer { return t.get(t.headers(s)) }

func (t *trial) post(path string, header http.Header, body []byte) answer {
	return t.try(call{method: http.MethodPost, path: path, header: header,
		body: bytes.NewReader(body), length: int64(len(body)), hmac: t.target.Key.Sign(body)})
}

// validate asks for an order as the service does.
func (t *trial) validate(o order) answer {
	body := o.body.bytes()
	a := t.post(t.target.ValidatePath, t.signed(o.owner, body), body)
	a.begins = &o
	return a
}

// report tells how an order ended, as the service does.
func (t *trial) report(o order, result object) answer {
	body := result.bytes()
	a := t.post(t.target.ResultPath, t.signed(o.owner, body), body)
	a.ends = &o
	return a
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
		t.untried("no UUID could be had: %w", err)
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

func (a answer) succeeded() bool { return string(a.envelope["success"]) == "true" }

func (a answer) declined() bool {
	return string(a.envelope["success"]) == "false" && a.code() != "" && a.null("data")
}

// null says whether a field is null. One that is missing counts as null; the
// cases of the envelopes look closer.
func (a answer) null(name string) bool {
	value, ok := a.envelope[name]
	return !ok || string(value) == "null"
}

// code is the errorCode, empty if it is no string.
func (a answer) code() string {
	var code string
	_ = json.Unmarshal(a.envelope["errorCode"], &code)
	return code
}

// String says what was answered, in few words and without data.
func (a answer) String() string {
	if a.envelope == nil {
		return fmt.Sprintf("HTTP %d with a body that is no JSON object", a.status)
	}
	success, code := kind(a.envelope["success"]), kind(a.envelope["errorCode"])
	if text := string(a.envelope["success"]); text == "true" || text == "false" {
		success = text
	}
	if a.code() != "" {
		code = a.shown
	}
	return fmt.Sprintf("HTTP %d, success %s, errorCode %s, data %s", a.status, success, code, kind(a.envelope["data"]))
}

func kind(b json.RawMessage) string {
	switch {
	case len(b) == 0:
		return "missing"
	case string(b) == "null":
		return "null"
	default:
		return "given"
	}
}

// holding is a balance that the server reports.
type holding struct {
	id      string
	balance *big.Rat
	raw     json.RawMessage // of the balance
}

// decimal is what the interface calls a decimal string (2.4).
var decimal = regexp.MustCompile(`^-?[0-9]{1,100}(\.[0-9]{1,100})?$`)

// holdings asks for a player's assets. It reads what it can: the cases of
// section 2.4 look closer.
func (t *trial) holdings(s ramp.Session) []holding {
	a := t.assets(s)
	if !t.answered(a) {
		return nil
	}
	var data struct {
		V1 struct {
			Wallet any `json:"wallet_address"`
			Assets []struct {
				ID      json.RawMessage `json:"id"`
				Balance json.RawMessage `json:"balance"`
			} `json:"assets"`
		} `json:"v1"`
	}
	if !a.succeeded() || json.Unmarshal(a.envelope["data"], &data) != nil {
		t.fail("assets: "+a.String(), "success true and the player's assets in data.v1.assets")
		return nil
	}
	if address, _ := data.V1.Wallet.(string); common.IsHexAddress(address) {
		t.wallets[s.ID] = address
	}
	all := make([]holding, 0, len(data.V1.Assets))
	for _, asset := range data.V1.Assets {
		var id string
		if json.Unmarshal(asset.ID, &id) != nil && len(asset.ID) > 0 {
			t.fail("assets: an id that is no JSON string", "the asset ID of the console, as a string")
			return nil
		}
		text := strings.Trim(string(asset.Balance), `"`)
		if !decimal.MatchString(text) {
			t.fail("assets: a balance that is no decimal", "a decimal string")
			return nil
		}
		balance, _ := new(big.Rat).SetString(text)
		all = append(all, holding{id, balance, asset.Balance})
	}
	return all
}

// owned is the balance of an asset, 0 when it is not listed.
func owned(all []holding, id string) *big.Rat {
	sum := new(big.Rat)
	for _, h := range all {
		if h.id == id {
			sum.Add(sum, h.balance)
		}
	}
	return sum
}

func (t *trial) balance(s ramp.Session) *big.Rat { return t.balanceOf(s, t.asset) }

func (t *trial) balanceOf(s ramp.Session, asset string) *big.Rat { return owned(t.holdings(s), asset) }

// moved wants the player's balance to have changed by so many amounts of an
// order since the case began: moved(-1) after a mint, moved(0) for nothing.
func (t *trial) moved(amounts int64) {
	t.movedBy(new(big.Rat).SetInt64(amounts * t.target.Amount))
}

func (t *trial) movedBy(want *big.Rat) { t.movedFor(t.player, t.before, want) }

// movedFor wants a player to own so much more than before.
func (t *trial) movedFor(s ramp.Session, before, want *big.Rat) {
	t.movedOf(s, t.asset, before, want)
}

// movedOf wants a player to own so much more of an asset than before.
func (t *trial) movedOf(s ramp.Session, asset string, before, want *big.Rat) {
	after, right := t.settled(s, asset, func(now *big.Rat) bool { return new(big.Rat).Sub(now, before).Cmp(want) == 0 })
	if t.err == nil && !right {
		t.fail(fmt.Sprintf("a balance that moved by %s (%s before, %s after)", show(new(big.Rat).Sub(after, before)), show(before), show(after)),
			"a balance that moved by "+show(want))
	}
}

// settled waits until a balance is right, for as long as Target.Settle. Where
// effects are known to follow their answers, what is right must be so still
// when one more effect could have come.
func (t *trial) settled(s ramp.Session, asset string, right func(*big.Rat) bool) (now *big.Rat, ok bool) {
	const first, most = 5 * time.Millisecond, 100 * time.Millisecond
	began, wait := time.Now(), first
	for now = t.balanceOf(s, asset); t.err == nil && !right(now); now = t.balanceOf(s, asset) {
		if time.Since(began) >= t.target.Settle {
			return now, false
		}
		t.pause(wait)
		wait = min(2*wait, most)
	}
	if wait > first {
		t.judge.lag = max(t.judge.lag, time.Since(began))
	}
	if t.judge.lag > 0 {
		t.outwait()
		now = t.balanceOf(s, asset)
	}
	return now, right(now)
}

// outwait lets pass what effects have needed so far, and half of that again.
func (t *trial) outwait() { t.pause(min(t.judge.lag+t.judge.lag/2, t.target.Settle)) }

func (t *trial) pause(d time.Duration) {
	if t.err == nil && d > 0 && !sleep(t.ctx, d) {
		t.untried("%w", t.ctx.Err())
	}
}

// still wants the player to own what they owned at a moment of the case.
func (t *trial) still(then *big.Rat) { t.movedFor(t.player, then, new(big.Rat)) }

// now measures what the player owns, when everything has had its effect.
func (t *trial) now() *big.Rat {
	t.outwait()
	return t.balance(t.player)
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

// show writes a number in decimal.
func show(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(30), "0")
}

// times is n amounts of an order.
func (t *trial) times(n int64) json.Number { return number(n * t.target.Amount) }

// raw is a JSON number as it is written.
func raw(text string) json.Number { return json.Number(text) }

// beyond is a quantity that must not be owned, or the case cannot be tried.
func (t *trial) beyond(text string) json.Number {
	if amount, err := ramp.ParseAmount(text); err == nil && t.err == nil && amount.Rat().Cmp(t.before) <= 0 {
		t.skip("the player owns " + text + " and more")
	}
	return raw(text)
}

// of lets an order be about so much of the asset, and about as many tokens as
// that is worth: a game that checks its rate looks at the rest only then. Where
// no decimal says what it is worth, the tokens stay as they are.
func (t *trial) of(amount json.Number) edit {
	asset, token := "intent.from.0.amount", "intent.to.0.amount"
	return func(o order) order {
		if o.body.at("intent.type") == "disassemble" {
			asset, token = token, asset
		}
		o = o.bent(set(asset, amount))
		if exact, err := ramp.ParseAmount(amount.String()); err == nil {
			worth := new(big.Rat).Mul(exact.Rat(), big.NewRat(t.target.Tokens, t.target.Amount))
			if text := show(worth); rat(text).Cmp(worth) == 0 {
				o = o.bent(set(token, raw(text)))
			}
		}
		return o
	}
}

// oneMore is the first whole multiple of an order's amount that is above what
// the player owned at first.
func (t *trial) oneMore() json.Number { return t.multiple(t.before, 1) }

// most is about 3/5 of what the player owned at first, as a whole multiple of
// an order's amount: once it can be taken, twice it cannot.
func (t *trial) most() json.Number {
	return t.multiple(new(big.Rat).Mul(t.before, big.NewRat(3, 5)), 0)
}

// multiple is the multiple of an order's amount that a number reaches, or some
// later one.
func (t *trial) multiple(of *big.Rat, later int64) json.Number {
	amount := big.NewInt(t.target.Amount)
	n := new(big.Int).Quo(of.Num(), new(big.Int).Mul(of.Denom(), amount))
	return raw(n.Add(n, big.NewInt(later)).Mul(n, amount).String())
}

func twice(n json.Number) json.Number {
	r := rat(n.String())
	return raw(show(r.Add(r, r)))
}

// digestOf returns a digest that is given as text.
func digestOf(pattern string) string { return "0x" + strings.Repeat(pattern, 64/len(pattern)) }

func zero() *big.Rat { return new(big.Rat) }
