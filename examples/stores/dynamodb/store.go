// Package dynamostore is a ramp.Store on DynamoDB, with the lists that the books and package support read.
// Copy the whole package. A step is one TransactWriteItems, which compares and replaces the order, moves
// each balance, and stores which order a transaction has ended.
//
//	store := &dynamostore.Store{Client: client, Orders: "orders", Balances: "balances"}
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{
//		Players: players, Store: store, Terms: terms, Key: key, Signer: signer})
//
// [Store.Tables] describes the two tables. Let the client give up a request after 2 seconds or so, so that it
// has time for another one before the call of the service ends:
//
//	client := dynamodb.NewFromConfig(aws, func(o *dynamodb.Options) {
//		o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(2 * time.Second)
//	})
//
// Use the tables of one region. In a global table, another region sees an order later, and could move its
// balances again.
package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Store keeps orders and balances in DynamoDB. Any number of processes may share the tables.
type Store struct {
	Client   *dynamodb.Client
	Orders   string // the table of orders
	Balances string // the table of balances, with one item for each asset of a player

	// Approve applies the rules of the game; it may be nil. It is called for each new step, and may reject
	// an order in the state OrderAccepted with ramp.Reject. It must not change anything, because it may be
	// called again for the same step.
	Approve func(ctx context.Context, step ramp.Step) error
}

// MaxAssets is how many different assets an order may have: a transaction of DynamoDB has at most 100 items,
// of which two are the order and what it ended by.
const MaxAssets = 98

// patience is how long Update tries again if other calls change the same items.
const patience = 10 * time.Second

// row is the item of an order. Whatever writes the item raises its revision, so that a write which is
// compared with the revision cannot undo another one.
type row struct {
	item     map[string]types.AttributeValue // nil if there is none
	revision string                          // "" if there is none
	order    *ramp.Order                     // nil if there is none, or if it was rejected
}

// Update implements ramp.Store.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 0; ; try++ {
		r, err := s.read(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		step, err := next(r.order)
		if err != nil || !step.New {
			return step, err
		}
		switch done, err := s.take(ctx, r, step); {
		case err != nil:
			return ramp.Step{}, err
		case done:
			return step, nil
		}
		if err := pause(ctx, try); err != nil {
			return ramp.Step{}, fmt.Errorf("dynamostore: order %s: others use the same items: %w", id, err)
		}
	}
}

// take stores a step and moves its assets. done is false if something else has changed an item meanwhile:
// then nothing was written.
func (s *Store) take(ctx context.Context, r row, step ramp.Step) (done bool, err error) {
	err = s.approve(ctx, step)
	if err == nil {
		done, err = s.write(ctx, r, step)
	}
	var rejected *ramp.Rejection
	if r.order != nil || !errors.As(err, &rejected) {
		return done, err
	}
	// A request of this call, or of one before, may still be on its way. The revision that it is compared
	// with is now another one.
	if done, failed := s.put(ctx, r.item, orderKey(step.Order.UUID), r.revision); !done || failed != nil {
		return false, failed
	}
	return true, err
}

func (s *Store) approve(ctx context.Context, step ramp.Step) error {
	if step.Settled() {
		return nil
	}
	if step.Order.State == ramp.OrderAccepted {
		for _, a := range step.Order.Assets {
			if _, err := a.Amount.Int64(); err != nil {
				return ramp.Reject("INVALID_AMOUNT")
			}
		}
		if len(step.Order.Assets) > MaxAssets {
			return ramp.Reject("TOO_MANY_ASSETS")
		}
	}
	if s.Approve == nil {
		return nil
	}
	return s.Approve(ctx, step)
}

// pause waits before another try, at random, so that calls which meet do not meet again.
func pause(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(min(time.Millisecond<<min(try, 10), 100*time.Millisecond))):
		return nil
	}
}

// write writes the items of a step in one transaction.
func (s *Store) write(ctx context.Context, r row, step ramp.Step) (done bool, err error) {
	order, err := s.orderItem(r, step.Order)
	if err != nil {
		return false, err
	}
	items := []types.TransactWriteItem{{Put: order}}
	if step.Order.TxHash != "" {
		items = append(items, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.Orders, ConditionExpression: aws.String("attribute_not_exists(id)"),
			Item: attributes{"id": text(transactionKey(step.Order.TxHash)),
				"by": text(step.Order.UUID.String())},
		}})
	}
	items = append(items, s.balanceItems(step)...)
	_, err = s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	var canceled *types.TransactionCanceledException
	var running *types.TransactionInProgressException // the first of two requests of this call
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &running):
		return false, nil
	case !errors.As(err, &canceled):
		return false, err // it may be stored: the repeat of the call finds out
	}
	for i, reason := range canceled.CancellationReasons { // in the order of the items
		switch aws.ToString(reason.Code) {
		case "None":
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return false, nil
		case "ConditionalCheckFailed":
			switch {
			case i == 0: // the order has changed
				return false, nil
			case items[i].Put != nil:
				return false, s.conflict(ctx, *r.order, step.Order.TxHash)
			default: // only an order that was just accepted: a grant or a give-back has no condition
				return false, ramp.Reject("INVALID_BALANCE")
			}
		default:
			return false, fmt.Errorf("dynamostore: %s: %s: %w",
				aws.ToString(reason.Code), aws.ToString(reason.Message), err)
		}
	}
	return false, err
}

