package evidence

import "time"

// Skew is how much earlier than its order a transaction may be, because the clocks of the
// game and the chain differ.
const Skew = 15 * time.Minute

const (
	// MaxDelay is how long after its transaction the result of an order can come: 12
	// hours of deliveries (interface 8), and one to spare.
	MaxDelay = 13 * time.Hour

	// MaxDelayHours is MaxDelay in hours.
	MaxDelayHours = int(MaxDelay / time.Hour)

	// MaxAhead is how much earlier than its order a transaction is looked for: the clock of a server can
	// be ahead by hours.
	MaxAhead = 24 * time.Hour
)
