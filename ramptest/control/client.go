package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Client calls the API of a running emulator.
type Client struct {
	URL        string       // the address of the emulator, without a path
	Token      string       // if the emulator requires one
	HTTPClient *http.Client // if nil, http.DefaultClient; it should follow no redirects
}

var _ Emulator = (*Client)(nil)

// ErrNoEmulator means that the server that answered is not an emulator.
var ErrNoEmulator = errors.New("control: the server that answered is not an emulator")

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 64 << 20

// call makes one call and decodes the answer.
func call[T any](ctx context.Context, c *Client, method, path string, asked, body any) (answer T, err error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer, fmt.Errorf("control: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	if asked != nil {
		values, err := query(asked)
		if err != nil {
			return answer, fmt.Errorf("control: %w", err)
		}
		path += "?" + values.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, sent)
	if err != nil {
		return answer, fmt.Errorf("control: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTPClient
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return answer, fmt.Errorf("control: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer, fmt.Errorf("control: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		var failed failure
		if json.Unmarshal(text, &failed) != nil || failed.Error == nil || failed.Error.Code.Status() != response.StatusCode {
			return answer, ErrNoEmulator
		}
		return answer, failed.Error
	}
	if json.Unmarshal(text, &answer) != nil {
		return answer, ErrNoEmulator
	}
	return answer, nil
}

// Describe returns the setup of the emulator.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	d, err := call[Description](ctx, c, http.MethodGet, "/control", nil, nil)
	if err == nil && len(d.Chains) == 0 {
		err = ErrNoEmulator
	}
	return d, err
}

// Start plays a player who mints or burns.
func (c *Client) Start(ctx context.Context, r StartRequest) (Order, error) {
	return call[Order](ctx, c, http.MethodPost, "/control/orders", nil, r)
}

// Orders returns a page of the orders.
func (c *Client) Orders(ctx context.Context, q OrdersQuery) (OrderList, error) {
	return call[OrderList](ctx, c, http.MethodGet, "/control/orders", q, nil)
}

// Order returns an order, and first waits for it if the query says so.
func (c *Client) Order(ctx context.Context, id string, q OrderQuery) (Order, error) {
	return call[Order](ctx, c, http.MethodGet, "/control/orders/"+url.PathEscape(id), q, nil)
}

// Send sends the result of an order again, now and once.
func (c *Client) Send(ctx context.Context, id string, r SendRequest) (Sent, error) {
	return call[Sent](ctx, c, http.MethodPost, "/control/orders/"+url.PathEscape(id)+"/send", nil, r)
}

// Advance advances the clock of the emulator.
func (c *Client) Advance(ctx context.Context, r AdvanceRequest) (Advanced, error) {
	return call[Advanced](ctx, c, http.MethodPost, "/control/advance", nil, r)
}

// Fail scripts failures of the game's next calls to the emulator.
func (c *Client) Fail(ctx context.Context, r FailRequest) (Done, error) {
	return call[Done](ctx, c, http.MethodPost, "/control/failures", nil, r)
}

// Events returns a page of the events.
func (c *Client) Events(ctx context.Context, q EventsQuery) (EventList, error) {
	return call[EventList](ctx, c, http.MethodGet, "/control/events", q, nil)
}

// Reset makes the emulator forget everything that happened.
func (c *Client) Reset(ctx context.Context, r ResetRequest) (Done, error) {
	return call[Done](ctx, c, http.MethodPost, "/control/reset", nil, r)
}
