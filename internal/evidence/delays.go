package evidence

import "time"

// Skew is how much earlier than its order a transaction may be, because the clocks of the
// game and the chain differ.
const Skew = 15 * time.Minute

// ClocksDiffer says why a transaction can be older than its order, for a person. After an outage, some
// rollups make the blocks of the outage with their old times.
const ClocksDiffer = "the clock of the server was ahead, or that of the chain was behind"

const (
	// MaxDelay is how long after its transaction the result of an order can come: 12
	// hours of deliveries (interface 8), and one to spare.
	MaxDelay = 13 * time.Hour

	// MaxDelayHours is MaxDelay in hours.
	MaxDelayHours = int(MaxDelay / time.Hour)

	// MaxAhead is how much earlier than its order a transaction is looked for: the clock of a server can
	// be ahead by hours, and that of a chain behind.
	MaxAhead = 24 * time.Hour
)
