// Package locks has the order in which the locks of a service are taken. A goroutine that
// holds one may only take those of a later place, so no two can wait for each other. With the
// race detector, a lock that is taken out of order panics.
//
// The order is that of the files: a file uses the files below it, so a lock is held while
// those of lower files are taken. A lower file does not call up while it holds its lock. The
// exceptions are these functions of others, which must take no lock of an earlier place:
//
//   - Who has [Books] calls the service about what was found, so that the record tells of a
//     call and of what was found after it in this order.
//   - Who has [Orders] has a player's wallet sign a transaction, so that no number of a
//     transaction is used twice.
//   - Who has [Jobs] asks whether a job can run, which depends on the delivery and on the chain.
//   - Who has [Record] calls OnEvent of the configuration, one event at a time, and writes the
//     event to the state file, so that the file has the order of the record.
//   - Who has [Chain] asks for the time.
//
// What has no place takes none of these locks: that of the journal under [File], and the maps
// of [sync.Map].
package locks

// Place is the place of a lock in the order.
type Place int

// The places, from the first to the last.
const (
	Turn     Place = 1 + iota // jobs that are due are run; calls to the game are made meanwhile
	Writing                   // the state file is brought up to date
	List                      // the list of the pages is made
	Orders                    // the orders and their UUIDs
	Held                      // the results that wait for that of another order
	Books                     // what the players own; released while the game is asked
	Readings                  // what the game last said
	Jobs                      // the planned jobs
	Delivery                  // the progress of one order
	Chain                     // the blocks of one chain
	Failures                  // the scripted failures of one endpoint
	Record                    // the events
	File                      // the state file
	Changes                   // what must be written to it
	Life                      // whether the service is open
	Group                     // how much is in progress
	Clock                     // the time
)
