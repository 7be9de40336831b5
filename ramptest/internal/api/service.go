package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/report"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Service is an emulated service as the control API drives it.
type Service struct {
	service *emulator.Service
	orders  *emulator.Orders
	config  *emulator.Config
}

var _ Emulator = (*Service)(nil)

// Of returns a service as the control API drives it.
func Of(s *emulator.Service) *Service { return &Service{s, s.Orders, s.Config()} }

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

// Describe implements [Emulator], as the other methods do.
func (s *Service) Describe(context.Context) (control.Description, error) {
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

// states are the states of the verdict on an order.
var states = []verdict.State{verdict.Waiting, verdict.Done, verdict.Loss, verdict.Unconfirmed,
	verdict.Disputed, verdict.Unknown}

// limited checks the limit of a page.
func limited(limit, byDefault int) (int, error) {
	if limit < 0 || limit > 1000 {
		return 0, report.Invalid("limit must be from 1 to 1000")
	}
	return cmp.Or(limit, byDefault), nil
}

func (s *Service) Orders(_ context.Context, q control.OrdersQuery) (list control.OrderList, err error) {
	if q.Limit, err = limited(q.Limit, 100); err != nil {
		return list, err
	}
	state := verdict.State(q.State)
	if state != "" && !slices.Contains(states, state) {
		return list, report.Invalid("state must be one of %v", states)
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
	q.SessionID = strings.TrimSpace(q.SessionID)
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
			list.Orders = append(list.Orders, report.Order(s.service, o))
		}
	}
	return list, nil
}

// order returns the order that a UUID, or the beginning of one, names.
func (s *Service) order(text string) (*order.Order, error) {
	if id, err := uuid.Parse(text); err == nil {
		return report.Find(s.service, id)
	}
	const minLength = 4
	var found *order.Order
	for _, o := range s.orders.All() {
		if len(text) < minLength || !strings.HasPrefix(o.UUID.String(), strings.ToLower(text)) {
			continue
		}
		if found != nil {
			return nil, report.Invalid("several UUIDs begin with this: give the whole UUID")
		}
		found = o
	}
	if found == nil {
		return nil,
			report.Errorf(control.CodeNotFound,
				"there is no such order: give its UUID, or at least the first 4 characters")
	}
	return found, nil
}

func (s *Service) Order(ctx context.Context, id string, q control.OrderQuery) (control.OrderReport, error) {
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
		return 0, report.Invalid("wait must be a time such as 30s, and at most 1h")
	}
	return d, nil
}

// wait waits until nothing more is planned for an order, or nothing that falls due
// within d of real time. It returns the order's state then.
func (s *Service) wait(ctx context.Context, o *order.Order, d time.Duration) control.OrderReport {
	end := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		changed := s.service.History.Next()
		p := s.orders.Progress(o)
		if p.Done || !p.Due.IsZero() && !s.comes(p.Due, time.Until(end)) {
			return report.Order(s.service, o)
		}
		select {
		case <-changed:
			continue
		case <-timer.C:
		case <-ctx.Done():
		case <-s.service.Life.Alive.Done():
		}
		return report.Order(s.service, o)
	}
}

// comes reports whether the running clock reaches a time within a real time.
func (s *Service) comes(at time.Time, within time.Duration) bool {
	missing := at.Sub(s.service.Clock.Now())
	return missing <= 0 || float64(missing) <= float64(within)*s.config.Speed
}

