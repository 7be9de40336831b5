// Package view shows an emulated service to its pages.
package view

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/report"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// View is a service as its pages see it.
type View struct {
	frontend.API
	service *emulator.Service
	orders  *emulator.Orders
	listed  entries
	probing *probing
}

// Of returns a service, and its control API, as its pages see them.
func Of(s *emulator.Service, api frontend.API) *View {
	return &View{API: api, service: s, orders: s.Orders, listed: entries{mu: locks.At(locks.List)},
		probing: newProbing()}
}

var _ frontend.Service = (*View)(nil)

// List implements [frontend.Service], as the other methods do.
func (s *View) List(q frontend.ListQuery) frontend.List {
	list := frontend.List{Counts: make(map[frontend.Show]int)}
	if q.Session != "" {
		for _, o := range s.orders.All() {
			if o.Session.ID == q.Session && o.Network == q.Network && len(list.Entries) < q.Limit {
				list.Entries = append(list.Entries, s.shown(&entry{order: o}))
			}
		}
		return list
	}
	all, players := s.entries()
	list.Any = len(all) > 0
	found := s.finder(q.Text)
	for i := range all {
		e := &all[i]
		if !found(e) {
			continue
		}
		for _, show := range []frontend.Show{frontend.All, e.filter()} {
			list.Counts[show]++
			if show == q.Show && e.order == nil {
				list.Calls++
			}
			if show == frontend.All && e.verdict.Loss {
				switch list.Losses++; {
				case list.Losses > 1 && list.Lost != e.verdict.Head:
					list.Lost, list.Loser = "", uuid.Nil
				case list.Losses > 1:
					list.Loser = uuid.Nil
				default:
					list.Lost, list.Loser = e.verdict.Head, e.uuid()
				}
			}
			if n := list.Counts[show]; show == q.Show && n > q.Offset && n <= q.Offset+q.Limit {
				list.Entries = append(list.Entries, s.shown(e))
			}
		}
	}
	for _, o := range players {
		list.Players = append(list.Players,
			frontend.Choice{Order: o.UUID, Name: s.orders.Player(o), Session: o.Session.ID})
	}
	return list
}

func (s *View) Name(session string) string {
	_, name := s.service.Audit.Who(session)
	return name
}

// shown returns an entry as it is now: the next block may have moved on.
func (s *View) shown(e *entry) frontend.Entry {
	if e.order == nil {
		call := s.service.History.Whole(*e.call)
		return frontend.Entry{Call: &call}
	}
	o := report.Order(s.service, e.order)
	return frontend.Entry{Order: &o}
}

func (s *View) Calls(q frontend.CallsQuery) (events []control.Event, more bool) {
	orders := make(map[uuid.UUID]bool) // of the session, to find their initialize calls
	if q.Session != "" {
		for _, o := range s.orders.All() {
			if o.Session.ID == q.Session {
				orders[o.UUID] = true
			}
		}
	}
	text := strings.ToLower(strings.TrimSpace(q.Text))
	before, limit := cmp.Or(q.Before, math.MaxInt), math.MaxInt
	if q.Number != 0 {
		before = q.Number + 1
	}
	if q.Limit != 0 {
		limit = q.Limit + 1
	}
	events = s.service.History.NewestFirst(before, limit, func(e *control.Event) bool {
		switch {
		case q.Number != 0 && e.Number != q.Number,
			q.UUID != uuid.Nil && e.UUID != q.UUID,
			q.Kinds != nil && !slices.Contains(q.Kinds, e.Kind),
			q.Session != "" && e.Session != q.Session &&
				!(e.Kind == control.KindInitialize && orders[e.UUID]), e.Routine() && !q.Routine &&
				q.Number == 0:
			return false
		default:
			return picked(e, q.Pick) &&
				(text == "" ||
					strings.Contains(strings.ToLower(e.String()+e.Said+e.Loss+e.UUID.String()+
						e.Session), text))
		}
	})
	if more = len(events) == limit; more {
		events = events[:q.Limit]
	}
	if !q.Brief {
		events = s.service.History.Wholes(events)
	}
	return events, more
}

// picked reports whether an event is among those of a pick.
func picked(e *control.Event, pick frontend.Pick) bool {
	judged := e.Tone == verdict.Good || e.Tone == verdict.Bad
	switch pick {
	case frontend.Calls:
		return e.Request != nil
	case frontend.Wrong:
		return e.Request != nil && e.IsWrong()
	case frontend.Lost:
		return e.Loss != ""
	case frontend.Answered:
		return e.Answer != nil || e.Tone == verdict.Bad
	case frontend.Routine:
		return e.Request != nil && e.Routine()
	case frontend.Genuine, frontend.Judged:
		// what the game must not accept is no failure
		hand := e.Fault == fault.ByHand && e.Tone == verdict.Bad
		return (judged || e.IsPolicy() && pick == frontend.Genuine) &&
			(e.Fault == "" || e.Outcome == "success" || hand) &&
			!strings.Contains(e.Outcome, game.ErrUnsent.Error()) &&
			!strings.Contains(e.Outcome, game.UnsentLater)
	default:
		return true
	}
}

func (s *View) Worked(kind control.Kind) (control.Event, bool) {
	return s.service.History.LastGood(kind)
}

func (s *View) Probe(ctx context.Context) frontend.Probe {
	return s.probing.ask(ctx, s.service.Game)
}

func (s *View) Terms(id uuid.UUID) (terms frontend.Terms, err error) {
	if id == uuid.Nil {
		latest, ok := s.orders.Latest()
		if !ok {
			return terms, report.Errorf(control.CodeNotFound, "there was no initialize call")
		}
		return frontend.Terms{InitializeIntent: latest}, nil
	}
	if terms.InitializeIntent, terms.Expires, err = s.orders.Terms(id, false); err != nil {
		return terms, report.Error(err)
	}
	terms.First = s.orders.Opens(id)
	return terms, nil
}

