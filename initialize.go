package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/wire"
)

const (
	initializePath     = "/api/v2/initialize" // interface 4.1, 9
	maxInitializeBytes = 1 << 20
)

// Client calls the service's API (interface 4.1). Make one with [NewClient] and
// share it: it is safe for concurrent use.
type Client struct {
	watch
	http     *transport.Transport
	endpoint func() string // a function, so that nothing prints it: a failed assertion prints hidden fields
	secrets  *redact.Redactor
	key      HMACKey
	terms    *Terms
}

// ClientConfig configures a [Client]; zero fields mean their defaults.
type ClientConfig struct {
	// URL is the {ramp_api_url} of the interface. For http, see [RPCConfig]. Required.
	URL string

	// Key is the HMAC key of the console, which signs calls (interface 5.2). Required.
	Key HMACKey

	// Terms are the same as in [HandlerConfig]. Set them if you use [InitializeRequest].Product.
	Terms *Terms

	// HTTPClient supplies the transport, the cookies and the timeout. It is copied and not modified,
	// and follows no redirects, so that a signed call reaches no address that was not configured. The
	// default has its own pool, so share one Client. The pool is a clone of [http.DefaultTransport]. It
	// opens up to 100 connections for each host, and keeps them all when they are idle. If you set a
	// transport of your own, raise its MaxIdleConnsPerHost. After a failure that may pass, the default
	// closes its idle connections, because the host may have moved.
	HTTPClient *http.Client

	// Timeout limits each attempt, up to the last byte of the answer. The context of a call limits all
	// of its attempts together. The default is 10 seconds.
	Timeout time.Duration

	// Retries is how often a call is retried after a failed connection, or HTTP 429, 502, 503 or 504,
	// unless the body has one of the failures of interface 7.1. The first backoff is 0.2 seconds, each
	// further one twice as long, up to 5 seconds, with jitter. A longer Retry-After is obeyed. If it
	// exceeds 30 seconds, or the context would end before, the call fails at once. The default is 2;
	// -1 means none.
	Retries      int
	InsecureHTTP bool // accepts http for any host: anyone on the path can then change answers

	// Logger gets one record per call with the endpoint, the duration and the cause of a failure,
	// which may quote player data (see [APIError]), and one per retry. By default nothing is logged.
	Logger   *slog.Logger
	Now      func() time.Time // clock of ExpiresAt, durations and Retry-After; by default [time.Now]
	Observer Observer         // observes every call and every attempt
}

// Format writes the scheme and host of the URL under every verb but %p, as [RPCConfig] does.
func (c ClientConfig) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, transport.Shown(c.URL)) }

// NewClient returns a client for the service at c.URL.
func NewClient(c ClientConfig) (*Client, error) {
	var p problems
	base := checkBase(&p, "ClientConfig.URL", c.URL, c.InsecureHTTP)
	if strings.HasSuffix(base, initializePath) {
		p.add("ClientConfig.URL", "must be the address before %s", initializePath)
	}
	p.requireKey(!c.Key.IsZero(), "ClientConfig.Key", ErrHMACKey)
	p.requireMade(c.Terms, "ClientConfig.Terms")
	t := transport.New(c.HTTPClient, transport.Transport{
		Timeout: c.Timeout, Retries: c.Retries, Log: c.Logger, Now: c.Now,
	}, p.of("ClientConfig"))
	if err := p.err(); err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return &Client{
		endpoint: func() string { return base + initializePath }, key: c.Key, terms: c.Terms,
		http: t, watch: watch{c.Observer, t.Now},
		secrets: redact.New(append(c.Key.secrets(), transport.Secrets(u)...)...),
	}, nil
}

// Initialization is the result of [Client.Initialize].
type Initialization struct {
	UUID      uuid.UUID // identifies the order in the exchange view
	Text      string    // the UUID as the service wrote it, with or without hyphens
	Network   Network   // that of the intent
	ExpiresAt time.Time // [UUIDValidity] after the call was sent, slightly before the service's expiry
}

