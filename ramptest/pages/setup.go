package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// setupCheck is the state of one part of a studio's setup. What has worked works, until a call fails as every
// other one would; see failsEach.
type setupCheck struct {
	Name  string
	State string // "works", "fails" or "not seen yet"
	Tone  verdict.Tone
	Said  string // what was seen, or how to check it
	Fix   string // how to fix a failure
	Later string // of what works: when a call failed since then, because of its order; "" if none did
	Call  int    // that call
	Of    string // what such a call is named, with its article
}

// setup returns the state of the setup.
func (s *site) setup() []setupCheck {
	about, game := s.about(), s.gameAddress()
	checks := []setupCheck{
		{Name: "The game asks for UUIDs",
			Said: "Point RAMP_API_URL of the game at " + s.guard.URL + ", and open its exchange page."},
		{Name: "Assets endpoint", Said: "GET " + game + about.Assets},
		{Name: "Validate endpoint and validator key", Said: "POST " + game + about.Validate},
		{Name: "Result endpoint", Said: "POST " + game + about.Result},
	}
	for i, kind := range []control.Kind{control.KindInitialize, control.KindAssets, control.KindValidate,
		control.KindResult} {
		c := &checks[i]
		c.State = "not seen yet"
		last, seen := s.last(frontend.CallsQuery{Pick: frontend.Genuine, Routine: true}, kind)
		if seen && last.IsPolicy() { // which proves nothing about the validator key
			before, ok := s.last(frontend.CallsQuery{Pick: frontend.Judged}, kind)
			if ok && before.Failed && isOtherKey(&before) {
				last = before
			}
		}
		good, worked := s.service.Worked(kind)
		switch failed := seen && last.Failed; {
		case failed && (!worked || failsEach(&last)):
			c.State, c.Tone, c.Fix = "fails", verdict.Bad, s.cause(&last)
			c.Said = fmt.Sprintf("%s, at %s", ended(&last), s.stamp(last.Time))
		case worked:
			c.State, c.Tone = "works", verdict.Good
			c.Said = fmt.Sprintf("%s, at %s", good.Outcome, s.stamp(good.Time))
			if failed {
				c.Later, c.Call, c.Of = s.stamp(last.Time), last.Number, articled(kind)
			}
		case seen: // a rejection
			c.Said = ended(&last) + ". No signature of the validator key was seen yet."
		}
	}
	return checks
}

// failsEach reports whether a call failed as every other one would: because of a key, an address, or the form
// of the answers. Any other failure is one of its order.
func failsEach(e *control.Event) bool {
	if e.Kind == control.KindInitialize {
		switch initializeError(e) {
		case wrongMAC, noMAC, otherProject, otherNet:
			return true
		default:
			return false
		}
	}
	if e.Answer == nil {
		return true
	}
	switch code, status := ramp.Code(e.Outcome), e.Answer.Status; {
	case code == ramp.CodeHMACInvalid, code == ramp.CodeHMACMissing, code == codeProject, isOtherKey(e):
		return true
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout: // no answer of the game
		return true
	case namesSession(code):
		return false
	default:
		return status == http.StatusUnauthorized || status == http.StatusForbidden || hasNoEndpoint(e) ||
			status/100 == 3 || breaksInterface(e) && status < 500
	}
}

// codeProject is the errorCode for another project ID.
const codeProject = "INVALID_PROJECT_ID"

// isOtherKey reports whether an approval was signed with another validator key.
func isOtherKey(e *control.Event) bool { return strings.Contains(e.Outcome, "not by the registered") }

// breaksInterface reports whether an answer does not have the form that it must have.
func breaksInterface(e *control.Event) bool {
	return strings.Contains(e.Outcome, "breaks the interface")
}

// hasNoEndpoint reports whether an answer is that of a server without the endpoint. With an errorCode of its
// own, HTTP 404 is more likely about the order.
func hasNoEndpoint(e *control.Event) bool {
	status := e.Answer.Status
	return status == http.StatusNotFound && breaksInterface(e) || status == http.StatusMethodNotAllowed ||
		ramp.Code(e.Outcome) == ramp.CodeNotFound
}

// namesSession reports whether an errorCode is about the session of a player.
func namesSession(code ramp.Code) bool {
	return slices.ContainsFunc([]string{"USER", "SESSION", "TOKEN"}, func(word string) bool {
		return strings.Contains(strings.ToUpper(string(code)), word)
	})
}

