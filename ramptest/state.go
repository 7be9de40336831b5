package ramptest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// savedUUID is the line of a UUID.
type savedUUID struct {
	issued
	Order *savedOrder `json:",omitempty"` // nil if none was placed
}

type savedOrder struct {
	SessionID   string
	AccessToken string
	Player      string `json:",omitempty"` // as the books name the player of the session; "" if they have none
	Network     ramp.Network
	TxHash      common.Hash
	Placed      time.Time
	Number      int // counts the orders
	standing
	Refused    string `json:",omitempty"` // how the game did not approve it; it then has no transaction
	NoSession  bool   `json:",omitzero"`  // see Order.noSession
	Request    ramp.ValidateRequest
	Approval   ramp.Approval
	Fee        ramp.Amount
	Faults     []string `json:",omitempty"`
	HeldBefore *big.Rat // the wallet's tokens before the order
	Books      []books.Tally
	Held       bool       `json:",omitzero"`
	Jobs       []savedJob `json:",omitempty"`
}

type savedJob struct {
	Due  time.Time
	Task task
}

// savedForeign is a line about a pending transaction that belongs to no order.
type savedForeign struct {
	Due     time.Time
	Network ramp.Network
	TxHash  common.Hash
}

// keeper writes what changes to a state file. A nil keeper writes nothing.
type keeper struct {
	file    *StateFile
	service *Service
	woken   chan struct{} // receives when something has changed

	mu      sync.Mutex
	changed map[uuid.UUID]bool

	writing sync.Mutex
	found   *audit.Finding // the last that was written
}

// touch notes that something has changed, and about which UUIDs, if it belongs to any.
func (k *keeper) touch(ids ...uuid.UUID) {
	if k == nil {
		return
	}
	k.mu.Lock()
	for _, id := range ids {
		k.changed[id] = true
	}
	k.mu.Unlock()
	select {
	case k.woken <- struct{}{}:
	default: // already woken
	}
}

// clear forgets everything but the notes, while reset resets what is kept.
func (k *keeper) clear(reset func()) {
	if k == nil {
		reset()
		return
	}
	k.writing.Lock() // as flush does, before it locks the orders
	k.mu.Lock()
	clear(k.changed)
	k.mu.Unlock()
	k.file.clear()
	k.found = nil
	reset()
	k.writing.Unlock()
	k.touch()
}

// run writes the changes of a tenth of a second together, until the service ends.
func (k *keeper) run() {
	for {
		select {
		case <-k.woken:
		case <-k.service.life.alive.Done():
			return
		}
		wait(k.service.life.alive, 100*time.Millisecond)
		k.flush()
	}
}

