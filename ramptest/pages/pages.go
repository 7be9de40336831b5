// Package pages has the pages of an emulated service: the front end of the interface (4.2),
// and those with which a developer sees what the service and the game did.
//
//	config.Standalone.Pages = pages.New()
//
// The pages ask the service as the control API does, and turn plain values into HTML. What
// they say about an order or a call is the service's own verdict.
package pages

import (
	"embed"
	"html/template"
	"net/http"
	"sync"

	"github.com/token-ramp/ramp-go/ramptest/internal/access"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/route"
)

// files holds the templates and the files that they refer to. There is no build step.
//
//go:embed *.html style.css page.js
var files embed.FS

// New returns the pages, for Pages of ramptest.Standalone.
func New() frontend.Pages { return frontend.NewPages(handler) }

// handler returns the pages of a service.
func handler(service frontend.Service, guard *access.Guard) http.Handler {
	s := &site{service: service, guard: guard}
	s.templates = sync.OnceValue(func() *template.Template {
		functions := template.FuncMap{
			"first": first, "rest": rest, "group": grouped, "breaks": breaks, "long": long,
			"identifier": newIdentifier, "part": newPart,
		}
		return template.Must(template.New("").Funcs(functions).ParseFS(files, "*.html"))
	})
	table := new(route.Table)
	for _, name := range []string{"style.css", "page.js"} {
		file := func(s *visit) { http.ServeFileFS(s.w, s.r, files, name) }
		table.Handle("GET /pages/"+name, s.guarded(file))
	}
	for pattern, page := range map[string]func(*visit){
		"GET /":                              operated((*visit).frontPage),
		"POST /start":                        operated((*visit).startForm),
		"GET /catalog":                       (*visit).catalogPage,
		"POST /catalog":                      (*visit).catalogForm,
		"GET /exchange":                      (*visit).exchangePage,
		"POST /exchange":                     (*visit).exchangeForm,
		"GET /orders/{uuid}":                 ordered((*visit).orderPage),
		"GET /orders/{uuid}/events":          (*visit).earlierPage,
		"GET /orders/{uuid}/events/{number}": (*visit).eventPage,
		"POST /orders/{uuid}/resend":         ordered((*visit).resendForm),
		"POST /orders/{uuid}/advance":        ordered((*visit).advanceForm),
		"POST /orders/{uuid}/read":           ordered((*visit).readForm),
		"POST /orders/{uuid}/end":            ordered((*visit).endForm),
		"POST /exchange/again":               operated((*visit).againForm),
		"GET /calls":                         operated((*visit).callsPage),
		"GET /calls/{number}":                operated((*visit).callPage),
		"POST /orders/{uuid}/another":        operated(ordered((*visit).anotherForm)),
	} {
		table.Handle(pattern, s.guarded(page))
	}
	return table
}
