package main

import (
	"io"
	"strings"
	"testing"
)

// The error of an address that the driver cannot read has no password.
func TestAnAddressOfMySQLIsNoURL(t *testing.T) {
	env := map[string]string{"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey}
	args := "-addr=127.0.0.1:0 -db mysql://scott:tiger@host -network testnet -project p -token " + token
	err := run(t.Context(), strings.Fields(args), func(name string) string { return env[name] }, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-db: the mysql driver rejects this address") ||
		strings.Contains(err.Error(), "tiger") {
		t.Error(err)
	}
}
