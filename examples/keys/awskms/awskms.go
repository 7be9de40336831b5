// Package awskms has a validator key in AWS KMS. Nobody can read it, the server included.
// Copy this file.
//
// Make the key once, and read its address in the server's log or with ramp connect:
//
//	aws kms create-key --key-spec ECC_SECG_P256K1 --key-usage SIGN_VERIFY
//
// The server needs the permissions kms:GetPublicKey and kms:Sign for it, and nothing else:
//
//	account, err := config.LoadDefaultConfig(ctx)
//	…
//	signer, err := awskms.NewSigner(ctx, account, "alias/ramp-validator")
//	…
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Signer: signer, …})
package awskms

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	ramp "github.com/token-ramp/ramp-go"
)

// A handler waits for 3 seconds (HandlerConfig.SignTimeout), and the service makes a
// validate call only once. So a call that hangs is repeated soon, as one that failed is.
const (
	attemptTimeout = time.Second
	maxBackoff     = 200 * time.Millisecond
)

// NewSigner returns a signer of the key with the ID, ARN or alias. A key that is not on
// secp256k1 is an error.
func NewSigner(ctx context.Context, account aws.Config, keyID string) (*ramp.Signer, error) {
	client := kms.NewFromConfig(account, func(o *kms.Options) {
		o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, maxBackoff)
		if own, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = own.WithTimeout(attemptTimeout)
		}
	})
	public, err := client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &keyID})
	if err != nil {
		return nil, fmt.Errorf("awskms: public key of %s: %w", keyID, err)
	}
	address, err := ramp.PublicKeyAddress(public.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("awskms: %s has the key spec %s: %w", keyID, public.KeySpec, err)
	}
	return ramp.NewFuncSigner(address, func(ctx context.Context, digest []byte) ([]byte, error) {
		signed, err := client.Sign(ctx, &kms.SignInput{
			KeyId:            public.KeyId, // its ARN: an alias may move to another key
			Message:          digest,
			MessageType:      types.MessageTypeDigest, // KMS would hash a message again
			SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256,
		})
		if err != nil {
			return nil, fmt.Errorf("awskms: %w", err)
		}
		return signed.Signature, nil
	})
}
