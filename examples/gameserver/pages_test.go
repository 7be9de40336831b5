package main

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// A page's token opens its page, and nothing else does.
func TestThePageOfAnOrderHasATokenOfItsOwn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, _ := open(t, address)
		alice, bob := loggedIn(t, game, "alice"), loggedIn(t, game, "bob")
		one, other := uuid.New(), uuid.New()
		order := must(game.openPage(t.Context(), alice.ID))(t)
		catalog := must(game.openPage(t.Context(), alice.ID))(t)
		check(t, game.startOrder(t.Context(), order, one))
		if err := game.startOrder(t.Context(), order, other); !errors.Is(err, errRows) {
			t.Errorf("a page is bound to two orders: %v", err)
		}
		expired := must(game.openPage(t.Context(), alice.ID))(t)
		check(t, game.startOrder(t.Context(), expired, other))
		must(game.db.Exec("UPDATE pages SET expires_at = 1 WHERE order_uuid = '" + other.String() + "'"))(t)
		with := func(s, token ramp.Session) ramp.Session { return ramp.Session{ID: s.ID, Token: token.Token} }
		token := func(text string) ramp.Session { return ramp.Session{Token: ramp.NewAccessToken(text)} }
		for name, c := range map[string]struct {
			session ramp.Session
			assets  bool
			orders  []uuid.UUID // of which it may ask
		}{
			"the page of an order":             {order, true, []uuid.UUID{one}},
			"a page for assets":                {catalog, true, nil},
			"a page that has expired":          {expired, false, nil},
			"the login":                        {alice, false, nil},
			"a page in another name":           {with(bob, order), false, nil},
			"a page in other letters":          {with(ramp.Session{ID: strings.ToLower(order.ID)}, order), false, nil},
			"an invented token":                {with(alice, token("invented")), false, nil},
			"the hash of a token":              {with(alice, token(hash(order.Token.Reveal()))), false, nil},
			"the login of somebody else":       {with(alice, bob), false, nil},
			"a session that nobody has opened": {with(ramp.Session{ID: "nobody"}, order), false, nil},
		} {
			equal(t, name+": assets", game.Authenticate(t.Context(), c.session) == nil, c.assets)
			for _, id := range []uuid.UUID{one, other, uuid.New(), uuid.Nil} {
				asked := &ramp.ValidateRequest{UUID: id}
				may := len(c.orders) > 0 && c.orders[0] == id
				equal(t, name+": order", game.checkPage(t.Context(), c.session, asked) == nil, may)
			}
		}
		const ofOrder = "SELECT token_hash FROM pages WHERE order_uuid = ?"
		stored := must(game.column(t.Context(), game.db, ofOrder, one.String()))(t)
		equal(t, "what is stored", strings.Join(stored, " "), hash(order.Token.Reveal()))
		check(t, (&migration{game.db, game.dialect, func(string) {}}).run(t.Context()))
		left := must(game.column(t.Context(), game.db, "SELECT token_hash FROM pages WHERE player = ?", "alice"))(t)
		equal(t, "pages after a migration", len(left), 2)
	})
}

// The service limits initialize calls of all players together.
func TestAPlayerOpensNotTooManyPages(t *testing.T) {
	game, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	alice, again, bob := loggedIn(t, game, "alice"), loggedIn(t, game, "alice"), loggedIn(t, game, "bob")
	for range maxPages {
		must(game.openPage(t.Context(), alice.ID))(t)
	}
	for _, s := range []ramp.Session{alice, again} {
		_, err := game.openPage(t.Context(), s.ID)
		var limited *failure
		equal(t, "limited", errors.As(err, &limited) && limited.status == http.StatusTooManyRequests, true)
	}
	must(game.openPage(t.Context(), bob.ID))(t)
	must(game.db.Exec("UPDATE pages SET opened_at = opened_at - 61"))(t)
	must(game.openPage(t.Context(), alice.ID))(t)
}

