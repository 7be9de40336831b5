package record

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// Point is an open point of the interface, and what the calls show about it.
type Point struct {
	Name    string // the beginning of its row in docs/interface.md
	Seen    string // what was seen; empty if nothing was
	Setting string // what follows for a game with ramp-go
	Missing string // what would answer it, if nothing was seen
}

// point says how calls answer an open point.
type point struct {
	name    string
	see     func(*history) (seen, setting string)
	missing string // what would answer it, or why no proxy can see it
}

// settled is the setting of a point that needs none.
const settled = "nothing to set"

var points = []point{
	{"how the HMAC key becomes bytes", (*history).keyReading,
		"a validate or result call, and the console's key in -key-file"},
	{"whether items are the price of one token or of an order", (*history).pricePer,
		"an order for another number of tokens than one, whose initialize call passes here too"},
	{"whether `to.amount` of a mint", (*history).grossOrNet, "a mint with a fee"},
	{"whether a number of tokens counts tokens", nil,
		"compare the number on the page with the one in the file of the validate call"},
	{"the form of an address", nil, "the files of the validate calls have the wallets"},
	{"when a mint takes", nil, "the game decides it, not the service"},
	{"the form of a `uuid`", (*history).uuidForm, "an initialize, validate or result call"},
	{"the `Content-Type` of a result", (*history).resultType, "a result"},
	{"what the digest covers", (*history).userSignature, "a validate call"},
	{"whether the signed text is the digest", (*history).signedText,
		"a success of an order that was approved here"},
	{"the form of v, and whether s is low", (*history).formOfV,
		"a success of an order that was approved here"},
	{"when a token is `NFT`", (*history).tokenTypes, "a validate call"},
	{"which one of several swords", nil, "the game decides it, not the service"},
	{"the options of `target_candidate`", (*history).options, "a validate call"},
	{"`burn` as the method of a burn", (*history).burnMethod, "a burn"},
	{"whether a validate call is repeated", (*history).validateRepeated, "a validate call"},
	{"in which order validate's checks", nil, "the game decides it, not the service"},
	{"the HTTP status of a rejected order", (*history).rejected, "an order that the game rejects"},
	{"the values of `errorCode`", nil, "the page of the service shows what it makes of them"},
	{"the token of a result", (*history).resultToken, "a result of an order that was validated here"},
	{"a result in another session", (*history).resultSession, "a result of an order that was validated here"},
	{"a result whose `uuid` or `receipt.status`", (*history).unreadableResult, "a result"},
	{"after which answer a result is not repeated", (*history).repeatedAfter, "a result, and an hour"},
	{"how often a result is repeated", (*history).attempts,
		"a result that the game answers with HTTP 500 for 13 hours"},
	{"whether `to.amount` of a burn's result is net", (*history).burnResult,
		"a result of a burn that was validated here"},
	{"how a transaction belongs to an order", (*history).transactions, "two results of different orders"},
	{"what a result says after its block was replaced", (*history).replaced,
		"a result that comes again with another block"},
	{"the HTTP status of a failed initialize call", (*history).failureStatus,
		"an initialize call that fails, such as one of another project"},
	{"what happens to a UUID after 5 minutes", (*history).expired,
		"a page that a player leaves open for longer than 5 minutes before the order"},
	{"how long the service waits", nil, "the service knows; a call that is answered late may show it"},
	{"the addresses of the service", nil, "the service says them"},
	{"who gets the fee of a mint", nil, "the transactions of mints show it; the service knows the bounds"},
	{"the largest body", (*history).largest, "a call"},
	{"headers that occur twice, compressed bodies", (*history).encodings, "a call"},
	{"whether a browser calls assets", (*history).browsers, "an assets call"},
	{"rate limits", (*history).limits, "an initialize call"},
}

// Points returns what the calls show about each open point.
func (h *history) Points() (list []Point) {
	for _, p := range points {
		found := Point{Name: p.name, Missing: p.missing}
		if p.see != nil {
			if found.Seen, found.Setting = p.see(h); found.Seen != "" {
				found.Missing = ""
			}
		}
		list = append(list, found)
	}
	return list
}

func (h *history) keyReading() (seen, setting string) {
	counts, none := map[string]int{}, 0
	for _, c := range h.calls {
		switch {
		case !c.signed || c.kind == initialize || c.kind == elsewhere:
		case c.reading == "":
			none++
		default:
			counts[c.reading]++
		}
	}
	switch names := slices.Sorted(maps.Keys(counts)); {
	case !h.keys || len(names)+none == 0:
		return "", ""
	case len(names) == 0:
		return fmt.Sprintf("no reading of the key made the HMAC of any of %d calls", none),
			"compare the key with the console's"
	default:
		seen = fmt.Sprintf("the HMAC is made with %s", tally(counts))
		if none > 0 {
			seen += fmt.Sprintf("; of %d calls no reading made it", none)
		}
		return seen, "read the key with " + strings.Join(names, " and ")
	}
}

