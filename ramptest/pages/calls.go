package pages

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
)

// callsView is the page of all calls, newest first.
type callsView struct {
	frame
	Session, Query string
	Routine        bool // whether routine calls are shown too
	Wrong          bool // whether only failures and rejections are shown
	Each           bool // whether calls that are the same are shown one by one
	Lines          []line
	Newest, Older  string // the addresses of the first page and of the next one; "" if there is none
	RoutineHref    string // the address of the list with or without routine calls
	Hidden         int    // how many routine calls match, and are not shown
	Filters        []filterView
	FoldHref       string // with Each, the address of the list where they are folded
}

// callsPage shows the calls of all players, or of one session.
func (s *visit) callsPage() {
	q := s.r.URL.Query()
	v := &callsView{frame: frame{Title: "Calls", Live: true}, Session: strings.TrimSpace(q.Get("session")),
		Query: q.Get("q"), Routine: q.Has("routine"), Wrong: q.Has("wrong"), Each: q.Has("each")}
	pick := frontend.Calls
	if v.Wrong {
		pick = frontend.Wrong
	}
	before, limit := max(0, number(q.Get("before"))), maxFolded
	if v.Each {
		limit = maxLines
	}
	events, more := s.service.Calls(frontend.CallsQuery{Pick: pick, Before: before, Session: v.Session,
		Text: v.Query, Routine: v.Routine, Brief: true, Limit: limit})
	address := func(before int, routine, wrong, each bool) string {
		to := url.Values{}
		for name, value := range map[string]string{"session": v.Session, "q": v.Query} {
			if value != "" {
				to.Set(name, value)
			}
		}
		if before != 0 {
			to.Set("before", strconv.Itoa(before))
		}
		for name, set := range map[string]bool{"routine": routine, "wrong": wrong, "each": each} {
			if set {
				to.Set(name, "1")
			}
		}
		return "/calls?" + to.Encode()
	}
	if before != 0 {
		v.Newest = address(0, v.Routine, v.Wrong, v.Each)
	}
	v.RoutineHref = address(0, !v.Routine, v.Wrong, false)
	v.Filters = []filterView{
		{Label: "All calls", Current: !v.Wrong, Href: address(0, v.Routine, false, false)},
		{Value: "wrong", Label: "Failures and rejections", Current: v.Wrong,
			Href: address(0, v.Routine, true, false)}}
	v.FoldHref = address(0, v.Routine, v.Wrong, false)
	culprits := s.culprits()
	isFirst := func(e *control.Event) bool {
		c := culprits[e.UUID]
		return e.Loss != "" && c != nil && c.Number == e.Number && s.isFirst(c)
	}
	oldest := 0
	for len(events) > 0 && len(v.Lines) < maxLines {
		turn, again := 1, 0
		if !v.Each {
			turn, again = repetition(len(events), func(i, j int) bool {
				return isAgain(&events[i], &events[j]) && !isFirst(&events[j])
			})
		}
		for i := range events[:turn] {
			e := &events[i]
			if whole, ok := s.event(e.Number); ok {
				e = &whole
			}
			l := s.callLine(e)
			if c := culprits[e.UUID]; e.Loss != "" && c != nil && s.isFirst(c) {
				if l.First = c.Number == e.Number; !l.First && c.Loss == e.Loss {
					l.Still = c.Number
				}
			}
			l.Full = l.Full || l.First
			v.Lines = append(v.Lines, l)
		}
		oldest = events[turn+again-1].Number
		if again > 0 {
			v.Lines[len(v.Lines)-1].Again = s.again(turn, again, &events[turn+again-1],
				address(events[turn].Number+1, v.Routine, v.Wrong, true))
		}
		events = events[turn+again:]
	}
	if more || len(events) > 0 {
		v.Older = address(oldest, v.Routine, v.Wrong, v.Each)
	}
	count := func(pick frontend.Pick) int {
		all, _ := s.service.Calls(frontend.CallsQuery{Pick: pick, Session: v.Session, Text: v.Query,
			Routine: true,
			Brief:   true})
		return len(all)
	}
	v.Filters[1].Count = count(frontend.Wrong)
	if !v.Routine && !v.Wrong { // of which none is routine
		v.Hidden = count(frontend.Routine)
	}
	s.show(http.StatusOK, "calls.html", v)
}

// callPage shows one call, also if it belongs to no order.
func (s *visit) callPage() {
	e, ok := s.event(number(s.r.PathValue("number")))
	if !ok {
		s.failure(http.StatusNotFound, "There is no such call. The record keeps the last 10,000.",
			link{"/calls", "All calls"})
		return
	}
	s.eventView(&e)
}
