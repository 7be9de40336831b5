package pages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/access"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// site serves the pages of a service.
type site struct {
	service   frontend.Service
	guard     *access.Guard
	templates func() *template.Template
}

// maxForm is the maximum size of a form.
const maxForm = 1 << 20

// about describes the service.
func (s *site) about() control.Description {
	d, _ := s.service.Describe(context.Background()) // a service in this process always can
	return d
}

// visit is a request for a page.
type visit struct {
	*site
	w http.ResponseWriter
	r *http.Request
}

func (s *visit) redirect(address string) { http.Redirect(s.w, s.r, address, http.StatusSeeOther) }

// guarded protects a page from other sites, and keeps the page from loading anything
// from them.
func (s *site) guarded(page func(*visit)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, h := &visit{s, w, r}, w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
				"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		// The address contains the access token, so it must not go to other sites. It
		// must go to this one: without a referrer, a browser sends no Origin either.
		h.Set("Referrer-Policy", "same-origin")
		switch {
		case !s.guard.IsOurs(r.Host):
			v.failure(http.StatusForbidden,
				"This service accepts requests only under a name of this machine. "+
					"To open it from a phone or an emulator, start it with -public, or with -url and the "+
					"address that they use "+
					"(ControlToken or PublicURL of ramptest.Standalone).")
		case r.Method == http.MethodPost && !access.SameOrigin(r):
			v.failure(http.StatusForbidden,
				"This form was not sent by a page of this service. A program must send the address of the "+
					"service as Origin.")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if r.Method == http.MethodPost && r.ParseForm() != nil {
				v.failure(http.StatusBadRequest, "The form was cut off. Please send it again.")
				return
			}
			page(v)
		}
	})
}

// operated restricts a page about all players to those who may act for all players.
func operated(page func(*visit)) func(*visit) {
	return func(s *visit) {
		if !s.guard.Operates(s.r) {
			s.failure(http.StatusForbidden,
				"This page shows the orders of all players. Open it on the machine of the service, "+
					"or with the address that ramp emulate -public printed, which contains a token "+
					"(ControlToken of ramptest.Standalone).")
			return
		}
		if q := s.r.URL.Query(); s.guard.Token != "" && s.r.Method == http.MethodGet && q.Has("token") {
			s.guard.Remember(s.w)
			q.Del("token")
			s.redirect(s.r.URL.Path + "?" + q.Encode())
			return
		}
		page(s)
	}
}

// frame is the part that every page has.
type frame struct {
	Title   string
	Network ramp.Network
	Problem *problem
	Down    *down  // of a game that does not answer; nil if it does
	Unkept  string // why the state file cannot be written
	Clock   string // what the clock shows
	Zone    int    // its distance from UTC in seconds, for the script
	Offset  string // how far it is from the real time; "" if it shows that
	Now     int64  // the same in milliseconds, for the script
	Speed   float64
	Live    bool // whether the page updates itself
}

// down is where a game does not answer, and why.
type down struct{ At, Why string }

// curlView is a curl command to copy.
type curlView struct {
	Number int // of the event
	Text   string
}

// problem describes what went wrong and how to continue.
type problem struct {
	Said   string
	Loss   bool         // the game lost assets
	Tone   verdict.Tone // that of the call that the game rejected; "" if there is none
	Detail string       // the endpoint, the status and the body
	Cause  string
	Curl   curlView // the call that was rejected
	Links  []link
	// the fields of the form that starts the same order under a new UUID; nil if there is none
	Again url.Values
}

type link struct{ Href, Text string }

func (f *frame) framed() *frame { return f }

// framed is a view of a page.
type framed interface{ framed() *frame }

