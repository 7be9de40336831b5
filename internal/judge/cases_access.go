package judge

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// assetsCases returns the cases about the assets endpoint (interface 2.4).
func assetsCases() []Case {
	return []Case{
		{ID: "assets", Fix: "Answer with exactly the envelope of section 2.4.",
			Title: "An assets call is answered with HTTP 200, success true and a list in data.v1.assets.",
			run: func(t *trial) {
				a := t.assets(t.player)
				if t.strict(a); !a.succeeded {
					t.fail("data without a list in v1.assets",
						"a list, which is empty for a player without assets")
				}
			}},
		listed("assets-balance-string", Must, "A balance is a decimal string.",
			"Write balances as JSON strings of plain decimals, not as numbers.",
			func(h holding, _ []holding) bool { return h.raw[0] == '"' }, `a balance that is a JSON number`,
			`a JSON string such as "1000"`),
		listed("assets-balance-sign", Should, "No balance is below 0.",
			"Let no order take more than the player owns.",
			func(h holding, _ []holding) bool { return h.balance.Sign() >= 0 }, "a balance below 0",
			"0 or more"),
		listed("assets-id", Must, "Every asset has an ID.", "Give every asset its ID in the service console.",
			func(h holding, _ []holding) bool { return h.id != "" }, "an asset without an id",
			"the asset ID of the console"),
		listed("assets-id-once", Should, "No asset is listed twice.",
			"Add up what the player owns of an asset and list it once.",
			func(h holding, before []holding) bool {
				return !slices.ContainsFunc(before, func(other holding) bool { return other.id == h.id })
			}, "an asset ID that is listed twice", "one entry for each asset"),
		{ID: "assets-text-fields",
			Fix:   "Write player_id, name, wallet_address and server as strings, or omit them.",
			Title: "The player's optional fields are strings if they are present.",
			run: func(t *trial) {
				a := t.assets(t.player)
				t.approved(a)
				var data struct{ V1 object }
				_ = json.Unmarshal(a.envelope["data"], &data)
				for _, name := range []string{"player_id", "name", "wallet_address", "server"} {
					if _, isText := data.V1[name].(string); !isText && data.V1[name] != nil {
						t.fail("data.v1."+name+" that is not a string", "a string")
					}
				}
			}},
		{ID: "assets-other-player", Section: "5.1", Fix: "Keep the assets of each player apart.",
			Title: "An order of one player does not change another player's assets.",
			run: func(t *trial) {
				t.ends(t.mintOf(t.otherPlayer()), success)
			}},
		{ID: "assets-older-callers", Section: "4.3",
			Fix: "Ignore unknown query parameters, and read X-Dapp-Authorization only: older callers " +
				"also send language and an Authorization header.",
			Title: "An assets call with an unknown query parameter or with an Authorization header in " +
				"addition is answered.",
			Inputs: rows[func(*trial) answer]{Should: {
				{"query", "an unknown query parameter", func(t *trial) answer {
					return t.try(call{method: http.MethodGet, path: t.AssetsPath + "?language=ko",
						header: gamecall.Header(t.player)})
				}},
				{"header", "another Authorization header", func(t *trial) answer {
					return t.assets(t.player, setHeader("Authorization", "Bearer other"))
				}},
			}}.inputs(func(t *trial, ask func(*trial) answer) { t.approved(ask(t)) })},
	}
}

// listed returns a case about each asset of a player, and those before it.
func listed(id string, level Level, title, fix string, right func(h holding, before []holding) bool, saw,
	want string) Case {
	return Case{ID: id, Level: level, Title: title, Fix: fix, run: func(t *trial) {
		all := t.holdings(t.player)
		for i, h := range all {
			if !right(h, all[:i]) {
				t.fail(saw, want)
			}
		}
	}}
}

// otherPlayer gets a player other than the case's player.
func (t *trial) otherPlayer() (s ramp.Session) {
	for range 4 { // other cases may take turns with this one so that a pool returns its own player
		if s = t.newPlayer(); t.err != nil || s.ID != t.player.ID {
			break
		}
	}
	if s.ID == t.player.ID {
		t.lacks("there is only one player", twoPlayers)
	}
	t.holdings(s) // for the wallet
	return s
}