func (s *View) Issue(terms *control.Terms, like uuid.UUID) (id uuid.UUID, err error) {
	latest, known := s.orders.Latest()
	switch {
	case terms != nil:
		id, err = report.Issue(s.service, terms)
	case like == uuid.Nil && known:
		id = s.orders.Issue(latest)
	default:
		id, err = s.orders.IssueLike(like)
	}
	if err != nil {
		return id, report.Error(err)
	}
	return id, nil
}

func (s *View) Player(ctx context.Context, q frontend.PlayerQuery) (p frontend.Player, err error) {
	session, err := report.Session(s.service, q.Session, q.AccessToken)
	if err != nil {
		return p, err
	}
	asked := s.service.Game
	read, known := asked.Read(session)
	if q.Read || !known {
		if _, _, err := asked.Assets(ctx, session, uuid.Nil); err != nil && ctx.Err() != nil {
			return p, report.Error(err) // nobody waits any more
		}
		read, _ = asked.Read(session)
	}
	p = frontend.Player{At: read.At, Unknown: read.Err != nil}
	if p.Unknown {
		p.Problem = text.Sentence(read.Err)
	}
	if read.Player != nil {
		p.Name, p.Assets = read.Player.Name, read.Player.Assets
	}
	if wallet, err := s.service.Wallet(session); err == nil && q.Token != "" &&
		s.orders.Chains[q.Network] != nil {
		token := trade.Token{ID: q.Token}
		p.Tokens = tally.Decimal(s.orders.Chains[q.Network].TokenBalance(token.Contract(), wallet.Address()))
	}
	return p, nil
}

func (s *View) Balances(id uuid.UUID) (b frontend.Balances, err error) {
	o, err := report.Find(s.service, id)
	if err != nil {
		return b, err
	}
	b.Rows, b.Others = s.orders.Rows(o)
	if read, ok := s.service.Game.Read(o.Session); ok {
		b.At = read.At
		if read.Err != nil {
			b.Problem = text.Sentence(read.Err)
		}
	}
	return b, nil
}

func (s *View) Mine(id uuid.UUID, outcome string) error {
	o, err := report.Find(s.service, id)
	if err != nil {
		return err
	}
	mined, known := order.Outcomes[outcome]
	if !known {
		return report.Invalid("the outcome must be succeeded or failed")
	}
	pending, err := s.orders.End(o, mined)
	if err != nil {
		return report.Error(err)
	}
	if !pending {
		return report.Errorf(control.CodePlaced, "the transaction is already in a block")
	}
	s.orders.Advance(0)
	return nil
}

// entry is an order, or a call that led to no order.
type entry struct {
	at      time.Time
	order   *order.Order // nil for a call
	call    *control.Event
	verdict verdict.Verdict
	player  string // the name of the player of an order
}

// entries are the entries of the list, which are kept until something happens.
type entries struct {
	mu      locks.Mutex
	turn    int64 // of the record
	list    []entry
	players []*order.Order // the newest order of each of the last players
}

// entries returns the orders, and the calls that led to none, newest first, and the newest
// order of each of the last players. The caller must not change them.
func (s *View) entries() (list []entry, players []*order.Order) {
	l := &s.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn := s.service.History.Turns.Load(); l.list == nil || l.turn != turn {
		orders := s.orders.All()
		l.turn, l.list, l.players = turn, []entry{}, nil
		const most = 20
		seen := make(map[string]bool)
		for _, o := range orders {
			known := s.orders.Known(o)
			l.list = append(l.list,
				entry{at: o.Placed, order: o, verdict: verdict.Of(known.Facts), player: known.Player})
			if !seen[o.Session.ID] && len(seen) < most {
				seen[o.Session.ID] = true
				l.players = append(l.players, o)
			}
		}
		for _, e := range s.orders.Calls(orders) {
			l.list = append(l.list, entry{at: e.Time, call: &e, verdict: e.Verdict()})
		}
		// a call by when it began
		slices.SortStableFunc(l.list, func(a, b entry) int { return b.at.Compare(a.at) })
	}
	return l.list, l.players
}

// uuid returns that of the order or of the call.
func (e *entry) uuid() uuid.UUID {
	if e.order != nil {
		return e.order.UUID
	}
	return e.call.UUID
}

// filter is the one, except for [frontend.All], that shows an entry.
func (e *entry) filter() frontend.Show {
	switch {
	case e.verdict.Attention:
		return frontend.Attention
	case e.verdict.State == verdict.Waiting:
		return frontend.Waiting
	case e.order != nil:
		return frontend.Done
	default:
		return frontend.Ended
	}
}

// finder returns a function that reports whether a search finds an entry.
func (s *View) finder(query string) func(*entry) bool {
	query = strings.ToLower(strings.TrimSpace(query))
	digits := strings.ReplaceAll(query, "-", "")
	return func(e *entry) bool {
		if query == "" {
			return true
		}
		texts := []string{e.verdict.Said, string(e.verdict.State)}
		var numbers string
		if o := e.order; o != nil {
			texts = append(texts, e.player, o.Session.ID,
				string(o.Trade().Direction)+" "+trade.Tokens(o.Token().Amount.Rat()))
			numbers = "0x" + hex.EncodeToString(o.UUID[:]) + "\n" + o.TxHash.Hex()
		} else {
			texts = append(texts, string(e.call.Kind), e.call.Session, e.call.Outcome)
			numbers = "0x" + hex.EncodeToString(e.call.UUID[:])
		}
		return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), query) || digits != "" &&
			strings.Contains(numbers, digits)
	}
}
