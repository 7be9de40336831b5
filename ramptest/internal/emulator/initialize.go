package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
	"github.com/token-ramp/ramp-go/ramptest/internal/failures"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// InitializeFailure is a scripted failure of an initialize call.
type InitializeFailure string

// The failures of the interface (7.1), each named by its data, and four that the interface does not
// describe: an error of a proxy, rate limiting (8), no answer, and an answer that is cut off.
const (
	HMACRequired   InitializeFailure = "X-HMAC-Signature is required" // code 400
	InvalidMAC     InitializeFailure = "invalid mac"                  // code 500
	UnknownProject InitializeFailure = "ramp not found"               // code 500: no such project
	UnknownNetwork InitializeFailure = "ramp not exists"              // code 500: no such network
	Unavailable    InitializeFailure = "unavailable"                  // HTTP 503 without the envelope
	TooMany        InitializeFailure = "too many requests"            // HTTP 429, Retry-After 1 second
	NoAnswer       InitializeFailure = "no answer"                    // until the game gives up
	CutOff         InitializeFailure = "cut off"                      // half of the answer arrives
)

// Console answers initialize calls.
type Console struct {
	shared
	orders  *Orders
	Failing failures.List[InitializeFailure]
}

// otherEncoding is what the record says about a signature made with
// [Config.OtherKey].
const otherEncoding = "but it matches the key in its other encoding"

// envelope is the answer of an initialize call (interface 2.3).
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// status returns the code of the envelope, or the HTTP status if there is no envelope.
func (f InitializeFailure) status() int {
	return cmp.Or(map[InitializeFailure]int{HMACRequired: 400, Unavailable: 503, TooMany: 429}[f], 500)
}

// ServeHTTP answers the one call that a game makes (interface 4.1).
func (s *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, body, err := s.called(control.KindInitialize, w, r)
	scripted, _ := s.Failing.Take()
	event.Fault = string(scripted)

	var status int
	var reply []byte
	if scripted == NoAnswer {
		said := verdict.OfCall(
			verdict.Call{Kind: verdict.Initialize, Trap: verdict.Scripted, Fault: event.Fault})
		event.Outcome, event.Said, event.Tone = event.Fault, said.Said, said.Tone
		s.breakOff(w, r, event, nil)
	}
	if scripted == Unavailable || scripted == TooMany { // as a proxy answers
		status, reply, event.Outcome = scripted.status(), []byte(scripted), string(scripted)
		w.Header().Set("Content-Type", "text/plain")
		if scripted == TooMany {
			w.Header().Set("Retry-After", "1")
		}
	} else {
		failure := scripted
		if failure == CutOff {
			failure = ""
		}
		id, answer := s.answer(r, body, err, failure)
		reply = text.JSON(answer)
		status, event.UUID, event.Outcome = http.StatusOK, id, answer.Message
		if answer.Code != http.StatusOK {
			status, event.Outcome = cmp.Or(s.config.FailureStatus, answer.Code), fmt.Sprint(answer.Data)
			if answer.Data == string(InvalidMAC) &&
				s.config.OtherKey.Verify(body, signatureOf(r)) == nil {
				event.Outcome += ", " + otherEncoding
			}
		}
		w.Header().Set("Content-Type", "application/json")
	}
	v := verdict.Call{Kind: verdict.Initialize, Fault: event.Fault, Status: status,
		Success: event.UUID != uuid.Nil, Code: event.Outcome}
	if scripted != "" {
		v.Trap = verdict.Scripted
	}
	said := verdict.OfCall(v)
	event.Said, event.Tone, event.Failed = said.Said, said.Tone, said.Attention
	if scripted == CutOff {
		event.Outcome = event.Fault
		s.breakOff(w, r, event, reply)
	}
	s.respond(w, r, event, status, reply)
}

func signatureOf(r *http.Request) string { return strings.TrimSpace(r.Header.Get(ramp.HeaderHMAC)) }

// answer answers an initialize call, with the failures of section 7.1. For any other
// mistake in a request (2.2), it answers with code 400 and names the field in data.
// The interface does not say how the service reports these.
func (s *Console) answer(r *http.Request, body []byte, unread error,
	scripted InitializeFailure) (id uuid.UUID, e envelope) {
	fail := func(code int, data string) (uuid.UUID, envelope) {
		return uuid.Nil, envelope{Code: code, Message: http.StatusText(code), Data: data}
	}
	reject := func(f InitializeFailure) (uuid.UUID, envelope) { return fail(f.status(), string(f)) }
	signature := signatureOf(r)
	switch status := s.Guard.Rejection(r); {
	case status == http.StatusForbidden:
		return fail(status, "a page of another site has no access")
	case status == http.StatusUnsupportedMediaType:
		return fail(status, "Content-Type must be application/json")
	case scripted != "":
		return reject(scripted)
	case unread != nil:
		return fail(http.StatusBadRequest, "the body is too large or was cut off")
	case signature == "":
		return reject(HMACRequired)
	case s.config.Key.Verify(body, signature) != nil:
		return reject(InvalidMAC)
	}
	asked, problem := readInitialize(body)
	if problem != "" {
		return fail(http.StatusBadRequest, problem)
	}
	if unknown := s.serves(&asked); unknown != "" {
		return reject(unknown)
	}
	terms, problem := asked.check()
	if problem != "" {
		return fail(http.StatusBadRequest, problem)
	}
	id = s.orders.Issue(terms)
	data := map[string]string{"uuid": game.UUIDText(id, s.config.UUIDDigits)}
	return id, envelope{Code: http.StatusOK, Message: "OK", Data: data}
}