// orderItem stores an order, with what the indexes look for.
func (s *Store) orderItem(r row, o ramp.Order) (*types.Put, error) {
	document, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	item := maps.Clone(r.item)
	if item == nil {
		item = attributes{}
	}
	item["document"] = text(string(document))
	item["session"], item["accepted"] = text(sessionKey(o.SessionID)), text(sortKey(o.AcceptedAt, o.UUID))
	item["wallet"] = text(walletKey(o.UserAddress))
	if o.State == ramp.OrderAccepted {
		item["waits"] = text(string(o.Direction))
	} else {
		delete(item, "waits") // and so it leaves the index
		item["ended"], item["finished"] = text(endedKey), text(sortKey(o.FinishedAt, o.UUID))
	}
	return s.change(item, orderKey(o.UUID), r.revision), nil
}

// change replaces an item of the orders, unless its revision is another one.
func (s *Store) change(item attributes, key, revision string) *types.Put {
	if item == nil {
		item = attributes{}
	}
	n, _ := strconv.Atoi(revision) // 0 if there is none
	item["id"], item["revision"] = text(key), number(strconv.Itoa(n+1))
	put := &types.Put{TableName: &s.Orders, Item: item,
		ConditionExpression: aws.String("attribute_not_exists(id)")}
	if revision != "" {
		put.ConditionExpression = aws.String("revision = :read")
		put.ExpressionAttributeValues = attributes{":read": number(revision)}
	}
	return put
}

// put replaces an item of the orders, and reports whether it was unchanged.
func (s *Store) put(ctx context.Context, item attributes, key, revision string) (done bool, err error) {
	p := s.change(maps.Clone(item), key, revision)
	_, err = s.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: p.TableName, Item: p.Item,
		ConditionExpression: p.ConditionExpression, ExpressionAttributeValues: p.ExpressionAttributeValues})
	var changed *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	if errors.As(err, &changed) || errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}

// balanceItems move the assets of a step, each in an item of its own. A burn that is accepted moves nothing:
// its grant is tried by comparing each balance with how much fits into an int64.
func (s *Store) balanceItems(step ramp.Step) (items []types.TransactWriteItem) {
	if later, burn := step.Rehearse(); burn {
		for _, a := range later.Effect.Assets {
			n, _ := a.Amount.Int64() // approve has looked
			most := strconv.FormatInt(math.MaxInt64-n, 10)
			items = append(items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: &s.Balances, Key: s.balanceKey(step.Order.SessionID, a.ID),
				ConditionExpression:       aws.String("attribute_not_exists(amount) OR amount <= :most"),
				ExpressionAttributeValues: attributes{":most": number(most)},
			}})
		}
		return items
	}
	for _, a := range step.Effect.Assets {
		update := &types.Update{
			TableName: &s.Balances, Key: s.balanceKey(step.Order.SessionID, a.ID),
			UpdateExpression:          aws.String("ADD amount :n"), // creates an item that is missing
			ExpressionAttributeValues: attributes{":n": number(a.Amount.String())},
		}
		if step.Effect.Kind == ramp.Take {
			update.UpdateExpression = aws.String("SET amount = amount - :n")
			update.ConditionExpression = aws.String("amount >= :n")
		}
		items = append(items, types.TransactWriteItem{Update: update})
	}
	return items
}

func (s *Store) balanceKey(sessionID, asset string) attributes {
	return attributes{"player": text(sessionID), "asset": text(asset)}
}

// conflict is the error of an order whose transaction has ended another one.
func (s *Store) conflict(ctx context.Context, stored ramp.Order, txHash string) error {
	other, err := s.byTransaction(ctx, txHash)
	if err != nil {
		return err
	}
	return &ramp.ConflictError{Order: stored, Field: "tx_hash", Other: other.order}
}

// read reads the item of an order.
func (s *Store) read(ctx context.Context, id uuid.UUID) (row, error) {
	item, err := s.get(ctx, s.Orders, attributes{"id": text(orderKey(id))})
	if err != nil || len(item) == 0 {
		return row{}, err
	}
	return rowOf(item)
}

func rowOf(item attributes) (row, error) {
	r := row{item: item, revision: textOf(item["revision"])}
	document := textOf(item["document"])
	if document == "" { // only rejected
		return r, nil
	}
	r.order = new(ramp.Order)
	return r, json.Unmarshal([]byte(document), r.order)
}

// get reads an item as it is now, and not as it was a moment ago.
func (s *Store) get(ctx context.Context, table string, key attributes) (attributes, error) {
	out, err := s.Client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

func (s *Store) byTransaction(ctx context.Context, txHash string) (row, error) {
	item, err := s.get(ctx, s.Orders, attributes{"id": text(transactionKey(txHash))})
	if err != nil || len(item) == 0 {
		return row{}, err
	}
	id, err := uuid.Parse(textOf(item["by"]))
	if err != nil {
		return row{}, err
	}
	return s.read(ctx, id)
}

// Balance returns how much of an asset a player owns.
func (s *Store) Balance(ctx context.Context, sessionID, asset string) (int64, error) {
	item, err := s.get(ctx, s.Balances, s.balanceKey(sessionID, asset))
	if err != nil || item["amount"] == nil {
		return 0, err
	}
	return strconv.ParseInt(textOf(item["amount"]), 10, 64)
}

// SetBalance sets how much of an asset a player owns, for example when a player is created. It must not run
// concurrently with an order of the player: change a balance with an update expression instead.
func (s *Store) SetBalance(ctx context.Context, sessionID, asset string, amount int64) error {
	item := s.balanceKey(sessionID, asset)
	item["amount"] = number(strconv.FormatInt(amount, 10))
	_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Balances, Item: item})
	return err
}
