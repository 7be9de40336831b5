package pages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// frontView is the front page. It shows the setup, the orders, and the calls that led to
// no order.
type frontView struct {
	frame
	Setup     []setupCheck
	SetupSaid string       // the setup in a few words, which is all that a phone shows at first
	SetupTone verdict.Tone // bad opens it, also on a phone; good folds it, as all of it works
	Settings  string
	Query     string
	Filters   []filterView
	Filtered  bool // whether filters make a difference
	List      listView
	Any       bool
	Losses    int    // how many orders show a loss
	Lost      string // what happened to them
	Culprit   int    // the number of the call with which that began, if it is one order; 0 if that is unknown
	Fresh     bool   // no order was seen yet, so Setup has the first steps
	Last      string // when the last call was made
	Later     string // what failed although the setup works, and when; "" if nothing did
	More      int    // how many orders without a loss need attention, if others show one
	Start     startView
}

type filterView struct {
	Value, Label string
	Count        int // how many match the search and the filter
	Current      bool
	Href         string
}

// listView is one page of a list.
type listView struct {
	Lines          []line
	What           string // what it holds
	Newer, Older   string // the addresses of the pages beside it; "" if there is none
	First, Last, N int    // which of how many match
}

// startView is the form of a test order.
type startView struct {
	startTerms
	Players  []frontend.Choice // the players of orders so far
	Networks []ramp.Network
	Like     bool // the terms are those of the last initialize call; otherwise they are samples
}

// startTerms are the fields of its terms. Items are lines such as item_gold=100.
type startTerms struct {
	Project, Network, Token, Fee, Materials, Outputs string
}

// Key differs for other terms, so that a live page does not keep the fields of the old ones.
func (t startTerms) Key() string {
	sum := sha256.Sum256(fmt.Append(nil, t))
	return hex.EncodeToString(sum[:4])
}

// frontPage shows the state of the setup and the orders of all players.
func (s *visit) frontPage() {
	s.frontView(http.StatusOK, nil)
}

func (s *visit) frontView(status int, p *problem) {
	q := s.r.URL.Query()
	show, page := q.Get("show"), max(1, number(q.Get("page")))
	v := &frontView{frame: frame{Title: "Orders", Live: true, Problem: p}, Settings: s.settings(),
		Query: q.Get("q")}
	v.Filters = []filterView{{Label: "All"}, {Value: "attention", Label: "Needs attention"},
		{Value: "waiting", Label: "Waiting"}, {Value: "done", Label: "Done"},
		{Value: "ended", Label: "Rejected or canceled"}}
	address := func(show string, page int) string {
		to := url.Values{"q": {v.Query}, "show": {show}}
		if page > 1 {
			to.Set("page", strconv.Itoa(page))
		}
		return "/?" + to.Encode()
	}
	list := s.service.List(frontend.ListQuery{Text: v.Query, Show: frontend.Show(show),
		Offset: (page - 1) * maxLines,
		Limit:  maxLines})
	for i := range v.Filters {
		f := &v.Filters[i]
		f.Count, f.Current, f.Href = list.Counts[frontend.Show(f.Value)], f.Value == show, address(f.Value, 1)
	}
	v.Any, v.Filtered = list.Any, list.Counts[frontend.All] > 0 || s.r.URL.RawQuery != ""
	if last, ok := s.last(frontend.CallsQuery{Pick: frontend.Calls}); ok {
		v.Last = s.stamp(last.Time)
	}
	if v.Fresh = !v.Any && s.r.URL.RawQuery == ""; v.Fresh {
		v.Title, v.Setup = "Connect your game", s.firstChecks()
	} else {
		v.Setup = s.setup()
		v.SetupSaid, v.SetupTone = summary(v.Setup)
		latest := 0
		for _, c := range v.Setup {
			if c.Call > latest {
				latest, v.Later = c.Call, c.Of+" failed at "+c.Later
			}
		}
	}
	v.List.N = list.Counts[frontend.Show(show)]
	v.List.What, v.Losses = holds(v.List.N-list.Calls, list.Calls), list.Losses
	if v.Losses > 0 {
		v.More = list.Counts[frontend.Attention] - v.Losses // every loss needs attention
	}
	v.Lost = cmp.Or(list.Lost, "Assets went wrong in different ways.")
	if c := s.culprits()[list.Loser]; list.Loser != uuid.Nil && c != nil && s.isFirst(c) {
		v.Culprit = c.Number
	}
	v.List.First = min((page-1)*maxLines, v.List.N)
	v.List.Last = v.List.First + len(list.Entries)
	v.List.Lines = s.lines(list.Entries)
	if page > 1 {
		v.List.Newer = address(show, page-1)
	}
	if v.List.Last < v.List.N {
		v.List.Older = address(show, page+1)
	}
	v.List.First++
	v.Start = s.start(list.Players)
	s.show(status, "front.html", v)
}

