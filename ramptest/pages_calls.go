package ramptest

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// callsView is the page of all calls, newest first.
type callsView struct {
	frame
	Session, Query string
	Routine        bool // whether routine calls are shown too
	Lines          []line
	Newest, Older  string // the addresses of the first page and of the next one; "" if there is none
	RoutineHref    string // the address of the list with or without routine calls
}

// callsPage shows the calls of all players, or of one session.
func (s *pages) callsPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := &callsView{frame: frame{Title: "Calls", Live: true}, Session: q.Get("session"), Query: q.Get("q"), Routine: q.Has("routine")}
	before := cmp.Or(max(0, number(q.Get("before"))), math.MaxInt)
	ids := make(map[uuid.UUID]bool) // the orders of the session, to find their initialize calls
	if v.Session != "" {
		for _, o := range s.orders.all() {
			if o.Session.ID == v.Session {
				ids[o.UUID] = true
			}
		}
	}
	query := strings.ToLower(strings.TrimSpace(v.Query))
	calls := s.record.newestFirst(0, before, maxLines+1, func(e *Event) bool {
		switch {
		case e.Request == nil || e.Routine() && !v.Routine:
			return false
		case v.Session != "" && e.Session != v.Session && !(e.Kind == KindInitialize && ids[e.UUID]):
			return false
		default:
			return query == "" || strings.Contains(strings.ToLower(e.String()+e.Said+e.UUID.String()+e.Session), query)
		}
	})
	address := func(before string, routine bool) string {
		to := url.Values{}
		for name, value := range map[string]string{"session": v.Session, "q": v.Query, "before": before} {
			if value != "" {
				to.Set(name, value)
			}
		}
		if routine {
			to.Set("routine", "1")
		}
		return "/calls?" + to.Encode()
	}
	if before != math.MaxInt {
		v.Newest = address("", v.Routine)
	}
	if len(calls) > maxLines {
		calls = calls[:maxLines]
		v.Older = address(strconv.Itoa(calls[maxLines-1].Number), v.Routine)
	}
	v.RoutineHref = address("", !v.Routine)
	for i := range calls {
		e := &calls[i]
		l := s.line(&entry{at: e.Time, call: e, verdict: e.verdict()})
		if e.Fault != "" {
			l.Verdict.Said += " (" + e.Fault + ")"
		}
		v.Lines = append(v.Lines, l)
	}
	s.show(w, r, http.StatusOK, "calls.html", v)
}

// callPage shows one call, also if it belongs to no order.
func (s *pages) callPage(w http.ResponseWriter, r *http.Request) {
	e, ok := s.record.event(number(r.PathValue("number")))
	if !ok {
		s.failure(w, r, http.StatusNotFound, "There is no such call. The record keeps the last 10,000.", link{"/calls", "All calls"})
		return
	}
	s.eventView(w, r, &e)
}

// title returns a title for a call.
func (e *Event) title() string {
	title := strings.ToUpper(string(e.Kind[:1])) + string(e.Kind[1:])
	if e.Kind == KindRPC {
		title = "RPC"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", title, ordinal(e.Attempt)))
}

// verdict returns the verdict on a call, as it was recorded.
func (e *Event) verdict() verdict.Verdict {
	v := verdict.Verdict{Tone: cmp.Or(verdict.Tone(e.Tone), verdict.Neutral), Attention: e.Failed, Said: cmp.Or(e.Said, e.Outcome)}
	if v.Tone == verdict.Wait {
		v.State = verdict.Waiting
	}
	return v
}
