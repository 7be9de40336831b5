package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"

	"github.com/token-ramp/ramp-go/examples/keys/awskms"
	dynamostore "github.com/token-ramp/ramp-go/examples/stores/dynamodb"
)

// requestTimeout is that of one request to DynamoDB: the client sends it again before the call must end.
const requestTimeout = 2 * time.Second

func newStore(ctx context.Context) (*dynamostore.Store, error) {
	account, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(account, func(o *dynamodb.Options) {
		o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(requestTimeout)
	})
	return &dynamostore.Store{Client: client,
		Orders: os.Getenv("RAMP_ORDERS"), Balances: os.Getenv("RAMP_BALANCES")}, nil
}

func newTerms() (*ramp.Terms, error) {
	return ramp.NewTerms(ramp.TermsConfig{ProjectID: os.Getenv("RAMP_PROJECT"),
		Network: ramp.Network(os.Getenv("RAMP_NETWORK")), Products: products(os.Getenv("RAMP_TOKEN"))})
}

// newHandler makes the handler of the calls.
func newHandler(ctx context.Context) (*ramp.Handler, error) {
	store, err := newStore(ctx)
	if err != nil {
		return nil, err
	}
	key, err := ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")) // or Base64URLKey
	if err != nil {
		return nil, err
	}
	terms, err := newTerms()
	if err != nil {
		return nil, err
	}
	account, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	signer, err := awskms.NewSigner(ctx, account, os.Getenv("RAMP_KMS_KEY"))
	if err != nil {
		return nil, err
	}
	players := &game{store, []byte(os.Getenv("RAMP_TOKEN_SECRET"))}
	c := ramp.HandlerConfig{Store: store, Terms: terms, Key: key, Signer: signer, Players: players}
	proof, err := newProof()
	if err != nil {
		return nil, err
	}
	if proof != nil {
		c.Confirm, c.Wallet = proof, players.wallet
	}
	return ramp.NewHandler(c)
}

// newProof returns what lets the chain confirm each result, or nil if RAMP_RPC_URL is "none", such as for the
// judge, whose transactions are on no chain.
func newProof() (*rampproof.Proof, error) {
	url := os.Getenv("RAMP_RPC_URL")
	if url == "none" {
		return nil, nil
	}
	id, err := strconv.ParseUint(os.Getenv("RAMP_CHAIN_ID"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("RAMP_CHAIN_ID: %w", err)
	}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: id})
	if err != nil {
		return nil, err
	}
	c := rampproof.Config{Chain: chain, Network: ramp.Network(os.Getenv("RAMP_NETWORK"))}
	if c.Payers, err = addresses("RAMP_PAYERS"); err != nil {
		return nil, err
	}
	if c.Contracts, err = addresses("RAMP_CONTRACTS"); err != nil {
		return nil, err
	}
	c.AnyFailure = len(c.Payers) == 0
	return rampproof.New(c)
}

// addresses reads a variable with addresses, separated by spaces.
func addresses(name string) (list []common.Address, err error) {
	for address := range strings.FieldsSeq(os.Getenv(name)) {
		if !common.IsHexAddress(address) {
			return nil, errors.New(name + ": not an address: " + address)
		}
		list = append(list, common.HexToAddress(address))
	}
	return list, nil
}
