package emulator

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/clock"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// savedUUID is the line of a UUID.
type savedUUID struct {
	issued
	Order *savedOrder `json:",omitempty"` // nil if none was placed
}

type savedOrder struct {
	SessionID   string
	AccessToken string
	// as the books name the player of the session; "" if they have none
	Player  string `json:",omitempty"`
	Network ramp.Network
	TxHash  common.Hash
	Placed  time.Time
	Number  int // counts the orders
	order.Progress
	Refused    string `json:",omitempty"` // how the game did not approve it; it then has no transaction
	NoSession  bool   `json:",omitzero"`  // see Order.noSession
	Request    ramp.ValidateRequest
	Approval   ramp.Approval
	Fee        ramp.Amount
	Faults     []string `json:",omitempty"`
	HeldBefore *big.Rat // the wallet's tokens before the order
	Books      []tally.Tally
	Held       bool       `json:",omitzero"`
	Jobs       []savedJob `json:",omitempty"`
}

type savedJob struct {
	Due  time.Time
	Task order.Task
}

// savedForeign is a line about a pending transaction that belongs to no order.
type savedForeign struct {
	Due     time.Time
	Network ramp.Network
	TxHash  common.Hash
}

// keeper writes what changes to a state file. A nil keeper writes nothing.
type keeper struct {
	shared
	file   *statefile.File
	orders *Orders

	writing locks.Mutex
	found   *audit.Finding // the last that was written
}

// clear forgets everything but the notes, while reset resets what is kept.
func (k *keeper) clear(reset func()) {
	if k == nil {
		reset()
		return
	}
	k.writing.Lock()
	k.changes.take()
	k.file.Clear()
	k.found = nil
	reset()
	k.writing.Unlock()
	k.changes.note()
}

// run writes the changes of a tenth of a second together, until the service ends.
func (k *keeper) run() {
	for {
		select {
		case <-k.changes.woken:
		case <-k.Life.Alive.Done():
			return
		}
		clock.Wait(k.Life.Alive, 100*time.Millisecond)
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
	lines := make(map[uuid.UUID][]any)
	players := make(map[string]audit.SavedPlayer)
	for id := range k.changes.take() {
		lines[id] = k.uuid(id, players)
	}
	blocks := make(map[ramp.Network]chain.State)
	for network, c := range k.orders.Chains { // after the orders, whose transactions it then has
		blocks[network] = c.Changes()
	}
	// The clock before the blocks, of which none may be later.
	k.file.Put("clock", statefile.Clock{Now: k.Clock.Now(), Wall: time.Now(), Events: k.History.Newest()})
	for network, state := range blocks {
		k.chain(string(network), state)
	}
	for name, player := range players {
		k.file.Put("player/"+url.QueryEscape(name), player)
	}
	for id, line := range lines {
		k.file.Put("uuid/"+id.String(), line...)
	}
	k.foreign()
	if all := k.Audit.Found(); len(all) > 0 && all[len(all)-1] != k.found {
		k.found = all[len(all)-1]
		k.file.Put("findings", all)
	}
}

func (k *keeper) chain(network string, s chain.State) {
	for _, span := range s.Spans {
		k.file.Put(fmt.Sprintf("span/%s/%d", network, span.First), span)
	}
	if s.Forks != nil {
		k.file.Put("forks/"+network, s.Forks)
	}
	for _, t := range s.Transactions {
		k.file.Put("tx/"+network+"/"+t.Hash.Hex(), &t)
	}
	for _, hash := range s.Forgotten {
		k.file.Put("tx/" + network + "/" + hash.Hex())
	}
	for _, a := range s.Accounts {
		k.file.Put("account/"+network+"/"+a.Owner.Hex(), a)
	}
}

// uuid returns the line of a UUID, which is empty if the UUID was forgotten, and adds its
// players.
func (k *keeper) uuid(id uuid.UUID, players map[string]audit.SavedPlayer) []any {
	o := k.orders
	o.mu.Lock()
	known, placed := o.issued[id], cmp.Or(o.placed[id], o.refusedAs(id))
	if known == nil {
		o.mu.Unlock()
		return nil
	}
	line := &savedUUID{issued: *known}
	held := o.deliveries.Holds(placed)
	o.mu.Unlock()
	if placed == nil {
		return []any{line}
	}
	line.Order = &savedOrder{
		SessionID: placed.Session.ID, AccessToken: placed.Session.Token.Reveal(), NoSession: placed.NoSession,
		Network: placed.Network, TxHash: placed.TxHash, Placed: placed.Placed, Number: placed.Number,
		Progress: placed.Delivery.Now(), Refused: placed.Refused, Held: held, HeldBefore: placed.HeldBefore,
		Request: placed.Request, Approval: placed.Approval, Fee: placed.Fee, Faults: placed.Script.Names,
	}
	var player *audit.SavedPlayer
	if line.Order.Player, line.Order.Books, player = k.Audit.Save(placed.Entered()); player != nil {
		players[line.Order.Player] = *player
	}
	jobs, _ := o.jobs.Of(placed)
	for _, j := range jobs {
		line.Order.Jobs = append(line.Order.Jobs, savedJob{j.Due, j.Task})
	}
	return []any{line}
}

// foreign writes the pending transactions that belong to no order.
func (k *keeper) foreign() {
	pending := []savedForeign{}
	jobs, _ := k.orders.jobs.Of(nil)
	for _, j := range jobs {
		pending = append(pending, savedForeign{j.Due, j.Network, j.Tx.Hash})
	}
	if old, err := k.file.Get("pending"); err == nil && (len(pending) > 0 || len(old) > len("[]")) {
		k.file.Put("pending", pending)
	}
}
