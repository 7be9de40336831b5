package ramptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// savedService is the form of [Service.Save]. It may change with any version.
type savedService struct {
	Version    int
	Now        time.Time // on the service's clock
	Wall       time.Time // the real time
	Events     int       // the number of the last event
	Chains     map[ramp.Network]chain.State
	Issued     []savedUUID
	Orders     []savedOrder // oldest first
	Held       []uuid.UUID
	Jobs       []savedJob
	Keys       map[string]string // of the players, by session
	Players    map[string]savedPlayer
	Books      []savedBooks
	Imbalances []*Imbalance
}

const stateVersion = 1

type savedUUID struct {
	UUID    uuid.UUID
	Terms   ramp.InitializeIntent
	Expires time.Time
	Opened  bool
	Lost    int
}

type savedOrder struct {
	UUID        uuid.UUID
	SessionID   string
	AccessToken string
	Network     ramp.Network
	Request     ramp.ValidateRequest
	Approval    ramp.Approval
	TxHash      common.Hash
	Fee         ramp.Amount
	Faults      []string
	Placed      time.Time
	Had         *big.Rat // the wallet's tokens before the order
	State       State
	Attempts    int
	Retries     int
	Next        time.Time
	Status      int
	Lost        bool
}

type savedJob struct {
	Due     time.Time
	Task    task
	Order   uuid.UUID    // zero for a transaction that belongs to no order
	Network ramp.Network // set for such a transaction
	TxHash  common.Hash
}

type savedPlayer struct {
	Last, Outside books.Assets
	Epoch         int
}

type savedBooks struct {
	UUID   uuid.UUID
	Player string
	Order  books.Order
}

// Save returns the orders, the chains, the clock and the books for [Config.State], so
// that another service can continue from there. It does not include the record of
// events. The bytes contain the access tokens of players, so keep them secret. Save
// waits for jobs in progress. It may be called after [Service.Close].
func (s *Service) Save() ([]byte, error) {
	o := s.orders
	o.turn.Lock() // waits for jobs in progress
	defer o.turn.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	saved := savedService{Version: stateVersion, Now: s.clock.now(), Wall: time.Now(), Events: s.record.newest(), Chains: make(map[ramp.Network]chain.State)}
	for network, c := range o.chains {
		saved.Chains[network] = c.Save()
	}
	for id, known := range o.issued {
		saved.Issued = append(saved.Issued, savedUUID{id, known.terms, known.expires, known.opened, known.lost})
	}
	for _, order := range o.queue {
		saved.Orders = append(saved.Orders, order.save())
	}
	for _, held := range o.held {
		saved.Held = append(saved.Held, held.UUID)
	}
	for _, j := range o.agenda.all() {
		job := savedJob{Due: j.due, Task: j.task, Network: j.network}
		switch {
		case j.order != nil && o.placed[j.order.UUID] == j.order:
			job.Order = j.order.UUID
		case j.tx != nil:
			job.TxHash = j.tx.Hash
		default: // the order was made by hand
			continue
		}
		saved.Jobs = append(saved.Jobs, job)
	}
	text, err := s.audit.save(&saved)
	if err != nil {
		return nil, fmt.Errorf("ramptest: save: %w", err)
	}
	return text, nil
}

func (o *Order) save() savedOrder {
	d := &o.delivery
	d.mu.Lock()
	defer d.mu.Unlock()
	return savedOrder{UUID: o.UUID, SessionID: o.Session.ID, AccessToken: o.Session.Token.Reveal(), Network: o.Network,
		Request: o.Request, Approval: o.Approval, TxHash: o.TxHash, Fee: o.fee, Faults: o.script.names, Placed: o.placed, Had: o.had,
		State: d.state, Attempts: d.attempts, Retries: d.retries, Next: d.next, Status: d.status, Lost: d.lost}
}

// readState parses what Save returned.
func readState(text []byte) (*savedService, error) {
	var saved savedService
	if err := json.Unmarshal(text, &saved); err != nil {
		return nil, errors.New("ramptest: Config.State is not what Service.Save has returned") // err could quote a token
	}
	if saved.Version != stateVersion {
		return nil, fmt.Errorf("ramptest: Config.State has version %d, but must have version %d", saved.Version, stateVersion)
	}
	return &saved, nil
}

// epoch returns the time at which a restored clock starts. A clock in real time
// includes the time that has passed since it was saved.
func (s *savedService) epoch(speed float64) time.Time {
	if passed := time.Since(s.Wall); speed == 1 && passed > 0 {
		return s.Now.Add(passed)
	}
	return s.Now
}

