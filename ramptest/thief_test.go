package ramptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// door is a game whose players are let in by check, which returns the session of whom it lists.
type door struct {
	mu     sync.Mutex
	gold   map[string]int64
	ids    bool // it returns player IDs
	used   map[string]bool
	once   bool // a token is used up by one call
	locked bool
	check  func(d *door, s ramp.Session) (owner string, err error)
	moved  map[string]int64 // what Apply has moved, by session
}

func newDoor(check func(d *door, s ramp.Session) (string, error)) *door {
	return &door{gold: map[string]int64{"alice": 1000, "bob": 77}, ids: true, used: map[string]bool{}, check: check,
		moved: map[string]int64{}}
}

var errNobody = ramp.Reject("INVALID_USER")

// owned returns the session to which a token belongs, or "".
func owned(s ramp.Session) string {
	name, _ := strings.CutPrefix(s.Token.Reveal(), "secret of ")
	if name == "alice" || name == "bob" {
		return name
	}
	return ""
}

// right lets in who has the token of the session.
func right(_ *door, s ramp.Session) (string, error) {
	if owned(s) == "" || owned(s) != s.ID {
		return "", errNobody
	}
	return s.ID, nil
}

func (d *door) Authenticate(_ context.Context, s ramp.Session) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.check(d, s)
	return err
}

func (d *door) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	owner := s.ID
	if name, err := d.check(d, s); err == nil {
		owner = name
	}
	gold, known := d.gold[owner]
	if !known {
		return nil, errNobody
	}
	p := &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(gold)}}}
	if d.ids {
		p.PlayerID = "player " + owner
	}
	d.used[s.Token.Reveal()] = d.once
	return p, nil
}

func (d *door) Apply(_ context.Context, step ramp.Step) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range step.Effect.Assets {
		delta, err := step.Effect.Delta(a).Int64()
		if err != nil {
			return err
		}
		owner := strings.ToLower(step.Order.SessionID)
		d.gold[owner] += delta
	}
	return nil
}

// serve is a server without our Handler, which knows only the assets.
func (d *door) serve() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := ramp.ParseSession(r.Header)
		answer := ramp.Response[any]{ErrorCode: "INVALID_USER"}
		if err == nil && d.Authenticate(r.Context(), s) == nil {
			if p, err := d.Assets(r.Context(), s); err == nil {
				var data any = map[string]any{"v1": p}
				answer = ramp.Response[any]{Success: true, Data: &data}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// guarded plays with a door; ours says that a ramp.Handler serves it.
func guarded(t *testing.T, d *door, ours bool, options ...func(*ramptest.Config)) (*ramptest.Service, *judged) {
	t.Helper()
	key, signer := console(t)
	test := &judged{TB: t}
	config := ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address()}
	if ours {
		config.Handler = must.Get(ramp.NewHandler(ramp.HandlerConfig{
			Players: d, Store: &ramp.MemoryStore{Apply: d.Apply},
			Terms: anyTerms, Key: key, Signer: signer, Logger: ramptest.Logger(t)}))(t)
	} else {
		server := httptest.NewServer(d.serve())
		t.Cleanup(server.Close)
		config.Game = server.URL
	}
	for _, o := range options {
		o(&config)
	}
	return ramptest.Start(test, config), test
}

func sessionOf(name string) ramp.Session {
	return ramp.Session{ID: name, Token: ramp.NewAccessToken("secret of " + name)}
}

// Who checks half of a session sells what others own, and no test of an honest player sees it.
func TestAGameThatChecksHalfOfASessionFailsItsTest(t *testing.T) {
	const token = `the game lists the assets of session "alice" for a token that nobody has issued`
	const other = `the game accepts the token of session "alice" for session "bob" of another player: one player ` +
		`can spend`
	const mixed = `accepts the token of session "alice" for session "bob" of another player, and lists what the ` +
		`token's player`
	const invented = `the game accepts the token of session "alice" for a session that nobody has issued`
	const letters = `the game accepts session "ALICE" for session "alice"`
	const doubt = `Authenticate accepts session "nobody-has-this-session" with a token that is not its own`
	fold := func(s ramp.Session) ramp.Session { return ramp.Session{ID: strings.ToLower(s.ID), Token: s.Token} }
	for _, test := range []struct {
		name    string
		check   func(d *door, s ramp.Session) (string, error)
		handler []string // of ours
		server  []string // of somebody else
	}{
		{"right", right, nil, nil},
		{"nothing is checked", func(_ *door, s ramp.Session) (string, error) { return s.ID, nil },
			[]string{token, other}, []string{token, other}},
		{"the token alone", func(_ *door, s ramp.Session) (string, error) {
			if owned(s) == "" {
				return "", errNobody
			}
			return s.ID, nil
		}, []string{other}, []string{other}},
		{"the session alone", func(d *door, s ramp.Session) (string, error) {
			if _, known := d.gold[s.ID]; !known {
				return "", errNobody
			}
			return s.ID, nil
		}, []string{token, other}, []string{token, other}},
		{"the player is taken from the token", func(_ *door, s ramp.Session) (string, error) {
			if owned(s) == "" {
				return "", errNobody
			}
			return owned(s), nil
		}, []string{mixed, invented, letters}, nil}, // a server without Apply may do so
		{"letters are compared without case", func(d *door, s ramp.Session) (string, error) {
			return right(d, fold(s))
		}, []string{letters}, nil},
	} {
		for _, ours := range []bool{true, false} {
			for _, ids := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/handler=%t/ids=%t", test.name, ours, ids), func(t *testing.T) {
					d := newDoor(test.check)
					d.ids = ids
					service, end := guarded(t, d, ours)
					for _, name := range []string{"alice", "bob"} {
						_, err := service.Assets(t.Context(), sessionOf(name))
						require.NoError(t, err)
					}
					events := len(service.Events())
					checked := service.Check()
					assert.Len(t, service.Events(), events, "they are in no record")
					failed, said := end.end()
					want := test.server
					if ours {
						want = test.handler
					}
					if !ids { // who is another player is unknown
						want = without(want, other, mixed)
					}
					if ours && !ids && test.name == "the token alone" { // which only Assets has rejected
						want = []string{doubt}
					}
					assert.Equal(t, len(want) > 0, failed, said)
					assert.Equal(t, len(want), strings.Count(beforeStory(said), "set NoThief of ramptest.Config"), said)
					for _, text := range want {
						assert.Contains(t, said, text)
						assert.ErrorContains(t, checked, text)
					}
					assert.NotContains(t, said, "secret of ")
				})
			}
		}
	}
}