// ExchangeURL is like the function [ExchangeURL], for the session that trades this order.
// The URL has the UUID as the service wrote it.
func (i *Initialization) ExchangeURL(rampURL string, s Session) (string, error) {
	return exchangeURL(rampURL, cmp.Or(i.Text, i.UUID.String()),
		ExchangeParams{i.UUID, s.Token, s.ID, i.Network})
}

// Initialize asks the service for a UUID (interface 2.2, 2.3, 4.1). A call may be repeated: nothing moves,
// and a UUID that no page uses expires.
//
// A request with wrong fields is not sent; the error is an [*InvalidError]. An answer
// other than success is an [*APIError]. The failures of interface 7.1 are never retried:
// on them, [errors.Is] finds [ErrHMACMissing], [ErrHMACInvalid], [ErrUnknownProject] and
// [ErrUnknownNetwork].
func (c *Client) Initialize(ctx context.Context, request InitializeRequest) (*Initialization, error) {
	if c.http == nil {
		return nil, errors.New("ramp: initialize: the Client was not made by NewClient")
	}
	if request.Product != "" {
		var err error
		if request.Intent, err = c.terms.intent(request.Product); err != nil {
			return nil, err
		}
	}
	if err := request.check(); err != nil {
		return nil, err
	}
	body, err := wire.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ramp: initialize: %w", err)
	}
	signature := c.key.Sign(body)

	ctx, op := c.begin(ctx, OperationInitialize, "initialize")
	var sent time.Time
	var id issuedUUID
	err = c.http.Retry(ctx, func() error {
		ctx, attempt := c.begin(ctx, OperationAttempt, op.Name)
		sent = attempt.Begun
		var err error
		id, err = c.attempt(ctx, body, signature)
		c.http.Leave(err)
		c.end(ctx, attempt, transport.Unmarked(err))
		return err
	})
	op.UUID, err = id.uuid, redact.Bounded(err)
	took := c.end(ctx, op, err)

	log := c.http.Log.With("endpoint", op.Name, "duration", took)
	if err != nil {
		log.ErrorContext(ctx, "ramp: call failed", "error", err)
		return nil, err
	}
	log.InfoContext(ctx, "ramp: call", "uuid", op.UUID.String())
	return &Initialization{UUID: id.uuid, Text: id.text, Network: request.Intent.Network,
		ExpiresAt: sent.Add(UUIDValidity)}, nil
}

// attempt makes one HTTP request. Errors that may pass are marked retryable.
func (c *Client) attempt(ctx context.Context, body []byte, signature string) (issuedUUID, error) {
	ctx, cancel := context.WithTimeout(ctx, c.http.Timeout)
	defer cancel()
	answer, err := c.http.Post(ctx, c.endpoint(), http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {transport.UserAgent},
		HeaderHMAC:     {signature},
	}, body, maxInitializeBytes)
	switch {
	case errors.Is(err, transport.ErrTooLarge):
		return issuedUUID{}, fmt.Errorf("ramp: initialize: %w", ErrAnswerTooLarge)
	case err != nil:
		err = c.secrets.With(signature).Error(err)
		return issuedUUID{}, &transport.Retryable{Err: fmt.Errorf("ramp: initialize: %w", err)}
	}
	return c.read(answer, signature)
}

// read returns the UUID of an answer (interface 2.3), or an error that describes the answer. The
// HTTP status comes before the body: a gateway may answer with something like the envelope.
func (c *Client) read(a *transport.Answer, signature string) (issuedUUID, error) {
	envelope, ok := readInitializeAnswer(a.Body)
	secrets := c.secrets.With(signature)
	problem := envelope.problem(a, ok, secrets)
	if ok && envelope.code == http.StatusOK && problem == "" {
		return envelope.issuedUUID, nil
	}
	failure := &APIError{Status: a.Status, RetryAfter: a.RetryAfter(c.now()), problem: problem}
	failure.ContentType, _, _ = strings.Cut(secrets.Line(a.Header.Get("Content-Type"),
		redact.MaxExcerpt), ";")
	if ok {
		failure.classify(envelope, c.key, secrets)
	} else {
		failure.Excerpt = secrets.Line(string(a.Body[:min(len(a.Body), maxMessage)]), redact.MaxExcerpt)
	}
	if failure.kind == nil && slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, a.Status) {
		return issuedUUID{}, &transport.Retryable{Err: failure, After: failure.RetryAfter,
			Answered: a.Status == http.StatusTooManyRequests}
	}
	return issuedUUID{}, failure
}

