package pairs

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// order is what the service and its player know of an order.
type order struct {
	id          uuid.UUID
	player      string // her name when the page was opened
	session     string
	wallet      common.Address
	project     string
	burn, fails bool
	gold        int64 // by the price of its page
	intent      string

	asked, told int  // how often validate and result were called
	signed      bool // the service has a signature
	closed      bool // the page is: nothing will be sent
	tx          *tx
	failed      *tx    // sent before tx, and the one that the service reports
	heard, over bool   // its result was taken; the service sends it no more
	batch       *order // goes into the same transaction
	decided     bool   // a person has ended it, or could not restore it
	sentAgain   bool   // after it had ended as failed, its transaction succeeded
	gone        bool   // it has ended, and was deleted since
	erased      bool   // likewise
}

var userSig = "0x" + strings.Repeat("ab", 65)

var wallets = map[string]common.Address{
	"alice": common.HexToAddress("0xa11ce"),
	"bob":   common.HexToAddress("0xb0b"),
}

// service is what the service does next.
type service struct {
	key        string           // with which it signs
	validators []common.Address // of the keys that are registered in its console
	deaf       bool             // the next answer is lost
	out        bool             // it sends no results
	copies     string           // how the result has the logs: in the order of the chain, reversed or early (none yet)
	form       string           // the Content-Type, if it is another one
	server     int              // the one that it reaches
	busy       bool             // it makes two calls at once
	excused    bool             // a fault of the world is why the last call failed, or one of these two
}

// page opens a page at the price of now.
func (w *world) page(player string, burn bool) *order {
	o := &order{id: uuid.New(), player: player, session: cmp.Or(w.game.session[player], player), burn: burn,
		project: w.game.projects[0], gold: w.costs(w.here()), wallet: wallets[player]}
	gold, tokens := `[{"type":"asset","id":"gold","amount":%d}]`, `[{"type":"ERC20","id":"`+token.Hex()+`","amount":1}]`
	o.intent = `{"method":"mint","type":"assemble","from":` + gold + `,"to":` + tokens + `,"target_candidate":{}}`
	if burn {
		o.gold = w.pays(w.here())
		o.intent = `{"method":"burn-permit","type":"disassemble","from":` + tokens + `,"to":` + gold +
			`,"target_candidate":{}}`
	}
	o.intent = fmt.Sprintf(o.intent, o.gold)
	w.orders = append(w.orders, o)
	return o
}

func (w *world) of(id uuid.UUID) *order {
	at := slices.IndexFunc(w.orders, func(o *order) bool { return o.id == id })
	return w.orders[at]
}

// call makes a call, and reports whether the service has heard the answer.
func (w *world) call(method, path, session, key string, body []byte) (r ramp.Reply, heard bool) {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	form := w.service.form
	if form == "" {
		form = "application/json"
	}
	h := http.Header{"Content-Type": {form}}
	h.Set("X-Dapp-Authorization", "Bearer t")
	h.Set("X-Dapp-SessionID", session)
	if method == http.MethodPost {
		h.Set("X-HMAC-SIGNATURE", hex.EncodeToString(mac.Sum(nil)))
	}
	heard = !w.service.deaf
	w.service.deaf, w.service.excused = false, w.service.busy && w.service.excused
	r = w.here().handler.Answer(ctx, method, path, h, body)
	w.delivers()
	return r, heard
}

func (w *world) assets(player string) {
	if r, _ := w.call(http.MethodGet, "/api/assets", player, "", nil); r.Status >= 500 {
		w.fault("no assets", player, 0, "%d %s", r.Status, r.Body)
	}
}

// validate asks the game to take, or to promise, and to sign.
func (w *world) validate(o *order) {
	if o.closed || o.tx != nil {
		return
	}
	w.again = func() { w.repeatValidate(o) }
	w.repeatValidate(o)
}

