package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Tables describes the tables, for the CreateTable of a test, or to compare with what your deployment makes.
// Turn on point-in-time recovery for both, and set no time to live: an order never expires.
func (s *Store) Tables() []*dynamodb.CreateTableInput {
	orders := &dynamodb.CreateTableInput{TableName: &s.Orders, BillingMode: types.BillingModePayPerRequest,
		KeySchema: keys("id")}
	named := map[string]bool{"id": true}
	for _, index := range indexes {
		orders.GlobalSecondaryIndexes = append(orders.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &index[0], KeySchema: keys(index[:]...),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}})
		named[index[0]], named[index[1]] = true, true
	}
	for name := range named {
		orders.AttributeDefinitions = append(orders.AttributeDefinitions, definition(name))
	}
	return []*dynamodb.CreateTableInput{orders, {
		TableName: &s.Balances, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            keys("player", "asset"),
		AttributeDefinitions: []types.AttributeDefinition{definition("player"), definition("asset")},
	}}
}

func definition(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
}

func keys(names ...string) (schema []types.KeySchemaElement) {
	for i, name := range names {
		schema = append(schema, types.KeySchemaElement{AttributeName: &name,
			KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
	}
	return schema
}

// Check implements the optional method of ramp.Store. It makes the transaction of a trial order, of which one
// condition fails, so that nothing is stored, and asks each index.
func (s *Store) Check(ctx context.Context, _ ramp.Network) error {
	trial := uuid.NewString()
	order := s.change(attributes{}, "check#"+trial, "")
	never := &types.ConditionCheck{TableName: &s.Orders, Key: attributes{"id": text("check#never#" + trial)},
		ConditionExpression: aws.String("attribute_exists(id)")}
	balance := &types.Update{TableName: &s.Balances, Key: s.balanceKey("check#"+trial, "check"),
		UpdateExpression:          aws.String("ADD amount :n"),
		ExpressionAttributeValues: attributes{":n": number("1")}}
	_, err := s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Put: order}, {Update: balance}, {ConditionCheck: never}}})
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 3 ||
		aws.ToString(canceled.CancellationReasons[2].Code) != "ConditionalCheckFailed" {
		return fmt.Errorf("dynamostore: a trial order cannot be stored: %w", err)
	}
	if _, err := s.get(ctx, s.Orders, attributes{"id": text("check#" + trial)}); err != nil {
		return fmt.Errorf("dynamostore: an order cannot be read: %w", err)
	}
	for _, index := range indexes {
		if _, err := s.page(ctx, query{index: index, value: trial, limit: 1}); err != nil {
			return fmt.Errorf("dynamostore: the orders cannot be listed by index %q: %w", index[0], err)
		}
	}
	return nil
}
