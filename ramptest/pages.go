package ramptest

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// files are the templates, and what they refer to: no build step made them.
//
//go:embed pages
var files embed.FS

// view is what the templates show.
type view struct {
	Title    string
	Network  ramp.Network
	Problem  string
	Name     string // of the player
	Assets   []ramp.Asset
	Tokens   string
	Terms    *terms
	Form     *form
	Order    *orderView
	Orders   []orderView
	Clock    string
	Timeline []eventView
}

type terms struct {
	Materials, Outputs []ramp.Item
	Fee                string
	Expires            string
	PerToken           bool
}

type form struct {
	UUID, AccessToken, SessionID string
	Amount                       string
	Choices                      []choice
}

type choice struct {
	Legend, Name string
	Options      []option
}

type option struct {
	Value, Label, Hint string
	Checked            bool
	faults             []Fault
}

type orderView struct {
	UUID   uuid.UUID
	Title  string
	State  State
	Class  string
	Said   string
	TxHash string
}

type eventView struct {
	Event
	At, What, Class, Status, Attempt, Asked, Answered string
}

// choices are what the exchange page offers. chosen are those that were made.
func choices(chosen url.Values) []choice {
	all := []choice{
		{"What the player does", "do", []option{
			{Value: "mint", Label: "Mint", Hint: "assets become tokens"},
			{Value: "burn", Label: "Burn", Hint: "tokens become assets"},
		}},
		{"What the chain does", "chain", []option{
			{Value: "succeed", Label: "Succeed"},
			{Value: "fail", Label: "Fail", Hint: "receipt.status is 0x0", faults: []Fault{TransactionFails()}},
			{Value: "never", Label: "Never finish", Hint: "the transaction stays pending", faults: []Fault{StaysPending()}},
		}},
		{"How the result comes", "result", []option{
			{Value: "once", Label: "Once"},
			{Value: "twice", Label: "Twice", faults: []Fault{ResultTwice()}},
			{Value: "late", Label: "Late", Hint: "by 10 minutes", faults: []Fault{ResultLate(10 * time.Minute)}},
			{Value: "lost", Label: "Answer lost", Hint: "and so again after 5 minutes", faults: []Fault{LostAnswer(OnResult)}},
			{Value: "never", Label: "Never", faults: []Fault{ResultNever()}},
		}},
	}
	for _, c := range all {
		at := slices.IndexFunc(c.Options, func(o option) bool { return o.Value == chosen.Get(c.Name) })
		c.Options[max(at, 0)].Checked = true
	}
	return all
}

// pages are the front end (interface 4.2), and what the emulator has beyond it.
type pages struct {
	config    *Config
	clock     *clock
	record    *record
	guard     *guard
	life      *lifetime
	studio    *studio
	orders    *orders
	templates func() *template.Template
}

func (s *pages) mount(mux *http.ServeMux) {
	s.templates = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(files, "pages/*.html")) })
	for _, name := range []string{"pages/style.css", "pages/page.js"} {
		mux.Handle("GET /"+name, s.guarded(func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) }))
	}
	mux.Handle("GET /catalog", s.guarded(s.catalogPage))
	mux.Handle("GET /exchange", s.guarded(s.exchangePage))
	mux.Handle("POST /exchange", s.guarded(s.exchangeForm))
	mux.Handle("GET /orders/{uuid}", s.guarded(s.orderPage))
	mux.Handle("GET /orders/{uuid}/changes", s.guarded(s.orderChanges))
	mux.Handle("POST /orders/{uuid}/resend", s.guarded(s.resendForm))
	mux.Handle("POST /orders/{uuid}/advance", s.guarded(s.advanceForm))
}

// guarded keeps other pages of the browser from a page, and the page from
// anywhere else.
func (s *pages) guarded(page http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		// The address has the access token. To ourselves it may go, and must:
		// without it, a browser sends no Origin either.
		h.Set("Referrer-Policy", "same-origin")
		switch {
		case !s.guard.isOurs(r.Host):
			s.failure(w, http.StatusForbidden, "This service is for this machine only, and was reached under the name of another. "+
				"To open it from a phone or an emulator, start it with -public, or with -url and the address that they use "+
				"(AnyHost or PublicURL of ramptest.Config).")
		case r.Method == http.MethodPost && !sameOrigin(r):
			s.failure(w, http.StatusForbidden, "This form was not sent by a page of this service: a program must send its address as Origin.")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, s.config.MaxBody)
			page(w, r)
		}
	})
}

