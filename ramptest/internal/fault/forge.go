package fault

import (
	"bytes"
	"strings"
)

// Forgery turns what a genuine call says into what a forged one does.
type Forgery func(*Claim)

// Claim is the signed part of a call.
type Claim struct {
	Body []byte
	HMAC string
	Name string // of a forged one, for the history
}

// TamperedBody changes the amounts.
func TamperedBody(c *Claim) {
	c.Name = "tampered body"
	c.Body = bytes.ReplaceAll(c.Body, []byte(`"amount":`), []byte(`"amount":9`))
}

// WrongHMAC changes the signature.
func WrongHMAC(c *Claim) {
	c.Name = "wrong HMAC"
	c.HMAC = strings.Map(func(r rune) rune {
		if r == '0' {
			return '1'
		}
		return '0'
	}, c.HMAC)
}

// MissingHMAC leaves the signature out.
func MissingHMAC(c *Claim) {
	c.Name = "missing HMAC"
	c.HMAC = ""
}
