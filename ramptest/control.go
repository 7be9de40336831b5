package ramptest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// control is the control API, with which a program in any language drives the
// service. It is JSON over HTTP below /control. See docs/control.md.
type control struct {
	config  *Config
	clock   *clock
	record  *record
	guard   *guard
	life    *lifetime
	audit   *audit
	orders  *orders
	console *console
	node    *node
}

func (s *control) mount(mux *http.ServeMux) {
	answered := func(do func(*http.Request) (any, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer, err := do(r)
			if err != nil {
				s.fail(w, err)
				return
			}
			writeJSON(w, http.StatusOK, answer)
		}
	}
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /control":                     answered(s.describe),
		"GET /control/orders":              answered(s.list),
		"POST /control/orders":             answered(s.start),
		"GET /control/orders/{uuid}":       answered(s.show),
		"POST /control/orders/{uuid}/send": answered(s.send),
		"POST /control/advance":            answered(s.advance),
		"POST /control/failures":           answered(s.failures),
		"GET /control/events":              s.events,
		"/control/":                        answered(func(*http.Request) (any, error) { return nil, notFound("there is no such path") }),
	} {
		mux.Handle(pattern, s.guarded(handler))
	}
}

// guarded rejects requests that may not use the API.
func (s *control) guarded(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if denied := s.guard.control(r); denied != nil {
			s.fail(w, &controlError{status: denied.status, Code: "forbidden", Message: denied.why})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, s.config.MaxBody)
		handler(w, r)
	})
}

// controlError is the error in an answer other than HTTP 200.
type controlError struct {
	status int

	Code       string    `json:"code"`
	Message    string    `json:"message"`
	GameStatus int       `json:"game_status,omitempty"` // for declined: the HTTP status of the game's answer
	ErrorCode  ramp.Code `json:"error_code,omitempty"`  // for declined: the game's errorCode
}

func (e *controlError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &controlError{status: http.StatusBadRequest, Code: "invalid", Message: fmt.Sprintf(format, args...)}
}

func notFound(message string) error {
	return &controlError{status: http.StatusNotFound, Code: "not_found", Message: message}
}

// fail answers with an error.
func (s *control) fail(w http.ResponseWriter, err error) {
	var answer *controlError
	if !errors.As(err, &answer) {
		answer = classify(err)
	}
	writeJSON(w, answer.status, map[string]*controlError{"error": answer})
}

// classify converts an error of the service to one for the caller.
func classify(err error) *controlError {
	e := &controlError{Message: strings.TrimPrefix(err.Error(), "ramptest: ")}
	var declined *Declined
	switch {
	case errors.As(err, &declined):
		e.status, e.Code = http.StatusUnprocessableEntity, "declined"
		e.GameStatus, e.ErrorCode = declined.Status, declined.Code
	case errors.Is(err, ErrUnknownUUID):
		e.status, e.Code = http.StatusNotFound, "not_found"
	case errors.Is(err, ErrExpiredUUID):
		e.status, e.Code = http.StatusGone, "expired"
	case errors.Is(err, ErrPlaced):
		e.status, e.Code = http.StatusConflict, "placed"
	case errors.Is(err, ErrPending):
		e.status, e.Code = http.StatusConflict, "pending"
	case errors.Is(err, ErrClosed):
		e.status, e.Code = http.StatusServiceUnavailable, "closed"
	case errors.Is(err, ErrLostAnswer):
		e.status, e.Code = http.StatusBadGateway, "lost_answer"
	default: // the game did not answer, or its answer breaks the interface
		e.status, e.Code = http.StatusBadGateway, "game"
	}
	return e
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the answer is not HTML
	if err := encoder.Encode(answer); err != nil {
		panic(err) // cannot happen: strings, numbers and times can be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the caller is gone
}

// read decodes the JSON object of a request, which must not have unknown fields.
func read(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return invalid("the body is too large or was cut off")
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) { // null would decode as an object without fields
		return invalid("the body must be a JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		switch text, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
		case unknown:
			return invalid("there is no field %s", text)
		case errors.As(err, &wrong) && wrong.Field != "":
			return invalid("%s has the wrong type", wrong.Field)
		default:
			return invalid("the body must be a JSON object")
		}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalid("the body must be one JSON object")
	}
	return nil
}