// show writes a page. It does not send a live page again if it has not changed.
func (s *visit) show(status int, name string, v framed) {
	f := v.framed()
	about := s.about()
	f.Clock, f.Now, f.Speed = about.Now.Format(dated), about.Now.UnixMilli(), about.Speed
	_, f.Zone = about.Now.Zone()
	if offset := time.Until(about.Now).Round(time.Second); offset > 0 {
		f.Offset = span(offset) + " ahead"
	} else if offset < 0 {
		f.Offset = span(-offset) + " behind"
	}
	f.Down, f.Unkept = s.down(), about.StateError
	execute := func(part string, v any) []byte {
		var b bytes.Buffer
		if err := s.templates().ExecuteTemplate(&b, part, v); err != nil {
			panic(err) // cannot happen: the templates are tested
		}
		return b.Bytes()
	}
	body := execute(name, v)
	s.w.Header().Set("Ramp-Clock", strconv.FormatInt(f.Now, 10))
	f.Live = f.Live && status == http.StatusOK // an update would remove the problem
	if f.Live {
		sum := sha256.Sum256(append(body, f.Offset...)) // without the clock, which changes
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		s.w.Header().Set("ETag", tag)
		if s.r.Header.Get("If-None-Match") == tag {
			s.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	s.w.WriteHeader(status)
	// An error means that the reader is gone.
	_, _ = s.w.Write(execute("top", f))
	_, _ = s.w.Write(body)
	_, _ = s.w.Write(execute("bottom", f))
}

// failure shows only a problem.
func (s *visit) failure(status int, said string, links ...link) {
	s.show(status, "failure.html",
		&frame{Title: http.StatusText(status), Problem: &problem{Said: said, Links: links}})
}

// down returns where the game is if it did not answer the last call, and otherwise nil.
func (s *site) down() *down {
	e, ok := s.last(frontend.CallsQuery{Pick: frontend.Answered, Routine: true}, control.KindAssets,
		control.KindValidate, control.KindResult)
	if !ok || e.Answer != nil {
		return nil
	}
	return s.downBy(&e)
}

// downBy returns where the game is, and why it did not answer a call.
func (s *site) downBy(e *control.Event) *down {
	_, why, ended := strings.Cut(e.Outcome, "the game did not answer: ")
	if !ended {
		why = strings.TrimPrefix(e.Outcome, "ramptest: ")
	}
	if _, seen, unsent := strings.Cut(why, "so nothing moved: "); unsent {
		why = seen
	}
	if why != "" {
		why = strings.ToUpper(why[:1]) + why[1:] + "."
	}
	return &down{s.gameAddress(), why}
}

// dated is a time with its date. The clock of a page always has it, because times that are not of today have.
const dated = "Jan 2 " + time.TimeOnly

// stamp formats a time of the service's clock, with its date if that is not today's.
func (s *site) stamp(at time.Time) string {
	if now := s.about().Now; at.Format(time.DateOnly) != now.In(at.Location()).Format(time.DateOnly) {
		return at.Format(dated)
	}
	return at.Format(time.TimeOnly)
}

// verdictView is a verdict as the pages show it.
type verdictView struct {
	verdict.Verdict
	Lead   string // of a rejected order: the sentence before Short, which says with which errorCode
	Short  string // without figures, if it is that of an order
	At     string // when the next step is due; "" if none is planned
	Millis int64  // the same in milliseconds, for the script that counts down; 0 if the clock stands still
}

func (s *site) verdictView(v verdict.Verdict) verdictView {
	shown := verdictView{Verdict: v, Short: cmp.Or(v.Head, v.Said)}
	if !v.Next.At.IsZero() {
		if shown.At = s.stamp(v.Next.At); s.about().Speed != 0 {
			shown.Millis = v.Next.At.UnixMilli()
		}
	}
	return shown
}

// last returns the newest event that a query selects.
func (s *site) last(q frontend.CallsQuery, kinds ...control.Kind) (control.Event, bool) {
	q.Limit, q.Kinds = 1, kinds
	events, _ := s.service.Calls(q)
	if len(events) == 0 {
		return control.Event{}, false
	}
	return events[0], true
}

// gameAddress returns the address of the game without credentials, or "" if it is in memory.
func (s *site) gameAddress() string {
	u, _ := url.Parse(s.about().Game) // the service has accepted it
	u.User = nil
	return strings.TrimRight(u.String(), "/")
}