// flush writes what has changed. An error is kept for StateFile.Err.
func (k *keeper) flush() {
	if k == nil {
		return
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	changed := k.changed
	k.changed = make(map[uuid.UUID]bool)
	k.mu.Unlock()
	s := k.service
	lines := make(map[uuid.UUID][]any)
	players := make(map[string]audit.SavedPlayer)
	for id := range changed {
		lines[id] = k.uuid(id, players)
	}
	blocks := make(map[ramp.Network]chain.State)
	for network, c := range s.orders.chains { // after the orders, whose transactions it then has
		blocks[network] = c.Changes()
	}
	k.file.put("clock", savedClock{Now: s.clock.now(), Wall: time.Now(), Events: s.record.newest()}) // before the blocks, of which none may be later
	for network, state := range blocks {
		k.chain(string(network), state)
	}
	for name, player := range players {
		k.file.put("player/"+url.QueryEscape(name), player)
	}
	for id, line := range lines {
		k.file.put("uuid/"+id.String(), line...)
	}
	k.foreign()
	if all := s.audit.Found(); len(all) > 0 && all[len(all)-1] != k.found {
		k.found = all[len(all)-1]
		k.file.put("findings", all)
	}
}

func (k *keeper) chain(network string, s chain.State) {
	for _, span := range s.Spans {
		k.file.put(fmt.Sprintf("span/%s/%d", network, span.First), span)
	}
	if s.Forks != nil {
		k.file.put("forks/"+network, s.Forks)
	}
	for _, t := range s.Transactions {
		k.file.put("tx/"+network+"/"+t.Hash.Hex(), &t)
	}
	for _, hash := range s.Forgotten {
		k.file.put("tx/" + network + "/" + hash.Hex())
	}
	for _, a := range s.Accounts {
		k.file.put("account/"+network+"/"+a.Owner.Hex(), a)
	}
}

// uuid returns the line of a UUID, which is empty if the UUID was forgotten, and adds its
// players.
func (k *keeper) uuid(id uuid.UUID, players map[string]audit.SavedPlayer) []any {
	o := k.service.orders
	o.mu.Lock()
	known, order := o.issued[id], cmp.Or(o.placed[id], o.refusedAs(id))
	if known == nil {
		o.mu.Unlock()
		return nil
	}
	line := &savedUUID{issued: *known}
	held := slices.Contains(o.held, order)
	o.mu.Unlock()
	if order == nil {
		return []any{line}
	}
	line.Order = &savedOrder{SessionID: order.Session.ID, AccessToken: order.Session.Token.Reveal(), Network: order.Network, TxHash: order.TxHash,
		Placed: order.placed, Number: order.number, standing: order.delivery.now(), Refused: order.refused, NoSession: order.noSession,
		Request: order.Request, Approval: order.Approval, Fee: order.fee, Faults: order.script.names, HeldBefore: order.heldBefore,
		Held: held}
	var player *audit.SavedPlayer
	if line.Order.Player, line.Order.Books, player = k.service.audit.Save(order.entered()); player != nil {
		players[line.Order.Player] = *player
	}
	jobs, _ := o.agenda.of(order)
	for _, j := range jobs {
		line.Order.Jobs = append(line.Order.Jobs, savedJob{j.due, j.task})
	}
	return []any{line}
}

// foreign writes the pending transactions that belong to no order.
func (k *keeper) foreign() {
	pending := []savedForeign{}
	jobs, _ := k.service.orders.agenda.of(nil)
	for _, j := range jobs {
		pending = append(pending, savedForeign{j.due, j.network, j.tx.Hash})
	}
	if old, err := k.file.journal.Get("pending"); err == nil && (len(pending) > 0 || len(old) > len("[]")) {
		k.file.put("pending", pending)
	}
}

// restore loads the file into a new service.
func (s *Service) restore(f *StateFile) error {
	events := make(chan error, 1)
	go func() { events <- s.record.restore(f) }() // at the same time, as both take long
	err := s.restoreChains(f)
	if err == nil {
		err = s.restoreOrders(f)
	}
	if err == nil {
		err = s.restoreBooks(f)
	}
	if err := errors.Join(err, <-events); err != nil {
		return fmt.Errorf("ramptest: state: %w", err)
	}
	return nil
}

func (s *Service) restoreChains(f *StateFile) error {
	for network, c := range s.orders.chains {
		var state chain.State
		name := string(network)
		err := errors.Join(
			all(f, "span/"+name+"/", &state.Spans),
			all(f, "tx/"+name+"/", &state.Transactions),
			all(f, "account/"+name+"/", &state.Accounts),
			one(f, "forks/"+name, &state.Forks))
		if err == nil && len(state.Spans) > 0 {
			err = c.Restore(state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) restoreOrders(f *StateFile) error {
	o := s.orders
	err := each(f, "uuid/", func(key string, line *savedUUID) error {
		id, err := uuid.Parse(key)
		if err != nil {
			return errors.New("a line has no UUID")
		}
		o.enter(id, &line.issued)
		if line.Order == nil {
			return nil
		}
		return o.restore(id, line.Order)
	})
	if err != nil {
		return err
	}
	slices.SortFunc(o.queue, func(a, b *Order) int { return a.number - b.number })
	if n := len(o.queue); n > 0 {
		o.count = o.queue[n-1].number
	}
	return each(f, "pending", func(_ string, pending *[]savedForeign) error {
		for _, p := range *pending {
			c := o.chains[p.Network]
			if c == nil || c.Transaction(p.TxHash) == nil {
				return errors.New("a pending transaction is unknown")
			}
			o.agenda.plan(job{due: p.Due, task: mineForeign, network: p.Network, tx: c.Transaction(p.TxHash)})
		}
		return nil
	})
}

// restore enters a saved order.
func (s *orders) restore(id uuid.UUID, saved *savedOrder) error {
	o := &Order{UUID: id, Session: ramp.Session{ID: saved.SessionID, Token: ramp.NewAccessToken(saved.AccessToken)}, composed: true,
		Network: saved.Network, Request: saved.Request, Approval: saved.Approval, TxHash: saved.TxHash,
		number: saved.Number, fee: saved.Fee, placed: saved.Placed, heldBefore: saved.HeldBefore, refused: saved.Refused, noSession: saved.NoSession}
	c := s.chains[saved.Network]
	if c == nil {
		return fmt.Errorf("the service does not have the network %q", string(saved.Network))
	}
	if o.tx = c.Transaction(saved.TxHash); o.tx == nil && o.refused == "" {
		return errors.New("an order has no transaction")
	}
	if o.trade() == nil {
		return fmt.Errorf("an order has no intent of a %s", tradeNames())
	}
	o.Request.Raw = nil
	o.Request.Intent.TargetCandidate = bytes.Clone(o.Request.Intent.TargetCandidate) // it would keep the whole body
	o.delivery.standing = saved.standing
	faults, err := parseFaults(saved.Faults)
	if err == nil {
		o.script, err = newScript(faults)
	}
	if err != nil {
		return err
	}
	s.audit.RestoreOrder(o.Session, saved.Player, saved.Books)
	for _, j := range saved.Jobs {
		s.agenda.plan(job{due: j.Due, task: j.Task, order: o})
	}
	if saved.Held {
		s.held = append(s.held, o)
	}
	if o.refused != "" {
		s.lost = append(s.lost, o)
		return nil
	}
	s.placed[id] = o
	s.queue = append(s.queue, o)
	return nil
}

func (s *Service) restoreBooks(f *StateFile) error {
	var found []*audit.Finding
	err := each(f, "player/", func(key string, saved *audit.SavedPlayer) error {
		name, err := url.QueryUnescape(key)
		s.audit.RestorePlayer(name, saved)
		return err
	})
	if err == nil {
		err = one(f, "findings", &found)
	}
	s.audit.RestoreFound(found)
	return err
}

// restore loads the events, without their bodies.
func (r *record) restore(f *StateFile) (err error) {
	if err = all(f, "event/", &r.events); err != nil {
		return err
	}
	slices.SortFunc(r.events, func(a, b Event) int { return a.Number - b.Number })
	if n := len(r.events); n > 0 {
		r.begun, r.number = r.events[0].Time, r.events[n-1].Number
	}
	var c savedClock
	err = one(f, "clock", &c)
	r.number = max(r.number, c.Events)
	return err
}
