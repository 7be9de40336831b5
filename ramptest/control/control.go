// Package control is the API with which a program drives an emulated token ramp: its
// requests and answers, and a [Client]. A service of package ramptest serves the API below
// /control, and the ramp command is a client of it. Programs in other languages use the
// API over HTTP; see docs/control.md.
package control

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Description is the answer of GET /control.
type Description struct {
	Now       time.Time      `json:"now"` // on the emulator's clock
	Speed     float64        `json:"speed"`
	Game      string         `json:"game,omitempty"`
	Assets    string         `json:"assets_path"`
	Validate  string         `json:"validate_path"`
	Result    string         `json:"result_path"`
	ProjectID string         `json:"project_id,omitempty"`
	PerOrder  bool           `json:"per_order"` // whether prices are for a whole order
	Validator common.Address `json:"validator"`

	// KeyFingerprint is that of the HMAC key; see ramp.HMACKey.Fingerprint. Keys says where the
	// keys are.
	KeyFingerprint string `json:"hmac_key_fingerprint"`
	Keys           string `json:"keys"`

	Chains map[ramp.Network]Chain `json:"chains"`
	Faults map[string]string      `json:"faults"` // what each fault does, by its form

	// StateError is why the state file cannot be written, such as a full disk. What happens since then
	// is not there after a restart.
	StateError string `json:"state_error,omitempty"`
}

// Chain is the chain of a network.
type Chain struct {
	URL string `json:"url"`
	ID  uint64 `json:"id"`
}

// StartRequest is the body of POST /control/orders. Exactly one of UUID, Like and
// Terms is required.
type StartRequest struct {
	Do   string `json:"do"`             // "mint" or "burn"
	UUID string `json:"uuid,omitempty"` // of the game's own initialize call
	// an order whose terms, session and amount are copied
	Like        string      `json:"like,omitempty"`
	Terms       *Terms      `json:"terms,omitempty"`        // for which a UUID is issued
	SessionID   string      `json:"session_id,omitempty"`   // of the player; defaults to that of Like
	AccessToken string      `json:"access_token,omitempty"` // defaults to that of the session's last order
	Amount      json.Number `json:"amount,omitzero"`        // of the token; defaults to 1, or to that of Like
	Faults      []string    `json:"faults,omitempty"`       // in the forms of Description.Faults
	Wait        string      `json:"wait,omitempty"`         // as in OrderQuery
}

// Terms are the terms of an order without an initialize call.
type Terms struct {
	Network    ramp.Network `json:"network"`
	ProjectID  string       `json:"project_id"`
	Token      string       `json:"token"`
	MintFeeBps int          `json:"mint_fee_bps,omitzero"`
	Materials  []Item       `json:"materials,omitempty"` // what a mint takes
	Outputs    []Item       `json:"outputs,omitempty"`   // what a burn grants
}

// Item is an amount of a game asset.
type Item struct {
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"`
}

// OrderReport is an order. It holds no access token. Amounts are decimal text, because many
// languages would round a number.
type OrderReport struct {
	UUID      uuid.UUID     `json:"uuid"`
	Do        string        `json:"do"` // "mint" or "burn"
	SessionID string        `json:"session_id"`
	PlayerID  string        `json:"player_id,omitempty"` // the game's ID of the player
	Name      string        `json:"player_name,omitempty"`
	Network   ramp.Network  `json:"network"`
	ProjectID string        `json:"project_id"`
	Token     string        `json:"token"`
	Amount    string        `json:"amount"` // of the token, exact
	Wallet    string        `json:"wallet"`
	Assets    []AssetAmount `json:"assets"` // what a mint takes or a burn grants
	Faults    []string      `json:"faults"`
	Placed    time.Time     `json:"placed"`

	// State, Tone, Attention, Loss, Said and Next say what happened to the order.
	Verdict

	// An order that the game did not approve has no transaction. Its TxHash, TxStatus, Block,
	// Delivery and LastStatus are absent.
	TxHash     common.Hash `json:"tx_hash,omitzero"`
	TxStatus   string      `json:"tx_status,omitempty"` // "submitted", "succeeded" or "failed"
	Block      uint64      `json:"block,omitzero"`
	Delivery   string      `json:"delivery,omitempty"`   // the state of the result's delivery
	Attempts   int         `json:"attempts"`             // how often the result was sent
	LastStatus int         `json:"last_status,omitzero"` // HTTP status of the last answer to a result
	Over       bool        `json:"over"`                 // whether nothing more happens by itself

	// what the game moved in total, by asset; null if unknown
	Moved      map[string]string `json:"moved"`
	Imbalances []Imbalance       `json:"imbalances"` // the findings of the books
}