func (w *world) repeatValidate(o *order) {
	o.asked++
	excuse, rule, offered := w.excuse(o), w.rule(o), w.offers(w.here())
	body := fmt.Appendf(nil,
		`{"user_sig":"%s","user_address":"%s","project_id":"%s","digest":"%s","uuid":"%s","intent":%s}`,
		userSig, o.wallet.Hex(), o.project, o.digest(), o.id, o.intent)
	r, heard := w.call(http.MethodPost, "/api/validate", o.session, w.service.key, body)
	if signed := r.Status == 200 && r.Err == nil; !signed {
		if excuse == "" && w.excuse(o) == "" && !w.service.excused && !w.ended(o) {
			w.fault("declined", o.player, o.value(), "%d %s", r.Status, r.Body)
		}
		return
	}
	if rule != "" && o.asked == 1 {
		w.fault("allowed", o.player, o.value(), "although %s", rule)
	}
	w.paid(o, offered)
	if by := signedBy(o, r.Body); !slices.Contains(w.service.validators, by) {
		w.fault("not signed", o.player, o.value(), "by %s: %s", by, r.Body)
	}
	if heard {
		o.signed = true
	}
}

// ended reports whether an order has ended, as one may while its validate call is repeated.
func (w *world) ended(o *order) bool {
	state := w.stored(o).state
	return o.told > 0 && state != "" && state != string(ramp.OrderAccepted)
}

// signedBy returns the address whose key has signed the digest of an order for the player's own signature, or none.
func signedBy(o *order, answer []byte) (by common.Address) {
	var a struct {
		Data struct {
			UserSig      string
			ValidatorSig hexutil.Bytes
		}
	}
	if json.Unmarshal(answer, &a) != nil || a.Data.UserSig != userSig || len(a.Data.ValidatorSig) != 65 {
		return common.Address{}
	}
	sig := slices.Clone(a.Data.ValidatorSig)
	sig[64] -= 27 // the form of Ethereum
	if key, err := crypto.SigToPub(o.digest().Bytes(), sig); err == nil {
		by = crypto.PubkeyToAddress(*key)
	}
	return by
}

func (o *order) digest() common.Hash { return crypto.Keccak256Hash(o.id[:]) }

// mined puts what was signed on the chain, within a minute if it lives.
func (w *world) mined(o *order) {
	if !o.signed || o.closed || o.tx != nil || w.chain.stands() {
		return
	}
	moved := []ramp.Transfer{o.moves()}
	if b := o.batch; b != nil && b.signed && b.tx == nil {
		b.tx = w.chain.mine(!o.fails, append(moved, b.moves())...)
		o.tx = b.tx
	} else {
		o.tx = w.chain.mine(!o.fails, moved...)
	}
	w.sleep(2 * blockTime)
}

func (o *order) moves() ramp.Transfer {
	t := ramp.Transfer{Token: token, From: nobody, To: o.wallet, Value: new(big.Int).Set(unit)}
	if o.burn {
		t.From, t.To = t.To, t.From
	}
	return t
}

// waits reports whether the service has a result to send.
func (w *world) waits(o *order) bool {
	return w.chain.has(o.tx) && !o.heard && !o.over && !w.service.out
}

// deliver sends the result of an order.
func (w *world) deliver(o *order) {
	if !w.waits(o) {
		return
	}
	w.again = func() { w.repeatResult(o) }
	w.repeatResult(o)
}

func (w *world) repeatResult(o *order) {
	o.told++
	reported := cmp.Or(o.failed, o.tx)
	receipt := w.chain.receipt(reported)
	switch w.service.copies {
	case "reversed":
		slices.Reverse(receipt.Logs)
	case "early":
		receipt.Logs = []ramp.Log{}
	}
	text, err := json.Marshal(receipt)
	w.check(err)
	r, heard := w.call(http.MethodPost, "/api/result", o.session, w.service.key,
		fmt.Appendf(nil, `{"session_id":"%s","uuid":"%s","tx_hash":"%s","receipt":%s,"intent":%s}`,
			o.session, o.id, reported.hash, text, o.intent))
	if r.Status < 500 {
		w.answered(o, reported.ok)
	}
	o.heard = o.heard || heard && r.Status < 500
	o.over = o.over || o.told == 21
}

// deliverAll sends all results, and reports whether some were not taken.
func (w *world) deliverAll() (open bool) {
	for _, o := range w.orders {
		w.deliver(o)
		open = open || w.waits(o)
	}
	return open
}

func (o *order) direction() string {
	if o.burn {
		return "burn"
	}
	return "mint"
}

// value is what a success moves.
func (o *order) value() int64 {
	if o.burn {
		return o.gold
	}
	return -o.gold
}

// next is the second delivery, five minutes after one that was not taken.
func (w *world) next(o *order) {
	if w.waits(o) {
		w.sleep(5 * time.Minute)
		w.deliver(o)
	}
}
