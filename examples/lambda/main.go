// Lambda is a game as functions on AWS: API Gateway calls one for each call of the ramp, and a schedule
// starts another one each hour, which keeps the books. Orders and balances are in DynamoDB, and the validator
// key is in KMS. template.yaml deploys all of it. docs/hosting.md explains why the gateway is a REST API.
//
// Put your login, items and prices into game.go. Then the tests of the copy play orders on processes that are
// frozen and killed, and the judge of the command "ramp check" tries all of its cases on them:
//
//	go test -v .
//
// They only answer the service. What starts an order, and sends the link to the player, is your game's own
// code: it issues the token with game.token, and calls ramp.Client, as "Your server" of the README shows.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil))) // the alarms look for its records
	switch os.Getenv("RAMP_FUNCTION") {
	case "books":
		lambda.Start(keepBooks)
	case "check":
		lambda.Start(check)
	default:
		f := &function{open: newHandler}
		lambda.Start(f.answer)
	}
}

// check is what a server does when it starts. The deployment invokes it once, before it lets calls in.
func check(ctx context.Context) error {
	handler, err := newHandler(ctx)
	if err != nil {
		return err
	}
	return handler.Check(ctx)
}
