package ramptest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A page without orders tries the game: is it there, does it have the HMAC key, and has it asked for a UUID?
// Of the key, it says only what the answers to a right signature and to a wrong one show.
func TestTheFirstPageTriesTheGame(t *testing.T) {
	const (
		answers = "✓ Game reachable works at "
		has     = "✓ Same HMAC key works It rejected a wrong signature, but not the emulator's, at "
		unclear = ", for a wrong signature as for that of the emulator. The first order shows more."
		unseen  = "– Same HMAC key not seen yet "
	)
	key := wayKey(t)
	rejecting := func(status int, right, wrong string) http.Handler { // how a game without package ramp answers
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			code := right
			if key.Verify(body, r.Header.Get(ramp.HeaderHMAC)) != nil {
				code = wrong
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"success":false,"errorCode":"`+code+`","data":null}`)
		})
	}
	for name, test := range map[string]struct {
		game  http.Handler // nil for one of package ramp
		other bool         // whether the emulator has another key than the game
		want  []string
	}{
		"the same key": {want: []string{answers, has, "– First UUID not seen yet Point RAMP_API_URL"}},
		"another key": {other: true, want: []string{answers,
			"✗ Same HMAC key fails POST /api/validate: HTTP 401, HMAC_INVALID The game may have a different HMAC key"}},
		"codes of the game's own": {game: rejecting(200, "NO_UUID", "BAD_SIGNATURE"), want: []string{answers, has}},
		"the session is checked first": {game: rejecting(401, "INVALID_USER", "INVALID_USER"), want: []string{answers,
			unseen + "POST /api/validate: HTTP 401, INVALID_USER" + unclear}},
		"every call fails":     {game: rejecting(500, "OOPS", "AGAIN"), want: []string{answers, unseen, unclear}},
		"a game that approves": {game: answeringAll(200, confirmed), want: []string{answers, unseen, unclear}},
		"no such endpoint": {game: http.NotFoundHandler(), want: []string{answers, unseen,
			"The game has no such endpoint. Set its path with -validate."}},
		"a web page": {game: answeringAll(200, "<html>Hello"), want: []string{answers, unseen,
			"but it is an HTML page."}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			c := newCounter(t, func(c *ramptest.Config) {
				if test.game != nil {
					c.Handler = test.game
				}
				if test.other {
					c.Key = must.Get(ramp.TextKey("a key that the game does not have"))(t)
				}
			}, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
				body, _ := io.ReadAll(r.Body)
				calls++
				assert.Equal(t, ramp.PathValidate, r.URL.Path)
				assert.Empty(t, r.Header[ramp.HeaderAuthorization])
				assert.NotRegexp(t, `(?i)"(uuid|intent|digest|receipt|session_id)"`, string(body),
					"nothing of an order")
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				game.ServeHTTP(w, r)
			}))
			page := c.page(t, "/")
			for _, want := range test.want {
				assert.Contains(t, page, want)
			}
			assert.LessOrEqual(t, calls, 2)
			asked := calls
			assert.Equal(t, page, c.page(t, "/"), "a page that asks again")
			assert.Equal(t, asked, calls, "does not disturb the game")
			assert.Empty(t, c.service.Events(), "the calls are about nobody")
		})
	}
}

func answeringAll(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestTheFirstPageSaysThatNothingListens(t *testing.T) {
	game := httptest.NewServer(http.NotFoundHandler())
	game.Close()
	c := newCounter(t, func(c *ramptest.Config) { c.Game, c.Handler = game.URL, nil })
	page := c.page(t, "/")
	assert.Contains(t, page, "✗ Game reachable fails Nothing listens at "+game.Listener.Addr().String()+
		". Start it, or restart the emulator with its address in -game.")
	assert.Contains(t, page, "– Same HMAC key not seen yet This is tried as soon as the game answers.")
}

// The first steps end with the first order. A UUID that was issued shows that the key is the same.
func TestTheFirstStepsEndWithTheFirstOrder(t *testing.T) {
	c := newCounter(t, answering(ramp.PathValidate, 401, `{"success":false,"errorCode":"LOGIN","data":null}`))
	require.Contains(t, c.page(t, "/"), "Connect your game")
	c.initialize(t)
	page := c.page(t, "/")
	assert.Contains(t, page, "✓ Same HMAC key works It has signed its initialize call with it.")
	assert.Contains(t, page, "✓ First UUID works")
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.Error(t, err)
	assert.NotContains(t, c.page(t, "/"), "Connect your game")
}