// firstChecks returns the state of a setup that has seen no order: whether the game is there, has the
// HMAC key, and has asked for a UUID. The service finds out the first two by itself.
func (s *visit) firstChecks() []setupCheck {
	p, asked := s.service.Probe(s.r.Context()), s.setup()[0]
	asked.Name = "First UUID"
	call, at := &p.Call, s.stamp(p.Call.Time)
	there := setupCheck{Name: "Game reachable", State: "works", Tone: verdict.Good,
		Said: strings.TrimSpace(s.gameAddress() + " at " + at)}
	key := setupCheck{Name: "Same HMAC key", State: "not seen yet"}
	switch {
	case call.Answer == nil:
		there.State, there.Tone, there.Said = "fails", verdict.Bad, s.downBy(call).Why
		there.Fix = "Start it, or restart the emulator with its address in -game."
		key.Said = "This is tried as soon as the game answers."
	case p.Apart:
		key.State, key.Tone = "works", verdict.Good
		key.Said = "It rejected a wrong signature, but not the emulator's, at " + at
	case ramp.Code(call.Outcome) == ramp.CodeHMACInvalid:
		key.State, key.Tone, key.Said, key.Fix = "fails", verdict.Bad, ended(call), s.cause(call)
	case asked.Tone == verdict.Good:
		key.State, key.Tone, key.Said = "works", verdict.Good, "It has signed its initialize call with it."
	default:
		key.Said = ended(call) +
			", for a wrong signature as for that of the emulator. The first order shows more."
		key.Fix = s.astray(call)
	}
	return []setupCheck{there, key, asked}
}

// astray returns how to reach the endpoint of a call, if the answer is that of something else, or "".
func (s *site) astray(e *control.Event) string {
	if status := e.Answer.Status; status == http.StatusNotFound || status == http.StatusMethodNotAllowed ||
		status/100 == 3 || breaksInterface(e) && status < 500 {
		return s.cause(e)
	}
	return ""
}

// summary returns the state of a setup in a few words.
func summary(checks []setupCheck) (said string, t verdict.Tone) {
	with := make(map[verdict.Tone]int)
	for _, c := range checks {
		with[c.Tone]++
	}
	switch all, good := len(checks), with[verdict.Good]; {
	case with[verdict.Bad] > 0:
		return count(with[verdict.Bad], "problem"), verdict.Bad
	case good == all:
		return "works", verdict.Good
	case good == 0:
		return "not seen yet", ""
	default:
		return fmt.Sprintf("%d of %d work, %d not seen yet", good, all, all-good), ""
	}
}

// ended describes the end of an exchange on one line: endpoint, status and outcome. Why
// there is no answer is said elsewhere.
func ended(e *control.Event) string {
	endpoint := e.Request.Method + " " + e.Request.Path
	if e.Kind == control.KindInitialize && e.Failed { // the answer is not the game's
		endpoint = "The emulator refused " + endpoint
	}
	if e.Answer == nil {
		return endpoint + ": no answer"
	}
	return fmt.Sprintf("%s: HTTP %d, %s", endpoint, e.Answer.Status,
		strings.TrimPrefix(e.Outcome, "ramptest: "))
}

// compareKey says which key the service has, and how to compare it.
func (s *site) compareKey() string {
	about := s.about()
	return "Compare RAMP_HMAC_KEY with the key of the emulator, whose fingerprint is " +
		about.KeyFingerprint +
		" (" + about.Keys + "). A ramp.Handler logs the fingerprint of its own as hmac_key"
}

// cause returns the likely cause of a failed exchange and how to fix it, or "" if it is
// unknown. What was not seen is said as what may be.
func (s *site) cause(e *control.Event) string {
	if e.Tone == verdict.Neutral && e.Answer != nil && e.Answer.Status >= 500 { // on purpose, or of a check
		return ""
	}
	if e.Kind == control.KindInitialize {
		return s.initializeCause(e)
	}
	path := map[control.Kind]string{control.KindAssets: "-assets", control.KindValidate: "-validate",
		control.KindResult: "-result"}[e.Kind]
	if e.Answer == nil {
		return "" // the page says once that the game does not answer
	}
	switch code := ramp.Code(e.Outcome); {
	case code == ramp.CodeHMACInvalid, code == ramp.CodeHMACMissing:
		return "The game may have a different HMAC key, read it in the other encoding (text or base64url), " +
			"or verify a body that was parsed and written again. " +
			s.compareKey() + ". Compare RAMP_HMAC_KEY_ENCODING with -key-encoding, too."
	case code == codeProject:
		return fmt.Sprintf("The game expects its own project; this call has %q.", readOrder(e).Project)
	case isOtherKey(e):
		return "The game signs with a different validator key. Restart with -validator and the address " +
			"that the game signs with, or set RAMP_VALIDATOR_KEY of the game to the key of " +
			s.about().Validator.Hex() + "."
	case hasNoEndpoint(e):
		return "The game has no such endpoint. Set its path with " + path + "."
	case e.Answer.Status == http.StatusNotFound:
		return "If the game has no such endpoint, set its path with " + path + "."
	case e.Answer.Status/100 == 3:
		return "The game redirects. The service does not follow redirects, because a token must not reach " +
			"another address. Set -game to the final address."
	case e.Answer.Status == http.StatusUnauthorized && e.Kind == control.KindAssets:
		return "The game may not accept the access token or the session. Log in to the game again, and " +
			"open the page from there."
	case e.Answer.Status == http.StatusUnauthorized:
		return "The game may not accept the HMAC, the access token or the session. Its answer may say which."
	case e.Answer.Status >= 500:
		said := "The game's log may say why."
		if body := e.Answer.Short(); body != "" && breaksInterface(e) {
			said = "It answered: " + body
		}
		if e.Kind == control.KindResult &&
			(code == ramp.CodeInternal || strings.Contains(strings.ToLower(e.Answer.Body), "unknown")) {
			said += " If the game was restarted and has its orders in memory, it knows no earlier order."
		}
		return said
	case e.IsPolicy():
		return s.policyCause(e, code)
	case strings.Contains(e.Outcome, "envelope"), breaksInterface(e):
		const must = "The answer must be JSON with success, errorCode and data (interface 7.2)"
		if _, is, known := strings.Cut(e.Outcome, "no JSON object: "); known {
			return must + ", but " + is + "."
		}
		return must + "."
	default:
		return ""
	}
}

