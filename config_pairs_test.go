package ramp_test

import (
	"context"
	"database/sql"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// pair is what two fields of a Config mean together. Every pair that is not here means what each field says
// alone. A pair that means nothing is refused.
type pair struct {
	config any
	fields [2]string
	means  string
	make   func() error // returns why it is refused; nil if it is not
}

func TestEveryPairOfFieldsMeansSomething(t *testing.T) {
	signer := must.Get(ramp.NewKeySigner(vectorKey))(t)
	key := testKey(t)
	terms := func(change func(*ramp.TermsConfig)) func() error {
		return func() error {
			c := ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
				Products: []ramp.Product{goldProduct()}}
			change(&c)
			_, err := ramp.NewTerms(c)
			return err
		}
	}
	emulator := func(change func(*ramptest.Config)) func() error {
		return func() error {
			c := ramptest.Config{Key: key, Validator: signer.Address()}
			change(&c)
			service, err := ramptest.New(c)
			if err == nil {
				service.Close()
			}
			return err
		}
	}
	chain := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: 7}))(t)
	proof := must.Get(rampproof.New(rampproof.Config{Chain: chain, Network: ramp.Testnet, AnyFailure: true}))(t)
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	for _, p := range []pair{
		{ramp.TermsConfig{}, [2]string{"Any", "Decimals"}, "Decimals must be empty with Any, which checks no amounts",
			terms(func(c *ramp.TermsConfig) { c.Any, c.Decimals = true, map[string]int{"gold": 2} })},
		{ramp.TermsConfig{}, [2]string{"Former", "ProjectID"}, "ProjectID is required with Former",
			terms(func(c *ramp.TermsConfig) { c.Any, c.ProjectID, c.Former = true, "", []string{"project-0"} })},
		{ramp.TermsConfig{}, [2]string{"Any", "Products"}, "Products are for initialize calls only", nil},
		{ramp.TermsConfig{}, [2]string{"Any", "PerOrder"}, "the prices of initialize calls are of whole orders", nil},
		{ramp.TermsConfig{}, [2]string{"Any", "ProjectID"}, "an empty ProjectID accepts every project", nil},
		{ramp.TermsConfig{}, [2]string{"Any", "Network"}, "an empty Network stores none", nil},
		{ramp.Product{}, [2]string{"Tokens", "AnyTokens"}, "AnyTokens must be false if Tokens is set",
			terms(func(c *ramp.TermsConfig) {
				c.PerOrder, c.Products[0].Tokens, c.Products[0].AnyTokens = true, ramp.NewAmount(1), true
			})},
		{ramp.Product{}, [2]string{"Materials", "Outputs"}, "Outputs are empty: the product can be neither",
			terms(func(c *ramp.TermsConfig) { c.Products[0].Materials, c.Products[0].Outputs = nil, nil })},
		{ramp.ClientConfig{}, [2]string{"HTTPClient", "Timeout"}, "the shorter one ends an attempt", nil},
		{ramp.ClientConfig{}, [2]string{"URL", "InsecureHTTP"}, "https is used if URL says so", nil},
		{ramp.RPCConfig{}, [2]string{"FallbackURL", "FallbackHeader"}, "FallbackURL is required", func() error {
			_, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com",
				FallbackHeader: http.Header{"A": {"b"}}})
			return err
		}},
		{ramp.RPCConfig{}, [2]string{"URL", "Header"}, "URL must not have a user if Header has Authorization",
			func() error {
				_, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://a:b@node.example.com",
					Header: http.Header{"Authorization": {"c"}}})
				return err
			}},
		{ramp.HandlerConfig{}, [2]string{"Confirm", "Wallet"},
			"a proof shows who traded, and Wallet whose wallet it is", nil},
		{ramp.HandlerConfig{}, [2]string{"Terms", "Policy"}, "Policy is asked about what Terms accept", nil},
		{rampproof.Config{}, [2]string{"Payers", "AnyFailure"}, "Payers prove successes, and any failure counts", nil},
		{rampproof.Config{}, [2]string{"Chain", "Network"}, "Network names the chain, which nothing can check", nil},
		{rampsql.Config{}, [2]string{"DB", "TxOptions"}, "TxOptions must not be read-only", func() error {
			_, err := rampsql.New(rampsql.Config{DB: new(sql.DB), Dialect: rampsql.PostgreSQL,
				Apply:     func(context.Context, *sql.Tx, ramp.Step) error { return nil },
				TxOptions: &sql.TxOptions{ReadOnly: true}})
			return err
		}},
		{rampsql.Config{}, [2]string{"Retries", "Retryable"}, "Retryable decides, and Retries limits", nil},
		{rampbooks.Config{}, [2]string{"Network", "Proof"}, "Network must be that of Proof, the testnet", func() error {
			_, err := rampbooks.New(rampbooks.Config{Store: lister{}, Proof: proof, Network: ramp.Mainnet})
			return err
		}},
		{rampbooks.Config{}, [2]string{"Products", "Tokens"}, "both are compared", nil},
		{support.Config{}, [2]string{"Network", "Proof"}, "Network must be that of Proof, the testnet", func() error {
			_, err := support.New(support.Config{Store: store, Proof: proof, Network: ramp.Mainnet})
			return err
		}},
		{support.Config{}, [2]string{"NoEmptyBlocks", "Proof"}, "NoEmptyBlocks means nothing without Proof",
			func() error {
				_, err := support.New(support.Config{Store: store, NoEmptyBlocks: true})
				return err
			}},
		{ramptest.Config{}, [2]string{"Game", "Handler"}, "Game excludes Config.Handler",
			emulator(func(c *ramptest.Config) { c.Game, c.Handler = "http://127.0.0.1", http.NotFoundHandler() })},
		{ramptest.Config{}, [2]string{"Client", "Handler"}, "Client means nothing with Config.Handler",
			emulator(func(c *ramptest.Config) { c.Client, c.Handler = http.DefaultClient, http.NotFoundHandler() })},
		{ramptest.Config{}, [2]string{"Closed", "Audit"}, "Closed means nothing with AuditOff",
			emulator(func(c *ramptest.Config) { c.Closed, c.Audit = true, ramptest.AuditOff })},
		{ramptest.Config{}, [2]string{"Mailbox", "Audit"}, "Mailbox means nothing with AuditOff",
			emulator(func(c *ramptest.Config) {
				c.Mailbox, c.Audit = func(ramp.Session) []ramp.Asset { return nil }, ramptest.AuditOff
			})},
		{ramptest.Config{}, [2]string{"Regenerating", "Audit"}, "Regenerating means nothing with AuditOff",
			emulator(func(c *ramptest.Config) { c.Regenerating, c.Audit = []string{"energy"}, ramptest.AuditOff })},
		{ramptest.Config{}, [2]string{"Closed", "Standalone"}, "Closed is for a test",
			emulator(func(c *ramptest.Config) { c.Closed, c.Standalone.Speed = true, 1 })},
		{ramptest.Config{}, [2]string{"Schedule", "Retry"}, "Retry says whether, and Schedule when", nil},
		{ramptest.Config{}, [2]string{"PerOrder", "NetAmounts"},
			"the number of tokens of an order is after its fee", nil},
	} {
		for _, field := range p.fields {
			_, found := reflect.TypeOf(p.config).FieldByName(field)
			assert.True(t, found, "%T.%s", p.config, field)
		}
		if p.make != nil {
			assert.ErrorContains(t, p.make(), p.means, "%T: %v", p.config, p.fields)
		}
	}
}

// lister is a store that is not asked.
type lister struct{ rampbooks.OrderLister }
