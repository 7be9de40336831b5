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
	"strings"

	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
)

// Client calls the API of a running emulator.
type Client struct {
	URL   string // the address of the emulator, without a path
	Token string // if the emulator requires one

	// HTTPClient makes the calls. It should follow no redirects. If nil, each call has a connection of
	// its own and uses no proxy, whatever the environment and http.DefaultTransport say.
	HTTPClient *http.Client
}

// Format writes the scheme and host of URL under every verb but %p, because a Client holds a token.
func (c Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, transport.Shown(c.URL)) }

// ErrNoEmulator means that the server that answered is not an emulator.
var ErrNoEmulator = errors.New("control: the server that answered is not an emulator")

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 64 << 20

// call makes one call, such as "GET /control", and decodes the answer. What is asked is the
// query of a GET, or the body of a POST.
func call[T any](ctx context.Context, c *Client, what string, asked any) (answer T, err error) {
	status, text, err := c.exchange(ctx, what, asked)
	var failed struct {
		Error *Error `json:"error"`
	}
	switch {
	case err != nil:
		return answer, fmt.Errorf("control: %w", err)
	case status == http.StatusOK && json.Unmarshal(text, &answer) == nil:
		return answer, nil
	case json.Unmarshal(text, &failed) == nil && failed.Error != nil && failed.Error.Code.Status() == status:
		return answer, failed.Error
	default:
		return answer, ErrNoEmulator
	}
}

func (c *Client) exchange(ctx context.Context, what string, asked any) (status int, answer []byte,
	err error) {
	method, path, _ := strings.Cut(what, " ")
	body, err := json.Marshal(asked)
	if err != nil {
		return 0, nil, err
	}
	if method == http.MethodGet {
		body, path = nil, path+"?"+exact.Query(asked).Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTPClient
	if client == nil {
		client = &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}

// Describe returns the setup of the emulator.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	d, err := call[Description](ctx, c, "GET /control", struct{}{})
	if err == nil && len(d.Chains) == 0 {
		err = ErrNoEmulator
	}
	return d, err
}

// Start plays a player who mints or burns.
func (c *Client) Start(ctx context.Context, r StartRequest) (OrderReport, error) {
	return call[OrderReport](ctx, c, "POST /control/orders", r)
}

// Orders returns a page of the orders.
func (c *Client) Orders(ctx context.Context, q OrdersQuery) (OrderList, error) {
	return call[OrderList](ctx, c, "GET /control/orders", q)
}

// Order returns an order, and first waits for it if the query says so.
func (c *Client) Order(ctx context.Context, id string, q OrderQuery) (OrderReport, error) {
	return call[OrderReport](ctx, c, "GET /control/orders/"+url.PathEscape(id), q)
}

// Send sends the result of an order again, now and once.
func (c *Client) Send(ctx context.Context, id string, r SendRequest) (Sent, error) {
	return call[Sent](ctx, c, "POST /control/orders/"+url.PathEscape(id)+"/send", r)
}

// Advance advances the clock of the emulator.
func (c *Client) Advance(ctx context.Context, r AdvanceRequest) (Advanced, error) {
	return call[Advanced](ctx, c, "POST /control/advance", r)
}

// Fail scripts failures of the next calls between the game and the emulator.
func (c *Client) Fail(ctx context.Context, r FailRequest) (Done, error) {
	return call[Done](ctx, c, "POST /control/failures", r)
}

// SetNode sets what is wrong with a chain and its node, until it is set again.
func (c *Client) SetNode(ctx context.Context, r NodeRequest) (Done, error) {
	return call[Done](ctx, c, "POST /control/node", r)
}

// Events returns a page of the events.
func (c *Client) Events(ctx context.Context, q EventsQuery) (EventList, error) {
	return call[EventList](ctx, c, "GET /control/events", q)
}

// Check asks the game for assets like a thief, and returns what a test must fail for.
func (c *Client) Check(ctx context.Context) (Checked, error) {
	return call[Checked](ctx, c, "GET /control/check", struct{}{})
}

// Reset makes the emulator forget everything that happened.
func (c *Client) Reset(ctx context.Context, r ResetRequest) (Done, error) {
	return call[Done](ctx, c, "POST /control/reset", r)
}
