// Package interleaving makes servers that use one database take turns, statement by statement, in every
// order that can happen.
//
// A race is found by chance, if at all: two servers that work at the same time meet in one of a few
// hundred ways, and nearly always in the same few. Here nothing is left to chance. Each server has
// connections that stop before every statement (conn.go). When all servers have stopped, wait for a
// lock, or have answered, one statement is chosen and sent (scheduler.go); the database itself is asked
// who waits (database.go). Every choice is written down, and the next run makes the next choice, until
// none is left (walk.go). A choice can also be that something goes wrong with the statement: see
// the faults below. What was run, and what the database said, is printed as a table (report.go).
//
// Statements that touch no common row are not swapped, because nobody could tell the difference
// (rows.go). Package storetest says what calls the servers make, and what must be true afterwards.
package interleaving

// Fault is what goes wrong with a statement.
type Fault string

// The faults. At most one of them happens in a run.
const (
	None Fault = ""

	// The database answers with an error. On PostgreSQL this ends the transaction, elsewhere it does not.
	Refused Fault = "refused"

	// The database answers with an error and rolls back the whole transaction, as after a deadlock.
	RolledBack Fault = "refused, and the database rolls back the whole transaction"

	// The connection breaks, before or after the database executes the statement.
	Unsent Fault = "not sent: the connection breaks"
	Lost   Fault = "executed, but the answer is lost: the connection breaks"

	// The caller gives up. A statement that waits for a lock can be canceled, too.
	Canceled Fault = "the call is canceled"

	// The processes of all servers end, before or after a statement is executed.
	Killed       Fault = "not sent: all servers are killed"
	KilledBehind Fault = "executed, then all servers are killed"
)