func (h *history) pricePer() (seen, setting string) {
	token, whole, neither := 0, 0, 0
	for _, o := range h.orders {
		p, ok := o.price()
		switch {
		case !ok || p.perOrder && p.perToken: // of one token
		case p.perToken:
			token++
		case p.perOrder:
			whole++
		default:
			neither++
		}
	}
	var parts, settings []string
	if token > 0 {
		parts = append(parts, fmt.Sprintf("of one token in %d orders", token))
		settings = append(settings, "leave TermsConfig.PerOrder false")
	}
	if whole > 0 {
		parts = append(parts, fmt.Sprintf("of a whole order in %d orders", whole))
		settings = append(settings, "set TermsConfig.PerOrder")
	}
	if neither > 0 {
		parts = append(parts, fmt.Sprintf("neither in %d orders", neither))
		settings = append(settings, "compare validate with initialize in the files: no setting fits")
	}
	return strings.Join(parts, ", "), strings.Join(settings, "; ")
}

func (h *history) grossOrNet() (seen, setting string) {
	before, after := 0, 0
	for _, o := range h.orders {
		i := o.intent()
		if i == nil || i.Method != ramp.MethodMint || len(i.To) == 0 {
			continue
		}
		p, known := o.price()
		switch fee := o.fee(); {
		case fee.Sign() == 0:
		case known && p.perToken && !p.perOrder && p.gross, o.actual(-1):
			before++
		case known && p.perToken && !p.perOrder && p.net, o.actual(0):
			after++
		}
	}
	switch {
	case before+after == 0:
		return "", ""
	case after == 0:
		return fmt.Sprintf("before the fee in %d mints", before), settled
	default:
		seen = fmt.Sprintf("after the fee in %d mints", after)
		if before > 0 {
			seen += fmt.Sprintf(", before it in %d", before)
		}
		return seen, "set TermsConfig.AnyTokens (or Any), check the number in a Policy, " +
			"and set MintFeeBps to 0 in rampproof.Config"
	}
}

// fee returns the fee of an order in basis points: that of its initialize call or of a result.
func (o *order) fee() *big.Rat {
	if o.initialize != nil && o.initialize.offer != nil {
		return o.initialize.offer.Fee.Rat()
	}
	for _, c := range o.results {
		if c.result != nil {
			if rate, ok := new(big.Rat).SetString(c.result.Intent.FeeRate.String()); ok {
				return rate
			}
		}
	}
	return new(big.Rat)
}

// actual reports whether a result of the order says that its net number of tokens compares so
// with that of its intent.
func (o *order) actual(compares int) bool {
	for _, c := range o.results {
		if c.result == nil || len(c.result.Intent.To) == 0 {
			continue
		}
		if net, err := ramp.ParseAmount(c.result.Intent.Actual); err == nil {
			return net.Cmp(c.result.Intent.To[0].Amount) == compares
		}
	}
	return false
}

func (h *history) uuidForm() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.calls {
		if c.uuid == "" {
			continue
		}
		form := "another form"
		digits := strings.ReplaceAll(c.uuid, "-", "")
		switch plain := len(digits) == 32 && strings.Trim(strings.ToLower(digits),
			"0123456789abcdef") == ""; {
		case plain && len(c.uuid) == 36:
			form = "36 characters with hyphens"
		case plain && len(c.uuid) == 32:
			form = "32 digits without hyphens"
		}
		if c.uuid != strings.ToLower(c.uuid) {
			form += " in upper case"
		}
		counts[fmt.Sprintf("%s in %s", form, c.kind)]++
	}
	return tally(counts), settled + ": every notation is read"
}

func (h *history) userSignature() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.of(validate) {
		if c.validate != nil {
			counts["user_sig "+signs(c.validate.UserSig, c.validate.Digest,
				common.HexToAddress(c.validate.UserAddress))]++
		}
	}
	return tally(counts), "a Policy can compute the digest of a contract that you know"
}

