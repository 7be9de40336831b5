package ramptest

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// frontView is the front page. It shows the setup, the orders, and the calls that led to
// no order.
type frontView struct {
	frame
	Setup     []setupCheck
	SetupSaid string // the setup in a few words, which is all that a phone shows at first
	SetupTone verdict.Tone
	Settings  string
	Query     string
	Filters   []filterView
	List      listView
	Any       bool
	Start     startView
}

type filterView struct {
	Value, Label string
	Count        int // how many match the search and the filter
	Current      bool
	Href         string
}

// listView is one page of a list.
type listView struct {
	Lines          []line
	Newer, Older   string // the addresses of the pages beside it; "" if there is none
	First, Last, N int    // which of how many match
}

// line is an order or a call in a list.
type line struct {
	ID, Href        string
	At, Title, Name string
	Verdict         verdictView
}

// startView is the form of a test order. It has the terms of the last initialize call,
// or sample terms.
type startView struct {
	Players                      []startPlayer // the players of orders so far
	Network                      ramp.Network
	Networks                     []ramp.Network
	Token, Material, Output      string
	MaterialAmount, OutputAmount string
	MintFeeBps                   int
	Like                         bool // the terms are those of the last initialize call
}

type startPlayer struct {
	UUID uuid.UUID // an order of the player
	Name string
}

// maxLines is how many lines a page of a list has.
const maxLines = 50

// frontPage shows the state of the setup and the orders of all players.
func (s *pages) frontPage(w http.ResponseWriter, r *http.Request) {
	s.frontView(w, r, http.StatusOK, nil)
}

func (s *pages) frontView(w http.ResponseWriter, r *http.Request, status int, p *problem) {
	q := r.URL.Query()
	show, page := q.Get("show"), max(1, number(q.Get("page")))
	v := &frontView{frame: frame{Title: "Orders", Live: true, Problem: p}, Setup: s.setup(), Settings: s.settings(), Query: q.Get("q")}
	v.SetupSaid, v.SetupTone = summary(v.Setup)
	v.Filters = []filterView{{Label: "All"}, {Value: "attention", Label: "Needs attention"}, {Value: "waiting", Label: "Waiting"}, {Value: "done", Label: "Done"}}
	address := func(show string, page int) string {
		to := url.Values{"q": {v.Query}, "show": {show}}
		if page > 1 {
			to.Set("page", strconv.Itoa(page))
		}
		return "/?" + to.Encode()
	}
	for i := range v.Filters {
		f := &v.Filters[i]
		f.Current, f.Href = f.Value == show, address(f.Value, 1)
	}
	var matching []*entry
	all, players := s.entries()
	v.Any = len(all) > 0
	found := s.finder(v.Query)
	for i := range all {
		e := &all[i]
		if !found(e) {
			continue
		}
		for i := range v.Filters {
			if f := &v.Filters[i]; e.isIn(f.Value) {
				f.Count++
				if f.Current {
					matching = append(matching, e)
				}
			}
		}
	}
	v.List.N = len(matching)
	v.List.First = min((page-1)*maxLines, len(matching))
	v.List.Last = min(v.List.First+maxLines, len(matching))
	for _, e := range matching[v.List.First:v.List.Last] {
		v.List.Lines = append(v.List.Lines, s.line(e))
	}
	if page > 1 {
		v.List.Newer = address(show, page-1)
	}
	if v.List.Last < len(matching) {
		v.List.Older = address(show, page+1)
	}
	v.List.First++
	v.Start = s.start(players)
	s.show(w, r, status, "front.html", v)
}

// number parses a number, and returns 0 if it is none.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// entry is an order, or a call that led to no order.
type entry struct {
	at      time.Time
	order   *Order // nil for a call
	call    *Event
	verdict verdict.Verdict
	player  string // the name of the player of an order
}

// entries are the entries of the list, which are kept until something happens.
type entries struct {
	mu      sync.Mutex
	turn    int // of the record
	list    []entry
	players []*Order // the newest order of each of the last players
	calls   []Event  // that led to no order, newest first
	looked  int      // the number of the last event among which they were looked for
}

