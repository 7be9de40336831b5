package ramptest

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// orderView is the page of an order. It shows what happened and what comes next.
type orderView struct {
	frame
	UUID     uuid.UUID
	Short    string
	Name     string // the title of the order
	Player   string
	Verdict  verdictView
	State    State
	Main     string // the main button: "end", "resend" or "another"
	Rows     []balanceRow
	Others   []ramp.Asset
	ReadAt   string
	Names    []nameRow
	Faults   []string
	Catalog  string
	Calls    string // the address of the calls of the session
	Operator bool   // whether the reader may act for all players
	Timeline timelineView
}

// nameRow is an identifier of an order.
type nameRow struct{ ID, Label, Text string }

type balanceRow struct{ verdict.Row }

// Long reports whether the amounts are too long to stand beside each other.
func (r balanceRow) Long() bool { return max(len(r.Before), len(r.Now), len(r.Expected)) > 12 }

// orderOf returns the order with a UUID, or nil if there is none.
func (s *pages) orderOf(text string) *Order {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	return s.orders.shown(id)
}

func (s *pages) noOrder(w http.ResponseWriter, r *http.Request) {
	s.failure(w, r, http.StatusNotFound, "There is no such order. The service may have been restarted.", link{"/", "All orders"})
}

// withOrder calls do with the order in the path, if there is one.
func (s *pages) withOrder(w http.ResponseWriter, r *http.Request) *Order {
	o := s.orderOf(r.PathValue("uuid"))
	if o == nil {
		s.noOrder(w, r)
	}
	return o
}

// orderPage shows an order live.
func (s *pages) orderPage(w http.ResponseWriter, r *http.Request) {
	if o := s.withOrder(w, r); o != nil {
		s.orderView(w, r, o, http.StatusOK, nil)
	}
}

func (s *pages) orderView(w http.ResponseWriter, r *http.Request, o *Order, status int, p *problem) {
	said := s.orders.verdict(o)
	v := &orderView{UUID: o.UUID, Short: shortUUID(o.UUID), Name: o.title(), Player: s.orders.player(o), Verdict: s.verdictView(said),
		State: o.delivery.now(), Faults: o.script.names, Operator: s.guard.operates(r), Timeline: s.timeline(o.UUID, math.MaxInt)}
	v.frame = frame{Title: v.Name + " · " + v.Player + " · " + v.Short, Network: o.Network, Problem: p, Live: true}
	v.Catalog = "/catalog?" + url.Values{"projectId": {o.Request.ProjectID}, "player": {o.UUID.String()}, "network": {string(o.Network)}}.Encode()
	v.Calls = "/calls?" + url.Values{"session": {o.Session.ID}}.Encode()
	v.Main = mainButton(v.State, said.State)
	v.Names = []nameRow{{"uuid", "UUID", o.UUID.String()}, {"hash", "Transaction", o.TxHash.Hex()}, {"session-id", "Session", o.Session.ID},
		{"wallet", "Wallet", o.address().Hex()}, {"contract", "Contract", o.token().ID}}
	rows, others := s.orders.rows(o)
	for _, row := range rows {
		v.Rows = append(v.Rows, balanceRow{row})
	}
	v.Others = others
	if read, ok := s.game.readings.of(o.Session); ok {
		v.ReadAt = s.stamp(read.at)
		if read.err == nil && read.player.PlayerID != "" {
			v.Names = slices.Insert(v.Names, 3, nameRow{"player-id", "Player", read.player.PlayerID})
		}
		if read.err != nil && v.Problem == nil && s.down() == "" {
			v.Problem = &problem{Said: "Balances unknown: " + say(read.err)}
		}
	}
	s.show(w, r, status, "order.html", v)
}

// mainButton returns what somebody wants to do next.
func mainButton(delivery State, said verdict.State) string {
	switch {
	case delivery == Pending:
		return "end"
	case said == verdict.Waiting || said == verdict.Unconfirmed:
		return "resend"
	default:
		return "another"
	}
}

// endForm ends a pending transaction, and sends the result if it is due.
func (s *pages) endForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	to := "/orders/" + o.UUID.String()
	outcome := Succeeded
	switch r.PostFormValue("outcome") {
	case "succeeded":
	case "failed":
		outcome = Failed
	default:
		s.failure(w, r, http.StatusBadRequest, "The outcome must be succeeded or failed.", link{to, "To the order"})
		return
	}
	if !s.orders.end(o, outcome) {
		s.orderView(w, r, o, http.StatusConflict, &problem{Said: "The transaction is already in a block."})
		return
	}
	s.orders.advance(0)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *pages) resendForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	if err := s.orders.resend(context.WithoutCancel(r.Context()), o); errors.Is(err, ErrPending) {
		s.orderView(w, r, o, http.StatusConflict, &problem{Said: say(err)})
		return // the timeline shows other errors
	}
	http.Redirect(w, r, "/orders/"+o.UUID.String(), http.StatusSeeOther)
}

func (s *pages) advanceForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	minutes, err := strconv.Atoi(r.PostFormValue("minutes"))
	if err != nil || minutes < 0 || minutes > 24*60 {
		s.failure(w, r, http.StatusBadRequest, "The minutes must be from 0 to 1440.", link{"/orders/" + o.UUID.String(), "To the order"})
		return
	}
	s.orders.advance(time.Duration(minutes) * time.Minute)
	http.Redirect(w, r, "/orders/"+o.UUID.String(), http.StatusSeeOther)
}

// readForm asks the game again for the player's assets.
func (s *pages) readForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	_, _, _ = s.game.assets(r.Context(), o.Session, uuid.Nil) // the page shows the result
	http.Redirect(w, r, "/orders/"+o.UUID.String(), http.StatusSeeOther)
}

// anotherForm starts another order with the same player and terms.
func (s *pages) anotherForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	id, err := s.orders.issueLike(o.UUID, s.clock.now())
	if err != nil { // the service has just forgotten the order
		s.noOrder(w, r)
		return
	}
	http.Redirect(w, r, "/exchange?"+url.Values{"uuid": {id.String()}, "player": {o.UUID.String()}, "network": {string(o.Network)}}.Encode(), http.StatusSeeOther)
}
