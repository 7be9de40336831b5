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
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// exchangeView is the exchange view (interface 2.1): what may be ordered.
type exchangeView struct {
	frame
	Reading  readingView
	Terms    terms
	Form     form
	Timeline timelineView
	Operator bool // whether the reader may act for all players
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

// Scripted is how many faults are chosen.
func (f form) Scripted() int { return len(chosenFaults(f.Chosen)) }

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
func (s *visit) session(q url.Values) session {
	if o := s.orderOf(q.Get("player")); o != nil && s.guard.Operates(s.r) {
		return session{id: o.SessionID, trusted: true}
	}
	return session{id: strings.TrimSpace(q.Get("sessionId")), token: strings.TrimSpace(q.Get("accessToken"))}
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
func (s *visit) exchangePage() {
	if o := s.orderOf(s.r.URL.Query().Get("uuid")); o != nil {
		s.toOrder(o.UUID)
		return
	}
	s.exchangeView(s.r.URL.Query(), nil)
}

const fromGame = "Open the exchange page from your game again: it asks for a new UUID each time."

// exchangeView shows what may be ordered, or why nothing may.
func (s *visit) exchangeView(q url.Values, p *problem) {
	session := s.session(q)
	home := link{"/", "All orders, and start a test order"}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil || !session.known() {
		s.failure(http.StatusBadRequest, "uuid, accessToken, sessionId and network are required (2.1).", home)
		return
	}
	asked, err := s.service.Terms(id)
	switch code, _ := codeOf(err); {
	case code == control.CodeExpired:
		p := &problem{Said: "The UUID has expired: it was valid for 5 minutes. " + fromGame,
			Links: []link{home}}
		if s.guard.Operates(s.r) {
			p.Again = fieldsOf(q, "uuid", "network", "amount", "do", "chain", "result")
			p.Again["fault"] = q["fault"]
		}
		s.show(http.StatusGone, "failure.html",
			&frame{Title: "Expired UUID", Network: ramp.Network(q.Get("network")), Problem: p})
		return
	case err != nil:
		s.failure(http.StatusNotFound,
			"The service knows no such UUID. It may have been restarted. "+fromGame, home)
		return
	}
	if network := ramp.Network(q.Get("network")); network != asked.Network {
		s.failure(http.StatusBadRequest,
			"The network is not that of the initialize call, which is "+string(asked.Network)+".", home)
		return
	}
	v := &exchangeView{frame: frame{Title: "Exchange · " + shortUUID(id), Network: asked.Network},
		Timeline: s.timeline(id, s.history(id), nil, piece{}), Operator: s.guard.Operates(s.r)}
	fields := fieldsOf(q, "uuid", "network")
	v.Form = form{Fields: fields, Chosen: q, Amount: "1"}
	if q.Has("amount") {
		v.Form.Amount = q.Get("amount")
	}
	tokens, err := ramp.ParseAmount(strings.TrimSpace(v.Form.Amount))
	if err != nil || tokens.Sign() <= 0 {
		v.Form.WrongAmount = "The number of tokens must be a decimal number above 0."
		tokens = ramp.NewAmount(1) // which is not shown
	}
	v.Terms = s.priced(&asked, tokens)
	keep := big.NewRat(10_000-int64(asked.MintFeeBps), 10_000)
	v.Form.Keep = tally.Decimal(keep)
	v.Form.Received = tally.Decimal(new(big.Rat).Mul(keep, tokens.Rat()))
	var unread *problem
	v.Reading, unread = s.read(frontend.PlayerQuery{Session: session.id, AccessToken: session.token,
		Read: asked.First, Network: asked.Network, Token: asked.Token})
	v.Reading.Action, v.Reading.Fields = "/exchange", fields
	if v.Problem = unread; p != nil {
		v.Problem = p
	}
	status := http.StatusOK
	if p != nil || v.Form.WrongAmount != "" {
		status = http.StatusUnprocessableEntity
	}
	s.show(status, "exchange.html", v)
}

// againForm starts the same order under a new UUID.
func (s *visit) againForm() {
	to := s.r.PostForm
	old, _ := uuid.Parse(to.Get("uuid"))
	id, err := s.service.Issue(nil, old)
	if err != nil {
		s.failure(http.StatusNotFound, say(err)+" "+fromGame, link{"/", "All orders, and start a test order"})
		return
	}
	to.Set("uuid", id.String())
	s.redirect("/exchange?" + to.Encode())
}

// priced returns terms with the totals for an amount of tokens.
func (s *site) priced(asked *frontend.Terms, tokens ramp.Amount) terms {
	perToken := !s.about().PerOrder
	price := func(list []ramp.Item) (shown []termItem) {
		for _, item := range list {
			total := item.Amount.Rat()
			if perToken {
				total = new(big.Rat).Mul(total, tokens.Rat())
			}
			shown = append(shown, termItem{item.ID, item.Amount.String(), tally.Decimal(total), perToken})
		}
		return shown
	}
	return terms{Materials: price(asked.Materials), Outputs: price(asked.Outputs), PerToken: perToken,
		Fee:     strconv.FormatFloat(float64(asked.MintFeeBps)/100, 'f', -1, 64) + "%",
		Expires: s.stamp(asked.Expires)}
}

// exchangeForm places the order that the player has chosen.
func (s *visit) exchangeForm() {
	q := s.r.PostForm
	switch {
	case q.Has("read"):
		s.readAgain("/exchange", fieldsOf(q, "uuid", "network"))
		return
	case q.Has("price"):
		s.exchangeView(q, nil)
		return
	}
	tokens, err := ramp.ParseAmount(strings.TrimSpace(q.Get("amount")))
	if err != nil || tokens.Sign() <= 0 {
		s.exchangeView(q, nil)
		return
	}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil {
		s.failure(http.StatusBadRequest, "The form has no UUID. "+fromGame, link{"/", "All orders"})
		return
	}
	session := s.session(q)
	_, err = s.service.Start(s.r.Context(),
		control.StartRequest{Do: cmp.Or(q.Get("do"), "mint"), UUID: id.String(), SessionID: session.id,
			AccessToken: session.token,
			Amount:      json.Number(tokens.String()), Faults: chosenFaults(q)})
	// CodePlaced: the form was sent twice
	if code, err := codeOf(err); code != "" && code != control.CodePlaced {
		p := s.problemOf(err, id)
		if s.orderOf(id.String()) != nil { // the UUID is used
			p.Links = append(p.Links, link{"/orders/" + id.String(), "To the order of this UUID"})
		}
		if code == control.CodeLostAnswer {
			p.Said = "The game's answer was lost, as you chose. Send the same order again: the game must " +
				"approve it without taking anything twice."
			p.Detail, p.Cause, p.Curl = "", "", curlView{}
		}
		s.exchangeView(q, p)
		return
	}
	s.toOrder(id)
}

// catalogView is the catalog view (interface 2.1).
type catalogView struct {
	frame
	Reading readingView
	Orders  []line
	Calls   string // the address of the calls of the session; "" if the reader may not see it

	Operator bool // whether the reader may act for all players
}

// catalogForm asks the game again for the player's assets.
func (s *visit) catalogForm() {
	s.readAgain("/catalog", fieldsOf(s.r.PostForm, "projectId", "network"))
}

// readAgain asks the game for a player's assets and shows them on a page.
func (s *visit) readAgain(page string, fields url.Values) {
	if session := s.session(fields); session.known() {
		// the page shows the result
		_, _ = s.read(frontend.PlayerQuery{Session: session.id, AccessToken: session.token, Read: true})
	}
	s.redirect(page + "?" + fields.Encode())
}

// catalogPage is the catalog view (interface 2.1).
func (s *visit) catalogPage() {
	q := s.r.URL.Query()
	session := s.session(q)
	network := ramp.Network(q.Get("network"))
	project := q.Get("projectId")
	home := link{"/", "All orders"}
	about := s.about()
	switch {
	case !session.known() || project == "":
		s.failure(http.StatusBadRequest,
			"projectId, sessionId, accessToken and network are required (2.1).", home)
		return
	case about.ProjectID != "" && project != about.ProjectID:
		s.failure(http.StatusNotFound, "There is no such project.", home)
		return
	case about.Chains[network].URL == "":
		s.failure(http.StatusNotFound, "This service does not have the network.", home)
		return
	}
	v := &catalogView{frame: frame{Title: "Catalog", Network: network}}
	v.Reading, v.Problem = s.read(frontend.PlayerQuery{Session: session.id, AccessToken: session.token})
	v.Reading.Action, v.Reading.Fields = "/catalog", fieldsOf(q, "projectId", "network")
	v.Orders = s.lines(s.service.List(frontend.ListQuery{Session: session.id, Network: network,
		Limit: maxLines}).Entries)
	if v.Operator = s.guard.Operates(s.r); v.Operator {
		v.Calls = "/calls?" + url.Values{"session": {session.id}}.Encode()
	}
	s.show(http.StatusOK, "catalog.html", v)
}