// signs says what a signature of an address signs, if that is the digest or its text.
func signs(text string, digest ramp.Digest, by common.Address) string {
	if !strings.HasPrefix(text, "0x") {
		text = "0x" + text
	}
	s, err := ramp.ParseSignature(text)
	if err != nil {
		return fmt.Sprintf("has %d characters, which are no signature of 65 bytes", len(text))
	}
	if s[64] < 27 {
		s[64] += 27
	}
	personal := crypto.Keccak256([]byte("\x19Ethereum Signed Message:\n32"), digest[:])
	for what, hash := range map[string]ramp.Digest{
		"signs the digest": digest, "signs the digest as a personal message (EIP-191)": ramp.Digest(personal),
	} {
		if signer, err := ramp.Recover(hash, s); err == nil && signer == by {
			return what
		}
	}
	return "signs neither the digest nor a personal message of it"
}

// accepted returns the approvals of orders that succeeded.
func (h *history) accepted() (list []*call) {
	for _, o := range h.orders {
		for _, c := range o.validates {
			if c.approval != nil && c.validate != nil && o.succeeded() {
				list = append(list, c)
				break
			}
		}
	}
	return list
}

func (h *history) signedText() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.accepted() {
		if _, err := ramp.Recover(c.validate.Digest, c.approval.ValidatorSig); err == nil {
			counts["orders succeeded whose validatorSig is a signature"]++
		}
	}
	if len(counts) == 0 {
		return "", ""
	}
	return tally(counts) +
			". Each recovers some address from the digest itself; that it is yours is checked by Signer",
		settled
}

func (h *history) formOfV() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.accepted() {
		counts[fmt.Sprintf("v of %d in a validatorSig of an order that succeeded",
			c.approval.ValidatorSig[64])]++
	}
	if len(counts) == 0 {
		return "", ""
	}
	for _, c := range h.of(validate) {
		if c.validate == nil || len(c.validate.UserSig) < 130 {
			continue
		}
		counts[fmt.Sprintf("v of 0x%s in a user_sig, %s",
			strings.ToLower(c.validate.UserSig[len(c.validate.UserSig)-2:]),
			letters(c.validate.UserSig))]++
	}
	return tally(counts), settled
}

// letters says which case hex digits have.
func letters(hex string) string {
	digits := strings.TrimPrefix(hex, "0x")
	switch digits {
	case strings.ToLower(digits):
		return "lower case"
	case strings.ToUpper(digits):
		return "upper case"
	}
	return "mixed case"
}

func (h *history) tokenTypes() (seen, setting string) {
	counts := map[string]int{}
	nft := false
	for _, o := range h.orders {
		i := o.intent()
		if i == nil {
			continue
		}
		side := i.To
		if i.Method != ramp.MethodMint {
			side = i.From
		}
		items := "unknown items"
		if o.initialize != nil && o.initialize.offer != nil {
			items = "fungible items"
			unique := func(item ramp.Item) bool { return item.IsNonFungible }
			if slices.ContainsFunc(o.initialize.offer.Materials,
				unique) || slices.ContainsFunc(o.initialize.offer.Outputs, unique) {
				items = "a non-fungible item"
			}
		}
		for _, a := range side {
			nft = nft || a.Type == ramp.TypeNFT && items == "fungible items"
			counts[fmt.Sprintf("%s with %s", a.Type, items)]++
		}
	}
	if nft {
		return tally(counts), "set TermsConfig.Any, and check the token in a Policy"
	}
	return tally(counts), settled
}

func (h *history) options() (seen, setting string) {
	counts := map[string]int{}
	setting = settled
	for _, c := range h.of(validate) {
		if c.validate == nil {
			continue
		}
		switch text := strings.Join(strings.Fields(string(c.validate.Intent.TargetCandidate)), ""); text {
		case "", "{}", "null":
			counts["without options"]++
		default:
			counts["with options"]++
			setting = "look at them in the files; a Policy can reject them"
		}
	}
	return tally(counts), setting
}

func (h *history) burnMethod() (seen, setting string) {
	counts := map[string]int{}
	for _, o := range h.orders {
		if i := o.intent(); i != nil && i.Type == ramp.Disassemble {
			counts[string(i.Method)]++
		}
	}
	return tally(counts), settled + ": both are accepted"
}

func (h *history) validateRepeated() (seen, setting string) {
	once, more := 0, 0
	for _, o := range h.orders {
		switch len(o.validates) {
		case 0:
		case 1:
			once++
		default:
			more++
		}
	}
	if once+more == 0 {
		return "", ""
	}
	return fmt.Sprintf("repeated for %d of %d orders", more, once+more), settled + ": a repeat moves nothing"
}

func (h *history) rejected() (seen, setting string) {
	counts := map[string]int{}
	for _, o := range h.orders {
		for n, c := range o.validates {
			if c.status != 0 && !c.accepted {
				again := "not repeated"
				if n+1 < len(o.validates) {
					again = "repeated"
				}
				counts[fmt.Sprintf("HTTP %d, %s", c.status, again)]++
			}
		}
	}
	return tally(counts), "if the page shows the player the wrong thing, try HandlerConfig.RejectStatus"
}

