package backend

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/api"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Backend is a service as programs and people drive it.
type Backend struct {
	service *emulator.Service
	orders  *emulator.Orders
	config  *emulator.Config
}

// New returns the backend of a service.
func New(s *emulator.Service) *Backend { return &Backend{s, s.Orders, s.Config()} }

var _ api.Emulator = (*Backend)(nil)

// Control serves the control API.
func (s *Backend) Control() http.Handler {
	api := api.Handler(s, s.service.Guard.Control)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, s.config.MaxBody)
		api.ServeHTTP(w, r)
	})
}

func invalid(format string, args ...any) error {
	return api.Errorf(control.CodeInvalid, format, args...)
}

// reported converts an error of the service to one of the API.
func reported(err error) error {
	var known *control.Error
	if errors.As(err, &known) {
		return known
	}
	// the game did not answer, or violated the interface
	e := api.Errorf(control.CodeGame, "%s", text.Of(err))
	for own, code := range map[error]control.ErrorCode{
		trade.ErrNoItems: control.CodeInvalid, emulator.ErrUnknownUUID: control.CodeNotFound,
		emulator.ErrExpiredUUID: control.CodeExpired, emulator.ErrPlaced: control.CodePlaced,
		emulator.ErrPending: control.CodePending, life.ErrClosed: control.CodeClosed,
		game.ErrLostAnswer: control.CodeLostAnswer,
	} {
		if errors.Is(err, own) {
			e.Code = code
		}
	}
	if rejected := game.RejectionOf(err); rejected != nil {
		e.Code, e.GameStatus, e.ErrorCode = control.CodeRejected, rejected.Status, rejected.Code
	}
	return e
}

// undelivered says how the game has not confirmed a result: whether the answer was lost on
// purpose, and what the game did wrong.
func undelivered(err error) (lost bool, problem string) {
	if err == nil {
		return false, ""
	}
	problems := slices.DeleteFunc(strings.Split(err.Error(), "\n"),
		func(line string) bool { return line == game.ErrLostAnswer.Error() })
	return errors.Is(err, game.ErrLostAnswer), strings.TrimPrefix(strings.Join(problems, "\n"), "ramptest: ")
}

// Describe implements [api.Emulator], as the other methods do.
func (s *Backend) Describe(context.Context) (control.Description, error) {
	c := s.config
	d := control.Description{Now: s.service.Clock.Now(), Speed: c.Speed, Game: history.WithoutUser(c.Game),
		Assets: c.AssetsPath, Validate: c.ValidatePath, Result: c.ResultPath,
		ProjectID: c.ProjectID, PerOrder: c.Rules.PerOrder, Validator: c.Validator,
		KeyFingerprint: c.Key.Fingerprint(), Keys: c.Keys,
		Chains: map[ramp.Network]control.Chain{}, Faults: map[string]string{}}
	for network, id := range c.Networks {
		d.Chains[network] = control.Chain{URL: s.service.Guard.URL + "/rpc/" + string(network), ID: id}
	}
	for _, form := range s.config.Faults.List() {
		d.Faults[form[0]] = form[1]
	}
	if c.State != nil {
		if err := c.State.Err(); err != nil {
			d.StateError = strings.TrimPrefix(text.Of(err), "state: ")
		}
	}
	return d, nil
}

// report returns an order as the API shows it.
func (s *Backend) report(o *order.Order) control.OrderReport {
	player, name := s.service.Audit.Who(o.Session.ID)
	token, tx, progress, known := o.Token(), s.orders.Chains.Event(o), s.orders.Progress(o), s.orders.Known(o)
	r := control.OrderReport{UUID: o.UUID, Do: string(o.Trade().Direction), SessionID: o.Session.ID,
		PlayerID: player, Name: name,
		Network: o.Network, ProjectID: o.Request.ProjectID, Token: token.ID, Amount: token.Amount.String(),
		Wallet: o.Request.UserAddress,
		Assets: []control.AssetAmount{}, Faults: append([]string{}, o.Script.Names...), Placed: o.Placed,
		Verdict: verdict.Of(known.Facts), TxHash: o.TxHash, TxStatus: string(tx.Status), Block: tx.Block,
		Delivery: string(progress.State), Attempts: progress.Attempts, LastStatus: progress.Status,
		Over: progress.Done, Imbalances: []control.Imbalance{}}
	if known.Books.Moved != nil {
		r.Moved = make(map[string]string)
	}
	for asset, amount := range known.Books.Moved {
		r.Moved[asset] = trade.AmountOf(amount).String()
	}
	if o.Refused != "" {
		r.TxStatus, r.Delivery = "", ""
	}
	assets, _ := o.Trade().Sides(&o.Request.Intent)
	for _, asset := range *assets {
		r.Assets = append(r.Assets, control.AssetAmount{ID: asset.ID, Amount: asset.Amount.String()})
	}
	for _, found := range s.service.Audit.About(o.UUID) {
		shown := control.Imbalance{Problem: found.Problem, Assets: []control.AssetBalance{}}
		for _, a := range found.Assets {
			shown.Assets = append(shown.Assets,
				control.AssetBalance{ID: a.ID, Before: a.Before.String(), After: a.After.String(),
					Expected: a.Expected.String()})
		}
		r.Imbalances = append(r.Imbalances, shown)
	}
	return r
}

