package fault

// The faults of further validate calls, as the history names them.
const (
	Again           = "again"
	AtOnce          = "at once"
	BeforeAnswer    = "its answer comes after the result"
	WithOtherDigest = "with another digest"
	WithOtherAmount = "with another amount"
	OffTheTerms     = "off the terms"
)

// ByHand is the fault of a delivery that somebody makes now.
const ByHand = "by hand"
