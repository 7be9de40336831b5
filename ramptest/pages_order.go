package ramptest

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// orderView is the page of an order. It shows what happened and what comes next.
type orderView struct {
	frame
	UUID     uuid.UUID
	Short    string
	Name     string // the title of the order
	Player   string
	Outcome  outcomeView
	State    State
	Final    bool // whether there is a result to send
	TxHash   string
	Rows     []balanceRow
	Others   []balanceRow
	ReadAt   string
	Catalog  string
	Operator bool // whether the reader may act for all players
	Timeline timelineView
}

// Millis returns when the next step is due, in milliseconds, for the script.
func (v outcomeView) Millis() int64 { return v.Due.UnixMilli() }

// At returns when the next step is due, for the reader.
func (v outcomeView) At() string { return v.Due.Format(clockTime) }

// HasDue reports whether a next step is planned for a known time.
func (v outcomeView) HasDue() bool { return !v.Due.IsZero() }

// Long reports whether the amounts are too long to stand beside each other.
func (r balanceRow) Long() bool { return max(len(r.Before), len(r.Now), len(r.Expected)) > 12 }

// orderOf returns the order with a UUID, or nil if there is none.
func (s *pages) orderOf(text string) *Order {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	return s.orders.find(id)
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
	acc := s.studio.audit.account(o.UUID)
	v := &orderView{UUID: o.UUID, Short: shortUUID(o.UUID), Name: o.title(), Player: s.orders.player(o), Outcome: s.orders.happened(o, acc),
		State: o.delivery.now(), TxHash: o.TxHash.Hex(), Timeline: s.timeline(o.UUID, math.MaxInt)}
	v.frame = frame{Title: v.Name + " · " + v.Player + " · " + v.Short, Network: o.Network, Problem: p, Live: true}
	v.Catalog = "/catalog?" + url.Values{"projectId": {o.Request.ProjectID}, "player": {o.UUID.String()}, "network": {string(o.Network)}}.Encode()
	v.Final = v.State != Pending
	v.Rows, v.Others = s.orders.rows(o, acc)
	if read, ok := s.studio.readings.of(o.Session); ok {
		v.ReadAt = read.at.Format(clockTime)
		if read.err != nil && v.Problem == nil {
			v.Problem = &problem{Said: "Balances unknown: " + say(read.err)}
		}
	}
	v.Operator = s.guard.operates(r)
	s.show(w, r, status, "order.html", v)
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
	_, _ = s.studio.assets(r.Context(), o.Session, uuid.Nil) // the page shows the result
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