// serves returns the failure for an intent whose project or network the console does
// not have, or "" if it has both.
func (s *Console) serves(asked *askedIntent) InitializeFailure {
	switch project := asked.ProjectID; {
	case project == "" || s.config.ProjectID != "" && project != s.config.ProjectID:
		return UnknownProject
	case s.config.Networks[asked.Network] == 0:
		return UnknownNetwork
	default:
		return ""
	}
}

// askedIntent is the decoded intent of an initialize call (interface 2.2). Missing
// fields are nil.
type askedIntent struct {
	Network    ramp.Network    `json:"network"`
	ProjectID  string          `json:"project_id"`
	Token      string          `json:"token"`
	MintFeeBps json.RawMessage `json:"mint_fee_bps"`
	BurnFeeBps json.RawMessage `json:"burn_fee_bps"`
	MintMethod ramp.Method     `json:"mint_method"`
	BurnMethod ramp.Method     `json:"burn_method"`
	Materials  *[]askedItem    `json:"materials"`
	Outputs    *[]askedItem    `json:"outputs"`
}

type askedItem struct {
	ID            string          `json:"id"`
	Amount        json.RawMessage `json:"amount"`
	IconURL       string          `json:"icon_url"`
	IsNonFungible *bool           `json:"is_non_fungible"`
}

// readInitialize parses the body of an initialize call. problem describes the first
// field of a wrong type, or is "" if there is none.
func readInitialize(body []byte) (intent askedIntent, problem string) {
	var request struct {
		PlayerID      string      `json:"player_id"`
		Name          string      `json:"name"`
		WalletAddress string      `json:"wallet_address"`
		Server        string      `json:"server"`
		Intent        askedIntent `json:"intent"`
	}
	body, err := exact.JSON(body, game.FieldNames()...)
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return intent, wrong.Field + " has the wrong type"
	case err != nil:
		return intent, "the body is not an initialize request"
	default:
		return request.Intent, ""
	}
}

// check validates and converts an intent. problem describes the first wrong field, or
// is "" if there is none.
func (a *askedIntent) check() (intent ramp.InitializeIntent, problem string) {
	intent = ramp.InitializeIntent{Network: a.Network, ProjectID: a.ProjectID, Token: a.Token}
	fee, ok := basisPoints(a.MintFeeBps)
	burn, free := basisPoints(a.BurnFeeBps)
	intent.MintFeeBps = fee
	switch {
	case !strings.HasPrefix(a.Token, "0x") || !common.IsHexAddress(a.Token):
		return intent, "intent.token must be 20 bytes in hex with 0x"
	case !ok:
		return intent, "intent.mint_fee_bps must be a whole number from 0 to 10000"
	case !free || burn != 0:
		return intent, "intent.burn_fee_bps is fixed to 0"
	case a.MintMethod != ramp.MethodMint:
		return intent, "intent.mint_method is fixed to mint"
	case a.BurnMethod != ramp.MethodBurnPermit:
		return intent, "intent.burn_method is fixed to burn-permit"
	}
	if intent.Materials, problem = checkItems("intent.materials", a.Materials); problem == "" {
		intent.Outputs, problem = checkItems("intent.outputs", a.Outputs)
	}
	return intent, problem
}

// basisPoints parses a fee: 100 is 1% (interface 8).
func basisPoints(fee json.RawMessage) (bps int, ok bool) {
	amount, err := ramp.ParseAmount(string(fee))
	n, large := amount.Int64()
	return int(n), err == nil && large == nil && 0 <= n && n <= 10_000
}

func checkItems(path string, asked *[]askedItem) (items []ramp.Item, problem string) {
	if asked == nil {
		return nil, path + " is required"
	}
	for i, item := range *asked {
		at := fmt.Sprintf("%s[%d]", path, i)
		amount, err := ramp.ParseAmount(string(item.Amount))
		switch {
		case item.ID == "":
			return nil, at + ".id is required"
		case err != nil || amount.Sign() <= 0:
			return nil, at + ".amount must be a number above 0"
		case item.IconURL == "":
			return nil, at + ".icon_url is required"
		case item.IsNonFungible == nil:
			return nil, at + ".is_non_fungible is required"
		}
		items = append(items,
			ramp.Item{ID: item.ID, Amount: amount, IconURL: item.IconURL, IsNonFungible: *item.IsNonFungible})
	}
	return items, ""
}

// Issue issues a UUID for terms that a caller of the control API gives. unknown is the failure for a
// project or a network that the service does not have, and problem describes the first wrong field of the
// terms; each is "" if there is none.
func (s *Console) Issue(terms *control.Terms) (id uuid.UUID, unknown InitializeFailure, problem string) {
	asked := askedTerms(terms)
	if unknown = s.serves(&asked); unknown != "" {
		return id, unknown, ""
	}
	intent, problem := asked.check()
	if problem != "" {
		return id, "", problem
	}
	return s.orders.Issue(intent), "", ""
}

// askedTerms returns the terms as those of an initialize call, with what a caller of the
// control API may omit.
func askedTerms(terms *control.Terms) askedIntent {
	items := func(given []control.Item) *[]askedItem {
		list := []askedItem{}
		for _, item := range given {
			list = append(list,
				askedItem{ID: item.ID, Amount: []byte(item.Amount), IconURL: "https://example.com/icon.png",
					IsNonFungible: new(bool)})
		}
		return &list
	}
	return askedIntent{Network: terms.Network, ProjectID: terms.ProjectID, Token: terms.Token,
		MintFeeBps: strconv.AppendInt(nil, int64(terms.MintFeeBps), 10), BurnFeeBps: []byte("0"),
		MintMethod: ramp.MethodMint, BurnMethod: ramp.MethodBurnPermit, Materials: items(terms.Materials),
		Outputs: items(terms.Outputs)}
}
