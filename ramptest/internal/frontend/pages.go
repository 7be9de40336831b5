package frontend

import (
	"net/http"

	"github.com/token-ramp/ramp-go/ramptest/internal/access"
)

// Pages makes the pages of a service. Package pages has them.
type Pages struct {
	handler func(Service, *access.Guard) http.Handler
}

// NewPages returns pages that a function makes.
func NewPages(handler func(Service, *access.Guard) http.Handler) Pages { return Pages{handler} }

// Serve returns the pages of a service, or nil for the zero Pages.
func Serve(p Pages, s Service, g *access.Guard) http.Handler {
	if p.handler == nil {
		return nil
	}
	return p.handler(s, g)
}
