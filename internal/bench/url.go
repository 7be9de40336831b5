package main

import (
	"errors"
	"net/url"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

func urlComparison() comparison {
	const base, token, session = "https://ramp.example/app", "token-of-a-session", "hero-4821"
	id := uuid.MustParse("6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71")
	return comparison{subject: "ExchangeURL", rival: "url.Values by hand, unchecked", setup: func() sides {
		return sides{
			ours: func() error {
				_, err := ramp.ExchangeURL(base, ramp.ExchangeParams{
					UUID: id, AccessToken: ramp.NewAccessToken(token), SessionID: session, Network: ramp.Testnet,
				})
				return err
			},
			theirs: func() error {
				query := url.Values{}
				query.Set("uuid", id.String())
				query.Set("accessToken", token)
				query.Set("sessionId", session)
				query.Set("network", "testnet")
				if address := base + "/exchange?" + query.Encode(); len(address) == 0 {
					return errors.New("no URL") // never happens, but keeps the compiler from dropping the work
				}
				return nil
			},
		}
	}}
}