// described is the answer of GET /control.
type described struct {
	Now        time.Time                  `json:"now"`
	Speed      float64                    `json:"speed"`
	Game       string                     `json:"game,omitempty"`
	Assets     string                     `json:"assets_path"`
	Validate   string                     `json:"validate_path"`
	Result     string                     `json:"result_path"`
	ProjectID  string                     `json:"project_id,omitempty"`
	Validator  common.Address             `json:"validator"`
	Chains     map[ramp.Network]chainInfo `json:"chains"`
	FaultForms map[string]string          `json:"faults"`
}

type chainInfo struct {
	URL string `json:"url"`
	ID  uint64 `json:"id"`
}

func (s *control) describe(*http.Request) (any, error) {
	c := s.config
	d := described{Now: s.clock.now(), Speed: c.Speed, Game: c.Game, Assets: c.AssetsPath, Validate: c.ValidatePath, Result: c.ResultPath,
		ProjectID: c.ProjectID, Validator: c.Validator, Chains: map[ramp.Network]chainInfo{}, FaultForms: map[string]string{}}
	for _, network := range c.Networks {
		d.Chains[network] = chainInfo{URL: s.guard.address + "/rpc/" + string(network), ID: c.ChainID(network)}
	}
	for _, form := range FaultForms() {
		d.FaultForms[form[0]] = form[1]
	}
	return d, nil
}

// orderReport is an order as the API shows it. It has no access token.
type orderReport struct {
	UUID      uuid.UUID     `json:"uuid"`
	Do        string        `json:"do"` // "mint" or "burn"
	SessionID string        `json:"session_id"`
	PlayerID  string        `json:"player_id,omitempty"` // the game's ID of the player
	Network   ramp.Network  `json:"network"`
	ProjectID string        `json:"project_id"`
	Token     string        `json:"token"`
	Amount    ramp.Amount   `json:"amount"` // of the token
	Wallet    string        `json:"wallet"`
	Assets    []reportAsset `json:"assets"` // what a mint takes or a burn grants
	Faults    []string      `json:"faults"`
	Placed    time.Time     `json:"placed"`

	TxHash   common.Hash `json:"tx_hash"`
	TxStatus TxStatus    `json:"tx_status"`
	Block    uint64      `json:"block,omitzero"`

	State      State     `json:"state"`
	Done       bool      `json:"done"`                  // whether nothing more is planned
	Next       time.Time `json:"next,omitzero"`         // when the next step is planned, if known
	Attempts   int       `json:"attempts"`              // how often the result was sent
	LastStatus int       `json:"last_status,omitempty"` // HTTP status of the last answer to a result

	Moved      map[string]ramp.Amount `json:"moved"`      // what the game moved in total, by asset; null if unknown
	Imbalances []imbalance            `json:"imbalances"` // the findings of the books
	Loss       bool                   `json:"loss"`       // whether there are imbalances, or the result was not confirmed and is not retried
}

type reportAsset struct {
	ID     string      `json:"id"`
	Amount ramp.Amount `json:"amount"`
}

type imbalance struct {
	Problem string         `json:"problem"`
	Assets  []assetBalance `json:"assets"`
}

type assetBalance struct {
	ID       string      `json:"id"`
	Before   ramp.Amount `json:"before"`
	After    ramp.Amount `json:"after"`
	Expected ramp.Amount `json:"expected"`
}