func (h *history) resultToken() (seen, setting string) {
	return h.compareResults(func(first, c *call) string {
		switch c.token {
		case "":
			return "none"
		case first.token:
			return "that of validate"
		}
		return "another one than validate's"
	}), settled + ": Handler does not ask it"
}

func (h *history) resultSession() (seen, setting string) {
	seen = h.compareResults(func(first, c *call) string {
		switch {
		case c.session != first.session:
			return "another session than validate's"
		case c.result != nil && c.result.SessionID != c.session:
			return "another session_id than X-Dapp-SessionID"
		}
		return "the session of validate"
	})
	if strings.Contains(seen, "another") {
		return seen, "Handler answers such a result with 500: report it"
	}
	return seen, settled
}

// compareResults compares each result with the first validate call of its order.
func (h *history) compareResults(says func(first, result *call) string) string {
	counts := map[string]int{}
	for _, o := range h.orders {
		first := o.first()
		for _, c := range o.results {
			if first != nil {
				counts[says(first, c)]++
			}
		}
	}
	return tally(counts)
}

func (h *history) unreadableResult() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.of(result) {
		switch {
		case c.result == nil:
			counts["results without a uuid or a status that can be read"]++
		default:
			counts["results with both"]++
		}
	}
	return tally(counts), settled
}

// longestPause is the longest wait between two deliveries of a result (interface 8), and one
// minute.
const longestPause = 61 * time.Minute

func (h *history) repeatedAfter() (seen, setting string) {
	type answer struct {
		status int
		again  bool
	}
	counts := map[answer]int{}
	for _, o := range h.orders {
		for n, c := range o.results {
			last := n+1 == len(o.results)
			if !last || h.now.Sub(c.ended) > longestPause {
				counts[answer{c.status, !last}]++
			}
		}
	}
	setting = settled + ": Handler answers a result with 200 or 500"
	named := map[string]int{}
	for a, n := range counts {
		text := fmt.Sprintf("HTTP %d", a.status)
		if a.status == 0 {
			text = "no answer"
		}
		if a.again {
			named["repeated after "+text] += n
		} else {
			named["not repeated after "+text] += n
		}
		if a.status == http.StatusInternalServerError && !a.again {
			setting = "a result is lost after 500, unless it was the last repeat: see how often a result " +
				"is repeated"
		}
	}
	return tally(named), setting
}

func (h *history) resultType() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.calls {
		if c.kind == result {
			counts[cmp.Or(c.header.Get("Content-Type"), "none")]++
		}
	}
	return tally(counts), "nothing to set, unless something in front of the game decides by it"
}

func (h *history) attempts() (seen, setting string) {
	counts := map[string]int{}
	for _, o := range h.orders {
		if len(o.results) < 2 {
			continue
		}
		last := o.results[len(o.results)-1]
		over := h.now.Sub(last.ended) > longestPause
		refused := func(c *call) bool { return c.status == 0 || c.status == http.StatusInternalServerError }
		if over && !slices.ContainsFunc(o.results, func(c *call) bool { return !refused(c) }) {
			counts[fmt.Sprintf("%d repeats, after %s", len(o.results)-1, pauses(o.results))]++
		}
	}
	return tally(counts), settled
}

// pauses lists the waits between calls, in minutes.
func pauses(calls []*call) string {
	var parts []string
	for n := 1; n < len(calls); {
		wait, times := minutes(calls, n), 1
		for n++; n < len(calls) && minutes(calls, n) == wait; n++ {
			times++
		}
		parts = append(parts, fmt.Sprintf("%d times %d minutes", times, wait))
	}
	return strings.Join(parts, ", ")
}

func minutes(calls []*call, n int) int {
	return int(calls[n].at.Sub(calls[n-1].ended).Round(time.Minute) / time.Minute)
}

func (h *history) burnResult() (seen, setting string) {
	counts := map[string]int{}
	setting = settled
	for _, o := range h.orders {
		i := o.intent()
		if i == nil || i.Type != ramp.Disassemble {
			continue
		}
		for _, c := range o.results {
			switch {
			case c.result == nil:
			case sameAmounts(c.result.Intent.To, i.To) && sameAmounts(c.result.Intent.From, i.From):
				counts["the amounts of validate"]++
			default:
				counts["other amounts than validate's"]++
				setting = "compare the files: Handler answers 500 if the assets differ"
			}
		}
	}
	return tally(counts), setting
}