// Player returns the game's ID of the order's player, or else the session ID.
func (o *OrderReport) Player() string { return cmp.Or(o.PlayerID, o.SessionID) }

// Imbalance is a finding of the books.
type Imbalance struct {
	Problem string         `json:"problem"`
	Assets  []AssetBalance `json:"assets"`
}

// AssetBalance is a player's balance of an asset before and after a call, and the
// balance expected after it.
type AssetBalance struct {
	ID       string `json:"id"`
	Before   string `json:"before"`
	After    string `json:"after"`
	Expected string `json:"expected"`
}

// OrdersQuery is the query of GET /control/orders. Empty fields do not filter.
type OrdersQuery struct {
	SessionID string `json:"session_id,omitempty"`
	State     string `json:"state,omitempty"`    // such as "waiting"
	Attention bool   `json:"attention,omitzero"` // only orders that need attention
	Before    string `json:"before,omitempty"`   // only orders before this one, the last of the page before
	Limit     int    `json:"limit,omitzero"`     // from 1 to 1000; 0 is 100
}

// OrderList is the answer of GET /control/orders.
type OrderList struct {
	Orders []OrderReport `json:"orders"` // newest first
	Total  int           `json:"total"`  // how many match, on all pages
	More   bool          `json:"more"`   // whether there is another page

	// NeedAttention is how many orders, and calls that led to none, need attention, whatever the query.
	NeedAttention int `json:"need_attention"`

	// Calls are the calls that led to no order, such as one that the game refused, newest first. If the
	// query asks only for attention, they are those that need it. A query for a session, a state or a
	// later page has none.
	Calls []Event `json:"calls,omitempty"`
}

// OrderQuery is the query of GET /control/orders/{uuid}.
type OrderQuery struct {
	// Wait is how long to wait until the order is over, in the form "30s" and at
	// most "1h". The wait ends early if nothing can happen to the order in that time.
	Wait string `json:"wait,omitempty"`
}

// SendRequest is the body of POST /control/orders/{uuid}/send.
type SendRequest struct {
	// Outcome, "succeeded" or "failed", first ends a pending transaction, or
	// contradicts one that has ended otherwise.
	Outcome string `json:"outcome,omitempty"`
}

// Sent is the answer of POST /control/orders/{uuid}/send.
type Sent struct {
	Order OrderReport `json:"order"`
	Lost  bool        `json:"lost,omitzero"`   // the answer was lost on purpose
	Error string      `json:"error,omitempty"` // why the game has not confirmed, unless that was on purpose
}

// AdvanceRequest is the body of POST /control/advance.
type AdvanceRequest struct {
	By string `json:"by"` // such as "90s", "15m" or "12h"
}

// Advanced is the answer of POST /control/advance.
type Advanced struct {
	Now        time.Time  `json:"now"`
	Deliveries []Delivery `json:"deliveries"`
}

// Delivery is one attempt to deliver a result.
type Delivery struct {
	UUID    uuid.UUID `json:"uuid"`
	Attempt int       `json:"attempt"`
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitzero"` // HTTP status; absent if there was no answer
	Next    time.Time `json:"next,omitzero"`
	Lost    bool      `json:"lost,omitzero"`   // the answer was lost on purpose
	Error   string    `json:"error,omitempty"` // why the game has not confirmed, unless that was on purpose
}

// FailRequest is the body of POST /control/failures. It scripts failures of the next calls: of the
// game's to the emulator, and with Assets of the emulator's to the game.
type FailRequest struct {
	Initialize []string `json:"initialize,omitempty"` // such as "invalid mac"
	// HTTP statuses, JSON-RPC error codes below 100, 1000 for no answer, 1001 for one that is cut off
	RPC    []int    `json:"rpc,omitempty"`
	Assets []string `json:"assets,omitempty"` // such as "lost answer"
}