// policyCause returns what was seen of an order that the game has rejected, if that may be
// the reason.
func (s *site) policyCause(e *control.Event, code ramp.Code) string {
	about := readOrder(e)
	if namesSession(code) {
		return "The game may not accept the session or its token. Log in to the game again."
	}
	_, asked := s.last(frontend.CallsQuery{UUID: e.UUID}, control.KindInitialize)
	switch {
	case about.Short:
		return "" // the sentence says it
	case strings.Contains(string(code), "BALANCE") && about.Known:
		return "The game says that the player does not own enough, but it had listed enough."
	case strings.Contains(string(code), "BALANCE"):
		return "The game says that the player does not own enough. What the player owned is unknown."
	case code == "INVALID_MESSAGE" && about.Tokens != "1" && s.about().PerOrder:
		return "The amounts are those of a whole order, because of -per-order. If the game's prices are " +
			"for one token, start without it."
	case code == "INVALID_MESSAGE" && about.Tokens != "1":
		return "The amounts are the prices times " + group(about.Tokens) +
			". If the game's prices are for a whole order, start with -per-order."
	case !asked:
		return "The record has no initialize call for this UUID. If the game accepts only UUIDs that it " +
			"asked for, start the order from the game."
	default:
		return "The game rejected the order by its own rules. Its log may say why."
	}
}

// The errors of an initialize call that every other one would get, too.
const (
	wrongMAC, noMAC        = "invalid mac", "X-HMAC-Signature is required"
	otherProject, otherNet = "ramp not found", "ramp not exists"
)

// initializeError returns the error of an initialize call, without its explanation.
func initializeError(e *control.Event) string {
	text, _, _ := strings.Cut(e.Outcome, ", ")
	return text
}

func (s *site) initializeCause(e *control.Event) string {
	switch initializeError(e) {
	case wrongMAC:
		if strings.Contains(e.Outcome, "other encoding") {
			return "It matches if the key is read in the other encoding. Restart with the other " +
				"-key-encoding (text or base64url), or change that of the game."
		}
		return "The game may have a different HMAC key, or sign a different body than it sends. " +
			s.compareKey() + "."
	case noMAC:
		return "Sign the body with the HMAC key, and send the signature in the header X-HMAC-Signature."
	case otherProject:
		return "The game's project ID is not that of -project."
	case otherNet:
		return "The service does not have this network."
	default:
		return "Correct the request: " + e.Outcome + "."
	}
}

// settings returns the lines that a studio copies into its environment. They hold no
// secrets.
func (s *site) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, "export RAMP_API_URL=%s\nexport RAMP_FRONTEND_URL=%[1]s\n", s.guard.URL)
	about := s.about()
	fmt.Fprintf(&b,
		"# RAMP_HMAC_KEY, whose fingerprint is %s, and RAMP_VALIDATOR_KEY, whose address is %s: %s\n",
		about.KeyFingerprint, about.Validator, about.Keys)
	fmt.Fprintln(&b, "# RAMP_ACCESS_TOKEN, for ramp trigger -session, is the token of the page")
	for _, n := range slices.Sorted(maps.Keys(about.Chains)) {
		fmt.Fprintf(&b, "# RAMP_RPC_URL for %s: %s (chain ID %d)\n", n, about.Chains[n].URL,
			about.Chains[n].ID)
	}
	return b.String()
}