func sameAmounts(a, b []ramp.IntentAsset) bool {
	return slices.EqualFunc(a, b, func(x, y ramp.IntentAsset) bool {
		return strings.EqualFold(x.ID, y.ID) && x.Amount == y.Amount
	})
}

func (h *history) transactions() (seen, setting string) {
	orders := map[string]map[*order]bool{}
	for _, o := range h.orders {
		for _, c := range o.results {
			if c.result != nil && c.result.TxHash != "" {
				at := strings.ToLower(c.result.TxHash)
				if orders[at] == nil {
					orders[at] = map[*order]bool{}
				}
				orders[at][o] = true
			}
		}
	}
	shared := 0
	for _, of := range orders {
		if len(of) > 1 {
			shared++
		}
	}
	switch {
	case len(orders) < 2 && shared == 0:
		return "", ""
	case shared > 0:
		return fmt.Sprintf("%d of %d transactions are named for several orders", shared, len(orders)),
			"one transaction ends one order here: report it"
	}
	return fmt.Sprintf("each of %d transactions is named for one order", len(orders)), settled
}

func (h *history) replaced() (seen, setting string) {
	changed := 0
	for _, o := range h.orders {
		blocks := map[string]bool{}
		for _, c := range o.results {
			if c.result != nil {
				blocks[c.result.Receipt.BlockHash.Hex()] = true
			}
		}
		if len(blocks) > 1 {
			changed++
		}
	}
	if changed == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d orders got results that name different blocks", changed),
		"set HandlerConfig.Confirm"
}

func (h *history) failureStatus() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.of(initialize) {
		if c.status != 0 && !c.accepted {
			counts[fmt.Sprintf("HTTP %d with code %d", c.status, c.envelope)]++
		}
	}
	return tally(counts), settled + ": the body decides"
}

func (h *history) expired() (seen, setting string) {
	late, unused := 0, 0
	for _, o := range h.orders {
		switch {
		case o.initialize == nil || !o.initialize.accepted:
		case o.first() != nil && o.first().at.Sub(o.initialize.ended) > ramp.UUIDValidity:
			late++
		case o.first() == nil && h.now.Sub(o.initialize.ended) > ramp.UUIDValidity:
			unused++
		}
	}
	switch {
	case late > 0:
		return fmt.Sprintf("%d orders were validated later than 5 minutes after initialize", late), settled
	case unused > 0:
		return fmt.Sprintf("none of %d UUIDs older than 5 minutes was used afterwards", unused), settled
	}
	return "", ""
}

func (h *history) largest() (seen, setting string) {
	var largest int64
	for _, c := range h.calls {
		largest = max(largest, c.size)
	}
	switch {
	case largest == 0:
		return "", ""
	case largest > maxBody:
		return fmt.Sprintf("%d bytes", largest), "raise HandlerConfig.MaxBody"
	}
	return fmt.Sprintf("%d bytes", largest), settled
}

func (h *history) encodings() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.calls {
		twice := false
		for _, values := range c.header {
			twice = twice || len(values) > 1
		}
		encoding := c.header.Get("Content-Encoding")
		switch {
		case twice:
			counts["a header that occurs twice"]++
		case encoding != "":
			counts["a body with a Content-Encoding"]++
		case len(c.transfer) > 0:
			counts["a body in chunks"]++
		default:
			counts["each header once, no compression"]++
		}
	}
	setting = settled
	if counts["a body with a Content-Encoding"] > 0 {
		setting = "the handler rejects it: report it"
	}
	return tally(counts), setting
}

func (h *history) browsers() (seen, setting string) {
	counts := map[string]int{}
	for _, c := range h.calls {
		switch {
		case c.kind == preflight,
			c.kind == assets && (c.header.Get("Origin") != "" || c.header.Get("Sec-Fetch-Mode") != ""):
			counts["by a browser"]++
		case c.kind == assets:
			counts["without the headers of a browser"]++
		}
	}
	if counts["by a browser"] > 0 {
		return tally(counts), "put middleware for CORS before the handler"
	}
	return tally(counts), settled
}

func (h *history) limits() (seen, setting string) {
	limited, calls := 0, h.of(initialize)
	for _, c := range calls {
		if c.status == http.StatusTooManyRequests {
			limited++
		}
	}
	if len(calls) == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d of %d initialize calls got HTTP 429", limited, len(calls)), settled
}

// tally lists what was counted: "a (3 times), b (once)".
func tally(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		times := fmt.Sprintf("%d times", counts[what])
		if counts[what] == 1 {
			times = "once"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", what, times))
	}
	return strings.Join(parts, ", ")
}
