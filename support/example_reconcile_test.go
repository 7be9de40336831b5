package support_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

// An hourly job compares the orders in a database with the token's events. It prints what
// does not fit, and begins next time where these books ended.
func ExampleOrders_Reconcile() {
	var (
		ctx      context.Context
		store    *ramp.SQLStore
		chain    *ramp.RPC
		proof    *ramp.Proof
		products []ramp.Product // those of ramp.TermsConfig, and former ones
		last     time.Time      // To of the last books
	)
	orders, err := support.New(support.Config{Store: store, Chain: chain, Proof: proof})
	if err != nil {
		log.Fatal(err)
	}
	books, err := orders.Reconcile(ctx, support.Period{From: last.Add(-support.Overlap), Products: products})
	if err != nil {
		log.Fatal(err)
	}
	for _, finding := range books.Findings {
		fmt.Println(finding.Time(), finding.Kind, finding.Detail)
	}
	if err := json.NewEncoder(os.Stdout).Encode(books); err != nil { // or Text, WriteCSV, WriteTotalsCSV
		log.Fatal(err)
	}
	last = books.To // keep it once the report is written
}