func without(list []string, not ...string) (rest []string) {
	drop := map[string]bool{}
	for _, n := range not {
		drop[n] = true
	}
	for _, text := range list {
		if !drop[text] {
			rest = append(rest, text)
		}
	}
	return rest
}

// Who lets in a thief, but not the player, proves nothing. A test that could not be asked is not green.
func TestNobodyIsAccusedIfThePlayerIsNotLetIn(t *testing.T) {
	anybody := func(d *door, s ramp.Session) (string, error) {
		switch {
		case d.locked:
			return "", errNobody
		case owned(s) == "": // an invented token locks the door, as a limit on wrong ones does
			d.locked = true
		}
		return s.ID, nil
	}
	once := func(d *door, s ramp.Session) (string, error) {
		if d.used[s.Token.Reveal()] {
			return "", errNobody
		}
		return right(d, s)
	}
	for _, test := range []struct {
		name  string
		check func(d *door, s ramp.Session) (string, error)
		after func(d *door)
		want  string
	}{
		{"a limit on wrong tokens", anybody, nil, `rejects them: "alice"`},
		{"a token for one call", once, func(d *door) { d.used["secret of alice"] = true },
			`rejects them: "alice". If their tokens have not expired, one call has used them up`},
		{"a game that is gone", right, func(d *door) {
			d.check = func(*door, ramp.Session) (string, error) { panic(http.ErrAbortHandler) }
		}, "1 of 1 sessions were not asked for like a thief: the game"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDoor(test.check)
			service, end := guarded(t, d, true)
			_, err := service.Assets(t.Context(), sessionOf("alice"))
			require.NoError(t, err)
			if test.after != nil {
				test.after(d)
			}
			failed, said := end.end()
			assert.True(t, failed, said)
			assert.Contains(t, said, test.want)
			assert.Contains(t, said, "set NoThief of ramptest.Config")
			assert.Contains(t, said, "all service.Advance while")
		})
	}
}

// A test may close its server by defer, which is before the service looks for the last time. What was asked
// while the game lived counts.
func TestAGameThatIsClosedByDeferIsAskedWhileItLives(t *testing.T) {
	anybody := func(_ *door, s ramp.Session) (string, error) { return s.ID, nil }
	for _, test := range []struct {
		name  string
		check func(d *door, s ramp.Session) (string, error)
		play  func(*testing.T, *ramptest.Service)
		want  string
	}{
		{"nothing is checked", anybody, func(_ *testing.T, s *ramptest.Service) { s.Advance(0) },
			"a token that nobody has issued"},
		{"a right game", right, func(_ *testing.T, s *ramptest.Service) { s.Advance(0) }, ""},
		{"nobody advances", right, func(*testing.T, *ramptest.Service) {},
			"1 of 1 sessions were not asked for like a thief: "},
		{"an order ends by hand", anybody, func(t *testing.T, s *ramptest.Service) {
			key, _ := console(t)
			started := must.Get(clientOf(t, s, key).Initialize(t.Context(), request()))(t)
			o := must.Get(s.Mint(t.Context(), started.UUID, sessionOf("alice"), ramp.NewAmount(10)))(t)
			require.NoError(t, s.Deliver(t.Context(), o, ramptest.Succeeded))
		}, "a token that nobody has issued"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDoor(test.check)
			service, end := guarded(t, d, true)
			_, err := service.Assets(t.Context(), sessionOf("alice"))
			require.NoError(t, err)
			test.play(t, service)
			service.SetHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				panic(http.ErrAbortHandler) // by defer
			}))
			failed, said := end.end()
			assert.Equal(t, test.want != "", failed, said)
			assert.Contains(t, said, test.want)
		})
	}
}

