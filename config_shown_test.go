package ramp_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/support"
)

// A program logs its settings. The address of an icon is none of these: each player's browser gets it.
func TestNoConfigShowsAQueryOrASecret(t *testing.T) {
	const address = "https://hidden-user:hidden-password@example.com/hidden-path-of-a-key?key=hidden-query"
	key := must.Get(ramp.TextKey("hidden-key-of-the-console"))(t)
	signer := must.Get(ramp.NewKeySigner(vectorKey))(t)
	header := http.Header{"X-Api-Key": {"hidden-header"}}
	node := ramp.RPCConfig{URL: address, Header: header, FallbackURL: address, FallbackHeader: header, ChainID: 7}
	chain := must.Get(ramp.NewRPC(node))(t)
	proofs := rampproof.Config{Chain: chain, Network: ramp.Testnet, AnyFailure: true}
	proof := must.Get(rampproof.New(proofs))(t)
	alone := ramptest.Standalone{PublicURL: address, ControlToken: "hidden-control", Secrets: []string{"hidden-text"}}
	configs := map[string]any{
		"core/ramp.RPCConfig":    node,
		"core/ramp.ClientConfig": ramp.ClientConfig{URL: address, Key: key},
		"core/ramp.HandlerConfig": ramp.HandlerConfig{Key: key, Signer: signer, Store: new(ramp.MemoryStore),
			Confirm: rampproof.Confirmed(chain, 1)},
		"core/ramp.TermsConfig":     ramp.TermsConfig{ProjectID: "project-1"},
		"core/rampproof.Config":     proofs,
		"core/rampsql.Config":       rampsql.Config{DB: new(sql.DB), TxOptions: new(sql.TxOptions)},
		"core/rampsql.ClaimsConfig": rampsql.ClaimsConfig{DB: new(sql.DB)},
		"core/rampsql.ShardsConfig": rampsql.ShardsConfig{},
		"kit/rampbooks.Config":      rampbooks.Config{Proof: proof, Tokens: []common.Address{{1}}},
		"kit/support.Config":        support.Config{Proof: proof, Store: new(ramp.MemoryStore)},
		"kit/ramptest.Config":       ramptest.Config{Game: address, Key: key, Standalone: alone},
		"kit/ramptest.Standalone":   alone,
		"kit/ramptest-conformance.Server": conformance.Server{URL: address, Key: key, Header: header,
			Secrets: []string{"hidden-text"}},
		"kit/ramptest-control.Client": control.Client{URL: address, Token: "hidden-control"},
	}
	hidden := regexp.MustCompile(`(?i)hidden|68696464656e|104 105 100 100 101 110`)
	for name, config := range configs {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			for _, value := range []any{config, []any{config}, struct{ Config any }{config}} {
				assert.NotRegexp(t, hidden, fmt.Sprintf(verb, value), "%s as %s", name, verb)
			}
		}
	}
	settings := regexp.MustCompile(`(?m)^type (\w*Config|Standalone|Server|Client) struct`)
	for _, file := range must.Get(filepath.Glob("testdata/api/*/*.txt"))(t) {
		part, named := filepath.Split(strings.TrimSuffix(file, ".txt"))
		for _, found := range settings.FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1) {
			name := filepath.Base(part) + "/" + named + "." + found[1]
			if name != "core/ramp.Client" { // which has no exported field
				require.Contains(t, configs, name)
			}
		}
	}
}
