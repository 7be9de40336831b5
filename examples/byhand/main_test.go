package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

func newTestServer(t *testing.T) *server {
	slog.SetDefault(ramptest.Logger(t)) // package log writes to it, too
	key := must(ramp.TextKey("key of the console"))(t)
	const validator = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	return newServer(key, must(ramp.NewKeySigner(validator))(t))
}

// newPlayer adds a player.
func (s *server) newPlayer(name string, balance int64) ramp.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := ramp.Session{ID: name, Token: ramp.NewAccessToken("token of " + name)}
	s.players[name] = &player{token: session.Token, assets: map[string]ramp.Amount{
		"item_gold": ramp.NewAmount(balance), "item_gem": ramp.NewAmount(balance)}}
	return session
}

func TestTheEmulatorLosesNothing(t *testing.T) {
	s := newTestServer(t)
	session := s.newPlayer("session-1", 1000)
	service := ramptest.Start(t, ramptest.Config{Key: s.key, Validator: s.signer.Address(), Handler: s.routes()})
	chain := must(ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(network), ChainID: 7002,
		HTTPClient: service.Client()}))(t)
	s.confirm = must(rampproof.New(rampproof.Config{Chain: chain, Network: network,
		MintFeeBps: map[common.Address]int{common.HexToAddress(products[0].Token): products[0].MintFeeBps},
		AnyFailure: true}))(t)
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: s.key, Terms: s.terms,
		HTTPClient: service.Client()}))(t)

	s.client = client
	t.Setenv("RAMP_FRONTEND_URL", service.URL())
	page := httptest.NewRecorder()
	s.play(session)(page, httptest.NewRequest(http.MethodGet, "/play", nil))
	assert.Equal(t, http.StatusSeeOther, page.Code)
	assert.Regexp(t, `/exchange\?.*sessionId=session-1`, page.Header().Get("Location"))

	type placer = func(
		context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.PlacedOrder, error)
	trade := func(order placer, faults ...ramptest.Fault) error {
		started := must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
		_, err := order(t.Context(), started.UUID, session, ramp.NewAmount(1), faults...)
		service.Advance(12 * time.Hour)
		return err
	}
	gold := func() string { return s.players["session-1"].assets["item_gold"].String() }

	require.NoError(t, trade(service.Mint, ramptest.ValidateTwice(), ramptest.ResultAtOnce(3)))
	assert.Equal(t, "900", gold())
	require.NoError(t, trade(service.Mint, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult)))
	assert.Equal(t, "900", gold())
	require.NoError(t, trade(service.Burn, ramptest.ResultTwice()))
	assert.Equal(t, "1000", gold())
	for _, forged := range []ramptest.Fault{ramptest.TamperedBody(ramptest.OnValidate),
		ramptest.WrongHMAC(ramptest.OnResult), ramptest.MissingHMAC(ramptest.OnValidate)} {
		require.NoError(t, trade(service.Mint, forged))
	}
	for _, other := range []ramptest.Fault{
		ramptest.ValidateOtherRate(), ramptest.ValidateOtherToken(), ramptest.ValidateExtraItem()} {
		require.NoError(t, trade(service.Mint, other), "nothing is signed that the game does not sell")
	}

	// Whoever has the HMAC key can report that a mint failed, but not make its transaction fail.
	before := gold()
	var won *ramp.Order
	for _, id := range s.transactions {
		if order := s.orders[id]; order.Direction == ramp.Mint && order.State == ramp.OrderSucceeded {
			won = order
		}
	}
	body := fmt.Appendf(nil, `{"uuid":%q,"tx_hash":%q,"receipt":{"status":"0x0"}}`, won.UUID, won.TxHash)
	delete(s.transactions, won.TxHash)
	won.State, won.TxHash = ramp.OrderAccepted, "" // as if its result had not come yet
	call, reply := httptest.NewRequest(http.MethodPost, ramp.PathResult, bytes.NewReader(body)), httptest.NewRecorder()
	call.Header.Set(ramp.HeaderHMAC, s.key.Sign(body))
	s.routes().ServeHTTP(reply, call)
	assert.Equal(t, http.StatusInternalServerError, reply.Code)
	assert.Equal(t, before, gold())
}

// TestTheJudge is run by the next test, in a process of its own, because it fails.
func TestTheJudge(t *testing.T) {
	if os.Getenv(asJudged) == "" {
		t.Skip("TestTheJudgeFindsWhatTheDocumentSays runs it")
	}
	s := newTestServer(t)
	server := httptest.NewServer(s.routes())
	defer server.Close()
	conformance.Test(t, conformance.Server{
		URL: server.URL, Key: s.key, Validator: s.signer.Address(), ProjectID: "project-1",
		Token: products[0].Token, Amount: 400, Tokens: 4, // a game with one price
		Asset: "item_gold", Second: "item_gem",
		Strict: true, Settle: time.Millisecond, Late: time.Millisecond,
		Player: func(_ context.Context, name string) (ramp.Session, error) {
			return s.newPlayer(name, 1_000_000), nil
		},
		Restart: func(context.Context) error { // the players are in a database, and the orders are not
			s.mu.Lock()
			defer s.mu.Unlock()
			clear(s.orders)
			clear(s.transactions)
			server.CloseClientConnections()
			return nil
		},
	})
}

const asJudged = "BYHAND_TEST_JUDGED"

// docs/by-hand.md names the cases that this program fails. No others may fail, and none of
// them may pass.
func TestTheJudgeFindsWhatTheDocumentSays(t *testing.T) {
	document, err := os.ReadFile("../../docs/by-hand.md")
	if os.IsNotExist(err) {
		t.Skip("a copy of this example has no document to compare with")
	}
	require.NoError(t, err)
	judged := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestTheJudge$", "-test.v")
	judged.Env = append(os.Environ(), asJudged+"=1")
	out, err := judged.Output() // without the log
	require.Error(t, err, "a case fails")
	cases := func(outcome string) (ids []string) {
		ended := regexp.MustCompile(`(?m)^    --- ` + outcome + `: TestTheJudge/([a-z0-9-]+) `)
		for _, m := range ended.FindAllSubmatch(out, -1) {
			ids = append(ids, string(m[1]))
		}
		return ids
	}
	failed := cases("FAIL")
	require.NotEmpty(t, failed, "%s", out)

	_, section, found := strings.Cut(string(document), "\n## What the judge says\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	all := len(failed) + len(cases("PASS")) + len(cases("SKIP"))
	assert.Contains(t, section, fmt.Sprintf("Of %d cases", all), "docs/by-hand.md")
	var named []string
	for _, match := range regexp.MustCompile("`([a-z][a-z-]+)`").FindAllStringSubmatch(section, -1) {
		named = append(named, match[1])
	}
	assert.ElementsMatch(t, failed, named, "docs/by-hand.md names other cases than those that fail")
}

// must returns what a function returned, and ends the test if it returned an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
