// Package route finds what answers a request by its method and path. [http.ServeMux] can do
// it, too, unless the program that runs us has switched that off for all of its packages
// (GODEBUG=httpmuxgo121=1).
package route

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Table answers requests by the first pattern that matches. Add all patterns before the first
// request. The zero value has none.
type Table struct {
	NotFound http.Handler // for a path that no pattern has; nil for http.NotFound
	routes   []entry
}

type entry struct {
	method   string   // "" for each
	segments []string // of the path; a name in braces matches any segment but an empty one
	handler  http.Handler
}

// Handle adds a pattern, such as "GET /orders/{uuid}". The handler gets what stands in the place
// of {uuid} as r.PathValue("uuid"). GET also matches HEAD. A pattern without a method matches
// every method.
func (t *Table) Handle(pattern string, h http.Handler) {
	method, path, hasMethod := strings.Cut(pattern, " ")
	if !hasMethod {
		method, path = "", pattern
	}
	t.routes = append(t.routes, entry{method, strings.Split(path, "/"), h})
}

// ServeHTTP answers as NotFound if no pattern has the path, and 405 if none of them has the method.
func (t *Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(r.URL.EscapedPath(), "/")
	var allowed []string
	for _, e := range t.routes {
		values, ok := e.match(path)
		switch {
		case !ok:
		case e.method == "" || e.method == r.Method ||
			e.method == http.MethodGet && r.Method == http.MethodHead:
			for name, value := range values {
				r.SetPathValue(name, value)
			}
			e.handler.ServeHTTP(w, r)
			return
		default:
			allowed = append(allowed, e.method)
		}
	}
	if len(allowed) == 0 {
		if t.NotFound != nil {
			t.NotFound.ServeHTTP(w, r)
		} else {
			http.NotFound(w, r)
		}
		return
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
}

// match returns what stands in the places of the names.
func (e entry) match(path []string) (values map[string]string, ok bool) {
	if len(path) != len(e.segments) {
		return nil, false
	}
	values = map[string]string{}
	for i, segment := range e.segments {
		text, err := url.PathUnescape(path[i])
		if err != nil {
			return nil, false
		}
		if name, isName := strings.CutPrefix(segment, "{"); isName && text != "" {
			values[strings.TrimSuffix(name, "}")] = text
		} else if text != segment {
			return nil, false
		}
	}
	return values, true
}