// NodeRequest is the body of POST /control/node. It says what is wrong with the chain of a network, and with
// the node that shows it, until it is set again: a field that is absent is not wrong. See NodeState of
// package ramptest.
type NodeRequest struct {
	Network ramp.Network `json:"network"`
	Stands  bool         `json:"stands,omitzero"`   // the chain makes no block
	Behind  int          `json:"behind,omitzero"`   // how many blocks the node's newest one is older
	MaxLogs int          `json:"max_logs,omitzero"` // how many logs a list has at most; 0 is all
	Forgets string       `json:"forgets,omitempty"` // what is older is unknown, such as "1h"
}

// Checked is the answer of GET /control/check. If it has Problems, a test must fail.
type Checked struct {
	// Problems are what the game lost or moved twice, orders that need attention, what it gives to
	// a caller with half of a session, and what could not be asked or was not; see NoThief and Incomplete of
	// ramptest.Config.
	Problems []string `json:"problems"`
}

// ResetRequest is the body of POST /control/reset. It has no fields.
type ResetRequest struct{}

// Done is an answer without content.
type Done struct{}

// EventsQuery is the query of GET /control/events.
type EventsQuery struct {
	After   int    `json:"after,omitzero"`   // only events with a higher number
	Run     string `json:"run,omitempty"`    // the Run of the EventList that After comes from
	UUID    string `json:"uuid,omitempty"`   // only events of this order
	Routine bool   `json:"routine,omitzero"` // also calls to the chains and readings of the books
	Limit   int    `json:"limit,omitzero"`   // from 1 to 1000; 0 is 1000
	// how long to wait for an event if there is none, as in OrderQuery
	Wait string `json:"wait,omitempty"`
}

// EventList is the answer of GET /control/events.
type EventList struct {
	Events []Event `json:"events"` // oldest first
	More   bool    `json:"more"`   // whether there are more: continue after the last one

	// Run names the run of the emulator that numbers the events. An emulator that is started anew
	// counts from 1 again, unless it has the same state file. If a query names another run, or a
	// number that is not reached yet, the list begins with the first event.
	Run string `json:"run"`
}

// Error is an error that the API reports. In an answer it is the member "error".
type Error struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
	// for CodeRejected: the HTTP status of the game's answer
	GameStatus int       `json:"game_status,omitzero"`
	ErrorCode  ramp.Code `json:"error_code,omitempty"` // for CodeRejected: the game's errorCode
	// for CodeLostAnswer: the UUID of the order, to start it again
	UUID uuid.UUID `json:"uuid,omitzero"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorCode says what kind of error it is. Each has an HTTP status.
type ErrorCode string

// The codes of an [Error].
const (
	CodeInvalid      ErrorCode = "invalid"      // 400: the request is invalid; the message names what
	CodeUnauthorized ErrorCode = "unauthorized" // 401: the token is missing or wrong
	CodeForbidden    ErrorCode = "forbidden"    // 403: the caller may not use the API
	CodeNotFound     ErrorCode = "not_found"    // 404: unknown path, order or UUID
	CodeMethod       ErrorCode = "method"       // 405: the path has other methods
	// 409: the transaction was already sent, so faults come too late
	CodePlaced     ErrorCode = "placed"
	CodePending    ErrorCode = "pending"     // 409: the order has no result yet
	CodeLostAnswer ErrorCode = "lost_answer" // 409: the answer was lost on purpose; start the order again
	CodeExpired    ErrorCode = "expired"     // 410: the UUID has expired
	CodeMediaType  ErrorCode = "media_type"  // 415: a POST must be JSON
	CodeRejected   ErrorCode = "rejected"    // 422: the game rejected the order
	CodeGame       ErrorCode = "game"        // 502: the game did not answer, or violated the interface
	CodeClosed     ErrorCode = "closed"      // 503: the emulator is stopping
)

// Status returns the HTTP status of the code.
func (c ErrorCode) Status() int {
	return map[ErrorCode]int{CodeInvalid: 400, CodeUnauthorized: 401, CodeForbidden: 403, CodeNotFound: 404,
		CodeMethod: 405,
		CodePlaced: 409, CodePending: 409, CodeLostAnswer: 409, CodeExpired: 410, CodeMediaType: 415,
		CodeRejected: 422, CodeGame: 502, CodeClosed: 503}[c]
}
