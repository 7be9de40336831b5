// To make it yours: read the keys from your secret store; examples/keys has signers for a validator key in
// an HSM or in AWS KMS.

package main

import (
	"errors"
	"fmt"

	ramp "github.com/token-ramp/ramp-go"
)

// keys reads the HMAC key and the validator key.
func keys(getenv func(string) string) (key ramp.HMACKey, signer *ramp.Signer, err error) {
	read := ramp.TextKey
	switch getenv("RAMP_HMAC_KEY_ENCODING") {
	case "", "text":
	case "base64url":
		read = ramp.Base64URLKey
	default:
		return key, nil, errors.New("RAMP_HMAC_KEY_ENCODING must be text or base64url")
	}
	if key, err = read(getenv("RAMP_HMAC_KEY")); err != nil {
		return key, nil, fmt.Errorf("RAMP_HMAC_KEY: %w", err)
	}
	if previous := getenv("RAMP_HMAC_KEY_PREVIOUS"); previous != "" {
		older, err := read(previous)
		if err != nil {
			return key, nil, fmt.Errorf("RAMP_HMAC_KEY_PREVIOUS: %w", err)
		}
		key = key.WithPrevious(older)
	}
	if signer, err = ramp.NewKeySigner(getenv("RAMP_VALIDATOR_KEY")); err != nil {
		return key, nil, fmt.Errorf("RAMP_VALIDATOR_KEY: %w", err)
	}
	return key, signer, nil
}
