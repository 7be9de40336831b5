package dynamostore

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

// indexes are those of the orders, with their two keys. A list of them may lag behind by some milliseconds.
var indexes = [][2]string{
	{"waits", "accepted"},   // by direction
	{"ended", "finished"},   // under one key: a thousand orders may end in a second
	{"session", "accepted"}, // by player
	{"wallet", "accepted"},
}

const endedKey = "ended"

func sessionKey(id string) string         { return "session#" + id }
func walletKey(address string) string     { return "wallet#" + strings.ToLower(address) }
func orderKey(id uuid.UUID) string        { return "order#" + id.String() }
func transactionKey(txHash string) string { return "transaction#" + txHash }

// sortKey sorts orders by a time, and those of one millisecond by their UUID.
func sortKey(at time.Time, id uuid.UUID) string { return moment(at) + "#" + id.String() }

// moment sorts before the orders of its millisecond, and after all earlier ones.
func moment(at time.Time) string { return fmt.Sprintf("%015d", max(0, at.UnixMilli())) }

type attributes = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}
