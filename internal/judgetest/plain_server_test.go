package judgetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
)

// A plainServer is a game written from docs/interface.md alone, without a look
// at the judge's cases, as a developer without the SDK would write it. It sells
// a token for 100 item_gold or 10 item_gem, and buys one for 80 or 8. A fault
// is a mistake that such a developer makes.
type plainServer struct {
	fault string
	key   []byte
	sign  *ecdsa.PrivateKey

	mu      sync.Mutex
	players map[string]*plainPlayer
	orders  map[string]*plainOrder
	hashes  map[string]string
	cache   map[string]map[string]string
	issued  map[string]bool
	queue   []*time.Timer // what is lost in a restart
}

type plainPlayer struct {
	name, token string
	wallet      string
	balances    map[string]*big.Int
	open        string
}

type plainOrder struct {
	session, request, digest string
	mint                     bool
	moves                    map[string]*big.Int
	ended                    string
	answer                   map[string]any
	expired                  bool
}

type plainSide struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Amount json.RawMessage `json:"amount"`
}

type plainIntent struct {
	Method string      `json:"method"`
	Type   string      `json:"type"`
	From   []plainSide `json:"from"`
	To     []plainSide `json:"to"`
	Extra  any         `json:"target_candidate"`
}

type plainValidate struct {
	UserSig     string      `json:"user_sig"`
	UserAddress string      `json:"user_address"`
	ProjectID   string      `json:"project_id"`
	Digest      string      `json:"digest"`
	UUID        string      `json:"uuid"`
	Intent      plainIntent `json:"intent"`
}

const (
	plainProject = "project-1"
	plainToken   = "0x00000000000000000000000000000000000070c3"
)

var plainUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

func newPlainServer(fault string, key []byte, sign *ecdsa.PrivateKey) *plainServer {
	return &plainServer{fault: fault, key: key, sign: sign, players: map[string]*plainPlayer{},
		orders: map[string]*plainOrder{}, hashes: map[string]string{}, cache: map[string]map[string]string{}, issued: map[string]bool{}}
}

// listed returns the IDs of the game's assets.
func (s *plainServer) listed() []string {
	all := strings.Fields("item_gold item_gem item_ore")
	if s.is("hmac of ascii text") {
		all = append(all, "아이템_칼")
	}
	return all
}

// restart forgets what is not stored.
func (s *plainServer) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, later := range s.queue {
		later.Stop()
	}
}

func (s *plainServer) is(faults ...string) bool { return slices.Contains(faults, s.fault) }

// A refusal is an answer of a failed check.
type refusal struct {
	status int
	code   string
}

func (r refusal) Error() string { return r.code }

func (s *plainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if recover() != nil {
			w.WriteHeader(500)
		}
	}()
	limit := int64(1 << 20)
	if s.is("body limit of 4 KB") {
		limit = 4 << 10
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		s.answer(w, nil, refusal{413, "TOO_LARGE"})
		return
	}
	method := map[string]string{"/api/assets": "GET", "/api/validate": "POST", "/api/result": "POST", "/login": "POST", "/uuid": "POST"}[r.URL.Path]
	if method == "" {
		s.answer(w, nil, refusal{404, "NOT_FOUND"})
		return
	}
	if r.Method != method && !s.is("any method") {
		s.answer(w, nil, refusal{405, "METHOD"})
		return
	}
	if s.is("strict content type") && r.Header.Get("Content-Type") != "application/json" && r.Method == "POST" {
		s.answer(w, nil, refusal{415, "CONTENT_TYPE"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/login":
		s.login(w, body)
	case "/uuid":
		id := uuid.NewString()
		s.issued[id] = true
		json.NewEncoder(w).Encode(map[string]string{"uuid": id})
	case "/api/assets":
		data, err := s.assets(r)
		s.answer(w, data, err)
	case "/api/validate":
		data, err := s.validate(r, body)
		if err != nil && data != nil {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"success": false, "errorCode": err.Error(), "data": data})
			return
		}
		s.answer(w, data, err)
	case "/api/result":
		err := s.result(r, body)
		if s.is("result always 200") && err != nil {
			err = refusal{200, err.Error()}
		}
		s.answer(w, nil, err)
	}
}