// InitializeResponse is the answer to an initialize call (interface 2.3, 7.1). [Client] reads it by
// itself. You need this type only if you write a client of your own, or a stand-in for the service.
type InitializeResponse struct {
	Code    int    // 200 after success
	Message string // OK after success
	UUID    string // data.uuid after success, as the service wrote it
	Failure string // data after a failure
}

// MarshalJSON writes data as an object with the UUID, or as the text of the failure if there is no
// UUID.
func (r InitializeResponse) MarshalJSON() ([]byte, error) {
	var data any = r.Failure
	if r.UUID != "" {
		data = map[string]string{"uuid": r.UUID}
	}
	return wire.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{r.Code, r.Message, data})
}

// UnmarshalJSON reads what MarshalJSON writes. The error is an [*InvalidError] if the text is not the
// envelope, or if it has the code of a success and no UUID.
func (r *InitializeResponse) UnmarshalJSON(b []byte) error {
	answer, ok := readInitializeAnswer(b)
	if !ok {
		return invalid("answer", "must be the envelope of 2.3")
	}
	*r = InitializeResponse{Code: answer.code, Message: answer.message, UUID: answer.text}
	switch {
	case r.UUID == "" && r.Code == http.StatusOK:
		return invalid("data.uuid", "is required and must be a UUID")
	case r.UUID == "":
		r.Failure = answer.data
	}
	return nil
}

// initializeAnswer is the envelope of 2.3 and 7.1.
type initializeAnswer struct {
	code    int
	message string
	initializeData
}

// initializeData is an object in a success, and a string in a failure.
type initializeData struct {
	issuedUUID
	data string // JSON unless it is a string
}

// issuedUUID is a UUID, and how the service wrote it.
type issuedUUID struct {
	uuid uuid.UUID
	text string
}

// problem says how an answer differs from a success or a failure of 2.3 and 7.1. ok means that its
// body is the envelope.
func (i *initializeAnswer) problem(a *transport.Answer, ok bool, secrets *redact.Redactor) string {
	encoding, location := a.Header.Get("Content-Encoding"), a.Header.Get("Location")
	switch succeeded := a.Status/100 == 2; {
	case !ok && a.Status/100 == 3 && location != "":
		return "a redirect to " + secrets.Line(location, redact.MaxExcerpt)
	case !ok && encoding != "":
		return "compressed as " + secrets.Line(encoding, redact.MaxExcerpt) + ", which was not asked for"
	case !ok:
		return "without the envelope of the interface" + differs(a.Body)
	case i.uuid != uuid.Nil && i.code != http.StatusOK:
		return "with a UUID, although code is not 200"
	case i.code == http.StatusOK && i.uuid == uuid.Nil:
		return "without a UUID in data.uuid"
	case i.code == http.StatusOK && !succeeded:
		return "with the envelope of a success"
	}
	return ""
}

// differs says how a JSON object differs from the envelope, or returns "".
func differs(body []byte) string {
	var code wire.Unread
	x := newReader(body, "answer")
	if x.Kind() != '{' {
		return ""
	}
	x.Members("code", &code)
	switch {
	case !x.Whole():
		return ", because it is not valid JSON"
	case len(code) == 0:
		return ", because it has no code"
	case len(x.Wrong) > 0:
		return ", because " + x.Wrong[0].Path + " " + x.Wrong[0].Text
	}
	if _, err := strconv.Atoi(string(code)); err != nil {
		return ", because code must be a whole number"
	}
	return ", because message or data cannot be read"
}

func (d *initializeData) read(x *wire.Reader) {
	start := x.Pos()
	if x.Kind() == '{' {
		var id wire.Unread
		x.Members("uuid", &id)
		if text := textOf(id); uuid.Validate(text) == nil {
			d.issuedUUID = issuedUUID{uuid.MustParse(text), text}
		}
	} else {
		x.Skip()
	}
	d.data = textOf(x.Since(start))
}