// What gets no answer is not asked, and what gets a page of a proxy is: the other halves are tried all the same.
func TestHalfOfASessionThatBreaksTheGameIsNotTakenForRejected(t *testing.T) {
	const nobody = "Bearer nobody-has-this-token"
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter) // to a token that nobody has issued
		want   string
	}{
		{"no answer", func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			"1 of 1 sessions were not asked for like a thief: half of a session gets no answer, and a whole one does"},
		{"a page of a proxy", func(w http.ResponseWriter) { http.Error(w, "<html>", http.StatusBadGateway) },
			`the game accepts the token of session "alice" for a session that nobody has issued`},
	} {
		t.Run(test.name, func(t *testing.T) {
			anybody := func(_ *door, s ramp.Session) (string, error) { return "alice", nil }
			service, end := guarded(t, newDoor(anybody), true,
				before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
					if r.Header.Get("X-Dapp-Authorization") == nobody {
						test.answer(w)
						return
					}
					game.ServeHTTP(w, r)
				}))
			_, err := service.Assets(t.Context(), sessionOf("alice"))
			require.NoError(t, err)
			failed, said := end.end()
			assert.True(t, failed, said)
			assert.Contains(t, said, test.want)
		})
	}
}

// A game that counts wrong tokens rejects the player after a thief has asked. Its error says so.
func TestWhoLocksOutAThiefIsTold(t *testing.T) {
	d := newDoor(func(d *door, s ramp.Session) (string, error) {
		switch {
		case d.locked:
			return "", errNobody
		case owned(s) == "":
			d.locked = true
			return "", errNobody
		}
		return right(d, s)
	})
	service, _ := guarded(t, d, true)
	key, _ := console(t)
	_, err := service.Assets(t.Context(), sessionOf("alice"))
	require.NoError(t, err)
	service.Advance(0)
	started := must.Get(clientOf(t, service, key).Initialize(t.Context(), request()))(t)
	_, err = service.Mint(t.Context(), started.UUID, sessionOf("alice"), ramp.NewAmount(10))
	assert.ErrorContains(t, err, "has asked for this session like a thief")
}

// A page makes several calls with one token.
func TestATokenForOneCallIsNamed(t *testing.T) {
	d := newDoor(func(d *door, s ramp.Session) (string, error) {
		if d.used[s.Token.Reveal()] {
			return "", errNobody
		}
		return right(d, s)
	})
	service, _ := guarded(t, d, true)
	key, _ := console(t)
	started := must.Get(clientOf(t, service, key).Initialize(t.Context(), request()))(t)
	d.once = true
	_, err := service.Mint(t.Context(), started.UUID, sessionOf("alice"), ramp.NewAmount(10))
	const said = "ust before, the game listed assets for this token: if one call uses a token up, no page works"
	assert.ErrorContains(t, err, said)
	assert.Contains(t, saidOf(service.Events(), started.UUID), said)
}

// A game that decides nothing says so in one word. Nobody asks without books, or after a failure.
func TestNobodyAsksLikeAThief(t *testing.T) {
	anybody := func(_ *door, s ramp.Session) (string, error) { return s.ID, nil }
	for name, test := range map[string]struct {
		option func(*ramptest.Config)
		fails  bool
		want   bool
	}{
		"by default": {func(*ramptest.Config) {}, false, true},
		"NoThief":    {func(c *ramptest.Config) { c.NoThief = true }, false, false},
		"no books":   {func(c *ramptest.Config) { c.Audit = ramptest.AuditOff }, false, false},
		"a failure":  {func(*ramptest.Config) {}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			service, end := guarded(t, newDoor(anybody), true, test.option)
			_, err := service.Assets(t.Context(), sessionOf("alice"))
			require.NoError(t, err)
			if test.fails {
				end.Error("something else")
			}
			_, said := end.end()
			assert.Equal(t, test.want, strings.Contains(said, "nobody has issued"), said)
		})
	}
}

