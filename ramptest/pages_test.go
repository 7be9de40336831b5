package ramptest_test

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// browse gets a page, or sends a form to it, as a browser does.
func (c *counter) browse(t *testing.T, method, address string, form url.Values, headers ...string) *http.Response {
	t.Helper()
	if !strings.HasPrefix(address, "http") {
		address = c.service.URL() + address
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", c.service.URL())
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := c.service.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// text is what a page says, without its tags.
func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(body), " ")
	return strings.Join(strings.Fields(html.UnescapeString(plain)), " ")
}

func (c *counter) exchange(t *testing.T) (address string, form url.Values) {
	t.Helper()
	id := c.initialize(t)
	// The client's address stands in for one that ExchangeURL accepts.
	address, err := ramp.ExchangeURL(c.service.URL(), ramp.ExchangeParams{UUID: id, AccessToken: c.session.Token, SessionID: c.session.ID, Network: ramp.Testnet})
	require.NoError(t, err)
	return address, url.Values{"uuid": {id.String()}, "accessToken": {"token-1"}, "sessionId": {c.session.ID},
		"network": {"testnet"}, "amount": {"10"}, "do": {"mint"}, "chain": {"succeed"}, "result": {"once"}}
}

func TestAnOrderIsPlacedOnThePage(t *testing.T) {
	for _, test := range []struct {
		do, chain, result string
		before, after     string // gold on the page of the order
		state             string
		attempts          int
	}{
		{"mint", "succeed", "once", "item_gold 900", "item_gold 900 tokens in the wallet 1008", "confirmed", 1},
		{"mint", "fail", "once", "item_gold 900", "item_gold 1000 tokens in the wallet 1000", "confirmed", 1},
		{"mint", "fail", "twice", "item_gold 900", "item_gold 1000", "confirmed", 2},
		{"mint", "fail", "lost", "item_gold 900", "item_gold 1000", "confirmed", 2},
		{"mint", "fail", "late", "item_gold 900", "item_gold 1000", "confirmed", 1},
		{"mint", "fail", "never", "item_gold 900", "item_gold 900", "delivering", 0},
		{"mint", "never", "once", "item_gold 900", "item_gold 900", "pending", 0},
		{"burn", "succeed", "once", "item_gold 1000", "item_gold 1100 tokens in the wallet 990", "confirmed", 1},
	} {
		t.Run(test.do+" "+test.chain+" "+test.result, func(t *testing.T) {
			c := newCounter(t)
			address, form := c.exchange(t)
			page := c.browse(t, http.MethodGet, address, nil)
			require.Equal(t, 200, page.StatusCode)
			said := text(t, page)
			assert.Contains(t, said, "item_gold 1000 tokens in the wallet 1000")
			assert.Contains(t, said, "a mint takes item_gold 100")
			assert.Contains(t, said, "fee of a mint 20%")

			form.Set("do", test.do)
			form.Set("chain", test.chain)
			form.Set("result", test.result)
			sent := c.browse(t, http.MethodPost, "/exchange", form)
			require.Equal(t, 303, sent.StatusCode, text(t, sent))
			order := sent.Header.Get("Location")
			assert.NotContains(t, order, "token-1")
			twice := c.browse(t, http.MethodPost, "/exchange", form)
			assert.Equal(t, order, twice.Header.Get("Location"), "a click too many")
			said = text(t, c.browse(t, http.MethodGet, order, nil))
			assert.Contains(t, said, test.before)
			assert.Contains(t, said, "pending")

			passed := c.browse(t, http.MethodPost, order+"/advance", url.Values{"minutes": {"15"}})
			assert.Equal(t, 303, passed.StatusCode)
			said = text(t, c.browse(t, http.MethodGet, order, nil))
			assert.Contains(t, said, test.after)
			assert.Contains(t, said, test.state)
			assert.Len(t, c.shop.heard, test.attempts)

			again := c.browse(t, http.MethodGet, address, nil)
			assert.Equal(t, order, again.Header.Get("Location"), "a UUID is one order")
			resent := c.browse(t, http.MethodPost, order+"/resend", nil)
			if test.state == "pending" {
				assert.Equal(t, 409, resent.StatusCode)
				assert.Contains(t, text(t, resent), "in no block yet")
				return
			}
			assert.Equal(t, 303, resent.StatusCode)
			assert.Len(t, c.shop.heard, test.attempts+1)

			catalog, err := ramp.CatalogURL(c.service.URL(), ramp.CatalogParams{ProjectID: "project-1", SessionID: c.session.ID,
				AccessToken: c.session.Token, Network: ramp.Testnet, Lang: ramp.LangEnglish})
			require.NoError(t, err)
			assert.Contains(t, text(t, c.browse(t, http.MethodGet, catalog, nil)), "of 10 tokens confirmed")
		})
	}
}

