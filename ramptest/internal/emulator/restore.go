package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// restore loads the file into a new service.
func (k *keeper) restore() error {
	events := make(chan error, 1)
	go func() { events <- k.restoreRecord() }() // at the same time, as both take long
	err := k.restoreChains()
	if err == nil {
		err = k.restoreOrders()
	}
	if err == nil {
		err = k.restoreBooks()
	}
	if err := errors.Join(err, <-events); err != nil {
		return fmt.Errorf("ramptest: state: %w", err)
	}
	return nil
}

func (k *keeper) restoreChains() error {
	f := k.file
	for network, c := range k.orders.Chains {
		var state chain.State
		name := string(network)
		err := errors.Join(
			statefile.All(f, "span/"+name+"/", &state.Spans),
			statefile.All(f, "tx/"+name+"/", &state.Transactions),
			statefile.All(f, "account/"+name+"/", &state.Accounts),
			statefile.One(f, "forks/"+name, &state.Forks))
		if err == nil && len(state.Spans) > 0 {
			err = c.Restore(state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) restoreOrders() error {
	o := k.orders
	err := statefile.Each(k.file, "uuid/", func(key string, line *savedUUID) error {
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
	seen := make(map[common.Hash]*order.Order)
	for _, placed := range o.queue {
		if other := seen[placed.TxHash]; other != nil {
			order.Join(other, placed)
		}
		seen[placed.TxHash] = placed
	}
	slices.SortFunc(o.queue, func(a, b *order.Order) int { return a.Number - b.Number })
	if n := len(o.queue); n > 0 {
		o.count = o.queue[n-1].Number
	}
	return statefile.Each(k.file, "pending", func(_ string, pending *[]savedForeign) error {
		for _, p := range *pending {
			c := o.Chains[p.Network]
			if c == nil || c.Transaction(p.TxHash) == nil {
				return errors.New("a pending transaction is unknown")
			}
			o.jobs.Plan(order.Job{Due: p.Due, Task: order.MineForeign, Network: p.Network,
				Tx: c.Transaction(p.TxHash)})
		}
		return nil
	})
}

// restore enters a saved order.
func (s *Orders) restore(id uuid.UUID, saved *savedOrder) error {
	o := &order.Order{
		UUID: id, Session: ramp.Session{ID: saved.SessionID, Token: ramp.NewAccessToken(saved.AccessToken)},
		Network: saved.Network, Request: saved.Request, Approval: saved.Approval, TxHash: saved.TxHash,
		Composed: true, Number: saved.Number, Fee: saved.Fee, Placed: saved.Placed,
		HeldBefore: saved.HeldBefore, Refused: saved.Refused, NoSession: saved.NoSession,
	}
	c := s.Chains[saved.Network]
	if c == nil {
		return fmt.Errorf("the service does not have the network %q", string(saved.Network))
	}
	if o.Tx = c.Transaction(saved.TxHash); o.Tx == nil && o.Refused == "" {
		return errors.New("an order has no transaction")
	}
	if o.Trade() == nil {
		return fmt.Errorf("an order has no intent of a %s", trade.Names())
	}
	o.Request.Raw = nil
	o.Request.Intent.TargetCandidate = bytes.Clone(
		o.Request.Intent.TargetCandidate) // it would keep the whole body
	o.Delivery = order.NewDelivery(saved.Progress)
	faults, err := s.config.Faults.ParseAll(saved.Faults)
	if err == nil {
		o.Script, err = fault.NewScript(faults)
	}
	if err != nil {
		return err
	}
	s.Audit.RestoreOrder(o.Session, saved.Player, saved.Books)
	for _, j := range saved.Jobs {
		s.jobs.Plan(order.Job{Due: j.Due, Task: j.Task, Order: o})
	}
	if saved.Held {
		s.deliveries.Hold(o)
	}
	if o.Refused != "" {
		s.lost = append(s.lost, o)
		return nil
	}
	s.placed[id] = o
	s.queue = append(s.queue, o)
	return nil
}

func (k *keeper) restoreBooks() error {
	var found []*audit.Finding
	err := statefile.Each(k.file, "player/", func(key string, saved *audit.SavedPlayer) error {
		name, err := url.QueryUnescape(key)
		k.Audit.RestorePlayer(name, saved)
		return err
	})
	if err == nil {
		err = statefile.One(k.file, "findings", &found)
	}
	k.Audit.RestoreFound(found)
	return err
}

func (k *keeper) restoreRecord() error {
	events, number, err := history.Saved(k.file)
	k.History.Resume(events, number)
	return err
}
