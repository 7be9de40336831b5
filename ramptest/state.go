package ramptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/journal"
)

// StateFile keeps a service in a file: its orders, chains, clock, books and events. A
// service with the same file continues from there; see [Desk.State]. The file contains
// the access tokens of players, so only its owner may read it.
type StateFile struct {
	journal *journal.Journal

	mu  sync.Mutex
	err error // the first failure to write
}

// OpenState opens a state file, or begins one. The error is about a file that another
// service uses, or that is no state file.
func OpenState(path string) (*StateFile, error) {
	j, err := journal.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ramptest: state: %w", err)
	}
	f := &StateFile{journal: j}
	version, err := f.Note("version")
	if err == nil && version == "" {
		err = f.SetNote("version", stateVersion)
	} else if err == nil && version != stateVersion {
		err = fmt.Errorf("ramptest: state: another release wrote the file: its version is %s, but must be %s. Delete it, or use another", version, stateVersion)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return f, nil
}

// stateVersion is the version of the lines. A file of another version is not read.
const stateVersion = "6"

// Note returns a text that [StateFile.SetNote] has kept in the file, such as a key that
// a program generated. It is empty if there is none.
func (f *StateFile) Note(name string) (text string, err error) {
	value, err := f.journal.Get("note/" + url.QueryEscape(name))
	if err == nil && value != nil {
		err = json.Unmarshal(value, &text)
	}
	return text, err
}

// SetNote keeps a text in the file; see [StateFile.Note].
func (f *StateFile) SetNote(name, text string) error {
	f.put("note/"+url.QueryEscape(name), text)
	return f.Err()
}