// start fills the form of a test order.
func (s *site) start(players []frontend.Choice) startView {
	about := s.about()
	networks := slices.Sorted(maps.Keys(about.Chains))
	v := startView{Players: players, Networks: networks,
		startTerms: startTerms{cmp.Or(about.ProjectID, "test"), string(networks[len(networks)-1]),
			"0x00000000000000000000000000000000000070c3", "0", "item_gold=100", "item_gold=100"}}
	if terms, err := s.service.Terms(uuid.Nil); err == nil {
		list := func(items []ramp.Item) string {
			var lines []string
			for _, item := range items {
				lines = append(lines, item.ID+"="+item.Amount.String())
			}
			return strings.Join(lines, "\n")
		}
		v.Like, v.startTerms = true,
			startTerms{terms.ProjectID, string(terms.Network), terms.Token, strconv.Itoa(terms.MintFeeBps),
				list(terms.Materials), list(terms.Outputs)}
	}
	return v
}

// startForm issues a UUID, as for an initialize call, and opens the exchange page, as
// the game does.
func (s *visit) startForm() {
	q := s.r.PostForm
	fail := func(said string) {
		s.frontView(http.StatusUnprocessableEntity, &problem{Said: said})
	}
	if !s.session(q).known() {
		fail(
			"A test order needs a player: choose the player of an earlier order, or enter a session ID " +
				"and an access token of the game.")
		return
	}
	field := func(name string) string { return strings.TrimSpace(strings.ReplaceAll(q.Get(name), "\r", "")) }
	terms := startTerms{field("project"), field("network"), field("token"), field("fee"), field("materials"),
		field("outputs")}
	var own *control.Terms
	var like uuid.UUID
	switch last := s.start(nil); {
	case last.Like && (terms == last.startTerms || !q.Has("token")): // all of them, as the game asked
		terms = last.startTerms
	case !q.Has("token"): // the button alone
		o := s.orderOf(q.Get("player"))
		like, terms.Network = o.UUID, string(o.Network)
	default:
		fee, err := strconv.Atoi(cmp.Or(terms.Fee, "0"))
		if err != nil {
			fail("The fee must be a whole number.")
			return
		}
		items := func(lines string) (list []control.Item) {
			for line := range strings.FieldsFuncSeq(lines, func(r rune) bool { return r == '\n' }) {
				at := max(0, strings.LastIndex(line, "="))
				list = append(list,
					control.Item{ID: line[:at], Amount: json.Number(strings.TrimPrefix(line[at:], "="))})
			}
			return list
		}
		own = &control.Terms{Network: ramp.Network(terms.Network), ProjectID: terms.Project,
			Token:      terms.Token,
			MintFeeBps: fee, Materials: items(terms.Materials), Outputs: items(terms.Outputs)}
	}
	id, err := s.service.Issue(own, like)
	if err != nil {
		fail("The terms cannot be used: " + err.Error() + ".")
		return
	}
	to := fieldsOf(q)
	to.Set("uuid", id.String())
	to.Set("network", terms.Network)
	s.redirect("/exchange?" + to.Encode()) // as the game does
}
