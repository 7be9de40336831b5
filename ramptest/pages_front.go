package ramptest

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// frontView is the front page. It shows the setup and the orders.
type frontView struct {
	frame
	Setup     []setupCheck
	SetupSaid string // the setup in a few words, which is all that a phone shows at first
	SetupTone tone
	Settings  string
	Query     string
	Filters   []filterView
	Orders    []orderLine
	More      int // how many more orders match
	Any       bool
	Start     startView
}

type filterView struct {
	Value, Label string
	Current      bool
	Href         string
}

// orderLine is an order in a list.
type orderLine struct {
	UUID            uuid.UUID
	At, Title, Name string
	Outcome         outcomeView
	State           State
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

const maxLines = 50

// frontPage shows the state of the setup and the orders of all players.
func (s *pages) frontPage(w http.ResponseWriter, r *http.Request) {
	s.frontView(w, r, http.StatusOK, nil)
}

func (s *pages) frontView(w http.ResponseWriter, r *http.Request, status int, p *problem) {
	q := r.URL.Query()
	show := q.Get("show")
	v := &frontView{frame: frame{Title: "Orders", Live: true, Problem: p}, Setup: s.setup(), Settings: s.settings(), Query: q.Get("q")}
	v.SetupSaid, v.SetupTone = summary(v.Setup)
	for _, f := range []filterView{{Label: "All"}, {Value: "attention", Label: "Needs attention"}, {Value: "waiting", Label: "Waiting"}, {Value: "done", Label: "Done"}} {
		f.Current = f.Value == show
		f.Href = "/?" + url.Values{"q": {v.Query}, "show": {f.Value}}.Encode()
		v.Filters = append(v.Filters, f)
	}
	all := s.orders.all()
	v.Any = len(all) > 0
	for _, o := range all {
		if full := len(v.Orders) == maxLines; full && show == "" && v.Query == "" {
			v.More++
			continue
		}
		line := s.line(o)
		if !line.matches(show, v.Query, o) {
			continue
		}
		if len(v.Orders) == maxLines {
			v.More++
			continue
		}
		v.Orders = append(v.Orders, line)
	}
	v.Start = s.start(all)
	s.show(w, r, status, "front.html", v)
}

// line returns an order as a list shows it.
func (s *pages) line(o *Order) orderLine {
	return orderLine{UUID: o.UUID, At: o.placed.Format(clockTime), Title: o.title(), Name: s.orders.player(o),
		Outcome: s.orders.happened(o, s.studio.audit.account(o.UUID)), State: o.delivery.now()}
}

// title returns a title for an order.
func (o *Order) title() string {
	verb := "Mint "
	if o.Request.Intent.Type == ramp.Disassemble {
		verb = "Burn "
	}
	if amount := o.token().Amount.String(); amount != "1" {
		return verb + amount + " tokens"
	}
	return verb + "1 token"
}

// matches reports whether a line matches the search and the filter.
func (l *orderLine) matches(show, query string, o *Order) bool {
	t := l.Outcome.Tone
	switch show {
	case "attention":
		if t != bad && t != unknown {
			return false
		}
	case "waiting":
		if t != waiting {
			return false
		}
	case "done":
		if t != good {
			return false
		}
	}
	text := strings.ToLower(strings.Join([]string{o.UUID.String(), l.Name, o.Session.ID, o.TxHash.Hex(), l.Title, l.Outcome.Said}, "\x00"))
	return strings.Contains(text, strings.ToLower(strings.TrimSpace(query)))
}

// start fills the form of a test order.
func (s *pages) start(all []*Order) startView {
	networks := s.config.networks()
	v := startView{Networks: networks, Network: networks[len(networks)-1],
		Token: "0x00000000000000000000000000000000000070c3", Material: "item_gold", Output: "item_gold", MaterialAmount: "100", OutputAmount: "100"}
	if terms, ok := s.orders.latest(); ok {
		v.Like, v.Network, v.Token, v.MintFeeBps = true, terms.Network, terms.Token, terms.MintFeeBps
	}
	seen := make(map[[32]byte]bool)
	for _, o := range all {
		if key := readingKey(o.Session); !seen[key] && len(v.Players) < 20 {
			seen[key] = true
			v.Players = append(v.Players, startPlayer{o.UUID, s.orders.player(o) + " (" + o.Session.ID + ")"})
		}
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
