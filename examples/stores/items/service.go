package items

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
)

// Service implements Items over HTTP. The key is in the header Idempotency-Key, and the body says
// what moves:
//
//	{"player": "alice", "kind": "take", "assets": [{"id": "gold", "amount": 100}]}
//
// The kind is take, give back, grant or nothing. HTTP 200 means that the service has applied it, and
// HTTP 422 that it refuses the key for good; {"error": "INVALID_BALANCE"} is then the errorCode of
// the order. After any other answer, or none, the store asks again under the same key.
type Service struct {
	URL    string
	Client *http.Client // with a Timeout below HandlerConfig's deadlines; by default http.DefaultClient
}

// Move is the body of a request.
type Move struct {
	Player string             `json:"player"` // the session: here, a session is a player
	Kind   string             `json:"kind"`
	Assets []ramp.AssetAmount `json:"assets"`
}

// Apply implements Items.
func (s *Service) Apply(ctx context.Context, key string, step ramp.Step) error {
	body, err := json.Marshal(Move{step.Order.SessionID, step.Effect.Kind.String(), step.Order.Assets})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var refusal struct{ Error ramp.Code }
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnprocessableEntity:
		if err := json.NewDecoder(io.LimitReader(answer.Body, 4096)).Decode(&refusal); err != nil {
			return fmt.Errorf("items: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrRefused, ramp.Reject(refusal.Error))
	default:
		return fmt.Errorf("items: the service answered HTTP %d", answer.StatusCode)
	}
}