// Who accepts a session and does not list it may check it in a Policy, which no assets call can see.
func TestASessionThatOnlyAssetsRejectsFailsItsTest(t *testing.T) {
	byToken := func(_ *door, s ramp.Session) (string, error) {
		if owned(s) == "" {
			return "", errNobody
		}
		return s.ID, nil // which may be nobody's
	}
	for _, ours := range []bool{true, false} {
		service, end := guarded(t, newDoor(byToken), ours)
		_, err := service.Assets(t.Context(), sessionOf("alice"))
		require.NoError(t, err)
		failed, said := end.end()
		assert.Equal(t, ours, failed, said)
		const asks = `Authenticate accepts session "nobody-has-this-session" with a token that is not its own, and ` +
			`Assets rejects it. A validate call asks only Authenticate and Policy`
		assert.Equal(t, ours, strings.Contains(said, asks), said)
	}
}

// The sessions of a test are its own: ALICE may be somebody else than alice.
func TestASessionOfTheTestHasNoKeyOtherLetters(t *testing.T) {
	d := newDoor(nil)
	d.gold["ALICE"] = 5
	d.check = func(_ *door, s ramp.Session) (string, error) {
		if s.Token.Reveal() != "secret of "+s.ID {
			return "", errNobody
		}
		return s.ID, nil
	}
	service, end := guarded(t, d, true)
	for _, name := range []string{"alice", "ALICE"} {
		_, err := service.Assets(t.Context(), sessionOf(name))
		require.NoError(t, err)
	}
	failed, said := end.end()
	assert.False(t, failed, said)
}

// A thief moves nothing that a test asserts: no events, no counts, no balances, no books.
func TestAThiefLeavesNoTrace(t *testing.T) {
	d := newDoor(right)
	service, end := guarded(t, d, true, closed)
	key, _ := console(t)
	started := must.Get(clientOf(t, service, key).Initialize(t.Context(), request()))(t)
	_, err := service.Mint(t.Context(), started.UUID, sessionOf("alice"), ramp.NewAmount(10))
	require.NoError(t, err)
	service.Advance(time.Minute)
	require.NoError(t, service.Check()) // which reads closed books
	gold, events := maps.Clone(d.gold), service.Events()
	require.NoError(t, service.Check())
	for _, e := range service.Events()[len(events):] {
		assert.Equal(t, "alice", e.Session)
		assert.Equal(t, "success", e.Outcome)
	}
	assert.Equal(t, gold, d.gold)
	failed, said := end.end()
	assert.False(t, failed, said)
}

// A test in any language asks at its end.
func TestTheControlAPIAsksLikeAThief(t *testing.T) {
	service, _ := guarded(t, newDoor(func(_ *door, s ramp.Session) (string, error) { return s.ID, nil }), true)
	check := func() string {
		r := httptest.NewRequest("GET", "http://127.0.0.1/control/check", nil)
		r.RemoteAddr = "127.0.0.1:1"
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, r)
		return answer.Body.String()
	}
	assert.JSONEq(t, `{"problems":[]}`, check(), "nobody was let in yet")
	_, err := service.Assets(t.Context(), sessionOf("alice"))
	require.NoError(t, err)
	assert.Contains(t, check(),
		`{"problems":["the game lists the assets of session \"alice\" for a token that nobody has issued`)
}

// HTTP and a handler leave out white space around a header's value, so a session with it is the same session.
func TestWhiteSpaceAroundASessionMakesNoOtherSession(t *testing.T) {
	d := newDoor(right)
	service, end := guarded(t, d, true, closed)
	key, _ := console(t)
	spaced := ramp.Session{ID: " alice\t", Token: ramp.NewAccessToken(" secret of alice ")}
	assert.Equal(t, service.Wallet(sessionOf("alice")), service.Wallet(spaced))
	for _, session := range []ramp.Session{sessionOf("alice"), spaced} {
		_, err := service.Assets(t.Context(), session)
		require.NoError(t, err)
		started := must.Get(clientOf(t, service, key).Initialize(t.Context(), request()))(t)
		order := must.Get(service.Mint(t.Context(), started.UUID, session, ramp.NewAmount(10)))(t)
		assert.Equal(t, sessionOf("alice"), order.Session)
		service.Advance(time.Minute)
		assert.Equal(t, ramptest.Confirmed, service.State(order))
	}
	for query, want := range map[string]int{"alice": 2, "%20alice": 2, "bob": 0} {
		r := httptest.NewRequest("GET", "http://127.0.0.1/control/orders?session_id="+query, nil)
		r.RemoteAddr = "127.0.0.1:1"
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, r)
		assert.Contains(t, answer.Body.String(), fmt.Sprintf(`"total":%d`, want), query)
	}
	failed, said := end.end()
	assert.False(t, failed, said)
}
