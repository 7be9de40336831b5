package rampbooks_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
)

// An hourly job compares the orders in a database with the token's events. It prints what
// does not fit, and begins next time where these books ended.
func ExampleReconciler_Reconcile() {
	var (
		ctx      context.Context
		store    *rampsql.Store
		proof    *rampproof.Proof
		products []rampbooks.Offer // those of ramp.TermsConfig, and former ones with their time
		last     time.Time         // To of the last books
	)
	reconciler := ramp.Must(rampbooks.New(rampbooks.Config{Store: store, Proof: proof, Products: products}))
	books, err := reconciler.Reconcile(ctx, last.Add(-rampbooks.Overlap), time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(books.Text()) // or books as JSON, or WriteTotalsCSV
	last = books.To         // keep it once the report is written
}