const twoPlayers = "-login, or -session for two users"

// foreign returns the case's session with another user's token, and the other session.
func (t *trial) foreign() (mixed, other ramp.Session) {
	other = t.otherPlayer()
	if t.player.Token.Reveal() == other.Token.Reveal() {
		t.lacks("both sessions have the same token, so they belong to one user", twoPlayers)
	}
	return ramp.Session{ID: t.player.ID, Token: other.Token}, other
}

// sessionCases returns the cases about the headers that carry a session (interface 5.1).
func sessionCases() []Case {
	const (
		fix = "Verify the access token of the X-Dapp-Authorization header before you look up " +
			"anything else."
		strict = "Reject a call unless its X-Dapp headers name exactly one session and one bearer " +
			"token of it. " +
			"Compare sessions exactly: databases such as MySQL ignore case by default."
		both = "Check that the access token belongs to the session. With a Store of package ramp, " +
			"Authenticate must " +
			"compare both, because Apply sees only the session; another server may take the player from " +
			"the token alone."
	)
	unlisted := func(t *trial, bend headerEdit) { t.rejected(t.assets(t.player, bend)) }
	unapproved := func(t *trial, bend headerEdit) {
		t.denies(atValidate.valid(t).send(bend), t.before)
	}
	wrong := rows[headerEdit]{Must: {
		{"missing", "without an access token", setHeader(gamecall.Authorization)},
		{"empty", "with an empty access token", setHeader(gamecall.Authorization, "Bearer ")},
		{"unknown", "with an unknown token", unknownToken},
		{"cut", "with a token whose last character is missing", func(t *trial, header http.Header, _ []byte) {
			whole := header[gamecall.Authorization][0] //nolint:staticcheck // SA1008: sent as it is written
			header[gamecall.Authorization] = []string{whole[:len("Bearer ")+len(tokenIn(header))-1]}
		}},
		{"long", "with a token that has an extra character",
			setHeader(gamecall.Authorization, "Bearer TOKENx")},
		{"capitals", "with a token in capitals, or in small letters if it has only capitals",
			func(t *trial, header http.Header, _ []byte) {
				right := tokenIn(header)
				other := strings.ToUpper(right)
				if other == right {
					other = strings.ToLower(right)
				}
				if other == right {
					t.skip("the access token has no letters")
				}
				header[gamecall.Authorization] = []string{"Bearer " + other}
			}},
	}}
	odd := rows[headerEdit]{Should: {
		{"no-scheme", "with a token but without the word Bearer", setHeader(gamecall.Authorization, "TOKEN")},
		{"basic", "with Basic instead of Bearer", setHeader(gamecall.Authorization, "Basic TOKEN")},
		{"two-tokens", "with two tokens, of which one is wrong",
			setHeader(gamecall.Authorization, "Bearer TOKEN", "Bearer nobody-has-this-token")},
		{"no-session", "without a session", setHeader(gamecall.SessionID)},
		{"empty-session", "with an empty session", setHeader(gamecall.SessionID, "")},
		{"unknown-session", "with an unknown session", unknownSession},
		{"two-sessions", "with two sessions, of which one is unknown",
			setHeader(gamecall.SessionID, "SESSION", "nobody-has-this-session")},
	}, Must: {
		{"letters", "with the letters of the session in the other case", inOtherLetters},
	}}
	return []Case{
		{ID: "assets-token-wrong", Fix: fix, Inputs: wrong.inputs(unlisted),
			Title: "An assets call without the player's access token is rejected."},
		{ID: "validate-token-wrong", Fix: fix, Inputs: wrong.inputs(unapproved),
			Title: "A validate call without the player's access token is rejected and moves nothing."},
		{ID: "assets-session-odd", Fix: strict, Inputs: odd.inputs(unlisted),
			Title: "An assets call whose headers do not name one session and one bearer token is rejected."},
		{ID: "validate-session-odd", Fix: strict, Inputs: odd.inputs(unapproved),
			Title: "A validate call whose headers do not name one session and one bearer token is rejected."},
		{ID: "assets-foreign-token", after: []string{"mint-succeeds"},
			Fix:   both,
			Title: "One player's token does not reveal another player's assets.",
			run: func(t *trial) {
				mixed, other := t.foreign()
				theirs := t.look(other)
				// Two new players own the same, so a mint makes them differ.
				if t.before.of(t.asset).Cmp(theirs.of(t.asset)) == 0 {
					t.confirm(t.approve(t.mint()), success)
					t.settled(t.before,
						func(now snapshot) bool { return now.of(t.asset).Cmp(theirs.of(t.asset)) != 0 })
					if t.now().of(t.asset).Cmp(theirs.of(t.asset)) == 0 {
						t.moved(-1) // fails: the mint took nothing
					}
				}
				if a := t.assets(mixed); t.either(a) &&
					t.look(mixed).of(t.asset).Cmp(theirs.of(t.asset)) != 0 {
					t.gives("the assets of the session for another player's token",
						"a rejection, or the assets of the token's player")
				}
			}},
		{ID: "validate-foreign-token",
			Fix:   both,
			Title: "One player's token does not spend another player's assets.",
			run: func(t *trial) {
				mixed, other := t.foreign()
				t.opener = other // who opens a page of their own, and sends another session
				t.offer(t.mintOf(mixed))
				t.untouched(t.before)
			}},
		{ID: "header-case", Fix: "Ignore case in header names.",
			Title: "A call is answered whatever the case of its header names.",
			Inputs: rows[func(*trial, headerEdit)]{Must: {
				{"assets", "an assets call",
					func(t *trial, bend headerEdit) { t.approved(t.assets(t.player, bend)) }},
				{"validate", "a validate call", atValidate.answersWith},
				{"result", "a result call", atResult.answersWith},
			}}.inputs(func(t *trial, ask func(*trial, headerEdit)) {
				for _, spell := range []func(string) string{strings.ToLower, strings.ToUpper,
					http.CanonicalHeaderKey} {
					t.renew()
					ask(t, spelled(spell))
				}
			})},
		{ID: "result-other-session", Section: "6", Fix: signedSession,
			Title: "A result whose session header contradicts its signed body does not pay the player of " +
				"the header.",
			run: func(t *trial) {
				o := t.approve(t.mint())
				other := t.otherPlayer()
				theirs := t.look(other)
				t.answered(t.reportAs(other, o, failure))
				t.untouched(theirs)
				t.closes(o, failure)
			}},
		{ID: "result-old-token", Level: Should, Section: "8", mild: true,
			Fix: "Believe a result for its HMAC, whatever its access token: it can come 12 hours later, " +
				"when the token has expired, and is not delivered again after 401.",
			Title: "A result whose access token is not valid anymore is confirmed.",
			run: func(t *trial) {
				o, old := t.approve(t.plain()), t.player
				old.Token = ramp.NewAccessToken("nobody-has-this-token")
				a := t.reportAs(old, o, failure)
				t.closes(o, failure)
				t.confirmed(a)
			}},
	}
}

const signedSession = "Trust the session_id of the signed body, whatever the header says: the HMAC does " +
	"not cover the headers."

// inOtherLetters writes the session in the other case, unless the endpoint ignores the session: a
// server may take the player from the token at one of them.
func inOtherLetters(t *trial, header http.Header, body []byte) {
	other := gamecall.OtherCase(t.player.ID)
	if other == t.player.ID {
		t.skip("the session has no letters")
	}
	ask := func(bend headerEdit) answer { return t.assets(t.player, bend) }
	if len(body) > 0 {
		ask = func(bend headerEdit) answer { return atValidate.valid(t).send(bend) }
	}
	if ask(unknownSession).succeeded {
		t.skip("the server takes the player from the token alone")
	}
	header[gamecall.SessionID] = []string{other}
}

// spelled writes the names of headers in another way.
func spelled(spell func(string) string) headerEdit {
	return func(_ *trial, header http.Header, _ []byte) {
		for name, values := range maps.Clone(header) {
			delete(header, name)
			header[spell(name)] = values
		}
	}
}
