package pages

import (
	"cmp"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
)

// exchangeView is the exchange view (interface 2.1): what may be ordered.
type exchangeView struct {
	frame
	Reading  readingView
	Terms    terms
	Form     form
	Timeline timelineView
}

// terms are the terms of an initialize call, with the totals for an amount.
type terms struct {
	Materials, Outputs []termItem
	Fee                string
	Expires            string
	PerToken           bool
}

type termItem struct {
	ID, Each, Total string
	PerToken        bool
}

type form struct {
	Fields      url.Values // the hidden fields
	Chosen      url.Values // what the player has chosen
	Amount      string
	WrongAmount string // what is wrong with Amount
	Keep        string // the share of a mint that remains after the fee, as a decimal
	Received    string
}

// option is a fault that can be chosen, in the form that ParseFault reads; "" is none.
type option struct {
	Type, Name, Value, Label, Hint string
	Checked                        bool
}

// One returns one of several options of which the player chooses one.
func (f form) One(name, value, label, hint string) option {
	return option{"radio", name, value, label, hint, f.Chosen.Get(name) == value}
}

// Any returns an option that can be combined with all others.
func (f form) Any(value, label, hint string) option {
	return option{"checkbox", "fault", value, label, hint, slices.Contains(f.Chosen["fault"], value)}
}