func (s *pages) show(w http.ResponseWriter, status int, name string, v *view) {
	var b bytes.Buffer
	if err := s.templates().ExecuteTemplate(&b, name, v); err != nil {
		panic(err) // the templates are tested
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader is gone: nobody is left to tell
}

func (s *pages) failure(w http.ResponseWriter, status int, problem string) {
	s.show(w, status, "failure.html", &view{Title: http.StatusText(status), Problem: problem})
}

// player asks the studio what the player owns, and shows what it says.
func (s *pages) player(r *http.Request, v *view, session ramp.Session) {
	player, err := s.studio.assets(r.Context(), session, uuid.Nil)
	if err != nil {
		v.Problem = say(err)
		return
	}
	v.Name, v.Assets = player.Name, player.Assets
}

// holds shows what the player's wallet has of a token.
func (s *pages) holds(v *view, session ramp.Session, token orderToken) {
	wallet, err := s.config.wallet(session)
	if err != nil {
		v.Problem = say(err)
		return
	}
	held := s.orders.chains[v.Network].TokenBalance(token.contract(), wallet.Address())
	if amount, err := rounded(held); err == nil {
		v.Tokens = amount.String()
	}
}

// say is an error as the page shows it.
func say(err error) string {
	text := strings.TrimPrefix(err.Error(), "ramptest: ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// catalogPage is the catalog view (interface 2.1).
func (s *pages) catalogPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	session := ramp.Session{ID: q.Get("sessionId"), Token: ramp.NewAccessToken(q.Get("accessToken"))}
	v := &view{Title: "Catalog", Network: ramp.Network(q.Get("network"))}
	project := q.Get("projectId")
	switch {
	case session.ID == "" || session.Token.Reveal() == "" || project == "":
		s.failure(w, http.StatusBadRequest, "projectId, sessionId, accessToken and network are required (2.1).")
		return
	case s.config.ProjectID != "" && project != s.config.ProjectID:
		s.failure(w, http.StatusNotFound, "There is no such project.")
		return
	case s.orders.chains[v.Network] == nil:
		s.failure(w, http.StatusNotFound, "The network must be one that this service has.")
		return
	}
	s.player(r, v, session)
	for _, o := range s.orders.of(session.ID, v.Network) {
		v.Orders = append(v.Orders, viewOrder(o))
	}
	s.show(w, http.StatusOK, "catalog.html", v)
}

// exchangePage is the exchange view (interface 2.1).
func (s *pages) exchangePage(w http.ResponseWriter, r *http.Request) {
	if o := s.orderOf(r.URL.Query().Get("uuid")); o != nil {
		http.Redirect(w, r, "/orders/"+o.UUID.String(), http.StatusSeeOther)
		return
	}
	s.exchangeView(w, r, r.URL.Query(), "")
}

// exchangeView shows what may be ordered, or why nothing may.
func (s *pages) exchangeView(w http.ResponseWriter, r *http.Request, q url.Values, problem string) {
	session := ramp.Session{ID: q.Get("sessionId"), Token: ramp.NewAccessToken(q.Get("accessToken"))}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil || session.ID == "" || session.Token.Reveal() == "" {
		s.failure(w, http.StatusBadRequest, "uuid, accessToken, sessionId and network are required (2.1).")
		return
	}
	asked, expires, err := s.orders.terms(id, false)
	if err != nil {
		status := http.StatusNotFound
		if errors.Is(err, ErrExpiredUUID) {
			status = http.StatusGone
		}
		s.failure(w, status, say(err))
		return
	}
	if network := ramp.Network(q.Get("network")); network != asked.Network {
		s.failure(w, http.StatusBadRequest, "The network is not that of the initialize call.")
		return
	}
	v := &view{
		Title:   "Exchange",
		Network: asked.Network,
		Terms: &terms{Materials: asked.Materials, Outputs: asked.Outputs, PerToken: s.config.PerToken,
			Fee: strconv.FormatFloat(float64(asked.MintFeeBps)/100, 'f', -1, 64) + "%", Expires: expires.Format("15:04:05")},
		Form: &form{UUID: id.String(), AccessToken: session.Token.Reveal(), SessionID: session.ID,
			Amount: cmp.Or(q.Get("amount"), "1"), Choices: choices(q)},
		Timeline: s.timelineOf(id),
	}
	s.player(r, v, session)
	s.holds(v, session, orderToken{ID: asked.Token})
	status := http.StatusOK
	if problem != "" {
		status, v.Problem = http.StatusUnprocessableEntity, problem
	}
	s.show(w, status, "exchange.html", v)
}

// exchangeForm is what the player has decided.
func (s *pages) exchangeForm(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.failure(w, http.StatusBadRequest, "The form did not come whole.")
		return
	}
	q := r.PostForm
	tokens, err := ramp.ParseAmount(strings.TrimSpace(q.Get("amount")))
	if err != nil || tokens.Sign() <= 0 {
		s.exchangeView(w, r, q, "The number of tokens must be a decimal number above 0.")
		return
	}
	id, err := uuid.Parse(q.Get("uuid"))
	if err != nil {
		s.failure(w, http.StatusBadRequest, "The form has no UUID.")
		return
	}
	direction := ramp.Mint
	if q.Get("do") == "burn" {
		direction = ramp.Burn
	}
	var faults []Fault
	for _, c := range choices(q) {
		for _, o := range c.Options {
			if o.Checked {
				faults = append(faults, o.faults...)
			}
		}
	}
	session := ramp.Session{ID: q.Get("sessionId"), Token: ramp.NewAccessToken(q.Get("accessToken"))}
	placed, err := s.orders.order(r.Context(), direction, id, session, tokens, faults)
	if placed == nil && !errors.Is(err, ErrPlaced) { // which is a form that was sent twice
		s.exchangeView(w, r, q, say(err))
		return
	}
	http.Redirect(w, r, "/orders/"+id.String(), http.StatusSeeOther)
}

// orderOf finds an order by its UUID, nil if there is none.
func (s *pages) orderOf(text string) *Order {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	return s.orders.find(id)
}

// withOrder finds the order of a path.
func (s *pages) withOrder(w http.ResponseWriter, r *http.Request) *Order {
	o := s.orderOf(r.PathValue("uuid"))
	if o == nil {
		s.failure(w, http.StatusNotFound, "There is no such order.")
	}
	return o
}

// orderPage shows an order as it goes on.
func (s *pages) orderPage(w http.ResponseWriter, r *http.Request) {
	if o := s.withOrder(w, r); o != nil {
		s.orderView(w, r, o, http.StatusOK, "")
	}
}

func (s *pages) orderView(w http.ResponseWriter, r *http.Request, o *Order, status int, problem string) {
	v := &view{Title: "Order", Network: o.Network}
	s.player(r, v, o.Session)
	s.holds(v, o.Session, o.token())
	shown := viewOrder(o)
	v.Order, v.Timeline = &shown, s.timelineOf(o.UUID)
	v.Clock = "It shows " + s.clock.now().Format("15:04:05") + ", and "
	switch s.config.Speed {
	case 0:
		v.Clock += "stands still."
	case 1:
		v.Clock += "runs."
	default:
		v.Clock += fmt.Sprintf("runs %g times as fast as the wall's.", s.config.Speed)
	}
	v.Problem = cmp.Or(problem, v.Problem)
	s.show(w, status, "order.html", v)
}

// viewOrder is an order as the pages show it.
func viewOrder(o *Order) orderView {
	state := o.delivery.now()
	next, _ := o.delivery.schedule()
	v := orderView{UUID: o.UUID, State: state, TxHash: o.TxHash.Hex(), Class: "wait"}
	verb := "Mint"
	if o.Request.Intent.Type == ramp.Disassemble {
		verb = "Burn"
	}
	v.Title = verb + " of " + o.token().Amount.String() + " tokens"
	switch {
	case state == Confirmed:
		v.Class, v.Said = "good", "The game has confirmed the result."
	case state.over():
		v.Class, v.Said = "bad", "The result is not sent again by itself."
	case !next.IsZero():
		v.Said = "The result is sent at " + next.Format("15:04:05") + "."
	case state == Pending:
		v.Said = "The transaction is in no block yet."
	default:
		v.Said = "No result is due."
	}
	return v
}

// timelineOf is what happened to an order.
func (s *pages) timelineOf(id uuid.UUID) []eventView {
	var shown []eventView
	for _, e := range s.record.all() {
		if e.UUID != id || e.Routine() {
			continue
		}
		v := eventView{Event: e, At: e.Time.Format("15:04:05"), What: e.describe(), Status: httpStatus(e), Attempt: ordinal(e.Attempt)}
		if e.Request != nil {
			v.Class, v.Asked = "good", pretty(e.Request)
		}
		if e.Answer != nil {
			v.Answered = pretty(e.Answer)
		}
		if e.Failed {
			v.Class = "bad"
		}
		shown = append(shown, v)
	}
	return shown
}

// pretty is a message for a reader: its headers, and its body, indented if it is
// JSON.
func pretty(m *Message) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(m.Header[name], ", "))
	}
	if b.Len() > 0 && m.Body != "" {
		b.WriteByte('\n')
	}
	if json.Indent(&b, []byte(m.Body), "", "  ") != nil {
		b.WriteString(m.Body)
	}
	return b.String()
}

// orderChanges tells a page each time that there is something new, as
// server-sent events.
func (s *pages) orderChanges(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	for told := -1; ; {
		number, changed := s.record.wait(o.UUID)
		if number != told { // the page that is told asks for assets, which is an event too
			told = number
			if _, err := fmt.Fprintf(w, "data: %d\n\n", number); err != nil || controller.Flush() != nil {
				return
			}
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-s.life.alive.Done():
			return
		}
	}
}

func (s *pages) resendForm(w http.ResponseWriter, r *http.Request) {
	o := s.withOrder(w, r)
	if o == nil {
		return
	}
	if err := s.orders.resend(r.Context(), o); errors.Is(err, ErrPending) {
		s.orderView(w, r, o, http.StatusConflict, say(err))
		return // any other error is in the timeline
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
		s.failure(w, http.StatusBadRequest, "Let 0 to 1440 minutes pass.")
		return
	}
	s.orders.advance(time.Duration(minutes) * time.Minute)
	http.Redirect(w, r, "/orders/"+o.UUID.String(), http.StatusSeeOther)
}
