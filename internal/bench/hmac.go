package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripe "github.com/stripe/stripe-go/v84/webhook"
	svix "github.com/svix/svix-webhooks/go"
	ramp "github.com/token-ramp/ramp-go"
)

const hmacSecret = "my_secret_salt_value_!@#$%^&*"

// hmacComparisons verify payloads of the same size, each in the format of the
// library's service.
func hmacComparisons() []comparison {
	rivals := []struct {
		name   string
		verify func(payload []byte) func() error
	}{
		{"hmac.New by hand", verifyByHand},
		{"stripe-go", verifyStripe},
		{"svix", verifySvix},
		{"standard-webhooks", verifyStandard},
	}
	var all []comparison
	for _, size := range []int{1 << 10, 10 << 10} {
		payload := bytes.Repeat([]byte("x"), size)
		for _, rival := range rivals {
			all = append(all, comparison{
				subject: fmt.Sprintf("HMAC verify, %d KiB", size>>10), rival: rival.name,
				setup: func() sides { return sides{ours: verifyOurs(payload), theirs: rival.verify(payload)} },
			})
		}
	}
	return all
}

func verifyOurs(payload []byte) func() error {
	key := must(ramp.TextKey(hmacSecret))
	signature := key.Sign(payload)
	return func() error { return key.Verify(payload, signature) }
}

func verifyByHand(payload []byte) func() error {
	signature := must(ramp.TextKey(hmacSecret)).Sign(payload)
	return func() error { return checkHMAC(payload, signature) }
}

var errNotAuthentic = errors.New("not authentic")

func checkHMAC(payload []byte, signature string) error {
	mac := hmac.New(sha256.New, []byte(hmacSecret))
	mac.Write(payload)
	got, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return errNotAuthentic
	}
	return nil
}

func verifyStripe(payload []byte) func() error {
	signed := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: payload, Secret: hmacSecret})
	return func() error { return stripe.ValidatePayload(payload, signed.Header, hmacSecret) }
}

func verifySvix(payload []byte) func() error {
	webhook := must(svix.NewWebhookRaw([]byte(hmacSecret)))
	now := time.Now()
	header := http.Header{}
	header.Set("svix-id", "msg_1")
	header.Set("svix-timestamp", strconv.FormatInt(now.Unix(), 10))
	header.Set("svix-signature", must(webhook.Sign("msg_1", now, payload)))
	return func() error { return webhook.Verify(payload, header) }
}

func verifyStandard(payload []byte) func() error {
	webhook := must(standardwebhooks.NewWebhookRaw([]byte(hmacSecret)))
	now := time.Now()
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, "msg_1")
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, must(webhook.Sign("msg_1", now, payload)))
	return func() error { return webhook.Verify(payload, header) }
}