// states are the states of the verdict on an order.
var states = []verdict.State{verdict.Waiting, verdict.Done, verdict.Loss, verdict.Unconfirmed,
	verdict.Disputed, verdict.Unknown}

// limited checks the limit of a page.
func limited(limit, byDefault int) (int, error) {
	if limit < 0 || limit > 1000 {
		return 0, invalid("limit must be from 1 to 1000")
	}
	return cmp.Or(limit, byDefault), nil
}

func (s *Backend) Orders(_ context.Context, q control.OrdersQuery) (list control.OrderList, err error) {
	if q.Limit, err = limited(q.Limit, 100); err != nil {
		return list, err
	}
	state := verdict.State(q.State)
	if state != "" && !slices.Contains(states, state) {
		return list, invalid("state must be one of %v", states)
	}
	all := s.orders.All()
	first := 0
	if q.Before != "" {
		last, err := s.order(q.Before)
		if err != nil {
			return list, err
		}
		first = slices.Index(all, last) + 1
	}
	list.Orders = []control.OrderReport{}
	needy, calls := s.orders.Attention()
	list.NeedAttention = len(needy) + len(calls)
	if q.SessionID == "" && state == "" && q.Before == "" {
		if !q.Attention {
			calls = s.orders.Calls(all)
		}
		list.Calls = calls[:min(len(calls), q.Limit)]
	}
	for i, o := range all {
		if q.SessionID != "" && o.Session.ID != q.SessionID {
			continue
		}
		if state != "" || q.Attention {
			if v := s.orders.Verdict(o); state != "" && v.State != state || q.Attention && !v.Attention {
				continue
			}
		}
		switch list.Total++; {
		case i < first:
		case len(list.Orders) == q.Limit:
			list.More = true
		default:
			list.Orders = append(list.Orders, s.report(o))
		}
	}
	return list, nil
}

// order returns the order that a UUID, or the beginning of one, names.
func (s *Backend) order(text string) (*order.Order, error) {
	if id, err := uuid.Parse(text); err == nil {
		if o := s.orders.Shown(id); o != nil {
			return o, nil
		}
		return nil, api.Errorf(control.CodeNotFound, "there is no order with this UUID")
	}
	const minLength = 4
	var found *order.Order
	for _, o := range s.orders.All() {
		if len(text) < minLength || !strings.HasPrefix(o.UUID.String(), strings.ToLower(text)) {
			continue
		}
		if found != nil {
			return nil, invalid("several UUIDs begin with this: give the whole UUID")
		}
		found = o
	}
	if found == nil {
		return nil,
			api.Errorf(control.CodeNotFound,
				"there is no such order: give its UUID, or at least the first 4 characters")
	}
	return found, nil
}

func (s *Backend) Order(ctx context.Context, id string, q control.OrderQuery) (control.OrderReport, error) {
	o, err := s.order(id)
	if err != nil {
		return control.OrderReport{}, err
	}
	wait, err := readWait(q.Wait)
	if err != nil {
		return control.OrderReport{}, err
	}
	return s.wait(ctx, o, wait), nil
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
func (s *Backend) wait(ctx context.Context, o *order.Order, d time.Duration) control.OrderReport {
	end := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		changed := s.service.History.Next()
		p := s.orders.Progress(o)
		if p.Done || !p.Due.IsZero() && !s.comes(p.Due, time.Until(end)) {
			return s.report(o)
		}
		select {
		case <-changed:
			continue
		case <-timer.C:
		case <-ctx.Done():
		case <-s.service.Life.Alive.Done():
		}
		return s.report(o)
	}
}

// comes reports whether the running clock reaches a time within a real time.
func (s *Backend) comes(at time.Time, within time.Duration) bool {
	missing := at.Sub(s.service.Clock.Now())
	return missing <= 0 || float64(missing) <= float64(within)*s.config.Speed
}