func (s *plainServer) answer(w http.ResponseWriter, data any, err error) {
	envelope := map[string]any{"success": err == nil, "errorCode": nil, "data": data}
	status := 200
	if r, ok := err.(refusal); ok {
		status, envelope["errorCode"] = r.status, r.code
		if s.is("data is {} on failure") {
			envelope["data"] = map[string]any{}
		}
		if s.is("refusal without envelope") {
			envelope = map[string]any{"error": r.code}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if s.is("answers as text/html") {
		w.Header().Set("Content-Type", "text/html")
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(envelope)
}

func (s *plainServer) login(w http.ResponseWriter, body []byte) {
	var in struct{ Player string }
	json.Unmarshal(body, &in)
	n := len(s.players) + 1
	session := fmt.Sprintf("session-%d", n)
	sum := sha256.Sum256([]byte(fmt.Sprint("token", n)))
	p := &plainPlayer{name: in.Player, token: "T-" + hex.EncodeToString(sum[:16]), balances: map[string]*big.Int{}}
	for _, id := range s.listed() {
		p.balances[id] = big.NewInt(1_000_000)
		if s.is("unique items") {
			p.balances[id] = big.NewInt(1)
		}
	}
	if s.is("items of their own", "items of their own, never given back") {
		p.balances = map[string]*big.Int{}
		for i := range 3 {
			p.balances[fmt.Sprintf("sword-%d-%d", n, i)] = big.NewInt(1)
		}
	}
	p.wallet = "0x" + hex.EncodeToString(sum[:20])
	s.players[session] = p
	json.NewEncoder(w).Encode(map[string]any{"sessionId": session, "accessToken": p.token, "wallet": p.wallet})
}

// player authenticates the caller.
func (s *plainServer) player(r *http.Request) (string, *plainPlayer, error) {
	session := r.Header.Get("X-Dapp-SessionID")
	authorization := r.Header.Get("X-Dapp-Authorization")
	token, found := strings.CutPrefix(authorization, "Bearer ")
	p := s.players[session]
	switch {
	case s.is("token without Bearer"):
		token, found = strings.TrimPrefix(authorization, "Bearer "), true
	case s.is("any scheme"):
		fields := strings.Fields(authorization)
		if len(fields) > 0 {
			token, found = fields[len(fields)-1], true
		}
	}
	if p == nil || !found {
		return "", nil, refusal{401, "INVALID_SESSION"}
	}
	same := hmac.Equal([]byte(token), []byte(p.token))
	switch {
	case s.is("token in any case"):
		same = strings.EqualFold(token, p.token)
	case s.is("token contains"):
		same = strings.Contains(token, p.token)
	}
	if !same {
		return "", nil, refusal{401, "INVALID_TOKEN"}
	}
	return session, p, nil
}

func (s *plainServer) assets(r *http.Request) (any, error) {
	session, p, err := s.player(r)
	if err != nil {
		return nil, err
	}
	assets := []any{}
	listed := s.listed()
	if s.is("items of their own", "items of their own, never given back") { // and only while they are owned
		listed = slices.DeleteFunc(slices.Sorted(maps.Keys(p.balances)), func(id string) bool { return p.balances[id].Sign() == 0 })
	}
	for _, id := range listed {
		balance := any(p.balances[id].String())
		switch {
		case s.is("balance as a float"):
			f, _ := new(big.Float).SetInt(p.balances[id]).Float64()
			balance = fmt.Sprint(f)
		case s.is("balance cached"):
			if s.cache[session] == nil {
				s.cache[session] = map[string]string{}
			}
			if s.cache[session][id] == "" {
				s.cache[session][id] = p.balances[id].String()
			}
			balance = s.cache[session][id]
		}
		assets = append(assets, map[string]any{"id": id, "balance": balance})
	}
	data := map[string]any{"player_id": session, "name": p.name, "assets": assets}
	return map[string]any{"v1": data}, nil
}

func (s *plainServer) authentic(r *http.Request, body []byte) error {
	given := r.Header.Get("X-HMAC-Signature")
	switch {
	case s.is("hmac of uuid only"):
		// A developer who signs what identifies the call.
		var in struct{ UUID string }
		json.Unmarshal(body, &in)
		if in.UUID != "" && given != "" && len(given) == 64 {
			return nil
		}
	case s.is("hmac of ascii text"):
		body = bytes.Map(func(c rune) rune {
			if c > 127 {
				return '?'
			}
			return c
		}, body)
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	if s.is("hmac of 16 characters") && len(given) >= 16 && given[:16] == want[:16] {
		return nil
	}
	if !hmac.Equal([]byte(given), []byte(want)) {
		return refusal{401, "INVALID_HMAC"}
	}
	return nil
}

func (s *plainServer) amount(raw json.RawMessage) (*big.Int, error) {
	text := string(raw)
	bad := refusal{200, "INVALID_AMOUNT"}
	switch {
	case s.is("amount absent is 1"):
		if text == "" || text == "null" {
			return big.NewInt(1), nil
		}
	case s.is("amount absolute"):
		text = strings.TrimPrefix(text, "-")
	}
	if len(text) > 60 || !regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$`).MatchString(text) {
		return nil, bad
	}
	rat, ok := new(big.Rat).SetString(text)
	if !ok || !rat.IsInt() {
		return nil, bad
	}
	if rat.Sign() == 0 && s.is("zero accepted") {
		return rat.Num(), nil
	}
	if rat.Sign() <= 0 {
		return nil, bad
	}
	return rat.Num(), nil
}

// sum adds up what a side of the intent moves, by ID.
func (s *plainServer) sum(sides []plainSide, kind string) (map[string]*big.Int, error) {
	total := map[string]*big.Int{}
	for _, side := range sides {
		if side.Type != kind && !s.is("type of sides ignored") {
			return nil, refusal{400, "INVALID_TYPE"}
		}
		n, err := s.amount(side.Amount)
		if err != nil {
			return nil, err
		}
		id := side.ID
		if kind == "ERC20" && !s.is("token case") {
			id = strings.ToLower(id)
		}
		if s.is("item in any case") && kind == "asset" {
			id = strings.ToLower(strings.TrimSpace(id))
		}
		if total[id] == nil {
			total[id] = new(big.Int)
		}
		total[id].Add(total[id], n)
		if s.is("sum wraps at 64 bits") {
			total[id] = big.NewInt(int64(new(big.Int).And(total[id], new(big.Int).SetUint64(1<<64-1)).Uint64()))
		}
	}
	if len(total) == 0 {
		return nil, refusal{400, "EMPTY"}
	}
	return total, nil
}

func (s *plainServer) validate(r *http.Request, body []byte) (any, error) {
	hmacErr := s.authentic(r, body)
	if hmacErr != nil && !s.is("hmac checked last") {
		return nil, hmacErr
	}
	var in plainValidate
	decoder := json.NewDecoder(bytes.NewReader(body))
	if s.is("unknown fields rejected", "unknown fields rejected at validate") {
		decoder.DisallowUnknownFields()
	}
	if decoder.Decode(&in) != nil {
		return nil, refusal{400, "INVALID_JSON"}
	}
	session, p, err := s.player(r)
	if err != nil {
		return nil, err
	}
	if in.ProjectID != plainProject && !s.is("project not checked") {
		return nil, refusal{200, "PROJECT"}
	}
	if !plainUUID.MatchString(in.UUID) && !s.is("uuid not checked") {
		return nil, refusal{400, "UUID"}
	}
	id := in.UUID
	if !s.is("uuid case") {
		id = strings.ToLower(id)
	}
	digest, err := hex.DecodeString(strings.TrimPrefix(in.Digest, "0x"))
	switch {
	case s.is("digest without 0x") && err == nil && len(digest) == 32:
	case s.is("digest hashed if not 32 bytes") && len(digest) != 32:
		digest = crypto.Keccak256([]byte(in.Digest))
	case err != nil || len(digest) != 32 || !strings.HasPrefix(in.Digest, "0x"):
		return nil, refusal{400, "DIGEST"}
	}
	if in.UserSig == "" && !s.is("user_sig may be empty") {
		return nil, refusal{400, "USER_SIG"}
	}
	if !common.IsHexAddress(in.UserAddress) && !s.is("user_address not checked") {
		return nil, refusal{400, "USER_ADDRESS"}
	}
	var mint bool
	switch m := in.Intent; {
	case m.Method == "mint" && m.Type == "assemble":
		mint = true
	case (m.Method == "burn-permit" || m.Method == "burn") && m.Type == "disassemble":
	default:
		return nil, refusal{400, "METHOD"}
	}
	if mint && s.is("only burns") || !mint && s.is("only mints") {
		return nil, refusal{200, "NOT_SOLD"}
	}
	if s.is("wallets") && in.UserAddress != p.wallet {
		return nil, refusal{200, "WALLET"}
	}
	if s.is("own uuids") && !s.issued[in.UUID] {
		return nil, refusal{200, "UNKNOWN_UUID"}
	}
	unique := s.is("unique items", "items of their own", "items of their own, never given back")
	if unique {
		for i := range in.Intent.To {
			if in.Intent.To[i].Type == "NFT" {
				in.Intent.To[i].Type = "ERC20"
			}
		}
	}
	moves, tokens := in.Intent.From, in.Intent.To
	if !mint {
		moves, tokens = tokens, moves
	}
	items, err := s.sum(moves, "asset")
	if err != nil {
		return nil, err
	}
	paid, err := s.sum(tokens, "ERC20")
	if err != nil {
		return nil, err
	}
	var amount *big.Int
	for token, n := range paid {
		if amount != nil || token != plainToken {
			return nil, refusal{200, "TOKEN"}
		}
		amount = n
	}
	// The price, in tokens times 400.
	price := new(big.Int)
	for item, n := range items {
		each := map[string]int64{"item_gold": 4, "item_gem": 40}[item]
		if s.is("one more than the balance") {
			each = 400
		}
		if !mint && !s.is("one more than the balance") {
			each = map[string]int64{"item_gold": 5, "item_gem": 50}[item]
		}
		if each == 0 && !unique && !s.is("unknown items cost nothing") {
			return nil, refusal{200, "NOT_FOR_SALE"}
		}
		price.Add(price, new(big.Int).Mul(n, big.NewInt(each)))
	}
	if unique {
		price = new(big.Int).Mul(amount, big.NewInt(400)) // a token is an item
		for item, n := range items {
			have := p.balances[item]
			if have == nil || len(items) != 1 || n.Cmp(big.NewInt(1)) != 0 || amount.Cmp(n) != 0 || !mint && have.Sign() != 0 {
				return nil, refusal{200, "NOT_YOURS"}
			}
		}
	}
	want := new(big.Int).Mul(amount, big.NewInt(400))
	fair := price.Cmp(want) == 0
	switch {
	case s.is("rate is a minimum"):
		fair = mint && price.Cmp(want) >= 0 || !mint && price.Cmp(want) <= 0
	case s.is("rate by integer division"):
		fair = new(big.Int).Div(price, big.NewInt(400)).Cmp(amount) == 0
	case s.is("rate with 1% tolerance"):
		difference := new(big.Int).Abs(new(big.Int).Sub(price, want))
		fair = difference.Mul(difference, big.NewInt(100)).Cmp(want) <= 0
	}
	if !fair {
		return nil, refusal{200, "RATE"}
	}

	intent, _ := json.Marshal(in.Intent)
	request := string(intent)
	if old := s.orders[id]; old != nil {
		switch {
		case s.is("repeat of another player answered"):
			return old.answer, nil
		case s.is("repeat rejected"):
			return nil, refusal{200, "DUPLICATE"}
		case s.is("repeat after the end approved") && old.session == session && old.request == request:
			return s.signed(in, digest), nil
		case s.is("order replaced") && old.ended == "" && old.session == session:
		case s.is("ended uuid reused") && old.ended != "":
		case old.session != session || old.digest != in.Digest || old.request != request || old.ended != "":
			return nil, refusal{200, "UUID_USED"}
		default:
			return old.answer, nil
		}
	}
	if s.is("an open order blocks", "open order never released") && p.open != "" && p.open != id {
		if o := s.orders[p.open]; s.is("open order never released") || o != nil && o.ended == "" {
			return nil, refusal{200, "ORDER_OPEN"}
		}
	}
	if mint {
		for item, n := range items {
			have := p.balances[item]
			if have == nil {
				have = new(big.Int)
				p.balances[item] = have
			}
			short := have.Cmp(n) < 0
			switch {
			case s.is("one more than the balance"):
				short = new(big.Int).Add(have, big.NewInt(1)).Cmp(n) < 0
			case s.is("needs one more than the order"):
				short = have.Cmp(n) <= 0
			case s.is("short is signed anyway") && short:
				return s.signed(in, digest), refusal{200, "BALANCE"}
			}
			if short {
				return nil, refusal{200, "BALANCE"}
			}
		}
		for item, n := range items {
			p.balances[item].Sub(p.balances[item], n)
		}
	} else if s.is("burn pays at validate and result") {
		s.add(session, items, 1)
	}
	answer := s.signed(in, digest)
	s.orders[id] = &plainOrder{session: session, request: request, digest: in.Digest, mint: mint, moves: items, answer: answer}
	if s.is("an open order blocks", "open order never released") {
		p.open = id
	}
	if s.is("order expires in 2 s") {
		o := s.orders[id]
		time.AfterFunc(2*time.Second, func() { s.mu.Lock(); o.expired = true; s.mu.Unlock() })
	}
	if hmacErr != nil {
		return nil, hmacErr
	}
	return answer, nil
}

func (s *plainServer) add(session string, moves map[string]*big.Int, sign int64) {
	p := s.players[session]
	for id, n := range moves {
		if p.balances[id] == nil {
			p.balances[id] = new(big.Int)
		}
		p.balances[id].Add(p.balances[id], new(big.Int).Mul(n, big.NewInt(sign)))
	}
}

func (s *plainServer) signed(in plainValidate, digest []byte) map[string]any {
	hash := digest
	if s.is("signs the hash of the text") {
		hash = crypto.Keccak256([]byte(in.Digest))
	}
	sig, _ := crypto.Sign(hash, s.sign)
	sig[64] += 27
	if s.is("constant nonce") {
		sig = signWith(s.sign, hash, big.NewInt(0x5eed))
	}
	text := "0x" + hex.EncodeToString(sig)
	userSig := in.UserSig
	switch {
	case s.is("signature as base64"):
		text = "MEUCIQ" + text[2:40]
	case s.is("user_sig parsed as bytes"):
		userSig = "0x" + hex.EncodeToString(common.FromHex(userSig))
	}
	if s.is("snake case in the answer") {
		return map[string]any{"user_sig": userSig, "validator_sig": text}
	}
	return map[string]any{"userSig": userSig, "validatorSig": text}
}

func signWith(key *ecdsa.PrivateKey, hash []byte, k *big.Int) []byte {
	curve := crypto.S256()
	n := curve.Params().N
	x, y := curve.ScalarBaseMult(k.Bytes())
	r := new(big.Int).Mod(x, n)
	sum := new(big.Int).Mul(r, key.D)
	sum.Add(sum, new(big.Int).SetBytes(hash)).Mul(sum, new(big.Int).ModInverse(k, n)).Mod(sum, n)
	v := byte(y.Bit(0))
	if sum.Cmp(new(big.Int).Rsh(n, 1)) > 0 {
		sum.Sub(n, sum)
		v ^= 1
	}
	out := make([]byte, 65)
	r.FillBytes(out[:32])
	sum.FillBytes(out[32:64])
	out[64] = 27 + v
	return out
}

func (s *plainServer) result(r *http.Request, body []byte) error {
	if err := s.authentic(r, body); err != nil {
		return err
	}
	var in struct {
		UUID    string          `json:"uuid"`
		TxHash  string          `json:"tx_hash"`
		Receipt json.RawMessage `json:"receipt"`
		Intent  plainIntent     `json:"intent"`
	}
	if json.Unmarshal(body, &in) != nil || in.UUID == "" {
		return refusal{500, "INVALID_JSON"}
	}
	var receipt struct {
		Status *string `json:"status"`
	}
	json.Unmarshal(in.Receipt, &receipt)
	var strict struct {
		Type, Root, Status, CumulativeGasUsed, LogsBloom, TransactionHash, ContractAddress string
		GasUsed, EffectiveGasPrice, BlockHash, BlockNumber, TransactionIndex               string
		Logs                                                                               []struct {
			Address, Data, BlockNumber, TransactionHash, TransactionIndex, BlockHash, LogIndex string
			Topics                                                                             []string
			BlockTimestamp                                                                     json.RawMessage
			Removed                                                                            bool
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(in.Receipt))
	decoder.DisallowUnknownFields()
	strictErr := decoder.Decode(&strict)
	switch {
	case s.is("unknown fields rejected", "unknown fields of the receipt rejected") && strictErr != nil:
		return refusal{400, "INVALID_RECEIPT"}
	case s.is("blockTimestamp as text"):
		for _, l := range strict.Logs {
			if len(l.BlockTimestamp) > 0 && l.BlockTimestamp[0] != '"' {
				return refusal{400, "INVALID_LOG"}
			}
		}
	case s.is("first log's first topic") && (len(strict.Logs) == 0 || len(strict.Logs[0].Topics) == 0):
		panic("index out of range")
	case s.is("zero contract rejected") && strings.Trim(strict.ContractAddress, "0x") == "":
		return refusal{400, "CONTRACT"}
	case s.is("actual as an integer") && (in.Intent.Method == "mint"):
		var actual struct {
			Intent struct{ Actual *string }
		}
		json.Unmarshal(body, &actual)
		if actual.Intent.Actual != nil {
			if _, err := strconv.Atoi(*actual.Intent.Actual); err != nil {
				return refusal{400, "ACTUAL"}
			}
		}
	}
	var ok bool
	switch {
	case receipt.Status == nil:
		return refusal{500, "NO_STATUS"}
	case s.is("other statuses rejected") && *receipt.Status != "0x0" && *receipt.Status != "0x1":
		return refusal{400, "STATUS"}
	default:
		ok = *receipt.Status == "0x1"
	}
	if s.is("status never looked at") {
		ok = true
	}
	id := in.UUID
	if !s.is("uuid case") {
		id = strings.ToLower(id)
	}
	order := s.orders[id]
	if order == nil {
		return refusal{500, "UNKNOWN_ORDER"}
	}
	ended := "failed"
	if ok {
		ended = "ok"
	}
	if order.expired && s.is("order expires in 2 s") && order.ended == "" {
		order.ended = ended
		return nil
	}
	if order.ended != "" {
		switch {
		case s.is("failure then success takes again") && order.ended == "failed" && ok && order.mint:
			s.add(order.session, order.moves, -1)
			order.ended = ended
			return nil
		case s.is("a repeat is an error"):
			return refusal{500, "DUPLICATE"}
		case order.ended != ended:
			return refusal{409, "CONTRADICTION"}
		default:
			return nil
		}
	}
	if other := s.hashes[in.TxHash]; in.TxHash != "" && other != "" && other != id && !s.is("hash ends two orders") {
		return refusal{409, "HASH_USED"}
	}
	s.hashes[in.TxHash] = id
	order.ended = ended
	session, moves := order.session, order.moves
	if s.players[session] == nil {
		return refusal{500, "NO_PLAYER"}
	}
	back := map[string]*big.Int{}
	for item, n := range moves {
		n = new(big.Int).Set(n)
		switch {
		case s.is("a failed mint keeps 10%") && order.mint:
			n.Sub(n, new(big.Int).Div(n, big.NewInt(10)))
		case s.is("a burn pays 1% less") && !order.mint:
			n.Sub(n, new(big.Int).Div(n, big.NewInt(100)))
		}
		if s.is("gives back the wrong item") && order.mint {
			item = "item_ore"
		}
		back[item] = n
	}
	effect := func() {
		switch {
		case order.mint && !ok && !s.is("items of their own, never given back"):
			s.add(session, back, 1)
		case order.mint && ok && s.is("a mint takes again at its result"):
			s.add(session, back, -1)
		case !order.mint && ok:
			s.add(session, back, 1)
		case !order.mint && !ok && s.is("burn pays at validate and result"):
			s.add(session, back, -1)
		}
	}
	switch {
	case s.is("confirmed before it is stored"):
		s.queue = append(s.queue, time.AfterFunc(400*time.Millisecond, func() { s.mu.Lock(); effect(); s.mu.Unlock() }))
	case s.is("effect after 5 s"):
		time.AfterFunc(5*time.Second, func() { s.mu.Lock(); effect(); s.mu.Unlock() })
	case s.is("effect lost now and then") && len(s.orders)%3 == 0:
	case s.is("fails after the effect"):
		effect()
		if ok {
			order.ended = ""
		}
		return refusal{500, "LATE"}
	default:
		effect()
	}
	return nil
}