// Err returns the first error of writing the file; nil if everything was written.
func (f *StateFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Close closes the file. Close the service before. The error is that of [StateFile.Err],
// too.
func (f *StateFile) Close() error { return errors.Join(f.Err(), f.journal.Close()) }

// put sets a key to values, with a tab between them; none deletes it.
func (f *StateFile) put(key string, values ...any) {
	texts, errs := make([][]byte, len(values)), make([]error, len(values))
	for i, value := range values {
		texts[i], errs[i] = json.Marshal(value)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = f.journal.Put(key, bytes.Join(texts, []byte("\t")))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("ramptest: state: %w", err)
	}
}

// rest decodes what a line has after its first tab.
func (f *StateFile) rest(key string, value any) error {
	text, err := f.journal.Get(key)
	if err != nil {
		return err
	}
	_, text, _ = bytes.Cut(text, []byte("\t"))
	return decode(text, value)
}

var errLine = errors.New("a line is not one of a service")

// decode decodes a part of a line. Its error quotes nothing, because that could be a token.
func decode(text []byte, value any) error {
	if json.Unmarshal(text, value) != nil {
		return errLine
	}
	return nil
}

// savedClock is what the clock showed at a real time.
type savedClock struct {
	Now, Wall time.Time
	Events    int // the number of the last event
}

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

type savedPlayer struct {
	Name          string `json:",omitempty"`
	Last, Outside books.Assets
}

// keeper writes what changes to a state file. A nil keeper writes nothing.
type keeper struct {
	file    *StateFile
	service *Service
	woken   chan struct{} // receives when something has changed

	mu      sync.Mutex
	changed map[uuid.UUID]bool

	writing sync.Mutex
	found   *Imbalance // the last finding that was written
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
	players := make(map[string]savedPlayer)
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
	if all := s.audit.all(); len(all) > 0 && all[len(all)-1] != k.found {
		k.found = all[len(all)-1]
		k.file.put("findings", all)
	}
}

// clear deletes everything but the notes.
func (f *StateFile) clear() {
	for _, key := range f.journal.Keys("") {
		if !strings.HasPrefix(key, "note/") {
			f.put(key)
		}
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
func (k *keeper) uuid(id uuid.UUID, players map[string]savedPlayer) []any {
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
	line.Order.Player, line.Order.Books = k.service.audit.save(order, players)
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

// save returns the key of an order's player, or "" if the player is unknown, and the books of
// the order, and adds those of the player. It treats an open window as not yet opened.
func (a *audit) save(o *Order, players map[string]savedPlayer) (key string, entries []books.Tally) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, entry := range a.orders[o.UUID] {
		entries = append(entries, *entry)
	}
	key = a.keys[o.Session.ID]
	if p := a.players[key]; p != nil {
		last := p.books.Last
		if p.books.Pending != nil { // what has moved since is not known
			last = nil
		}
		players[key] = savedPlayer{p.name, last, p.books.Outside}
	}
	return key, entries
}

// each calls do for the values of the keys that begin with prefix, up to their first tab. An
// error says which line of the file it is about, and what to do.
func each[T any](f *StateFile, prefix string, do func(key string, value *T) error) error {
	for keys := range slices.Chunk(f.journal.Keys(prefix), 1_000) {
		values, err := f.journal.Values(keys)
		if err != nil {
			return err
		}
		for i, key := range keys {
			text, _, _ := bytes.Cut(values[i], []byte("\t"))
			value := new(T)
			err := decode(text, value)
			if err == nil {
				err = do(strings.TrimPrefix(key, prefix), value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w. Delete the line to go on without it, or start with another file", f.journal.Line(key), err)
			}
		}
	}
	return nil
}

// all adds the values of the keys that begin with prefix to list.
func all[T any](f *StateFile, prefix string, list *[]T) error {
	return each(f, prefix, func(_ string, value *T) error {
		*list = append(*list, *value)
		return nil
	})
}

// one reads the value of a key into value, if there is one.
func one[T any](f *StateFile, key string, value *T) error {
	return each(f, key, func(rest string, saved *T) error {
		if rest == "" {
			*value = *saved
		}
		return nil
	})
}

// epoch returns the time at which a restored clock starts. A clock in real time
// includes the time that has passed since it was saved.
func (f *StateFile) epoch(speed float64, byDefault time.Time) (time.Time, error) {
	c := savedClock{Now: byDefault}
	err := one(f, "clock", &c)
	if speed == 1 && !c.Wall.IsZero() {
		c.Now = c.Now.Add(max(0, time.Since(c.Wall)))
	}
	return c.Now, err
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
	if saved.Player != "" {
		s.audit.keys[saved.SessionID] = saved.Player
	}
	for _, b := range saved.Books {
		s.audit.restore(o.Session, &b)
	}
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

// restore enters what the books know about an order.
func (a *audit) restore(s ramp.Session, saved *books.Tally) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.orders[saved.UUID] = append(a.orders[saved.UUID], saved)
	if len(saved.Late) > 0 {
		p := a.player(s)
		p.books.Late = append(p.books.Late, saved)
	}
}

func (s *Service) restoreBooks(f *StateFile) error {
	a := s.audit
	err := each(f, "player/", func(key string, saved *savedPlayer) error {
		name, err := url.QueryUnescape(key)
		p := a.keep(name)
		p.name, p.books.Last, p.books.Outside = saved.Name, saved.Last, saved.Outside
		return err
	})
	if err == nil {
		err = one(f, "findings", &a.found)
	}
	for _, found := range a.found {
		a.returned[found] = true // an earlier service has returned it
	}
	return err
}

// savedMessages is both sides of an exchange, whose bodies are in the state file only. It
// ends the line of an event.
type savedMessages struct {
	Request, Answer *Message
}

// keptBodies is how many events keep their headers and bodies in memory if there is a
// state file.
const keptBodies = 1_000

func keyOfEvent(e *Event) string { return fmt.Sprintf("event/%d", e.Number) }

// write writes an event to the state file.
func (f *StateFile) write(e Event) {
	line := []any{bodiless(e)}
	if e.Request != nil || e.Answer != nil {
		line = append(line, savedMessages{e.Request, e.Answer})
	}
	f.put(keyOfEvent(&e), line...)
}

// bodiless returns an event without headers and bodies.
func bodiless(e Event) Event {
	for _, side := range []**Message{&e.Request, &e.Answer} {
		if m := *side; m != nil {
			*side = &Message{Method: m.Method, Path: m.Path, Status: m.Status}
		}
	}
	return e
}

// wholes replaces events by what whole returns.
func (r *record) wholes(events []Event) []Event {
	if r.file != nil {
		for i := range events {
			events[i] = r.whole(events[i])
		}
	}
	return events
}

// whole returns an event with its headers and bodies.
func (r *record) whole(e Event) Event {
	if r.file == nil || e.Request == nil || e.Request.Header != nil || e.Request.Body != "" {
		return e
	}
	var saved savedMessages
	if r.file.rest(keyOfEvent(&e), &saved) == nil { // otherwise it is shown without them
		e.Request, e.Answer = saved.Request, saved.Answer
	}
	return e
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
