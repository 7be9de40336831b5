package ramptest

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
	"github.com/token-ramp/ramp-go/ramptest/internal/api"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// frontDesk is the service as its pages see it.
type frontDesk struct {
	*remote
	listed  entries
	probing *probing
}

var _ desk.Service = (*frontDesk)(nil)

// List implements [desk.Service], as the other methods do.
func (s *frontDesk) List(q desk.ListQuery) desk.List {
	list := desk.List{Counts: make(map[desk.Show]int)}
	if q.Session != "" {
		for _, o := range s.orders.all() {
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
		for _, show := range []desk.Show{desk.All, e.filter()} {
			list.Counts[show]++
			if show == q.Show && e.order == nil {
				list.Calls++
			}
			if show == desk.All && e.verdict.Loss {
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
			desk.Choice{Order: o.UUID, Name: s.orders.player(o), Session: o.Session.ID})
	}
	return list
}

func (s *frontDesk) Name(session string) string {
	_, name := s.orders.audit.Who(session)
	return name
}

// shown returns an entry as it is now: the next block may have moved on.
func (s *frontDesk) shown(e *entry) desk.Entry {
	if e.order == nil {
		call := s.history.Whole(*e.call)
		return desk.Entry{Call: &call}
	}
	o := s.report(e.order)
	return desk.Entry{Order: &o}
}

func (s *frontDesk) Calls(q desk.CallsQuery) (events []control.Event, more bool) {
	orders := make(map[uuid.UUID]bool) // of the session, to find their initialize calls
	if q.Session != "" {
		for _, o := range s.orders.all() {
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
	events = s.history.NewestFirst(before, limit, func(e *control.Event) bool {
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
		events = s.history.Wholes(events)
	}
	return events, more
}

// picked reports whether an event is among those of a pick.
func picked(e *control.Event, pick desk.Pick) bool {
	judged := e.Tone == verdict.Good || e.Tone == verdict.Bad
	switch pick {
	case desk.Calls:
		return e.Request != nil
	case desk.Wrong:
		return e.Request != nil && e.IsWrong()
	case desk.Lost:
		return e.Loss != ""
	case desk.Answered:
		return e.Answer != nil || e.Tone == verdict.Bad
	case desk.Routine:
		return e.Request != nil && e.Routine()
	case desk.Genuine, desk.Judged:
		byHand := e.Fault == byHand && e.Tone == verdict.Bad // what the game must not accept is no failure
		return (judged || e.IsPolicy() && pick == desk.Genuine) &&
			(e.Fault == "" || e.Outcome == "success" || byHand) &&
			!strings.Contains(e.Outcome, errUnsent.Error())
	default:
		return true
	}
}

func (s *frontDesk) Worked(kind control.Kind) (control.Event, bool) { return s.history.LastGood(kind) }

func (s *frontDesk) Probe(ctx context.Context) desk.Probe { return s.probing.ask(ctx, s.orders.game) }

func (s *frontDesk) Terms(id uuid.UUID) (terms desk.Terms, err error) {
	if id == uuid.Nil {
		latest, ok := s.orders.latest()
		if !ok {
			return terms, api.Errorf(control.CodeNotFound, "there was no initialize call")
		}
		return desk.Terms{InitializeIntent: latest}, nil
	}
	if terms.InitializeIntent, terms.Expires, err = s.orders.terms(id, false); err != nil {
		return terms, reported(err)
	}
	terms.First = s.orders.opens(id)
	return terms, nil
}

func (s *frontDesk) Issue(terms *control.Terms, like uuid.UUID) (id uuid.UUID, err error) {
	latest, known := s.orders.latest()
	switch {
	case terms != nil:
		id, err = s.identify(&control.StartRequest{Terms: terms}, nil)
	case like == uuid.Nil && known:
		id = s.orders.issue(latest)
	default:
		id, err = s.orders.issueLike(like)
	}
	if err != nil {
		return id, reported(err)
	}
	return id, nil
}

func (s *frontDesk) Player(ctx context.Context, q desk.PlayerQuery) (p desk.Player, err error) {
	session, err := s.session(&control.StartRequest{SessionID: q.Session, AccessToken: q.AccessToken}, nil)
	if err != nil {
		return p, err
	}
	game := s.orders.game
	read, known := game.readings.of(session)
	if q.Read || !known {
		if _, _, err := game.assets(ctx, session, uuid.Nil); err != nil && ctx.Err() != nil {
			return p, reported(err) // nobody waits any more
		}
		read, _ = game.readings.of(session)
	}
	p = desk.Player{At: read.at, Unknown: read.err != nil}
	if p.Unknown {
		p.Problem = say(read.err)
	}
	if read.player != nil {
		p.Name, p.Assets = read.player.Name, read.player.Assets
	}
	if wallet, err := s.config.wallet(session); err == nil && q.Token != "" &&
		s.orders.chains[q.Network] != nil {
		token := orderToken{ID: q.Token}
		p.Tokens = books.Decimal(s.orders.chains[q.Network].TokenBalance(token.contract(), wallet.Address()))
	}
	return p, nil
}

func (s *frontDesk) Balances(id uuid.UUID) (b desk.Balances, err error) {
	o, err := s.order(id.String())
	if err != nil {
		return b, err
	}
	b.Rows, b.Others = s.orders.rows(o)
	if read, ok := s.orders.game.readings.of(o.Session); ok {
		b.At = read.at
		if read.err != nil {
			b.Problem = say(read.err)
		}
	}
	return b, nil
}

func (s *frontDesk) Mine(id uuid.UUID, outcome string) error {
	o, err := s.order(id.String())
	if err != nil {
		return err
	}
	mined, known := outcomes[outcome]
	if !known {
		return invalid("the outcome must be succeeded or failed")
	}
	if !s.orders.end(o, mined) {
		return api.Errorf(control.CodePlaced, "the transaction is already in a block")
	}
	s.orders.advance(0)
	return nil
}

// entry is an order, or a call that led to no order.
type entry struct {
	at      time.Time
	order   *Order // nil for a call
	call    *control.Event
	verdict verdict.Verdict
	player  string // the name of the player of an order
}

// entries are the entries of the list, which are kept until something happens.
type entries struct {
	mu      locks.Mutex
	turn    int64 // of the record
	list    []entry
	players []*Order // the newest order of each of the last players
}

// entries returns the orders, and the calls that led to none, newest first, and the newest
// order of each of the last players. The caller must not change them.
func (s *frontDesk) entries() (list []entry, players []*Order) {
	l := &s.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn := s.history.Turns.Load(); l.list == nil || l.turn != turn {
		orders := s.orders.all()
		l.turn, l.list, l.players = turn, []entry{}, nil
		const most = 20
		seen := make(map[string]bool)
		for _, o := range orders {
			known := s.orders.known(o)
			l.list = append(l.list,
				entry{at: o.placed, order: o, verdict: verdict.Of(known.Facts), player: known.Player})
			if !seen[o.Session.ID] && len(seen) < most {
				seen[o.Session.ID] = true
				l.players = append(l.players, o)
			}
		}
		for _, e := range s.orders.calls(orders) {
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

// filter is the one, except for [desk.All], that shows an entry.
func (e *entry) filter() desk.Show {
	switch {
	case e.verdict.Attention:
		return desk.Attention
	case e.verdict.State == verdict.Waiting:
		return desk.Waiting
	case e.order != nil:
		return desk.Done
	default:
		return desk.Ended
	}
}

// finder returns a function that reports whether a search finds an entry.
func (s *frontDesk) finder(query string) func(*entry) bool {
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
				string(o.trade().direction)+" "+tokens(o.token().Amount.Rat()))
			numbers = "0x" + hex.EncodeToString(o.UUID[:]) + "\n" + o.TxHash.Hex()
		} else {
			texts = append(texts, string(e.call.Kind), e.call.Session, e.call.Outcome)
			numbers = "0x" + hex.EncodeToString(e.call.UUID[:])
		}
		return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), query) || digits != "" &&
			strings.Contains(numbers, digits)
	}
}
