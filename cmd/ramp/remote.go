package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// defaultAt is where emulate listens by default.
const defaultAt = "http://127.0.0.1:8090"

// remote is a client of a running emulator's control API.
type remote struct {
	at     string // base URL, without a token
	token  string
	client *http.Client
}

// atFlag adds the flag that finds the emulator.
func atFlag(set *flag.FlagSet) *string {
	return set.String("at", "", "`URL` of the emulator, with ?token=… if it has one (default $RAMP_API_URL, else "+defaultAt+")")
}

// connect finds the emulator. It verifies that an emulator answers, because an access
// token must not go to another server that happens to listen there.
func connect(ctx context.Context, at string) (*remote, error) {
	address, err := url.Parse(cmp.Or(at, os.Getenv("RAMP_API_URL"), defaultAt))
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, errors.New("-at, or RAMP_API_URL, must be the address of an emulator, such as " + defaultAt)
	}
	r := &remote{token: cmp.Or(address.Query().Get("token"), os.Getenv("RAMP_CONTROL_TOKEN")), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	r.at = address.Scheme + "://" + address.Host
	var found struct{ Validator string }
	err = r.call(ctx, http.MethodGet, "/control", nil, &found)
	if err == nil && found.Validator == "" {
		err = errNoEmulator
	}
	var refused *refusal
	if err != nil && !errors.As(err, &refused) {
		return nil, fmt.Errorf("there is no emulator at %s: start one with ramp emulate, or name it with -at", r.at)
	}
	return r, err
}

var errNoEmulator = errors.New("the server that answers is not an emulator")

// refusal is an error that the emulator reports.
type refusal struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	GameStatus int    `json:"game_status"`
	ErrorCode  string `json:"error_code"`
}

func (r *refusal) Error() string { return r.Message }

// maxAnswer is the maximum size of an emulator's answer in bytes.
const maxAnswer = 64 << 20

// call makes one call of the control API. The error is a [*refusal] if the emulator
// reports one.
func (r *remote) call(ctx context.Context, method, path string, body, into any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, r.at+path, &sent)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var failed struct{ Error *refusal }
		if json.Unmarshal(text, &failed) != nil || failed.Error == nil {
			return errNoEmulator
		}
		return failed.Error
	}
	return json.Unmarshal(text, into)
}

// status prints an error of a call and returns the exit status.
func (r *remote) status(std stdio, name string, err error) int {
	var refused *refusal
	if !errors.As(err, &refused) {
		fmt.Fprintf(std.errs, "ramp %s: the emulator did not answer: %v\n", name, err)
		return statusNotReached
	}
	switch refused.Code {
	case "declined":
		fmt.Fprintln(std.errs, colored(std.errs, red, "DECLINED"), refused.Message)
		return statusLoss
	case "game", "lost_answer":
		fmt.Fprintln(std.errs, colored(std.errs, red, "FAILED"), refused.Message)
		return statusLoss
	default:
		fmt.Fprintf(std.errs, "ramp %s: %s\n", name, refused.Message)
		return statusNotReached
	}
}

// order is an order as the emulator reports it.
type order struct {
	UUID       uuid.UUID `json:"uuid"`
	Do         string    `json:"do"`
	SessionID  string    `json:"session_id"`
	PlayerID   string    `json:"player_id"`
	Amount     json.Number
	Placed     time.Time
	TxHash     string `json:"tx_hash"`
	TxStatus   string `json:"tx_status"`
	State      string
	Done       bool
	Next       time.Time
	Attempts   int
	LastStatus int `json:"last_status"`
	Moved      map[string]json.Number
	Imbalances []struct{ Problem string }
	Loss       bool

	raw json.RawMessage
}

// UnmarshalJSON also keeps the JSON text, which -json prints.
func (o *order) UnmarshalJSON(text []byte) error {
	type fields order
	var read fields // a new value, so that fields absent from text become zero
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*o = order(read)
	o.raw = bytes.Clone(text)
	return nil
}

// player returns the ID of the order's player, or else of the session.
func (o *order) player() string {
	if o.PlayerID != "" {
		return o.PlayerID
	}
	return o.SessionID
}

// verdict returns the state of an order in one word and in a sentence.
func (o *order) verdict() (word, said string) {
	answered := "The game did not answer"
	if o.LastStatus != 0 {
		answered = fmt.Sprintf("The game answered HTTP %d", o.LastStatus)
	}
	switch {
	case len(o.Imbalances) > 0:
		return "LOSS", o.Imbalances[len(o.Imbalances)-1].Problem + "."
	case o.State == "refused":
		return "LOSS", fmt.Sprintf("The game refused the result (HTTP %d). It is not sent again.", o.LastStatus)
	case o.State == "given up":
		return "LOSS", fmt.Sprintf("Gave up after %d attempts. The game never confirmed.", o.Attempts)
	case o.State == "confirmed" && o.Done:
		return "DONE", fmt.Sprintf("The transaction %s, and the game confirmed.", o.TxStatus)
	case o.State == "pending" && o.Done:
		return "OPEN", "The transaction stays pending."
	case o.State == "pending":
		return "OPEN", "Waiting for the next block."
	case o.Attempts == 0 && o.Done:
		return "OPEN", "The transaction " + o.TxStatus + ", and no result is due."
	case o.Next.IsZero() && !o.Done:
		return "OPEN", "Sending the result now."
	case o.Attempts == 0:
		return "OPEN", "The result is due at " + o.Next.Format("15:04:05") + "."
	case o.Done:
		return "OPEN", answered + ". No further attempt is due."
	default:
		return "OPEN", answered + ". The next attempt is at " + o.Next.Format("15:04:05") + "."
	}
}

// books describes what the game moved in total.
func (o *order) books() string {
	if o.Moved == nil {
		return "unknown"
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(o.Moved)) {
		amount := o.Moved[id].String()
		if !strings.HasPrefix(amount, "-") {
			amount = "+" + amount
		}
		parts = append(parts, amount+" "+id)
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// show prints an order on one line.
func (o *order) show(w io.Writer) {
	word, said := o.verdict()
	color := map[string]string{"LOSS": red, "DONE": green, "OPEN": gray}[word]
	fmt.Fprintf(w, "%s  %s  %s Moved in all: %s.\n", o.UUID, colored(w, color, word), oneLine(said), oneLine(o.books()))
}
