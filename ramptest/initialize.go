package ramptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// InitializeFailure is a way in which an initialize call fails.
type InitializeFailure string

// The failures of the interface (7.1), each named by its data, and two that it
// does not show: what a proxy answers, and a limit on the rate of calls (8).
const (
	HMACRequired  InitializeFailure = "X-HMAC-Signature is required" // code 400
	InvalidMAC    InitializeFailure = "invalid mac"                  // code 500
	RampNotFound  InitializeFailure = "ramp not found"               // code 500: no such project
	RampNotExists InitializeFailure = "ramp not exists"              // code 500: no such network
	Unavailable   InitializeFailure = "unavailable"                  // HTTP 503 without the envelope
	TooMany       InitializeFailure = "too many requests"            // HTTP 429 without the envelope, Retry-After 1 second
)

// promise is an initialize call that was answered.
type promise struct {
	intent  ramp.InitializeIntent
	expires time.Time
	lost    int // validate answers that nobody heard, see [LostAnswer]
}

// envelope is the answer of an initialize call (interface 2.3).
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// FailInitialize lets the next initialize calls fail, one for each failure, in
// this order, whatever they ask.
func (s *Service) FailInitialize(failures ...InitializeFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = append(s.failing, failures...)
}

// initialize answers the one call that a studio makes (interface 4.1), with the
// failures of section 7.1. What else is wrong with a request (2.2) is answered
// with code 400, and data that names the field: how the service does it, the
// interface does not show.
func (s *Service) initialize(w http.ResponseWriter, r *http.Request) {
	event := Event{Time: s.Now(), Kind: KindInitialize}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	secrets := secretsOf(r.Header)
	event.Request = &Message{Method: r.Method, Path: r.URL.Path, Header: redactHeader(r.Header, secrets), Body: redactBody(body, secrets)}

	status, answer := s.decide(r, body, err, &event)
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // numbers and strings
	}
	w.Header().Set("Content-Type", "application/json")
	if f := InitializeFailure(event.Fault); f == Unavailable || f == TooMany {
		w.Header().Set("Content-Type", "text/plain")
		status, text = answer.Code, []byte(f)
		if f == TooMany {
			w.Header().Set("Retry-After", "1")
		}
	}
	event.Answer = &Message{Status: status, Body: string(text)}
	event.Took = s.Now().Sub(event.Time)
	s.record.add(event)
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller is gone: nobody is left to tell
}

// decide decides on an initialize call.
func (s *Service) decide(r *http.Request, body []byte, unread error, event *Event) (int, envelope) {
	fail := func(code int, data string) (int, envelope) {
		event.Outcome, event.Failed = data, true
		status := code
		if s.config.FailureStatus != 0 {
			status = s.config.FailureStatus
		}
		return status, envelope{Code: code, Message: http.StatusText(code), Data: data}
	}
	refuse := func(f InitializeFailure) (int, envelope) {
		switch f {
		case HMACRequired:
			return fail(http.StatusBadRequest, string(f))
		case Unavailable:
			return fail(http.StatusServiceUnavailable, string(f))
		case TooMany:
			return fail(http.StatusTooManyRequests, string(f))
		default:
			return fail(http.StatusInternalServerError, string(f))
		}
	}

	switch status := s.refusal(r); status {
	case http.StatusForbidden:
		return fail(status, "a page of another site has no access")
	case http.StatusUnsupportedMediaType:
		return fail(status, "Content-Type must be application/json")
	}
	s.mu.Lock()
	if len(s.failing) > 0 {
		scripted := s.failing[0]
		s.failing = s.failing[1:]
		s.mu.Unlock()
		event.Fault = string(scripted)
		return refuse(scripted)
	}
	s.mu.Unlock()

	switch signature := r.Header.Get(ramp.HeaderHMAC); {
	case unread != nil:
		return fail(http.StatusBadRequest, "the body did not come whole")
	case signature == "":
		return refuse(HMACRequired)
	case s.config.Key.Verify(body, signature) != nil:
		return refuse(InvalidMAC)
	}
	asked, problem := readInitialize(body)
	if problem != "" {
		return fail(http.StatusBadRequest, problem)
	}
	switch project := asked.ProjectID; {
	case project == "" || s.config.ProjectID != "" && project != s.config.ProjectID:
		return refuse(RampNotFound)
	case !slices.Contains(s.config.Networks, asked.Network):
		return refuse(RampNotExists)
	}
	intent, problem := asked.check()
	if problem != "" {
		return fail(http.StatusBadRequest, problem)
	}

	id := uuid.New()
	event.UUID, event.Outcome = id, "OK"
	s.mu.Lock()
	s.promises[id] = &promise{intent: intent, expires: event.Time.Add(ramp.UUIDValidity)}
	s.mu.Unlock()
	return http.StatusOK, envelope{Code: http.StatusOK, Message: "OK", Data: map[string]uuid.UUID{"uuid": id}}
}

// askedIntent is the intent of an initialize call as it came (interface 2.2): nil
// is a field that did not.
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

// readInitialize reads the body of an initialize call. problem says what is wrong
// with it, "" if all fields that are there have their type.
func readInitialize(body []byte) (intent askedIntent, problem string) {
	var request struct {
		PlayerID      string      `json:"player_id"`
		Name          string      `json:"name"`
		WalletAddress string      `json:"wallet_address"`
		Server        string      `json:"server"`
		Intent        askedIntent `json:"intent"`
	}
	body, err := exact(body)
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

// check reads an intent as what it means. problem names the first field that is
// wrong, "" if none is.
func (a *askedIntent) check() (intent ramp.InitializeIntent, problem string) {
	intent = ramp.InitializeIntent{Network: a.Network, ProjectID: a.ProjectID, Token: a.Token,
		MintMethod: a.MintMethod, BurnMethod: a.BurnMethod}
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

// basisPoints reads a fee: 100 is 1% (interface 8).
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
		items = append(items, ramp.Item{ID: item.ID, Amount: amount, IconURL: item.IconURL, IsNonFungible: *item.IsNonFungible})
	}
	return items, ""
}
