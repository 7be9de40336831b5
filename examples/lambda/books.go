package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"

	dynamostore "github.com/token-ramp/ramp-go/examples/stores/dynamodb"
)

// late is how long an order may wait: results are repeated for 12 hours.
const late = 13 * time.Hour

// keepBooks is what a schedule starts each hour: it counts the orders that wait, and compares those of the
// last hour with the chain.
func keepBooks(ctx context.Context) error {
	store, err := newStore(ctx)
	if err != nil {
		return err
	}
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		n, oldest, err := store.CountWaiting(ctx, d, time.Now().Add(-late))
		refused, first, failed := store.CountRefused(ctx, d)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		slog.InfoContext(ctx, "orders wait", "direction", d, "late", n, "oldest", oldest,
			"refused", refused, "first", first)
	}
	proof, err := newProof()
	if err != nil || proof == nil {
		return err
	}
	books, err := rampbooks.New(rampbooks.Config{Store: store, Proof: proof,
		Projects: []string{os.Getenv("RAMP_PROJECT")},
		Products: rampbooks.Always(products(os.Getenv("RAMP_TOKEN"))...)})
	if err != nil {
		return err
	}
	return books.NextBooks(ctx, position{store}, nil)
}

// position keeps where the last books ended, in an item of the orders.
type position struct{ store *dynamostore.Store }

var _ rampbooks.PositionStore = position{}

func (p position) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: p.String()}}
}

// Lock does nothing: the function has a reserved concurrency of 1.
func (position) Lock(context.Context) (unlock func(), err error) { return func() {}, nil }

// Read returns what Write has stored last.
func (p position) Read(ctx context.Context) ([]byte, error) {
	out, err := p.store.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.store.Orders, Key: p.key(),
		ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	if text, ok := out.Item["position"].(*types.AttributeValueMemberS); ok {
		return []byte(text.Value), nil
	}
	return nil, nil
}

// Write replaces the item.
func (p position) Write(ctx context.Context, text []byte) error {
	item := p.key()
	item["position"] = &types.AttributeValueMemberS{Value: string(text)}
	_, err := p.store.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.store.Orders, Item: item})
	return err
}

// String names the item.
func (position) String() string { return "position of the books" }