// entries returns the orders, and the calls that led to none, newest first, and the newest
// order of each of the last players. The caller must not change them.
func (s *pages) entries() (list []entry, players []*Order) {
	l := &s.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn := s.record.turn(); l.list == nil || l.turn != turn {
		orders := s.orders.all()
		l.turn, l.list, l.players = turn, s.merge(orders, s.calls()), nil
		const most = 20
		seen := make(map[string]bool)
		for i, o := range orders {
			if len(seen) == most {
				break
			}
			again := i > 0 && o.Session.ID == orders[i-1].Session.ID // often, and cheaper than seen
			if !again && !seen[o.Session.ID] {
				seen[o.Session.ID] = true
				l.players = append(l.players, o)
			}
		}
	}
	return l.list, l.players
}

// calls returns the calls that led to no order, newest first. It looks only at events that
// it has not seen. The caller must hold the lock of the entries.
func (s *pages) calls() []Event {
	l := &s.listed
	newest, oldest := s.record.newest(), s.record.oldest()
	l.calls = append(s.record.newestFirst(l.looked, newest+1, math.MaxInt, func(e *Event) bool {
		return e.Kind == KindInitialize && e.isWrong() || e.Kind == KindValidate && (e.isWrong() || e.Tone == string(verdict.Wait))
	}), l.calls...)
	l.looked = newest
	l.calls = slices.DeleteFunc(l.calls, func(e Event) bool { return e.Number < oldest || s.orders.shown(e.UUID) != nil })
	slices.SortStableFunc(l.calls, func(a, b Event) int { return b.Time.Compare(a.Time) }) // by when they began
	return l.calls
}

// merge returns the entries of orders and calls, newest first, as both are.
func (s *pages) merge(orders []*Order, calls []Event) []entry {
	list := make([]entry, 0, len(orders)+len(calls))
	calls = slices.Clone(calls) // the next list reuses them
	var last *Order             // whose session was read
	var read reading
	for len(orders)+len(calls) > 0 {
		if len(calls) == 0 || len(orders) > 0 && !calls[0].Time.After(orders[0].placed) {
			o := orders[0]
			if last == nil || keyOf(o.Session) != keyOf(last.Session) {
				read, _ = s.orders.game.readings.of(o.Session)
				last = o
			}
			said := s.orders.said(o, read)
			list, orders = append(list, entry{at: o.placed, order: o, verdict: said.Verdict, player: said.name}), orders[1:]
		} else {
			e := &calls[0]
			list, calls = append(list, entry{at: e.Time, call: e, verdict: e.verdict()}), calls[1:]
		}
	}
	return list
}

// isIn reports whether a filter shows an entry.
func (e *entry) isIn(filter string) bool {
	switch filter {
	case "attention":
		return e.verdict.Attention
	case "waiting":
		return e.verdict.State == verdict.Waiting
	case "done":
		return e.verdict.State == verdict.Done
	default:
		return true
	}
}

// finder returns a function that reports whether a search finds an entry.
func (s *pages) finder(query string) func(*entry) bool {
	query = strings.ToLower(strings.TrimSpace(query))
	if query == "" {
		return func(*entry) bool { return true }
	}
	known := make(map[string]bool) // most entries have the same texts as others
	var lacks [5]string            // what the entry before had in each place, without the query
	has := func(texts ...string) bool {
		for i, text := range texts {
			if text == lacks[i] {
				continue
			}
			found, ok := known[text]
			if !ok {
				found = strings.Contains(strings.ToLower(text), query)
				known[text] = found
			}
			if found {
				return true
			}
			lacks[i] = text
		}
		return false
	}
	digits := []byte(strings.ReplaceAll(query, "-", ""))
	if len(digits) == 0 || strings.Trim(query, "0123456789abcdefx-") != "" { // no part of a UUID or of a hash
		digits = nil
	}
	// Whole bytes of the digits are found faster than the digits in a text. They begin at
	// the first or at the second digit.
	var first, second []byte
	if len(digits) > 1 && !bytes.ContainsRune(digits, 'x') {
		first, _ = hex.DecodeString(string(digits[:len(digits)/2*2]))
		second, _ = hex.DecodeString(string(digits[1 : 1+(len(digits)-1)/2*2]))
	}
	numbers := func(parts ...[]byte) bool {
		may := func(part []byte) bool { return bytes.Contains(part, first) || bytes.Contains(part, second) }
		if digits == nil || !slices.ContainsFunc(parts, may) {
			return false
		}
		text := make([]byte, 0, 2*(len("0x")+common.HashLength+16))
		for _, part := range parts {
			text = hex.AppendEncode(append(text, "0x"...), part)
		}
		return bytes.Contains(text, digits)
	}
	return func(e *entry) bool {
		said, state := e.verdict.Said, string(e.verdict.State)
		if o := e.order; o != nil {
			return has(said, state, e.player, o.Session.ID, o.title()) || numbers(o.UUID[:], o.TxHash[:])
		}
		return has(said, state, string(e.call.Kind), e.call.Session, e.call.Outcome) || numbers(e.call.UUID[:])
	}
}