func (s *control) report(o *Order) orderReport {
	token, tx := o.token(), s.orders.onChain(o)
	r := orderReport{UUID: o.UUID, Do: "mint", SessionID: o.Session.ID, Network: o.Network, ProjectID: o.Request.ProjectID,
		Token: token.ID, Amount: token.Amount, Wallet: o.Request.UserAddress, Assets: []reportAsset{}, Faults: o.script.names, Placed: o.placed,
		TxHash: o.TxHash, TxStatus: tx.Status, Block: tx.Block, Imbalances: []imbalance{}}
	if r.Faults == nil {
		r.Faults = []string{}
	}
	assets := o.Request.Intent.From
	if o.Request.Intent.Type == ramp.Disassemble {
		r.Do, assets = "burn", o.Request.Intent.To
	}
	for _, asset := range assets {
		r.Assets = append(r.Assets, reportAsset{asset.ID, asset.Amount})
	}
	r.PlayerID = s.audit.playerOf(o.Session.ID)
	progress := s.orders.progress(o)
	r.State, r.Done, r.Next, r.Attempts, r.LastStatus = progress.state, progress.done, progress.next, progress.attempts, progress.status
	r.Moved = s.audit.moved(o.UUID)
	for _, found := range s.audit.about(o.UUID) {
		shown := imbalance{Problem: found.Problem, Assets: []assetBalance{}}
		for _, a := range found.Assets {
			shown.Assets = append(shown.Assets, assetBalance(a))
		}
		r.Imbalances = append(r.Imbalances, shown)
	}
	r.Loss = len(r.Imbalances) > 0 || r.State == Refused || r.State == GivenUp
	return r
}

// list answers with the orders, newest first.
func (s *control) list(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "100"))
	if err != nil || limit < 1 || limit > 1000 {
		return nil, invalid("limit must be a number from 1 to 1000")
	}
	session, state := q.Get("session_id"), State(q.Get("state"))
	if known := []State{"", Pending, Delivering, Confirmed, Refused, GivenUp}; !slices.Contains(known, state) {
		return nil, invalid("state must be pending, delivering, confirmed, refused or given up")
	}
	listed := struct {
		Orders []orderReport `json:"orders"`
		Total  int           `json:"total"` // how many match; orders has at most limit of them
	}{Orders: []orderReport{}}
	for _, o := range s.orders.all() {
		if session != "" && o.Session.ID != session || state != "" && o.delivery.now() != state {
			continue
		}
		if listed.Total++; listed.Total <= limit {
			listed.Orders = append(listed.Orders, s.report(o))
		}
	}
	return listed, nil
}

// order returns the order that a UUID, or the beginning of one, names.
func (s *control) order(text string) (*Order, error) {
	if id, err := uuid.Parse(text); err == nil {
		if o := s.orders.find(id); o != nil {
			return o, nil
		}
		return nil, notFound("there is no order with this UUID")
	}
	const minLength = 4
	var found *Order
	for _, o := range s.orders.all() {
		if len(text) < minLength || !strings.HasPrefix(o.UUID.String(), strings.ToLower(text)) {
			continue
		}
		if found != nil {
			return nil, invalid("several UUIDs begin with this: give the whole UUID")
		}
		found = o
	}
	if found == nil {
		return nil, notFound("there is no such order: give its UUID, or at least the first 4 characters")
	}
	return found, nil
}

// show answers with an order. If the caller asks, it first waits for it.
func (s *control) show(r *http.Request) (any, error) {
	o, err := s.order(r.PathValue("uuid"))
	if err != nil {
		return nil, err
	}
	wait, err := readWait(r.URL.Query().Get("wait"))
	if err != nil {
		return nil, err
	}
	return s.wait(r.Context(), o, wait), nil
}

// readWait parses how long a caller wants to wait.
func readWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return 0, invalid("wait must be a time such as 30s, and at most 1h")
	}
	return d, nil
}