func (s *Backend) Start(ctx context.Context, asked control.StartRequest) (started control.OrderReport,
	err error) {
	t := trade.Named(asked.Do)
	if t == nil {
		return started, invalid("do must be %s", trade.Names())
	}
	faults, err := s.config.Faults.ParseAll(asked.Faults)
	if err != nil {
		return started, invalid("%s", text.Of(err))
	}
	wait, err := readWait(asked.Wait)
	if err != nil {
		return started, err
	}
	var like *order.Order
	if asked.Like != "" {
		if like, err = s.order(asked.Like); err != nil {
			return started, err
		}
	}
	session, err := s.session(&asked, like)
	if err != nil {
		return started, err
	}
	amount := ramp.NewAmount(1)
	switch {
	case asked.Amount != "":
		if amount, err = ramp.ParseAmount(string(asked.Amount)); err != nil || amount.Sign() <= 0 {
			return started, invalid("amount must be a decimal number above 0")
		}
	case like != nil:
		amount = like.Token().Amount
	}
	id, err := s.identify(&asked, like)
	if err != nil {
		return started, reported(err)
	}
	// The order continues if the caller disconnects. A validate call that is cut off
	// would be an additional fault.
	o, err := s.orders.Place(context.WithoutCancel(ctx), t, id, session, amount, faults)
	if o == nil {
		err := reported(err)
		var e *control.Error
		switch errors.As(err, &e); {
		case e.Code == control.CodeRejected && game.NamesSession(e.ErrorCode):
			e.Message += "; log in to the game, and give the session and the token of this login"
		case e.Code == control.CodeRejected && asked.UUID == "" && mayBeAboutUUID(e):
			e.Message += "; the game may accept only UUIDs of its own: give the uuid of one of its " +
				"initialize calls"
		case e.Code == control.CodeLostAnswer:
			e.UUID = id
			e.Message += ": start the same order again under this UUID, which the game must approve " +
				"without taking anything twice"
		}
		if refused := s.orders.Shown(id); refused != nil && refused.Refused != "" &&
			s.orders.Verdict(refused).Loss {
			e.Message = s.orders.Verdict(refused).Said
		}
		return started, err
	} // otherwise err holds findings of the books, which are in the report
	return s.wait(ctx, o, wait), nil
}

// mayBeAboutUUID reports whether a game may have rejected an order because of its UUID: it has accepted who
// calls, and says nothing else.
func mayBeAboutUUID(e *control.Error) bool {
	return e.GameStatus != http.StatusUnauthorized && e.GameStatus != http.StatusForbidden &&
		!game.Names(e.ErrorCode, "BALANCE", "HMAC")
}

// session returns the session of a new order.
func (s *Backend) session(asked *control.StartRequest, like *order.Order) (ramp.Session, error) {
	session := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	switch {
	case session.ID == "" && asked.AccessToken == "" && like != nil:
		return like.Session, nil
	case session.ID == "":
		return session, invalid("session_id is required")
	case asked.AccessToken != "":
		return session, nil
	}
	for _, o := range s.orders.All() { // newest first
		if o.Session.ID == session.ID {
			return o.Session, nil
		}
	}
	return session, invalid("access_token is required: no order of this session is known")
}

// identify returns the UUID of a new order: that of the game, or one that it issues
// for the terms.
func (s *Backend) identify(asked *control.StartRequest, like *order.Order) (uuid.UUID, error) {
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
		return s.orders.IssueLike(like.UUID)
	}
	id, unknown, problem := s.service.Console.Issue(asked.Terms)
	switch {
	case unknown == emulator.UnknownProject:
		return id, invalid("terms.project_id is missing, or is not that of this service")
	case unknown != "":
		return id, invalid("terms.network must be a network of this service")
	case problem != "":
		return id, invalid("%s", strings.Replace(problem, "intent.", "terms.", 1))
	}
	return id, nil
}

func (s *Backend) Send(ctx context.Context, id string, asked control.SendRequest) (sent control.Sent,
	err error) {
	o, err := s.order(id)
	if err != nil {
		return sent, err
	}
	if o.Refused != "" {
		return sent, invalid("the game did not approve the order, so there is no result to send")
	}
	outcome, known := order.Outcomes[asked.Outcome]
	if asked.Outcome == "" {
		outcome = order.AsOnChain
	} else if !known {
		return sent, invalid("outcome must be succeeded or failed, if it is given")
	}
	err = s.orders.ByHand(context.WithoutCancel(ctx), o, outcome)
	if errors.Is(err, emulator.ErrPending) || errors.Is(err, life.ErrClosed) {
		return sent, reported(err)
	}
	sent.Order = s.report(o)
	sent.Lost, sent.Error = undelivered(err)
	return sent, nil
}