// paged is a server whose calls need the tokens of pages, and the service that it asks for UUIDs.
func paged(t *testing.T, config ramptest.Config, more ...string) (*process, *ramptest.Service) {
	t.Helper()
	listen := freeAddress(t)
	config.Game = "http://" + listen
	service, _ := serviceWith(t, hmacKey, validatorKey, config)
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	migrated(t, address)
	p := &process{t: t, pages: true,
		env: append(real(), "RAMP_API_URL="+service.URL(), "RAMP_FRONTEND_URL="+service.URL()),
		args: append([]string{"-addr", listen, "-db", address, "-project", "project", "-token", token,
			"-network", "testnet"}, more...)}
	p.start()
	t.Cleanup(p.kill)
	return p, service
}

// opens asks a server for a page, and returns what the page sends.
func opens(t *testing.T, p *process, path string, s ramp.Session) (ramp.Session, uuid.UUID) {
	t.Helper()
	var page struct {
		URL, AccessToken, Error string
		UUID                    uuid.UUID
	}
	for {
		asked := map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal(), "product": "gems"}
		status := call(t, p.url+path, asked, &page)
		if status == http.StatusTooManyRequests {
			time.Sleep(time.Second)
			continue
		}
		if status != http.StatusOK || !strings.Contains(page.URL, page.AccessToken) ||
			page.AccessToken == s.Token.Reveal() {
			t.Fatalf("%s answered %d %q", path, status, page.Error)
		}
		return ramp.Session{ID: s.ID, Token: ramp.NewAccessToken(page.AccessToken)}, page.UUID
	}
}

func TestAPlayerTradesOnAPageOfTheirOwn(t *testing.T) {
	t.Parallel()
	p, service := paged(t, ramptest.Config{})
	alice := login(t, p.url, "alice")
	catalog, _ := opens(t, p, "/catalog", alice)
	page, id := opens(t, p, "/exchange", alice)
	other, another := opens(t, p, "/exchange", alice)
	owns(t, service, catalog, "1000000/10000")
	if _, err := service.Assets(t.Context(), alice); codeOf(err) != "INVALID_USER" {
		t.Errorf("the login opens the assets: %v", err)
	}
	wrong := map[string]ramp.Session{"the login": alice, "a page for assets": catalog, "another page": other}
	for name, s := range wrong {
		_, err := service.Mint(t.Context(), id, s, ramp.NewAmount(1))
		equal(t, name, codeOf(err), "INVALID_USER")
	}
	order := must(service.Mint(t.Context(), id, page, ramp.NewAmount(1),
		ramptest.ValidateTwice(), ramptest.ResultTwice()))(t)
	service.Advance(time.Minute)
	confirmed(t, service, order)
	owns(t, service, page, "1000000/9990")
	must(service.Mint(t.Context(), another, other, ramp.NewAmount(1), ramptest.TransactionFails()))(t)
	service.Advance(time.Minute)
	owns(t, service, catalog, "1000000/9990")
}

// The judge follows: Server.UUID opens the page of each order.
func TestTheJudgeFindsNothingOnPages(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector has watched the judge on each database")
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	p, _ := paged(t, ramptest.Config{Audit: ramptest.AuditOff})
	target := targetOf(t, p)
	target.Asset, target.Amount, target.Tokens = "item_gem", 20, 2
	target.Waive = regexp.MustCompile("^restart$") // TestTheJudgeFindsNothing restarts it
	var logins sync.Map                            // by session ID
	target.Player = func(_ context.Context, name string) (ramp.Session, error) {
		s := login(t, p.url, name)
		logins.Store(s.ID, s)
		catalog, _ := opens(t, p, "/catalog", s)
		return catalog, nil
	}
	target.UUID = func(_ context.Context, s ramp.Session) (uuid.UUID, ramp.AccessToken, error) {
		known, _ := logins.Load(s.ID)
		page, id := opens(t, p, "/exchange", known.(ramp.Session))
		return id, page.Token, nil
	}
	conformance.Test(t, target)
}