// wait waits until nothing more is planned for an order, or nothing that falls due
// within d of real time. It returns the order's state then.
func (s *control) wait(ctx context.Context, o *Order, d time.Duration) orderReport {
	end := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		changed := s.record.next()
		r := s.report(o)
		if r.Done || !r.Next.IsZero() && !s.comes(r.Next, time.Until(end)) {
			return r
		}
		select {
		case <-changed:
		case <-timer.C:
			return s.report(o)
		case <-ctx.Done():
			return r
		case <-s.life.alive.Done():
			return r
		}
	}
}

// comes reports whether the running clock reaches a time within a real time.
func (s *control) comes(at time.Time, within time.Duration) bool {
	missing := at.Sub(s.clock.now())
	return missing <= 0 || float64(missing) <= float64(within)*s.config.Speed
}

// startRequest is the body of POST /control/orders.
type startRequest struct {
	Do          string          `json:"do"`
	UUID        string          `json:"uuid"`  // of the game's own initialize call
	Like        string          `json:"like"`  // or an order whose terms, session and amount are copied
	Terms       *askedIntent    `json:"terms"` // or terms, for which a UUID is issued
	SessionID   string          `json:"session_id"`
	AccessToken string          `json:"access_token"`
	Amount      json.RawMessage `json:"amount"` // of the token, a number or a string
	Faults      []string        `json:"faults"`
	Wait        string          `json:"wait"`
}

// start plays a player who mints or burns.
func (s *control) start(r *http.Request) (any, error) {
	var asked startRequest
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	direction := ramp.Mint
	switch asked.Do {
	case "mint":
	case "burn":
		direction = ramp.Burn
	default:
		return nil, invalid("do must be mint or burn")
	}
	faults, err := parseFaults(asked.Faults)
	if err != nil {
		return nil, invalid("%s", strings.TrimPrefix(err.Error(), "ramptest: "))
	}
	wait, err := readWait(asked.Wait)
	if err != nil {
		return nil, err
	}
	var like *Order
	if asked.Like != "" {
		if like, err = s.order(asked.Like); err != nil {
			return nil, err
		}
	}
	session, err := s.session(&asked, like)
	if err != nil {
		return nil, err
	}
	amount, err := readAmount(asked.Amount, like)
	if err != nil {
		return nil, err
	}
	id, err := s.identify(&asked, like)
	if err != nil {
		return nil, err
	}
	if err := s.canDo(direction, id); err != nil {
		return nil, err
	}
	// The order continues if the caller disconnects. A validate call that is cut off
	// would be an additional fault.
	o, err := s.orders.order(context.WithoutCancel(r.Context()), direction, id, session, amount, faults)
	if o == nil {
		e := classify(err)
		if e.Code == "declined" && asked.UUID == "" {
			e.Message += "; the game may accept only UUIDs of its own: give the uuid of one of its initialize calls"
		}
		return nil, e
	} // otherwise err holds findings of the books, which are in the report
	return s.wait(r.Context(), o, wait), nil
}

// canDo returns an error if the terms of a UUID cannot be minted or burned.
func (s *control) canDo(direction ramp.Direction, id uuid.UUID) error {
	terms, _, err := s.orders.terms(id, false)
	switch {
	case err != nil:
		return err
	case direction == ramp.Mint && len(terms.Materials) == 0:
		return invalid("the terms have no materials, so nothing can be minted")
	case direction == ramp.Burn && len(terms.Outputs) == 0:
		return invalid("the terms have no outputs, so nothing can be burned")
	default:
		return nil
	}
}

// session returns the session of a new order.
func (s *control) session(asked *startRequest, like *Order) (ramp.Session, error) {
	session := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	switch {
	case session.ID == "" && asked.AccessToken == "" && like != nil:
		return like.Session, nil
	case session.ID == "":
		return session, invalid("session_id is required")
	case asked.AccessToken != "":
		return session, nil
	}
	for _, o := range s.orders.all() { // newest first
		if o.Session.ID == session.ID {
			return o.Session, nil
		}
	}
	return session, invalid("access_token is required: no order of this session is known")
}

