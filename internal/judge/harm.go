package judge

// Harm is what a failure does to money, as far as it was seen. The gravest is the highest.
type Harm int

// The harms.
const (
	Harmless Harm = iota // a wrong form
	Loses                // a player owns too little, or the result of an order is refused
	Gives                // a player owns too much, such as what was granted twice
	Open                 // a call without an HMAC or a token that proves it was believed: anybody can make it
)
