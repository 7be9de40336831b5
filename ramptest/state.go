package ramptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/journal"
)

// StateFile keeps a service in a file: its orders, chains, clock, books and events. A
// service with the same file continues from there; see [Config.State]. The file contains
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
		err = fmt.Errorf("ramptest: state: the file has version %s, but must have version %s", version, stateVersion)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return f, nil
}

// stateVersion is the version of the lines. A file of another version is not read.
const stateVersion = "1"

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
	return f.put("note/"+url.QueryEscape(name), text)
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

// put sets a key to a value in JSON; nil deletes it.
func (f *StateFile) put(key string, value any) error {
	var text []byte
	var err error
	if value != nil {
		text, err = json.Marshal(value)
	}
	if err == nil {
		err = f.journal.Put(key, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("ramptest: state: %w", err)
	}
	return err
}

// savedClock is what the clock showed at a real time.
type savedClock struct {
	Now, Wall time.Time
	Events    int // the number of the last event
}

// savedUUID is a line of the file: a UUID with everything about it.
type savedUUID struct {
	Terms   ramp.InitializeIntent
	Expires time.Time
	Opened  bool        `json:",omitzero"`
	Lost    int         `json:",omitzero"`
	Order   *savedOrder `json:",omitempty"` // nil if none was placed
}

type savedOrder struct {
	SessionID   string
	AccessToken string
	Network     ramp.Network
	Request     ramp.ValidateRequest
	Approval    ramp.Approval
	TxHash      common.Hash
	Fee         ramp.Amount
	Faults      []string `json:",omitempty"`
	Placed      time.Time
	Number      int      // counts the orders
	Had         *big.Rat // the wallet's tokens before the order
	State       State
	Attempts    int        `json:",omitzero"`
	Retries     int        `json:",omitzero"`
	Next        time.Time  `json:",omitzero"`
	Status      int        `json:",omitzero"`
	Lost        bool       `json:",omitzero"`
	Held        bool       `json:",omitzero"`
	Jobs        []savedJob `json:",omitempty"`
	Books       []savedBooks
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
	Last, Outside books.Assets
	Epoch         int
	At            time.Time
}

type savedBooks struct {
	Player string
	Order  books.Order
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

func newKeeper(file *StateFile, s *Service) *keeper {
	if file == nil {
		return nil
	}
	return &keeper{file: file, service: s, woken: make(chan struct{}, 1), changed: make(map[uuid.UUID]bool)}
}

// touch notes that something about a UUID has changed; the zero UUID is for whatever
// belongs to none.
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

// clear forgets everything but the notes.
func (k *keeper) clear() {
	if k == nil {
		return
	}
	k.mu.Lock()
	clear(k.changed)
	k.mu.Unlock()
	k.writing.Lock()
	_ = k.file.clear()
	k.found = nil
	k.writing.Unlock()
	k.touch(uuid.Nil)
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
	lines := make(map[uuid.UUID]*savedUUID)
	players := make(map[string]savedPlayer)
	for id := range changed {
		if id != uuid.Nil {
			lines[id] = k.uuid(id, players)
		}
	}
	for network, c := range s.orders.chains { // after the orders, whose transactions it then has
		k.chain(string(network), c.Changes())
	}
	for name, player := range players {
		_ = k.file.put("player/"+url.QueryEscape(name), player)
	}
	for id, line := range lines {
		if key := "uuid/" + id.String(); line == nil { // it was forgotten
			_ = k.file.put(key, nil)
		} else {
			_ = k.file.put(key, line)
		}
	}
	k.foreign()
	if all := s.audit.all(); len(all) > 0 && all[len(all)-1] != k.found {
		k.found = all[len(all)-1]
		_ = k.file.put("findings", all)
	}
	_ = k.file.put("clock", savedClock{Now: s.clock.now(), Wall: time.Now(), Events: s.record.newest()})
}

// clear deletes everything but the notes.
func (f *StateFile) clear() error {
	var err error
	for _, key := range f.journal.Keys("") {
		if !strings.HasPrefix(key, "note/") {
			err = errors.Join(err, f.put(key, nil))
		}
	}
	return err
}

func (k *keeper) chain(network string, s chain.State) {
	for _, span := range s.Spans {
		_ = k.file.put(fmt.Sprintf("span/%s/%d", network, span.First), span)
	}
	if s.Forks != nil {
		_ = k.file.put("forks/"+network, s.Forks)
	}
	for _, t := range s.Transactions {
		_ = k.file.put("tx/"+network+"/"+t.Hash.Hex(), t)
	}
	for _, hash := range s.Forgotten {
		_ = k.file.put("tx/"+network+"/"+hash.Hex(), nil)
	}
	for _, a := range s.Accounts {
		_ = k.file.put("account/"+network+"/"+a.Owner.Hex(), a)
	}
}

// uuid returns the line of a UUID, or nil if there is none, and adds its players.
func (k *keeper) uuid(id uuid.UUID, players map[string]savedPlayer) *savedUUID {
	o := k.service.orders
	o.mu.Lock()
	known, order := o.issued[id], o.placed[id]
	if known == nil {
		o.mu.Unlock()
		return nil
	}
	line := &savedUUID{Terms: known.terms, Expires: known.expires, Opened: known.opened, Lost: known.lost}
	held := slices.Contains(o.held, order)
	o.mu.Unlock()
	entries := k.service.audit.save(id, players)
	if order != nil {
		line.Order = order.save()
		line.Order.Held, line.Order.Books = held, entries
		for _, j := range o.agenda.jobsOf(order) {
			line.Order.Jobs = append(line.Order.Jobs, savedJob{j.due, j.task})
		}
	}
	return line
}

// foreign writes the pending transactions that belong to no order.
func (k *keeper) foreign() {
	pending := []savedForeign{}
	for _, j := range k.service.orders.agenda.jobsOf(nil) {
		pending = append(pending, savedForeign{j.due, j.network, j.tx.Hash})
	}
	if old, err := k.file.journal.Get("pending"); err == nil && (len(pending) > 0 || len(old) > len("[]")) {
		_ = k.file.put("pending", pending)
	}
}

func (o *Order) save() *savedOrder {
	d := &o.delivery
	d.mu.Lock()
	defer d.mu.Unlock()
	return &savedOrder{SessionID: o.Session.ID, AccessToken: o.Session.Token.Reveal(), Network: o.Network,
		Request: o.Request, Approval: o.Approval, TxHash: o.TxHash, Fee: o.fee, Faults: o.script.names, Placed: o.placed, Number: o.number, Had: o.had,
		State: d.state, Attempts: d.attempts, Retries: d.retries, Next: d.next, Status: d.status, Lost: d.lost}
}

// save returns the books of an order, and adds those of its players. It treats an open
// window as not yet opened.
func (a *audit) save(id uuid.UUID, players map[string]savedPlayer) (entries []savedBooks) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, entry := range a.orders[id] {
		p := entry.player
		entries = append(entries, savedBooks{p.name, *entry.order})
		players[p.name] = savedPlayer{p.books.Last, p.books.Outside, p.books.Epoch, p.at}
	}
	return entries
}

// each decodes the values of the keys that begin with prefix, on all CPUs, because that
// is most of what a restart takes. It calls do for one after the other.
func each[T any](f *StateFile, prefix string, do func(key string, value T) error) error {
	for keys := range slices.Chunk(f.journal.Keys(prefix), 1_000) {
		values := make([]T, len(keys))
		var valid atomic.Int64
		var decoding sync.WaitGroup
		cpus := runtime.GOMAXPROCS(0)
		for first := range cpus {
			decoding.Go(func() {
				for i := first; i < len(keys); i += cpus {
					if text, err := f.journal.Get(keys[i]); err == nil && json.Unmarshal(text, &values[i]) == nil {
						valid.Add(1)
					}
				}
			})
		}
		decoding.Wait()
		if int(valid.Load()) < len(keys) {
			return errors.New("a line is not one of a service") // the error of JSON could quote a token
		}
		for i, key := range keys {
			if err := do(strings.TrimPrefix(key, prefix), values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// epoch returns the time at which a restored clock starts. A clock in real time
// includes the time that has passed since it was saved.
func (f *StateFile) epoch(speed float64, byDefault time.Time) (time.Time, error) {
	at := byDefault
	err := each(f, "clock", func(_ string, c savedClock) error {
		at = c.Now
		if passed := time.Since(c.Wall); speed == 1 && passed > 0 {
			at = at.Add(passed)
		}
		return nil
	})
	return at, err
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
			each(f, "span/"+name+"/", func(_ string, span chain.SpanState) error {
				state.Spans = append(state.Spans, span)
				return nil
			}),
			each(f, "forks/"+name, func(_ string, forks []uint64) error {
				state.Forks = forks
				return nil
			}),
			each(f, "tx/"+name+"/", func(_ string, t chain.TransactionState) error {
				state.Transactions = append(state.Transactions, t)
				return nil
			}),
			each(f, "account/"+name+"/", func(_ string, a chain.AccountState) error {
				state.Accounts = append(state.Accounts, a)
				return nil
			}))
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
	err := each(f, "uuid/", func(key string, line savedUUID) error {
		id, err := uuid.Parse(key)
		if err != nil {
			return errors.New("a line has no UUID")
		}
		o.enter(id, &issued{terms: line.Terms, expires: line.Expires, opened: line.Opened, lost: line.Lost})
		if line.Order == nil {
			return nil
		}
		order, err := o.restored(id, line.Order)
		if err != nil {
			return err
		}
		o.placed[id] = order
		o.queue = append(o.queue, order)
		if line.Order.Held {
			o.held = append(o.held, order)
		}
		for _, j := range line.Order.Jobs {
			o.agenda.plan(job{due: j.Due, task: j.Task, order: order})
		}
		for _, b := range line.Order.Books {
			s.audit.restore(id, line.Order.SessionID, b)
		}
		return nil
	})
	slices.SortFunc(o.queue, func(a, b *Order) int { return a.number - b.number })
	if n := len(o.queue); n > 0 {
		o.count = o.queue[n-1].number
	}
	return errors.Join(err, each(f, "pending", func(_ string, pending []savedForeign) error {
		for _, p := range pending {
			c := o.chains[p.Network]
			if c == nil || c.Transaction(p.TxHash) == nil {
				return errors.New("a pending transaction is unknown")
			}
			o.agenda.plan(job{due: p.Due, task: mineForeign, network: p.Network, tx: c.Transaction(p.TxHash)})
		}
		return nil
	}))
}

// restored returns a saved order.
func (s *orders) restored(id uuid.UUID, saved *savedOrder) (*Order, error) {
	o := &Order{UUID: id, Session: ramp.Session{ID: saved.SessionID, Token: ramp.NewAccessToken(saved.AccessToken)}, composed: true,
		Network: saved.Network, Request: saved.Request, Approval: saved.Approval, TxHash: saved.TxHash, fee: saved.Fee, placed: saved.Placed,
		number: saved.Number, had: saved.Had}
	o.Request.Raw = nil
	o.Request.Intent.TargetCandidate = bytes.Clone(o.Request.Intent.TargetCandidate) // it would keep the whole body
	if o.trade() == nil {
		return nil, fmt.Errorf("an order has no intent of a %s", tradeNames())
	}
	c := s.chains[saved.Network]
	if c == nil {
		return nil, fmt.Errorf("the service does not have the network %q", string(saved.Network))
	}
	if o.tx = c.Transaction(saved.TxHash); o.tx == nil {
		return nil, errors.New("an order has no transaction")
	}
	faults, err := parseFaults(saved.Faults)
	if err != nil {
		return nil, err
	}
	if o.script, err = newScript(faults); err != nil {
		return nil, err
	}
	o.delivery.state, o.delivery.attempts, o.delivery.retries = saved.State, saved.Attempts, saved.Retries
	o.delivery.next, o.delivery.status, o.delivery.lost = saved.Next, saved.Status, saved.Lost
	return o, nil
}

// restore enters what the books know about an order of a session.
func (a *audit) restore(id uuid.UUID, session string, saved savedBooks) {
	p := a.keep(saved.Player)
	a.keys[session] = saved.Player
	a.orders[id] = append(a.orders[id], auditedOrder{p, &saved.Order})
	if len(saved.Order.Late) > 0 {
		p.books.Late = append(p.books.Late, &saved.Order)
	}
}

func (s *Service) restoreBooks(f *StateFile) error {
	a := s.audit
	return errors.Join(
		each(f, "player/", func(key string, saved savedPlayer) error {
			name, err := url.QueryUnescape(key)
			p := a.keep(name)
			p.books.Last, p.books.Outside, p.books.Epoch, p.at = saved.Last, saved.Outside, saved.Epoch, saved.At
			return err
		}),
		each(f, "findings", func(_ string, found []*Imbalance) error {
			a.found = found
			for _, f := range found {
				a.returned[f] = true // an earlier service has returned it
			}
			return nil
		}))
}

// savedMessages is both sides of an exchange, whose bodies are in the state file only.
type savedMessages struct {
	Request, Answer *Message
}

// keptBodies is how many events keep their headers and bodies in memory if there is a
// state file.
const keptBodies = 1_000

// write writes an event to the state file.
func (f *StateFile) write(e Event) {
	if e.Request != nil || e.Answer != nil {
		_ = f.put(fmt.Sprintf("body/%d", e.Number), savedMessages{e.Request, e.Answer})
	}
	_ = f.put(fmt.Sprintf("event/%d", e.Number), bodiless(e))
}

// drop deletes events from the state file.
func (f *StateFile) drop(events []Event) {
	for _, e := range events {
		_ = f.put(fmt.Sprintf("body/%d", e.Number), nil)
		_ = f.put(fmt.Sprintf("event/%d", e.Number), nil)
	}
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
	text, err := r.file.journal.Get(fmt.Sprintf("body/%d", e.Number))
	if err != nil || text == nil || json.NewDecoder(bytes.NewReader(text)).Decode(&saved) != nil {
		return e // it is shown without them
	}
	e.Request, e.Answer = saved.Request, saved.Answer
	return e
}

// same returns the value that a key had first.
func same[T any](known map[string]T, key string, value T) T {
	if first, ok := known[key]; ok {
		return first
	}
	known[key] = value
	return value
}

// restore loads the events, without their bodies.
func (r *record) restore(f *StateFile) error {
	texts, messages := make(map[string]string), make(map[string]*Message)
	err := each(f, "event/", func(_ string, e Event) error {
		// Most events say the same as others: it is kept once.
		for _, text := range []*string{(*string)(&e.Kind), &e.Session, &e.Fault, &e.Outcome, &e.Said, &e.Tone, (*string)(&e.Network), (*string)(&e.Status)} {
			*text = same(texts, *text, *text)
		}
		for _, side := range []**Message{&e.Request, &e.Answer} {
			if m := *side; m != nil {
				*side = same(messages, fmt.Sprint(m.Method, " ", m.Path, " ", m.Status), m)
			}
		}
		r.events = append(r.events, e)
		return nil
	})
	slices.SortFunc(r.events, func(a, b Event) int { return a.Number - b.Number })
	if len(r.events) > 0 {
		r.begun = r.events[0].Time
	}
	return errors.Join(err, each(f, "clock", func(_ string, c savedClock) error {
		r.number = c.Events
		if n := len(r.events); n > 0 {
			r.number = max(r.number, r.events[n-1].Number)
		}
		return nil
	}))
}
