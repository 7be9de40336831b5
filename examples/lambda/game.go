package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"

	dynamostore "github.com/token-ramp/ramp-go/examples/stores/dynamodb"
)

// game is the part that a studio writes.
type game struct {
	store  *dynamostore.Store
	secret []byte // of the access tokens
}

// token returns an access token for a session. Your login issues it, and nobody needs to store it.
func (g *game) token(sessionID string, expires time.Time) ramp.AccessToken {
	until := strconv.FormatInt(expires.Unix(), 10)
	mac := hmac.New(sha256.New, g.secret)
	_, _ = mac.Write([]byte(until + "." + sessionID)) // never fails
	return ramp.NewAccessToken(until + "." + hex.EncodeToString(mac.Sum(nil)))
}

// Authenticate checks that the token was issued for the session.
func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	until, _, _ := strings.Cut(s.Token.Reveal(), ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	expires := time.Unix(seconds, 0)
	known := len(g.secret) > 0 && s.Token.Equal(g.token(s.ID, expires))
	if err != nil || !known || time.Now().After(expires) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// wallet lets a wallet belong to the player who names it first, in an item of the orders. Whoever has the
// HMAC key could otherwise name the wallet of another player, and be paid for what that player burns. Delete
// the item when you erase the player.
func (g *game) wallet(ctx context.Context, s ramp.Session, wallet common.Address) error {
	player := &types.AttributeValueMemberS{Value: s.ID}
	item := map[string]types.AttributeValue{"player": player,
		"id": &types.AttributeValueMemberS{Value: "owner of " + wallet.Hex()}}
	_, err := g.store.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &g.store.Orders, Item: item,
		ConditionExpression:       aws.String("attribute_not_exists(id) OR player = :player"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":player": player}})
	var taken *types.ConditionalCheckFailedException
	if errors.As(err, &taken) {
		return ramp.Reject("INVALID_WALLET")
	}
	return err
}

// Assets lists what the player owns.
func (g *game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	gold, err := g.store.Balance(ctx, s.ID, "gold")
	if err != nil {
		return nil, err
	}
	return &ramp.Player{PlayerID: s.ID,
		Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(gold)}}}, nil
}

// products are what the game sells: a token costs 100 gold, and is worth as much.
func products(token string) []ramp.Product {
	price := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	return []ramp.Product{{Name: "gold", Token: token, Materials: price, Outputs: price}}
}