// chosenFaults returns the faults that are chosen in a form.
func chosenFaults(q url.Values) []string {
	all := slices.Concat(q["fault"], q["chain"], q["result"])
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// session is the session of a page. It has no token if the service knows it.
type session struct {
	id, token string
	trusted   bool // somebody who may act for all players has chosen it
}

// known reports whether the session can be used.
func (s session) known() bool { return s.id != "" && (s.token != "" || s.trusted) }

// session returns the session of a page: that of its address (interface 2.1), or, for
// those who may act for all players, that of an order. The latter keeps tokens out of
// the pages' own links.
func (s *site) session(r *http.Request, q url.Values) session {
	if o := s.orderOf(q.Get("player")); o != nil && s.guard.Operates(r) {
		return session{id: o.SessionID, trusted: true}
	}
	return session{id: q.Get("sessionId"), token: q.Get("accessToken")}
}

// fieldsOf returns the hidden fields of a form: the session and the named fields.
func fieldsOf(q url.Values, names ...string) url.Values {
	fields := url.Values{}
	for _, name := range append(names, "player", "sessionId", "accessToken") {
		if q.Has(name) {
			fields.Set(name, q.Get(name))
		}
	}
	return fields
}

// exchangePage is the exchange view (interface 2.1).
func (s *site) exchangePage(w http.ResponseWriter, r *http.Request) {
	if o := s.orderOf(r.URL.Query().Get("uuid")); o != nil {
		toOrder(w, r, o.UUID)
		return
	}
	s.exchangeView(w, r, r.URL.Query(), nil, "")
}

const fromGame = "Open the exchange page from your game again: it asks for a new UUID each time."

// exchangeView shows what may be ordered, or why nothing may. wrongAmount says what is
// wrong with the amount.
func (s *site) exchangeView(w http.ResponseWriter, r *http.Request, q url.Values, p *problem, wrongAmount string) {
	session := s.session(r, q)
	home := link{"/", "All orders, and start a test order"}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil || !session.known() {
		s.failure(w, r, http.StatusBadRequest, "uuid, accessToken, sessionId and network are required (2.1).", home)
		return
	}
	asked, err := s.desk.Terms(r.Context(), id)
	switch code, _ := codeOf(err); {
	case code == control.CodeExpired:
		p := &problem{Said: "The UUID has expired: it was valid for 5 minutes. " + fromGame, Links: []link{home}}
		if s.guard.Operates(r) {
			p.Again = fieldsOf(q, "uuid", "network", "amount", "do", "chain", "result")
			p.Again["fault"] = q["fault"]
		}
		s.show(w, r, http.StatusGone, "failure.html", &frame{Title: "Expired UUID", Network: ramp.Network(q.Get("network")), Problem: p})
		return
	case err != nil:
		s.failure(w, r, http.StatusNotFound, "The service knows no such UUID. It may have been restarted. "+fromGame, home)
		return
	}
	if network := ramp.Network(q.Get("network")); network != asked.Network {
		s.failure(w, r, http.StatusBadRequest, "The network is not that of the initialize call, which is "+string(asked.Network)+".", home)
		return
	}
	v := &exchangeView{frame: frame{Title: "Exchange · " + shortUUID(id), Network: asked.Network}, Timeline: s.timeline(id, 0)}
	fields := fieldsOf(q, "uuid", "network")
	v.Form = form{Fields: fields, Chosen: q, Amount: cmp.Or(q.Get("amount"), "1"), WrongAmount: wrongAmount}
	tokens, err := ramp.ParseAmount(strings.TrimSpace(v.Form.Amount))
	if err != nil || tokens.Sign() <= 0 {
		tokens = ramp.NewAmount(1)
	}
	v.Terms = s.priced(&asked, tokens)
	keep := big.NewRat(10_000-int64(asked.MintFeeBps), 10_000)
	v.Form.Keep = books.Decimal(keep)
	v.Form.Received = books.Decimal(new(big.Rat).Mul(keep, tokens.Rat()))
	var unread *problem
	v.Reading, unread = s.read(r, desk.PlayerQuery{Session: session.id, AccessToken: session.token, Read: asked.First, Network: asked.Network, Token: asked.Token})
	v.Reading.Action, v.Reading.Fields = "/exchange", fields
	if v.Problem = unread; p != nil {
		v.Problem = p
	}
	status := http.StatusOK
	if p != nil || wrongAmount != "" {
		status = http.StatusUnprocessableEntity
	}
	s.show(w, r, status, "exchange.html", v)
}

// againForm starts the same order under a new UUID.
func (s *site) againForm(w http.ResponseWriter, r *http.Request) {
	to := r.PostForm
	old, _ := uuid.Parse(to.Get("uuid"))
	id, err := s.desk.Issue(r.Context(), desk.IssueRequest{Like: old})
	if err != nil {
		s.failure(w, r, http.StatusNotFound, say(err)+" "+fromGame, link{"/", "All orders, and start a test order"})
		return
	}
	to.Set("uuid", id.String())
	http.Redirect(w, r, "/exchange?"+to.Encode(), http.StatusSeeOther)
}

// priced returns terms with the totals for an amount of tokens.
func (s *site) priced(asked *desk.Terms, tokens ramp.Amount) terms {
	perToken := !s.about().PerOrder
	price := func(list []ramp.Item) (shown []termItem) {
		for _, item := range list {
			total := item.Amount.Rat()
			if perToken {
				total = new(big.Rat).Mul(total, tokens.Rat())
			}
			shown = append(shown, termItem{item.ID, item.Amount.String(), books.Decimal(total), perToken})
		}
		return shown
	}
	return terms{Materials: price(asked.Materials), Outputs: price(asked.Outputs), PerToken: perToken,
		Fee: strconv.FormatFloat(float64(asked.MintFeeBps)/100, 'f', -1, 64) + "%", Expires: s.stamp(asked.Expires)}
}

// exchangeForm places the order that the player has chosen.
func (s *site) exchangeForm(w http.ResponseWriter, r *http.Request) {
	q := r.PostForm
	switch {
	case q.Has("read"):
		s.readAgain(w, r, "/exchange", fieldsOf(q, "uuid", "network"))
		return
	case q.Has("price"):
		s.exchangeView(w, r, q, nil, "")
		return
	}
	tokens, err := ramp.ParseAmount(strings.TrimSpace(q.Get("amount")))
	if err != nil || tokens.Sign() <= 0 {
		s.exchangeView(w, r, q, nil, "The number of tokens must be a decimal number above 0.")
		return
	}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil {
		s.failure(w, r, http.StatusBadRequest, "The form has no UUID. "+fromGame, link{"/", "All orders"})
		return
	}
	session := s.session(r, q)
	_, err = s.desk.Start(r.Context(), control.StartRequest{Do: cmp.Or(q.Get("do"), "mint"), UUID: id.String(), SessionID: session.id, AccessToken: session.token,
		Amount: json.Number(tokens.String()), Faults: chosenFaults(q)})
	if code, err := codeOf(err); code != "" && code != control.CodePlaced { // CodePlaced: the form was sent twice
		p := s.problemOf(err, id)
		if s.orderOf(id.String()) != nil { // the UUID is used
			p.Links = append(p.Links, link{"/orders/" + id.String(), "To the order of this UUID"})
		}
		if code == control.CodeLostAnswer {
			p.Said = "The game's answer was lost, as you chose. Send the same order again: the game must approve it without taking anything twice."
			p.Detail, p.Cause, p.Curl = "", "", curlView{}
		}
		s.exchangeView(w, r, q, p, "")
		return
	}
	toOrder(w, r, id)
}

// catalogView is the catalog view (interface 2.1).
type catalogView struct {
	frame
	Reading readingView
	Orders  []line
	Calls   string // the address of the calls of the session; "" if the reader may not see it
}

// catalogForm asks the game again for the player's assets.
func (s *site) catalogForm(w http.ResponseWriter, r *http.Request) {
	s.readAgain(w, r, "/catalog", fieldsOf(r.PostForm, "projectId", "network"))
}

// readAgain asks the game for a player's assets and shows them on a page.
func (s *site) readAgain(w http.ResponseWriter, r *http.Request, page string, fields url.Values) {
	if session := s.session(r, fields); session.known() {
		_, _ = s.read(r, desk.PlayerQuery{Session: session.id, AccessToken: session.token, Read: true}) // the page shows the result
	}
	http.Redirect(w, r, page+"?"+fields.Encode(), http.StatusSeeOther)
}

// catalogPage is the catalog view (interface 2.1).
func (s *site) catalogPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	session := s.session(r, q)
	network := ramp.Network(q.Get("network"))
	project := q.Get("projectId")
	home := link{"/", "All orders"}
	about := s.about()
	switch {
	case !session.known() || project == "":
		s.failure(w, r, http.StatusBadRequest, "projectId, sessionId, accessToken and network are required (2.1).", home)
		return
	case about.ProjectID != "" && project != about.ProjectID:
		s.failure(w, r, http.StatusNotFound, "There is no such project.", home)
		return
	case about.Chains[network].URL == "":
		s.failure(w, r, http.StatusNotFound, "This service does not have the network.", home)
		return
	}
	v := &catalogView{frame: frame{Title: "Catalog", Network: network}}
	v.Reading, v.Problem = s.read(r, desk.PlayerQuery{Session: session.id, AccessToken: session.token})
	v.Reading.Action, v.Reading.Fields = "/catalog", fieldsOf(q, "projectId", "network")
	list, err := s.desk.List(r.Context(), desk.ListQuery{Session: session.id, Network: network, Limit: maxLines})
	if err != nil {
		s.failure(w, r, http.StatusInternalServerError, say(err))
		return
	}
	v.Orders = s.lines(list.Entries)
	if s.guard.Operates(r) {
		v.Calls = "/calls?" + url.Values{"session": {session.id}}.Encode()
	}
	s.show(w, r, http.StatusOK, "catalog.html", v)
}
