package orderlist

import "time"

const (
	// MinDeletedAge is the age from which on a store may delete an order that has ended.
	MinDeletedAge = 7 * 24 * time.Hour

	// KeptBefore is how much earlier than an order that waits one of its wallet may have ended that is not
	// deleted meanwhile: the clocks of servers differ by less.
	KeptBefore = time.Hour
)