func TestAPageSaysWhatIsWrong(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.ProjectID = "project-1" })
	address, form := c.exchange(t)
	with := func(name, value string) url.Values {
		changed := url.Values{}
		for k, v := range form {
			changed[k] = v
		}
		changed.Set(name, value)
		return changed
	}
	for _, test := range []struct {
		form   url.Values
		status int
		want   string
	}{
		{with("amount", "ten"), 422, "above 0"},
		{with("amount", "-1"), 422, "above 0"},
		{with("accessToken", "token-2"), 422, `declined with HTTP 401 and "INVALID_USER"`},
		{with("uuid", "x"), 400, "no UUID"},
		{with("uuid", "7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"), 404, "no such UUID"},
	} {
		answer := c.browse(t, http.MethodPost, "/exchange", test.form)
		assert.Equal(t, test.status, answer.StatusCode)
		assert.Contains(t, text(t, answer), test.want)
	}
	for address, want := range map[string]int{
		"/exchange?uuid=x":  400,
		"/catalog?network=": 400,
		"/catalog?projectId=project-2&sessionId=s&accessToken=t&network=testnet": 404,
		"/catalog?projectId=project-1&sessionId=s&accessToken=t&network=moon":    404,
		"/orders/x": 404,
		"/orders/7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10/changes": 404,
		strings.Replace(address, "testnet", "mainnet", 1):      400,
		"/pages/":           404,
		"/pages/order.html": 404,
	} {
		assert.Equal(t, want, c.browse(t, http.MethodGet, address, nil).StatusCode, address)
	}
	c.service.Advance(5 * time.Minute)
	assert.Equal(t, 410, c.browse(t, http.MethodGet, address, nil).StatusCode)

	c = newCounter(t)
	order := c.mint(t)
	for path, want := range map[string]int{"/advance": 400, "/resend": 409} {
		assert.Equal(t, want, c.browse(t, http.MethodPost, "/orders/"+order.UUID.String()+path, nil).StatusCode)
	}
}

func TestAPageKeepsToItself(t *testing.T) {
	c := newCounter(t)
	address, form := c.exchange(t)
	page := c.browse(t, http.MethodGet, address, nil)
	assert.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.Equal(t, "no-store", page.Header.Get("Cache-Control"))
	body, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	for _, address := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(string(body), -1) {
		assert.Regexp(t, `^(/[a-z]|data:,)`, address[1], "nothing from anywhere else")
	}
	assert.NotContains(t, string(body), "<img", "an icon would come from elsewhere")

	for _, headers := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", ""},
	} {
		refused := c.browse(t, http.MethodPost, "/exchange", form, headers...)
		assert.Equal(t, 403, refused.StatusCode)
	}
	assert.Equal(t, int64(1000), c.shop.owns())

	recorder := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.Host = "evil.example"
	c.service.ServeHTTP(recorder, r)
	assert.Equal(t, 403, recorder.Code, "a name that was made to point here")
	assert.Contains(t, recorder.Body.String(), "start it with -public", "it says what helps")
	for _, open := range []func(*ramptest.Config){
		func(c *ramptest.Config) { c.AnyHost = true },
		func(c *ramptest.Config) { c.PublicURL = "https://evil.example" },
	} {
		c = newCounter(t, open)
		recorder = httptest.NewRecorder()
		c.service.ServeHTTP(recorder, r)
		assert.Equal(t, 404, recorder.Code)
	}
}

func TestWhatThePlayerWritesIsNoMarkup(t *testing.T) {
	c := newCounter(t)
	address, _ := c.exchange(t)
	page := c.browse(t, http.MethodGet, strings.Replace(address, "session-1", "%22%3E%3Cscript%3E", 1), nil)
	body, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	assert.NotContains(t, string(body), `"><script>`)
}

func TestAPageHearsOfChanges(t *testing.T) {
	c := newCounter(t)
	server := httptest.NewServer(c.service)
	defer server.Close()
	order := c.mint(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/"+order.UUID.String()+"/changes", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return "the end"
	}
	assert.Equal(t, "data: 6", next(), "it begins with what there is")
	_, err = c.service.Assets(t.Context(), c.session)
	require.NoError(t, err)
	c.service.Advance(time.Minute)
	assert.Contains(t, []string{"data: 8", "data: 10", "data: 12"}, next(), "the block, or the result already")
	c.service.Close()
	for last := next(); last != "the end"; last = next() {
		assert.Contains(t, []string{"data: 10", "data: 12"}, last)
	}
}