// restore loads a saved state into a new service.
func (s *Service) restore(saved *savedService) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("ramptest: Config.State: "+format, args...)
	}
	for network, state := range saved.Chains {
		c := s.orders.chains[network]
		if c == nil {
			return wrong("the service does not have the network %q", string(network))
		}
		if err := c.Restore(state); err != nil {
			return wrong("%w", err)
		}
	}
	o := s.orders
	for _, known := range saved.Issued {
		o.issued[known.UUID] = &issued{terms: known.Terms, expires: known.Expires, opened: known.Opened, lost: known.Lost}
	}
	for i := range saved.Orders {
		order, err := o.restored(&saved.Orders[i])
		if err != nil {
			return wrong("%w", err)
		}
		o.placed[order.UUID] = order
		o.queue = append(o.queue, order)
	}
	for _, id := range saved.Held {
		if order := o.placed[id]; order != nil {
			o.held = append(o.held, order)
		}
	}
	for _, j := range saved.Jobs {
		planned := job{due: j.Due, task: j.Task, order: o.placed[j.Order], network: j.Network}
		if c := o.chains[j.Network]; c != nil {
			planned.tx = c.Transaction(j.TxHash)
		}
		if (planned.task == mineForeign && planned.tx == nil) || (planned.task != mineForeign && planned.order == nil) {
			return wrong("a job belongs to no order")
		}
		o.agenda.plan(planned)
	}
	s.audit.restore(saved)
	s.record.number = saved.Events
	return nil
}

// restored returns a saved order.
func (s *orders) restored(saved *savedOrder) (*Order, error) {
	o := &Order{UUID: saved.UUID, Session: ramp.Session{ID: saved.SessionID, Token: ramp.NewAccessToken(saved.AccessToken)},
		Network: saved.Network, Request: saved.Request, Approval: saved.Approval, TxHash: saved.TxHash, fee: saved.Fee, placed: saved.Placed}
	o.Request.Raw = nil
	if len(o.Request.Intent.From) == 0 || len(o.Request.Intent.To) == 0 {
		return nil, errors.New("an order has no intent")
	}
	if c := s.chains[saved.Network]; c != nil {
		o.tx = c.Transaction(saved.TxHash)
	}
	if o.tx == nil || s.issued[o.UUID] == nil {
		return nil, errors.New("an order has no transaction, or no UUID")
	}
	faults, err := parseFaults(saved.Faults)
	if err != nil {
		return nil, err
	}
	if o.script, err = newScript(faults); err != nil {
		return nil, err
	}
	if o.wallet, err = s.config.wallet(o.Session); err != nil {
		return nil, err
	}
	o.delivery.state, o.delivery.attempts, o.delivery.retries = saved.State, saved.Attempts, saved.Retries
	o.delivery.next, o.delivery.status, o.delivery.lost = saved.Next, saved.Status, saved.Lost
	o.had = saved.Had
	return o, nil
}

// save adds the books to the saved state and encodes it while they cannot change. It
// treats an open window as not yet opened.
func (a *audit) save(saved *savedService) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	saved.Keys, saved.Players, saved.Imbalances = a.keys, make(map[string]savedPlayer), a.found
	names := make(map[*auditedPlayer]string)
	for key, p := range a.players {
		names[p] = key
		saved.Players[key] = savedPlayer{p.books.Last, p.books.Outside, p.books.Epoch}
	}
	for id, entries := range a.orders {
		for _, entry := range entries {
			saved.Books = append(saved.Books, savedBooks{id, names[entry.player], *entry.order})
		}
	}
	return json.Marshal(saved)
}

func (a *audit) restore(saved *savedService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.keys, saved.Keys)
	a.found = saved.Imbalances
	for _, found := range a.found {
		a.returned[found] = true // the saved service has returned it
	}
	for key, p := range saved.Players {
		a.keep(key).books = books.Player{Last: p.Last, Outside: p.Outside, Epoch: p.Epoch}
	}
	for i := range saved.Books {
		entry, p := &saved.Books[i], a.keep(saved.Books[i].Player)
		a.orders[entry.UUID] = append(a.orders[entry.UUID], auditedOrder{p, &entry.Order})
		if len(entry.Order.Late) > 0 {
			p.books.Late = append(p.books.Late, &entry.Order)
		}
	}
}