// readAmount parses how much is minted or burned.
func readAmount(text json.RawMessage, like *Order) (ramp.Amount, error) {
	var written string
	switch {
	case len(text) == 0 || string(text) == "null":
		if like != nil {
			return like.token().Amount, nil
		}
		return ramp.NewAmount(1), nil
	case text[0] != '"':
		written = string(text)
	case json.Unmarshal(text, &written) != nil:
		return ramp.Amount{}, invalid("amount must be a number")
	}
	amount, err := ramp.ParseAmount(written)
	if err != nil || amount.Sign() <= 0 {
		return ramp.Amount{}, invalid("amount must be a decimal number above 0")
	}
	return amount, nil
}

// identify returns the UUID of a new order: that of the game, or one that it issues
// for the terms.
func (s *control) identify(asked *startRequest, like *Order) (uuid.UUID, error) {
	given := 0
	for _, is := range []bool{asked.UUID != "", like != nil, asked.Terms != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return uuid.Nil, invalid("give one of uuid, like and terms")
	}
	switch {
	case asked.UUID != "":
		id, err := uuid.Parse(asked.UUID)
		if err != nil {
			return uuid.Nil, invalid("uuid must be a UUID")
		}
		return id, nil
	case like != nil:
		return s.orders.issueLike(like.UUID, s.clock.now())
	}
	asked.Terms.complete()
	if unknown := s.console.serves(asked.Terms); unknown == RampNotFound {
		return uuid.Nil, invalid("terms.project_id is missing, or is not that of this service")
	} else if unknown != "" {
		return uuid.Nil, invalid("terms.network must be a network of this service")
	}
	terms, problem := asked.Terms.check()
	if problem != "" {
		return uuid.Nil, invalid("%s", strings.Replace(problem, "intent.", "terms.", 1))
	}
	return s.orders.issue(terms, s.clock.now()), nil
}

// complete sets the fields that a caller of the control API may omit.
func (a *askedIntent) complete() {
	zero := json.RawMessage("0")
	if len(a.MintFeeBps) == 0 {
		a.MintFeeBps = zero
	}
	if len(a.BurnFeeBps) == 0 {
		a.BurnFeeBps = zero
	}
	a.MintMethod = cmp.Or(a.MintMethod, ramp.MethodMint)
	a.BurnMethod = cmp.Or(a.BurnMethod, ramp.MethodBurnPermit)
	for _, items := range []**[]askedItem{&a.Materials, &a.Outputs} {
		if *items == nil {
			*items = &[]askedItem{}
		}
		for i := range **items {
			item := &(**items)[i]
			item.IconURL = cmp.Or(item.IconURL, "https://example.com/icon.png")
			if item.IsNonFungible == nil {
				item.IsNonFungible = new(bool)
			}
		}
	}
}

// sent is the answer of POST /control/orders/{uuid}/send.
type sent struct {
	Order orderReport `json:"order"`
	Error string      `json:"error,omitempty"` // why the game has not confirmed
}

// send sends the result again, now and once. If the caller gives an outcome, it first
// mines a pending transaction with that outcome.
func (s *control) send(r *http.Request) (any, error) {
	var asked struct {
		Outcome string `json:"outcome"`
	}
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	o, err := s.order(r.PathValue("uuid"))
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context())
	switch asked.Outcome {
	case "":
		err = s.orders.resend(ctx, o)
	case "succeeded":
		err = s.orders.tell(ctx, o, Succeeded)
	case "failed":
		err = s.orders.tell(ctx, o, Failed)
	default:
		return nil, invalid("outcome must be succeeded or failed, if it is given")
	}
	if errors.Is(err, ErrPending) || errors.Is(err, ErrClosed) {
		return nil, err
	}
	answer := sent{Order: s.report(o)}
	if err != nil {
		answer.Error = strings.TrimPrefix(err.Error(), "ramptest: ")
	}
	return answer, nil
}

// passed is the answer of POST /control/advance.
type passed struct {
	Now        time.Time        `json:"now"`
	Deliveries []deliveryReport `json:"deliveries"`
}

