package ramptest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
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
	for network, c := range k.orders.chains {
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
	slices.SortFunc(o.queue, func(a, b *Order) int { return a.number - b.number })
	if n := len(o.queue); n > 0 {
		o.count = o.queue[n-1].number
	}
	return statefile.Each(k.file, "pending", func(_ string, pending *[]savedForeign) error {
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
	o := &Order{
		UUID: id, Session: ramp.Session{ID: saved.SessionID, Token: ramp.NewAccessToken(saved.AccessToken)},
		Network: saved.Network, Request: saved.Request, Approval: saved.Approval, TxHash: saved.TxHash,
		composed: true, number: saved.Number, fee: saved.Fee, placed: saved.Placed,
		heldBefore: saved.HeldBefore, refused: saved.Refused, noSession: saved.NoSession,
	}
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
	o.Request.Intent.TargetCandidate = bytes.Clone(
		o.Request.Intent.TargetCandidate) // it would keep the whole body
	o.delivery = newDelivery(saved.standing)
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

func (k *keeper) restoreBooks() error {
	var found []*audit.Finding
	err := statefile.Each(k.file, "player/", func(key string, saved *audit.SavedPlayer) error {
		name, err := url.QueryUnescape(key)
		k.audit.RestorePlayer(name, saved)
		return err
	})
	if err == nil {
		err = statefile.One(k.file, "findings", &found)
	}
	k.audit.RestoreFound(found)
	return err
}

func (k *keeper) restoreRecord() error {
	events, number, err := history.Saved(k.file)
	k.history.Resume(events, number)
	return err
}