// line returns an entry as a list shows it.
func (s *pages) line(e *entry) line {
	l := line{At: s.stamp(e.at), Verdict: s.verdictView(e.verdict)}
	if o := e.order; o != nil {
		l.Verdict = s.verdictView(s.orders.verdict(o)) // the next block may have moved on
		l.ID, l.Href, l.Title, l.Name = "order-"+o.UUID.String(), "/orders/"+o.UUID.String(), o.title(), s.orders.player(o)
	} else {
		l.ID, l.Href, l.Title, l.Name = fmt.Sprintf("call-%d", e.call.Number), fmt.Sprintf("/calls/%d", e.call.Number), e.call.title(), e.call.Session
	}
	return l
}

// title returns a title for an order.
func (o *Order) title() string {
	return o.trade().option + " " + count(o.token().Amount)
}

// start fills the form of a test order.
func (s *pages) start(players []*Order) startView {
	networks := s.config.networks()
	v := startView{Networks: networks, Network: networks[len(networks)-1],
		Token: "0x00000000000000000000000000000000000070c3", Material: "item_gold", Output: "item_gold", MaterialAmount: "100", OutputAmount: "100"}
	if terms, ok := s.orders.latest(); ok {
		v.Like, v.Network, v.Token, v.MintFeeBps = true, terms.Network, terms.Token, terms.MintFeeBps
	}
	for _, o := range players {
		v.Players = append(v.Players, startPlayer{o.UUID, s.orders.player(o) + " (" + o.Session.ID + ")"})
	}
	return v
}

// startForm issues a UUID, as for an initialize call, and opens the exchange page, as
// the game does.
func (s *pages) startForm(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.failure(w, r, http.StatusBadRequest, "The form did not come whole.")
		return
	}
	q := r.PostForm
	fail := func(said string) {
		s.frontView(w, r, http.StatusUnprocessableEntity, &problem{Said: said})
	}
	if session := s.session(r, q); session.ID == "" || session.Token.Reveal() == "" {
		fail("A test order needs a player: choose the player of an earlier order, or enter a session ID and an access token of the game.")
		return
	}
	terms, known := s.orders.latest()
	if q.Get("terms") == "own" || !known {
		item := func(name string) (*[]askedItem, bool) {
			plain := false
			amount := strings.TrimSpace(q.Get(name + "Amount"))
			_, err := ramp.ParseAmount(amount)
			return &[]askedItem{{ID: strings.TrimSpace(q.Get(name)), Amount: []byte(amount), IconURL: "https://example.com/icon.png", IsNonFungible: &plain}}, err == nil
		}
		materials, ok := item("material")
		outputs, both := item("output")
		fee, err := strconv.Atoi(cmp.Or(q.Get("fee"), "0"))
		asked := askedIntent{Network: ramp.Network(q.Get("network")), ProjectID: cmp.Or(s.config.ProjectID, "test"), Token: strings.TrimSpace(q.Get("token")),
			MintFeeBps: []byte(strconv.Itoa(fee)), BurnFeeBps: []byte("0"), MintMethod: ramp.MethodMint, BurnMethod: ramp.MethodBurnPermit,
			Materials: materials, Outputs: outputs}
		if !ok || !both || err != nil || s.orders.chains[asked.Network] == nil {
			fail("The amounts must be decimal numbers above 0, the fee must be a whole number, and the network must be one of this service.")
			return
		}
		var wrong string
		if terms, wrong = asked.check(); wrong != "" {
			fail("The terms cannot be used: " + wrong + ".")
			return
		}
	}
	to := fieldsOf(q)
	to.Set("uuid", s.orders.issue(terms, s.clock.now()).String())
	to.Set("network", string(terms.Network))
	http.Redirect(w, r, "/exchange?"+to.Encode(), http.StatusSeeOther) // as the game does
}