// readInitializeAnswer reads the envelope. ok is false if body is not one; it must
// have an integer code.
func readInitializeAnswer(body []byte) (a initializeAnswer, ok bool) {
	var code, message wire.Unread
	x := newReader(body, "answer")
	x.Members("code", &code, "message", &message, "data", &a.initializeData)
	if !x.Whole() {
		return initializeAnswer{}, false
	}
	n, err := strconv.Atoi(string(code))
	a.code, a.message = n, textOf(message)
	return a, err == nil && len(x.Wrong) == 0
}

// APIError is an answer of the service other than success (interface 2.3, 7.1). The
// interface does not say which HTTP status comes with which failure, so [errors.Is]
// uses the envelope only.
//
// Its texts are what the service, or a proxy in front of it, sent, without the HMAC key
// and the signature of the call. They may quote player data.
type APIError struct {
	Status        int           // HTTP status
	ContentType   string        // media type of the answer, without its parameters
	Code          int           // of the service's answer {"code", "message", "data"}, or 0
	Message, Data string        // of that answer, up to 64 KiB each; if data is no string, Data is its JSON
	Excerpt       string        // beginning of a body that is not the envelope, on one line
	RetryAfter    time.Duration // the delay that the answer asked for, or 0

	kind    error  // a sentinel, or nil
	problem string // what else is wrong
	hint    string // what to try
}

// Error describes the answer in at most 500 bytes, and what to try.
func (e *APIError) Error() string {
	text := fmt.Sprintf("ramp: initialize: the service answered HTTP %d", e.Status)
	if e.Code != 0 {
		text += ", code " + strconv.Itoa(e.Code)
	} else if e.ContentType != "" {
		text += " with " + e.ContentType
	}
	for _, part := range []string{e.Message, e.Data} {
		if part != "" {
			text += ": " + part[:min(len(part), redact.MaxExcerpt)]
		}
	}
	if e.problem != "" {
		text += ", " + e.problem
	}
	if e.Excerpt != "" {
		text += ": " + e.Excerpt
	}
	if e.hint != "" {
		return redact.Excerpt(text) + " (" + e.hint + ")"
	}
	return redact.New().Line(text, redact.MaxError)
}

// Unwrap returns the sentinel of a failure of section 7.1, otherwise nil.
func (e *APIError) Unwrap() error { return e.kind }

// classify sets the fields from the envelope, and recognizes the failures of
// section 7.1.
func (e *APIError) classify(answer initializeAnswer, key HMACKey, secrets *redact.Redactor) {
	e.Code = answer.code
	e.Message = secrets.Beginning(answer.message, maxMessage)
	e.Data = secrets.Beginning(answer.data, maxMessage)
	reason, _, _ := strings.Cut(answer.data, ":") // a detail may follow
	switch strings.ToLower(strings.TrimSpace(reason)) {
	case "x-hmac-signature is required":
		e.kind = ErrHMACMissing
		e.hint = "a proxy may have removed the header"
	case "invalid mac":
		e.kind = ErrHMACInvalid
		e.hint = "the key was read as " + key.encoding +
			": compare it with the console's, or try " + key.alternative
	case "ramp not found":
		e.kind = ErrUnknownProject
		e.hint = "check intent.project_id"
	case "ramp not exists":
		e.kind = ErrUnknownNetwork
		e.hint = "check intent.network"
	}
}

// check returns an [*InvalidError] that lists everything that is wrong.
func (r *InitializeRequest) check() error {
	var p problems
	p.requireText(r.PlayerID, "player_id")
	p.requireText(r.Name, "name")
	p.requireText(r.Server, "server")
	p.requireText(r.WalletAddress, "wallet_address")
	r.Intent.check(&p, "intent.")
	return p.err()
}

// check adds what is wrong to p. Each path begins with at.
func (i *InitializeIntent) check(p *problems, at string) {
	checkNetwork(p, at+"network", i.Network)
	p.requireTyped(i.ProjectID, at+"project_id")
	checkOffer(p, at+"token", i.Token, at+"mint_fee_bps", i.MintFeeBps)
	checkItems(p, at+"materials", i.Materials)
	checkItems(p, at+"outputs", i.Outputs)
}
