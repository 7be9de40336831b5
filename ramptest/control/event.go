package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"

	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Kind is the kind of an [Event].
type Kind string

// The kinds of an event.
const (
	KindInitialize Kind = "initialize" // the game asked for a UUID (interface 4.1)
	KindAssets     Kind = "assets"     // the service asked what a player owns (4.3)
	KindValidate   Kind = "validate"   // the service asked for an approval (4.3)
	KindResult     Kind = "result"     // the service delivered a result (4.3)
	KindRPC        Kind = "rpc"        // a client called the chain (4.4)
	KindChain      Kind = "chain"      // something happened on the chain
	KindBooks      Kind = "books"      // which assets moved during a call, and whether that is right
)

// Event is one thing that happened: an exchange of a request and an answer, or
// something on the chain. It holds no token, no HMAC and no key.
type Event struct {
	Number  int       `json:"number"`        // 1 is the first
	Time    time.Time `json:"time"`          // when it began, on the service's clock
	Took    Duration  `json:"took,omitzero"` // on the service's clock
	Kind    Kind      `json:"kind"`
	UUID    uuid.UUID `json:"uuid,omitzero"`        // the order; zero if it concerns none
	Session string    `json:"session_id,omitempty"` // of a call to the game
	Attempt int       `json:"attempt,omitzero"`     // of a result: 1 is the first
	Fault   string    `json:"fault,omitempty"`      // the scripted fault, if any
	Request *Message  `json:"request,omitempty"`    // nil for KindChain and KindBooks
	Answer  *Message  `json:"answer,omitempty"`     // nil if there was none
	Outcome string    `json:"outcome"`              // "success", an errorCode, or what happened
	// what that means, in a sentence; "" if Outcome says it all
	Said string `json:"said,omitempty"`
	// "good", "bad", "wait", "warn" or "neutral"; "" for routine events
	Tone Tone `json:"tone,omitempty"`
	// whether something is wrong, so that a person should look
	Failed bool   `json:"failed,omitzero"`
	Loss   string `json:"loss,omitempty"` // of a call: what the books found wrong after it
	// of a rejected validate call: how much the player owned, before it, of the assets that the mint
	// takes; absent if unknown
	Owned []AssetAmount `json:"owned,omitempty"`

	// The transaction. Set for KindResult and KindChain.
	Network ramp.Network `json:"network,omitempty"`
	TxHash  common.Hash  `json:"tx_hash,omitzero"`
	Block   uint64       `json:"block,omitzero"`   // 0 if it is in none
	Status  TxStatus     `json:"status,omitempty"` // of the transaction
}

// Duration is a time.Duration that is text in JSON, such as "1.5s".
type Duration time.Duration

// String returns the duration in the form of [time.Duration].
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads the text, or a number of nanoseconds, which is in state files of earlier releases.
func (d *Duration) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*int64)(d)) == nil {
		return nil
	}
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	read, err := time.ParseDuration(written)
	*d = Duration(read)
	return err
}

// TxStatus is the status of a transaction.
type TxStatus string

// The statuses of a transaction. The transaction of an order ends as succeeded or
// failed, any other as mined.
const (
	TxSubmitted TxStatus = "submitted" // it is not in a block yet
	TxSucceeded TxStatus = "succeeded" // receipt.status 0x1
	TxFailed    TxStatus = "failed"    // receipt.status 0x0
	TxMined     TxStatus = "mined"
	TxReplaced  TxStatus = "replaced" // a reorganization moved it to another block
)

// AssetAmount is an amount of a game asset.
type AssetAmount struct {
	ID     string `json:"id"`
	Amount string `json:"amount"`
}

// Message is one side of an exchange. Credentials in it are redacted.
type Message struct {
	Method string      `json:"method,omitempty"` // of a request
	Path   string      `json:"path,omitempty"`   // of a request, without its query
	Status int         `json:"status,omitzero"`  // of an answer: the HTTP status
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`
}

// IsWrong reports whether the game did not answer a call as it should, or as the player
// wanted, or moved something wrongly.
func (e Event) IsWrong() bool {
	return e.Tone == verdict.Bad || e.Tone == verdict.Neutral || e.Loss != ""
}

// Verdict returns the verdict on a call.
func (e Event) Verdict() Verdict {
	v := Verdict{Tone: cmp.Or(e.Tone, verdict.Neutral), Attention: e.Failed, Said: e.Sentence()}
	if v.Tone == verdict.Wait {
		v.State = StateWaiting
	}
	if e.Loss != "" {
		if v.Tone == verdict.Good { // that the answer is right is not what there is to say
			v.Said = ""
		}
		v.Tone, v.Attention, v.Loss = verdict.Bad, true, true
		v.Said = strings.TrimSpace(v.Said + " The books found: " + e.Loss + ".")
	}
	return v
}

// IsPolicy reports whether a game has rejected an order in the correct form, which it
// may do.
func (e Event) IsPolicy() bool {
	return e.Kind == KindValidate && e.Tone == verdict.Neutral && e.Answer != nil && e.Answer.Status < 500
}

// IsReading reports whether the event is an assets call of the books.
func (e Event) IsReading() bool { return e.Kind == KindAssets && e.UUID != uuid.Nil }

// Routine reports whether the event is routine: a successful request to a chain, or
// a successful balance reading of the books, which an event of [KindBooks] sums up.
func (e Event) Routine() bool {
	return e.Outcome == "success" && (e.Kind == KindRPC || e.IsReading())
}

// String returns a one-line description of the event, without its time.
func (e Event) String() string {
	var id, attempt, status string
	if e.UUID != uuid.Nil {
		id = e.UUID.String()
	}
	if e.Attempt != 0 {
		attempt = fmt.Sprintf("#%d", e.Attempt)
	}
	if e.Answer != nil && e.Answer.Status != 0 {
		status = fmt.Sprint(e.Answer.Status)
	}
	return fmt.Sprintf("%-10s  %-8.8s  %-3s  %-3s  %s", e.Kind, id, attempt, status, e.withFault(e.Outcome))
}

// Sentence returns what happened, and the scripted fault, for a reader.
func (e Event) Sentence() string {
	return e.withFault(cmp.Or(e.Said, strings.TrimPrefix(e.Outcome, "ramptest: ")))
}

// withFault adds the scripted fault, unless the text names it.
func (e *Event) withFault(text string) string {
	if e.Fault == "" || strings.Contains(text, e.Fault) {
		return text
	}
	return text + " (" + e.Fault + ")"
}

// Short returns the body on one line, and at most its first 600 bytes.
func (m *Message) Short() string {
	const limit = 600
	long := regexp.MustCompile("0x([0-9a-fA-F]{8})[0-9a-fA-F]{192,}") // such as a logsBloom
	body := long.ReplaceAllString(strings.Join(strings.Fields(m.Body), " "), "0x$1…")
	if len(body) <= limit {
		return body
	}
	return strings.ToValidUTF8(body[:limit], "") + "…"
}