type deliveryReport struct {
	UUID    uuid.UUID `json:"uuid"`
	Attempt int       `json:"attempt"`
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitempty"` // HTTP status; absent if there was no answer
	Next    time.Time `json:"next,omitzero"`
	Error   string    `json:"error,omitempty"` // why the game has not confirmed
}

// advance moves the clock forward.
func (s *control) advance(r *http.Request) (any, error) {
	var asked struct {
		By string `json:"by"`
	}
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	by, err := parseDuration(asked.By)
	if err != nil {
		return nil, invalid("by must be a time such as 90s, 15m or 12h, and at most 10 years")
	}
	if s.life.alive.Err() != nil {
		return nil, ErrClosed
	}
	answer := passed{Deliveries: []deliveryReport{}}
	for _, d := range s.orders.advance(by) {
		shown := deliveryReport{UUID: d.Order.UUID, Attempt: d.Attempt, Time: d.Time, Status: d.Status, Next: d.Next}
		if d.Err != nil {
			shown.Error = strings.TrimPrefix(d.Err.Error(), "ramptest: ")
		}
		answer.Deliveries = append(answer.Deliveries, shown)
	}
	answer.Now = s.clock.now()
	return answer, nil
}

// failures scripts the next initialize calls and requests to the chains.
func (s *control) failures(r *http.Request) (any, error) {
	var asked struct {
		Initialize []InitializeFailure `json:"initialize"`
		RPC        []int               `json:"rpc"`
	}
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	const most = 1000
	if len(asked.Initialize) > most || len(asked.RPC) > most {
		return nil, invalid("at most %d failures can be scripted", most)
	}
	known := []InitializeFailure{HMACRequired, InvalidMAC, RampNotFound, RampNotExists, Unavailable, TooMany}
	for _, f := range asked.Initialize {
		if !slices.Contains(known, f) {
			return nil, invalid("initialize has an unknown failure; the failures are %q", known)
		}
	}
	for _, code := range asked.RPC {
		if code >= 100 && (code < 200 || code > 599) {
			return nil, invalid("rpc has a number that is neither a JSON-RPC error code nor an HTTP status")
		}
	}
	s.console.fail(asked.Initialize)
	s.node.fail(asked.RPC)
	return struct{}{}, nil
}

// heartbeat is how often an idle stream of events sends a comment.
const heartbeat = 15 * time.Second

// events answers with the events so far, or streams them as server-sent events.
func (s *control) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, err := strconv.Atoi(cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("after"), "0"))
	if err != nil || after < 0 {
		s.fail(w, invalid("after must be the number of an event"))
		return
	}
	id := uuid.Nil
	if text := q.Get("uuid"); text != "" {
		if id, err = uuid.Parse(text); err != nil {
			s.fail(w, invalid("uuid must be a UUID"))
			return
		}
	}
	wanted := func(e *Event) bool {
		return (id == uuid.Nil || e.UUID == id) && (q.Get("routine") != "" || !e.Routine())
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		listed := struct {
			Events []Event `json:"events"`
		}{Events: []Event{}}
		happened, _ := s.record.since(after)
		for _, e := range happened {
			if wanted(&e) {
				listed.Events = append(listed.Events, e)
			}
		}
		writeJSON(w, http.StatusOK, listed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	if _, err := io.WriteString(w, ": events of the service\n\n"); err != nil || stream.Flush() != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		happened, changed := s.record.since(after)
		for _, e := range happened {
			after = e.Number
			if !wanted(&e) {
				continue
			}
			data, err := json.Marshal(e)
			if err != nil {
				panic(err) // cannot happen: strings, numbers and times can be encoded
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Number, e.Kind, data); err != nil {
				return
			}
		}
		if len(happened) > 0 && stream.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			if _, err := io.WriteString(w, ":\n\n"); err != nil || stream.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.life.alive.Done():
			return
		}
	}
}
