// Package frontend is what the pages of an emulated service ask of it: the methods of the
// control API that they need, and a few more for lists and forms. It has only plain values,
// so that pages and API cannot disagree.
package frontend

import (
	"context"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// API is what the pages need of the control API. Its methods are those of api.Emulator.
type API interface {
	Describe(ctx context.Context) (control.Description, error)
	Start(ctx context.Context, r control.StartRequest) (control.OrderReport, error)
	Order(ctx context.Context, id string, q control.OrderQuery) (control.OrderReport, error)
	Send(ctx context.Context, id string, r control.SendRequest) (control.Sent, error)
	Advance(ctx context.Context, r control.AdvanceRequest) (control.Advanced, error)
}

// Service is an emulated service as its pages see it. Its errors are those of the control
// API.
type Service interface {
	API

	// List returns orders, and the calls that led to none.
	List(q ListQuery) List

	// Name returns the name of the player of a session, as the game last reported it; "" if it has not.
	Name(session string) string

	// Calls returns events, newest first, and whether there are earlier ones.
	Calls(q CallsQuery) (events []control.Event, more bool)

	// Worked returns the last call of a kind that shows that the setup works, however long ago it was.
	Worked(kind control.Kind) (e control.Event, ok bool)

	// Probe asks the game whether it is there and accepts the HMAC key, with calls that are no orders.
	Probe(ctx context.Context) Probe

	// Terms returns the terms of a UUID, or with the zero UUID those of the last
	// initialize call, and notes that somebody has seen them.
	Terms(id uuid.UUID) (Terms, error)

	// Issue issues a UUID, as for an initialize call with terms, or if they are nil with those of
	// the UUID like, or if that is zero with those of the last initialize call.
	Issue(terms *control.Terms, like uuid.UUID) (uuid.UUID, error)

	// Player returns what a player owns.
	Player(ctx context.Context, q PlayerQuery) (Player, error)

	// Balances compares what an order moved with what is due, and has the player's balances beside it.
	Balances(id uuid.UUID) (Balances, error)

	// Mine ends the pending transaction of an order as "succeeded" or "failed". Its result
	// follows as usual.
	Mine(id uuid.UUID, outcome string) error
}

// ListQuery selects entries of the list.
type ListQuery struct {
	Text          string // found in a UUID, a hash, a name, or what happened
	Show          Show
	Session       string       // if not empty, only the orders of this session on Network
	Network       ramp.Network // only with Session
	Offset, Limit int
}

// Show is a filter of the list.
type Show string

// The filters. All shows every entry, and each entry is in exactly one of the others: in Attention if
// it needs attention, else by its state. Ended has what led to no order and is no problem.
const (
	All       Show = ""
	Attention Show = "attention"
	Waiting   Show = "waiting"
	Done      Show = "done"
	Ended     Show = "ended"
)

// List is a part of the list, newest first.
type List struct {
	Entries []Entry
	Counts  map[Show]int // how many entries match the text, by filter
	Calls   int          // how many of those that match the filter are calls
	Losses  int          // how many of all that match the text show a loss
	Lost    string       // what happened to each of those; "" if that differs
	Loser   uuid.UUID    // that order, if there is one of them; otherwise zero
	Any     bool         // whether there are entries at all
	Players []Choice     // the players of the last orders
}

// Entry is an order, or a call that led to none.
type Entry struct {
	Order *control.OrderReport // nil for a call
	Call  *control.Event       // nil for an order
}

// Choice is a player who can be chosen.
type Choice struct {
	Order         uuid.UUID // one of the player
	Name, Session string
}

// CallsQuery selects events.
type CallsQuery struct {
	Pick    Pick
	Before  int // only events with a lower number; 0 for no bound
	Number  int // only this event
	Kinds   []control.Kind
	UUID    uuid.UUID
	Session string // only calls of this session, and the initialize calls of its orders
	Text    string // found in the event
	Routine bool   // routine events too
	Brief   bool   // without headers and bodies, which may have to be read from the state file
	Limit   int    // 0 for no limit
}

// Pick is a choice among events.
type Pick int

// The choices.
const (
	Every    Pick = iota
	Calls         // exchanges of a request and an answer
	Wrong         // those that the game did not answer as it should, or as the player wanted
	Lost          // those after which the books found something wrong
	Answered      // those that tell whether the game is there
	Genuine       // those that tell whether the setup works, which a fault does not
	Judged        // of those, all but rejections of orders, which a game may reject
	Routine       // exchanges that a list shows only if somebody asks for them
)

// Probe is what calls to the game showed that are no orders.
type Probe struct {
	Call  control.Event // a validate call with the right HMAC, which is not in the record
	Apart bool          // the game rejected the HMAC of another such call, and not that of this one
}

// Terms are the terms of an initialize call.
type Terms struct {
	ramp.InitializeIntent
	Expires time.Time
	First   bool // nobody has seen the terms before
}

// PlayerQuery names a player, by the session.
type PlayerQuery struct {
	Session     string
	AccessToken string // that of the session's last order, if empty
	Read        bool   // whether the game is asked in any case, and not only the first time

	Network ramp.Network // of Token
	Token   string       // whose balance is of interest; may be empty
}

// Player is what a player owns.
type Player struct {
	Name    string    // "" if unknown
	At      time.Time // when the game was asked
	Unknown bool      // the game did not list the assets
	Problem string    // why
	Assets  []ramp.Asset
	Tokens  string // the balance of the token in the player's wallet; "" if unknown
}

// Balances are the balances of an order's player.
type Balances struct {
	Rows    []verdict.Row // of what the order is about
	Others  []ramp.Asset
	At      time.Time // when the game was last asked; zero if it was not
	Problem string    // why the game did not list the assets
}