func (s *Backend) Advance(_ context.Context, asked control.AdvanceRequest) (advanced control.Advanced,
	err error) {
	by, err := fault.ParseDuration(asked.By)
	if err != nil {
		return advanced, invalid("by must be a time such as 90s, 15m or 12h, and at most 10 years")
	}
	if s.service.Life.Alive.Err() != nil {
		return advanced, reported(life.ErrClosed)
	}
	advanced.Deliveries = []control.Delivery{}
	for _, d := range s.orders.Advance(by) {
		shown := control.Delivery{UUID: d.Order.UUID, Attempt: d.Attempt, Time: d.Time, Status: d.Status,
			Next: d.Next}
		shown.Lost, shown.Error = undelivered(d.Err)
		advanced.Deliveries = append(advanced.Deliveries, shown)
	}
	advanced.Now = s.service.Clock.Now()
	return advanced, nil
}

func (s *Backend) Fail(_ context.Context, asked control.FailRequest) (done control.Done, err error) {
	const most = 1000
	if len(asked.Initialize) > most || len(asked.RPC) > most || len(asked.Assets) > most {
		return done, invalid("at most %d failures can be scripted", most)
	}
	known := []emulator.InitializeFailure{
		emulator.HMACRequired, emulator.InvalidMAC, emulator.UnknownProject, emulator.UnknownNetwork,
		emulator.Unavailable, emulator.TooMany, emulator.NoAnswer, emulator.CutOff}
	var initialize []emulator.InitializeFailure
	for _, text := range asked.Initialize {
		if initialize = append(initialize, emulator.InitializeFailure(text)); !slices.Contains(known,
			emulator.InitializeFailure(text)) {
			return done, invalid("initialize has an unknown failure; the failures are %q", known)
		}
	}
	knownAssets := []string{game.AssetsLost, game.AssetsNoAnswer, game.AssetsCutOff}
	var assets []string
	for _, text := range asked.Assets {
		if !slices.Contains(knownAssets, text) {
			return done, invalid("assets has an unknown failure; the failures are %q", knownAssets)
		}
		assets = append(assets, text)
	}
	for _, code := range asked.RPC {
		if code >= 100 && (code < 200 || code > 599) && code != emulator.RPCNoAnswer &&
			code != emulator.RPCCutOff {
			return done, invalid("rpc has a number that is neither a JSON-RPC error code nor an HTTP status")
		}
	}
	s.service.Console.Failing.Add(initialize)
	s.service.Node.Failing.Add(asked.RPC)
	s.service.Game.Failing.Add(assets)
	return done, nil
}

func (s *Backend) Events(ctx context.Context, q control.EventsQuery) (list control.EventList, err error) {
	if q.After < 0 {
		return list, invalid("after must be the number of an event")
	}
	if list.Run = s.service.Run; q.Run != "" && q.Run != s.service.Run ||
		q.After > s.service.History.Newest() {
		q.After = 0 // of another run
	}
	if q.Limit, err = limited(q.Limit, 1000); err != nil {
		return list, err
	}
	var id uuid.UUID
	if q.UUID != "" {
		if id, err = uuid.Parse(q.UUID); err != nil {
			return list, invalid("uuid must be a UUID")
		}
	}
	wait, err := readWait(q.Wait)
	if err != nil {
		return list, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	list.Events = []control.Event{}
	for {
		happened, more, changed := s.service.History.Since(q.After, q.Limit, func(e *control.Event) bool {
			return (id == uuid.Nil || e.UUID == id) && (q.Routine || !e.Routine())
		})
		list.More = more
		list.Events = append(list.Events, happened...)
		if len(list.Events) > 0 || wait == 0 {
			return list, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return list, nil
		case <-ctx.Done():
			return list, ctx.Err()
		case <-s.service.Life.Alive.Done():
			return list, reported(life.ErrClosed)
		}
	}
}

func (s *Backend) Check(context.Context) (checked control.Checked, err error) {
	leave, err := s.service.Life.Enter()
	if err != nil {
		return checked, reported(err)
	}
	defer leave()
	return control.Checked{Problems: eachLine(s.service.Problems())}, nil
}

// eachLine returns the lines of a text without the name of this package.
func eachLine(text string) []string {
	each := []string{}
	for line := range strings.Lines(text) {
		each = append(each, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "ramptest: "))
	}
	return each
}

func (s *Backend) Reset(context.Context, control.ResetRequest) (done control.Done, err error) {
	leave, err := s.service.Life.Enter()
	if err != nil {
		return done, reported(err)
	}
	defer leave()
	s.service.Reset()
	return done, nil
}
