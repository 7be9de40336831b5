package pages

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
)

// callsView is the page of all calls, newest first.
type callsView struct {
	frame
	Session, Query string
	Routine        bool // whether routine calls are shown too
	Wrong          bool // whether only failures and rejections are shown
	Lines          []line
	Newest, Older  string // the addresses of the first page and of the next one; "" if there is none
	RoutineHref    string // the address of the list with or without routine calls
	WrongHref      string // the address of the list of failures and rejections, or of all calls
}

// callsPage shows the calls of all players, or of one session.
func (s *visit) callsPage() {
	q := s.r.URL.Query()
	v := &callsView{frame: frame{Title: "Calls", Live: true}, Session: q.Get("session"), Query: q.Get("q"),
		Routine: q.Has("routine"), Wrong: q.Has("wrong")}
	pick := desk.Calls
	if v.Wrong {
		pick = desk.Wrong
	}
	before := max(0, number(q.Get("before")))
	events, more := s.desk.Calls(desk.CallsQuery{Pick: pick, Before: before, Session: v.Session,
		Text: v.Query, Routine: v.Routine, Limit: maxLines})
	address := func(before string, routine, wrong bool) string {
		flag := map[bool]string{true: "1"}
		to := url.Values{"session": {v.Session}, "q": {v.Query}, "before": {before},
			"routine": {flag[routine]}, "wrong": {flag[wrong]}}
		maps.DeleteFunc(to, func(_ string, values []string) bool { return values[0] == "" })
		return "/calls?" + to.Encode()
	}
	if before != 0 {
		v.Newest = address("", v.Routine, v.Wrong)
	}
	if more {
		v.Older = address(strconv.Itoa(events[len(events)-1].Number), v.Routine, v.Wrong)
	}
	v.RoutineHref, v.WrongHref = address("", !v.Routine, v.Wrong), address("", v.Routine, !v.Wrong)
	for _, e := range events {
		v.Lines = append(v.Lines, s.callLine(&e))
	}
	s.show(http.StatusOK, "calls.html", v)
}

// callPage shows one call, also if it belongs to no order.
func (s *visit) callPage() {
	e, ok := s.event(s.r.PathValue("number"))
	if !ok {
		s.failure(http.StatusNotFound, "There is no such call. The record keeps the last 10,000.",
			link{"/calls", "All calls"})
		return
	}
	s.eventView(&e)
}
