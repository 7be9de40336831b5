package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// orderView is the page of an order. It shows what happened and what comes next.
type orderView struct {
	frame
	Order    *control.OrderReport
	Short    string // the beginning of the UUID
	Name     string // the title of the order
	Player   string
	Verdict  verdictView
	Stages   []stage
	Main     string // the main button: "call", "end", "resend" or "another"
	Pending  bool   // its transaction is in no block
	Placed   bool   // it has a transaction
	Rows     []verdict.Row
	Others   []ramp.Asset
	ReadAt   string
	Unread   bool   // the game did not report the balances then
	Why      string // why, unless the page says that the game is down
	Catalog  string
	Calls    string // the address of the calls of the session
	Operator bool   // whether the reader may act for all players
	Passed   string // what happened when the reader let time pass; "" if that is not why the page is shown
	Blame    *blame // the call that broke the order; nil if none did
	Timeline timelineView
}

// ordered gives a page the order in the path, if there is one.
func ordered(page func(*visit, *control.OrderReport)) func(*visit) {
	return func(s *visit) {
		if o := s.orderOf(s.r.PathValue("uuid")); o != nil {
			page(s, o)
		} else {
			s.noOrder()
		}
	}
}

// orderPage shows an order live.
func (s *visit) orderPage(o *control.OrderReport) {
	s.orderView(o, http.StatusOK, nil)
}

func (s *visit) orderView(o *control.OrderReport, status int, p *problem) {
	told := s.history(o.UUID)
	culprit := told.culprit(o)
	v := &orderView{Order: o, Short: shortUUID(o.UUID), Name: titleOfOrder(o), Player: nameOf(o),
		Verdict: s.verdictView(o.Verdict), Stages: stagesOf(o, told, culprit), Blame: s.blame(told, culprit),
		Main: mainButton(o), Pending: isPending(o), Placed: o.TxHash != (common.Hash{}),
		Operator: s.guard.Operates(s.r),
		Timeline: s.timeline(o.UUID, told, culprit, piece{})}
	v.frame = frame{Title: v.Name + " · " + v.Player + " · " + v.Short, Network: o.Network, Problem: p,
		Live: true}
	v.Catalog = "/catalog?" + url.Values{"projectId": {o.ProjectID}, "player": {o.UUID.String()},
		"network": {string(o.Network)}}.Encode()
	v.Calls = "/calls?" + url.Values{"session": {o.SessionID}}.Encode()
	if q := s.r.URL.Query(); q.Has("passed") {
		v.Passed = span(time.Duration(number(q.Get("passed")))*time.Minute) + " passed; " +
			count(number(q.Get("sent")), "result") + " sent"
	}
	if o.Loss && culprit != nil {
		v.Main = "call"
	}
	balances, err := s.service.Balances(o.UUID)
	if err != nil {
		s.noOrder() // the service has just forgotten it
		return
	}
	v.Rows, v.Others = balances.Rows, balances.Others
	if !balances.At.IsZero() {
		v.ReadAt = s.stamp(balances.At)
	}
	if v.Unread = balances.Problem != ""; v.Unread && s.down() == nil {
		v.Why = balances.Problem
	}
	s.show(status, "order.html", v)
}

// isPending reports whether the transaction of an order is in no block.
func isPending(o *control.OrderReport) bool {
	return o.Delivery == "pending" && o.TxHash != (common.Hash{})
}

// mainButton returns what somebody wants to do next.
func mainButton(o *control.OrderReport) string {
	switch {
	case isPending(o):
		return "end"
	case o.State == verdict.Waiting || o.State == verdict.Unconfirmed:
		return "resend"
	default:
		return "another"
	}
}

// endForm ends a pending transaction, and sends the result if it is due.
func (s *visit) endForm(o *control.OrderReport) {
	switch code, err := codeOf(s.service.Mine(o.UUID, s.r.PostFormValue("outcome"))); code {
	case "":
		s.toOrder(o.UUID)
	case control.CodePlaced, control.CodePending:
		s.orderView(o, http.StatusConflict, &problem{Said: say(err)})
	default:
		s.failure(http.StatusBadRequest, say(err), link{"/orders/" + o.UUID.String(), "To the order"})
	}
}

func (s *visit) resendForm(o *control.OrderReport) {
	_, err := s.service.Send(s.r.Context(), o.UUID.String(), control.SendRequest{})
	if code, err := codeOf(err); code == control.CodePending {
		s.orderView(o, http.StatusConflict, &problem{Said: say(err)})
		return // the timeline shows other errors
	}
	s.toOrder(o.UUID)
}

func (s *visit) advanceForm(o *control.OrderReport) {
	minutes, err := strconv.Atoi(s.r.PostFormValue("minutes"))
	if err != nil || minutes < 0 || minutes > 24*60 {
		s.failure(http.StatusBadRequest, "The minutes must be from 0 to 1440.",
			link{"/orders/" + o.UUID.String(), "To the order"})
		return
	}
	passed, err := s.service.Advance(s.r.Context(), control.AdvanceRequest{By: strconv.Itoa(minutes) + "m"})
	if err != nil {
		s.failure(http.StatusServiceUnavailable, say(err))
		return
	}
	s.redirect(fmt.Sprintf("/orders/%s?passed=%d&sent=%d", o.UUID, minutes, len(passed.Deliveries)))
}

// readForm asks the game again for the player's assets.
func (s *visit) readForm(o *control.OrderReport) {
	// the page shows the result
	_, _ = s.service.Player(s.r.Context(), frontend.PlayerQuery{Session: o.SessionID, Read: true})
	s.toOrder(o.UUID)
}

// anotherForm starts another order with the same player and terms.
func (s *visit) anotherForm(o *control.OrderReport) {
	id, err := s.service.Issue(nil, o.UUID)
	if err != nil { // the service has just forgotten the order
		s.noOrder()
		return
	}
	s.redirect("/exchange?" + url.Values{"uuid": {id.String()}, "player": {o.UUID.String()},
		"network": {string(o.Network)}}.Encode())
}