func (s *Service) Start(ctx context.Context, asked control.StartRequest) (started control.OrderReport,
	err error) {
	t := trade.Named(asked.Do)
	if t == nil {
		return started, report.Invalid("do must be %s", trade.Names())
	}
	faults, err := s.config.Faults.ParseAll(asked.Faults)
	if err != nil {
		return started, report.Invalid("%s", text.Of(err))
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
			return started, report.Invalid("amount must be a decimal number above 0")
		}
	case like != nil:
		amount = like.Token().Amount
	}
	id, err := s.identify(&asked, like)
	if err != nil {
		return started, report.Error(err)
	}
	// The order continues if the caller disconnects. A validate call that is cut off
	// would be an additional fault.
	o, err := s.orders.Place(context.WithoutCancel(ctx), t, id, session, amount, faults)
	if o == nil {
		err := report.Error(err)
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
func (s *Service) session(asked *control.StartRequest, like *order.Order) (ramp.Session, error) {
	if asked.SessionID == "" && asked.AccessToken == "" && like != nil {
		return like.Session, nil
	}
	return report.Session(s.service, asked.SessionID, asked.AccessToken)
}

// identify returns the UUID of a new order: that of the game, or one that it issues
// for the terms.
func (s *Service) identify(asked *control.StartRequest, like *order.Order) (uuid.UUID, error) {
	given := 0
	for _, is := range []bool{asked.UUID != "", like != nil, asked.Terms != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return uuid.Nil, report.Invalid("give one of uuid, like and terms")
	}
	switch {
	case asked.UUID != "":
		id, err := uuid.Parse(asked.UUID)
		if err != nil {
			return uuid.Nil, report.Invalid("uuid must be a UUID")
		}
		return id, nil
	case like != nil:
		return s.orders.IssueLike(like.UUID)
	}
	return report.Issue(s.service, asked.Terms)
}

func (s *Service) Send(ctx context.Context, id string, asked control.SendRequest) (sent control.Sent,
	err error) {
	o, err := s.order(id)
	if err != nil {
		return sent, err
	}
	if o.Refused != "" {
		return sent, report.Invalid("the game did not approve the order, so there is no result to send")
	}
	outcome, known := order.Outcomes[asked.Outcome]
	if asked.Outcome == "" {
		outcome = order.AsOnChain
	} else if !known {
		return sent, report.Invalid("outcome must be succeeded or failed, if it is given")
	}
	err = s.orders.ByHand(context.WithoutCancel(ctx), o, outcome)
	if errors.Is(err, emulator.ErrPending) || errors.Is(err, life.ErrClosed) {
		return sent, report.Error(err)
	}
	sent.Order = report.Order(s.service, o)
	sent.Lost, sent.Error = undelivered(err)
	return sent, nil
}

func (s *Service) Advance(_ context.Context, asked control.AdvanceRequest) (advanced control.Advanced,
	err error) {
	by, err := fault.ParseDuration(asked.By)
	if err != nil {
		return advanced, report.Invalid("by must be a time such as 90s, 15m or 12h, and at most 10 years")
	}
	if s.service.Life.Alive.Err() != nil {
		return advanced, report.Error(life.ErrClosed)
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

func (s *Service) Fail(_ context.Context, asked control.FailRequest) (done control.Done, err error) {
	const most = 1000
	if len(asked.Initialize) > most || len(asked.RPC) > most || len(asked.Assets) > most {
		return done, report.Invalid("at most %d failures can be scripted", most)
	}
	known := []emulator.InitializeFailure{
		emulator.HMACRequired, emulator.InvalidMAC, emulator.UnknownProject, emulator.UnknownNetwork,
		emulator.Unavailable, emulator.TooMany, emulator.NoAnswer, emulator.CutOff}
	var initialize []emulator.InitializeFailure
	for _, text := range asked.Initialize {
		if initialize = append(initialize, emulator.InitializeFailure(text)); !slices.Contains(known,
			emulator.InitializeFailure(text)) {
			return done, report.Invalid("initialize has an unknown failure; the failures are %q", known)
		}
	}
	knownAssets := []string{game.AssetsLost, game.AssetsNoAnswer, game.AssetsCutOff}
	var assets []string
	for _, text := range asked.Assets {
		if !slices.Contains(knownAssets, text) {
			return done, report.Invalid("assets has an unknown failure; the failures are %q", knownAssets)
		}
		assets = append(assets, text)
	}
	for _, code := range asked.RPC {
		if code >= 100 && (code < 200 || code > 599) && code != emulator.RPCNoAnswer &&
			code != emulator.RPCCutOff {
			return done,
				report.Invalid("rpc has a number that is neither a JSON-RPC error code nor an HTTP status")
		}
	}
	s.service.Console.Failing.Add(initialize)
	s.service.Node.Failing.Add(asked.RPC)
	s.service.Game.Failing.Add(assets)
	return done, nil
}

func (s *Service) SetNode(_ context.Context, asked control.NodeRequest) (done control.Done, err error) {
	if s.config.Networks[asked.Network] == 0 {
		return done, report.Invalid("network must be one of %v", slices.Sorted(maps.Keys(s.config.Networks)))
	}
	if asked.Behind < 0 || asked.MaxLogs < 0 {
		return done, report.Invalid("behind and max_logs must not be negative")
	}
	node := chain.Node{Stands: asked.Stands, Behind: uint64(asked.Behind), MaxLogs: asked.MaxLogs}
	if asked.Forgets != "" {
		if node.Forgets, err = fault.ParseDuration(asked.Forgets); err != nil {
			return done, report.Invalid("forgets must be a time such as 15m or 12h, and at most 10 years")
		}
	}
	s.service.Node.Set(asked.Network, node)
	return done, nil
}

func (s *Service) Events(ctx context.Context, q control.EventsQuery) (list control.EventList, err error) {
	if q.After < 0 {
		return list, report.Invalid("after must be the number of an event")
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
			return list, report.Invalid("uuid must be a UUID")
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
			return list, report.Error(life.ErrClosed)
		}
	}
}

func (s *Service) Check(context.Context) (checked control.Checked, err error) {
	leave, err := s.service.Life.Enter()
	if err != nil {
		return checked, report.Error(err)
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

func (s *Service) Reset(context.Context, control.ResetRequest) (done control.Done, err error) {
	leave, err := s.service.Life.Enter()
	if err != nil {
		return done, report.Error(err)
	}
	defer leave()
	s.service.Reset()
	return done, nil
}
