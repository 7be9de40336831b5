package ramp_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// trial shows what one config field does.
type trial[Config any] struct {
	set      any                          // what the field is set to, or a func(*Config) if others must change too
	see      func(*testing.T, Config) any // what can be seen of it
	required any                          // is seen with nothing but the required fields
	then     any                          // is seen once the field is set
}

// tryFields runs a trial of every field of a config, and fails if one is missing.
func tryFields[Config any](t *testing.T, required func(*testing.T) Config, trials map[string]trial[Config]) {
	t.Helper()
	kind := reflect.TypeFor[Config]()
	for i := range kind.NumField() {
		assert.Contains(t, trials, kind.Field(i).Name, "a field without a trial")
	}
	for name, trial := range trials {
		t.Run(name, func(t *testing.T) {
			_, ok := kind.FieldByName(name)
			require.True(t, ok, "a trial without a field")
			config := required(t)
			assert.Equal(t, trial.required, trial.see(t, config), "by default")
			if set, ok := trial.set.(func(*Config)); ok {
				set(&config)
			} else {
				config = with(config, name, trial.set)
			}
			assert.Equal(t, trial.then, trial.see(t, config), "once set")
		})
	}
}

// with returns a config with another value of a field, nil for its zero value.
func with[Config any](c Config, name string, value any) Config {
	field := reflect.ValueOf(&c).Elem().FieldByName(name)
	if value == nil {
		field.SetZero()
		return c
	}
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
	return c
}

// networkTrials are the trials of what a Client and an RPC have in common. call makes a
// client and a call, which wire answers.
func networkTrials[Config any](wire http.RoundTripper, call func(*testing.T, Config) error) map[string]trial[Config] {
	var log bytes.Buffer
	client := &http.Client{Transport: wire}
	return map[string]trial[Config]{
		"HTTPClient": {
			set: client,
			see: func(t *testing.T, c Config) any {
				server := httptest.NewServer(&answering{status: 418, body: "over the network"})
				defer server.Close()
				return call(t, with(c, "URL", server.URL)) == nil
			},
			required: false, then: true,
		},
		"Timeout": {
			set: time.Second,
			see: func(t *testing.T, c Config) any {
				return timed(t, func(t *testing.T, h *http.Client) { _ = call(t, with(with(c, "Retries", -1), "HTTPClient", h)) })
			},
			required: 10 * time.Second, then: time.Second,
		},
		"Retries": {
			set: -1,
			see: func(t *testing.T, c Config) any {
				return counted(t, func(t *testing.T, h *http.Client) { _ = call(t, with(c, "HTTPClient", h)) })
			},
			required: 3, then: 1,
		},
		"InsecureHTTP": {
			set: true,
			see: func(t *testing.T, c Config) any {
				return call(t, with(with(c, "HTTPClient", client), "URL", "http://a.example.com")) == nil
			},
			required: false, then: true,
		},
		"Logger": {
			set: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			see: func(t *testing.T, c Config) any {
				return loggedBy(t, &log, func() { require.NoError(t, call(t, with(c, "HTTPClient", client))) })
			},
			required: [2]int{0, 0}, then: [2]int{0, 1},
		},
	}
}

func TestEveryFieldOfAHandlerConfig(t *testing.T) {
	required := func(t *testing.T) ramp.HandlerConfig {
		return ramp.HandlerConfig{Terms: anyTerms, Game: &recorder{}, Key: testKey(), Signer: testSigner()}
	}
	validate := func(t *testing.T, c ramp.HandlerConfig) ramp.Reply {
		body := validateCall().bytes()
		return ramp.Must(ramp.NewHandler(c)).AnswerValidate(t.Context(), signed(body), body)
	}
	result := func(t *testing.T, c ramp.HandlerConfig) ramp.Reply {
		body := webhookResult().bytes()
		return ramp.Must(ramp.NewHandler(c)).AnswerResult(t.Context(), signed(body), body)
	}
	status := func(t *testing.T, c ramp.HandlerConfig) any { return validate(t, c).Status }
	answers := func(part string) func(*testing.T, ramp.HandlerConfig) any {
		return func(t *testing.T, c ramp.HandlerConfig) any {
			return strings.Contains(string(validate(t, c).Body), part)
		}
	}
	rejecting := &recorder{validate: func() error { return ramp.Reject("SHORT") }}
	otherKey := ramp.Must(ramp.TextKey("another key"))
	otherSigner := ramp.Must(ramp.NewKeySigner(strings.Repeat("12", 32)))
	onlyNode := func(t *testing.T) *ramp.RPC {
		return (&chain{receipt: string(onChain().bytes()), head: 10, block: map[uint64]string{10: blockA}}).client()
	}
	var order ramp.Order
	memory := func(order *ramp.Order) ramp.Store {
		return &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
			*order = step.Order
			return nil
		}}
	}
	var log bytes.Buffer
	var watched watcher

	tryFields(t, required, map[string]trial[ramp.HandlerConfig]{
		"Game": {rejecting, answers("SHORT"), false, true},
		"Players": {
			set: func(c *ramp.HandlerConfig) { *c = inMemory(*c); c.Game, c.Players = nil, strictPlayers{} },
			see: status, required: 200, then: 500,
		},
		"Store": {
			set: func(c *ramp.HandlerConfig) { c.Game, c.Players, c.Store = nil, noPlayers{}, memory(&order) },
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				order = ramp.Order{}
				validate(t, c)
				return order.State
			},
			required: ramp.OrderState(""), then: ramp.OrderAccepted,
		},
		"OnConflict": {
			set: func(c *ramp.HandlerConfig) {
				*c = inMemory(*c)
				c.Game = nil
				c.OnConflict = func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }
			},
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				if c.Game != nil {
					c.Game, c.Players, c.Store = nil, noPlayers{}, memory(&order)
				}
				handler := ramp.Must(ramp.NewHandler(c))
				body := validateCall().bytes()
				require.Equal(t, 200, handler.AnswerValidate(t.Context(), signed(body), body).Status)
				body = resultCall().with("intent", burnObject()).bytes()
				return handler.AnswerResult(t.Context(), signed(body), body).Status
			},
			required: 500, then: 400,
		},
		"Terms": {newTerms(goldProduct()), answers(string(ramp.CodeTerms)), false, true},
		"Policy": {
			set:      func(context.Context, ramp.Session, *ramp.ValidateRequest) error { return ramp.Reject("SHORT") },
			see:      answers("SHORT"),
			required: false, then: true,
		},
		"SignTimeout": {
			set: time.Minute,
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				var left time.Duration
				synctest.Test(t, func(t *testing.T) {
					c.Signer = ramp.Must(ramp.NewFuncSigner(vectorAddress, func(ctx context.Context, _ []byte) ([]byte, error) {
						end, _ := ctx.Deadline()
						left = time.Until(end)
						return nil, errors.New("no")
					}))
					validate(t, c)
				})
				return left
			},
			required: 3 * time.Second, then: time.Minute,
		},
		"Now": {
			set: func() time.Time { return time.Unix(7, 0) },
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				c.Game, c.Players, c.Store = nil, noPlayers{}, memory(&order)
				validate(t, c)
				return order.AcceptedAt.Unix() == 7
			},
			required: false, then: true,
		},
		"Key":    {otherKey, status, 200, 401},
		"Signer": {otherSigner, answers(testSignature), true, false},
		"Chain": {
			set: onlyNode(t),
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				require.Equal(t, 200, result(t, c).Status)
				return c.Game.(*recorder).last.(*ramp.Result).Receipt.From != common.Address{} // as on the chain
			},
			required: false, then: true,
		},
		"Proof": {
			set: func(c *ramp.HandlerConfig) { c.Proof, c.AnyWallet = &ramp.Proof{AnyFailure: true}, true },
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				c.Game, c.Players, c.Store, c.Chain = nil, noPlayers{}, memory(&order), onlyNode(t)
				body := validateCall().with("intent", burnObject()).bytes()
				handler := ramp.Must(ramp.NewHandler(c))
				require.Equal(t, 200, handler.AnswerValidate(t.Context(), signed(body), body).Status)
				body = webhookResult().bytes()
				return handler.AnswerResult(t.Context(), signed(body), body).Status
			},
			required: 200, then: 500, // no decimals
		},
		"Wallet": {
			set:      func(context.Context, ramp.Session, common.Address) error { return ramp.Reject("NOT_YOURS") },
			see:      answers("NOT_YOURS"),
			required: false, then: true,
		},
		"AnyWallet": {
			set: true,
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				c.Proof, c.Chain = &ramp.Proof{AnyFailure: true}, onlyNode(t)
				_, err := ramp.NewHandler(c)
				return fmt.Sprint(err)
			},
			required: "ramp: HandlerConfig.Wallet is required with Proof, unless AnyWallet is set: a stolen HMAC key could claim the burns of others", then: "<nil>",
		},
		"Confirmations": {
			set: 2,
			see: func(t *testing.T, c ramp.HandlerConfig) (got any) {
				synctest.Test(t, func(t *testing.T) {
					c.Chain = onlyNode(t)
					got = result(t, c).Status
				})
				return got
			},
			required: 200, then: 500,
		},
		"RejectStatus": {
			set: 499,
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				c.Game = rejecting
				return status(t, c)
			},
			required: 200, then: 499,
		},
		"TranslateCode": {
			set: func(code ramp.Code) ramp.Code { return "E_" + code },
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				c.Game = rejecting
				return string(validate(t, c).Body)
			},
			required: rejection("SHORT"), then: rejection("E_SHORT"),
		},
		"MaxBody": {
			set: 100,
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				var got [4]int
				for i, size := range []int{100, 101, 1 << 20, 1<<20 + 1} {
					header := http.Header{ramp.HeaderHMAC: {strings.Repeat("0", 64)}}
					got[i] = ramp.Must(ramp.NewHandler(c)).AnswerValidate(t.Context(), header, make([]byte, size)).Status
				}
				return got
			},
			required: [4]int{401, 401, 401, 413}, then: [4]int{401, 413, 413, 413},
		},
		"Logger": {
			set:      slog.New(slog.NewTextHandler(&log, nil)),
			see:      func(t *testing.T, c ramp.HandlerConfig) any { return loggedBy(t, &log, func() { validate(t, c) }) },
			required: [2]int{0, 0}, then: [2]int{0, 1},
		},
		"Observer": {
			set: watched.observer(),
			see: func(t *testing.T, c ramp.HandlerConfig) any {
				validate(t, c)
				return watched.take()
			},
			required: "", then: "start webhook validate, end webhook validate",
		},
	})
}

func TestEveryFieldOfATermsConfig(t *testing.T) {
	required := func(*testing.T) ramp.TermsConfig {
		return ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{swordProduct()}}
	}
	answer := func(t *testing.T, c ramp.TermsConfig, intent ramp.Intent) (reply ramp.Reply, order ramp.Order) {
		store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
			order = step.Order
			return nil
		}}
		handler := newHandler(ramp.HandlerConfig{Players: noPlayers{}, Store: store, Terms: ramp.Must(ramp.NewTerms(c))})
		body := validateCall().with("intent", intent).bytes()
		return handler.AnswerValidate(t.Context(), signed(body), body), order
	}
	mint := func(swords, tokens string) ramp.Intent {
		return mintOf(swordToken+" "+tokens, "sword "+swords)
	}
	approved := func(swords, tokens string) func(*testing.T, ramp.TermsConfig) any {
		return func(t *testing.T, c ramp.TermsConfig) any {
			reply, order := answer(t, c, mint(swords, tokens))
			return [2]bool{reply.Status == 200, order.State == ramp.OrderAccepted}
		}
	}
	yes, no := [2]bool{true, true}, [2]bool{true, false}
	tryFields(t, required, map[string]trial[ramp.TermsConfig]{
		"ProjectID": {"another", approved("1", "1"), yes, [2]bool{false, false}},
		"Network": {
			set: ramp.Mainnet,
			see: func(t *testing.T, c ramp.TermsConfig) any {
				_, order := answer(t, c, mint("1", "1"))
				return order.Network
			},
			required: ramp.Testnet, then: ramp.Mainnet,
		},
		"Products": {[]ramp.Product{goldProduct()}, approved("1", "1"), yes, no},
		"PerOrder": {true, approved("1", "3"), no, yes},
		"Any":      {true, approved("5", "2"), no, yes},
		"Decimals": {map[string]int{"sword": 18}, approved("10", "10"), yes, no}, // 10^19 units
	})
}

func TestEveryFieldOfAClientConfig(t *testing.T) {
	const url = "https://api.example.com"
	required := func(t *testing.T) ramp.ClientConfig { return ramp.ClientConfig{URL: url, Key: testKey()} }
	otherKey := ramp.Must(ramp.TextKey("another key"))
	wire := &overWire{Transport: &script{steps: steps{status(200, nil, okAnswer)}}}
	call := func(t *testing.T, c ramp.ClientConfig) (*ramp.Initialization, error) {
		client, err := ramp.NewClient(c)
		if err != nil {
			return nil, err
		}
		return client.Initialize(t.Context(), testRequest())
	}
	seen := func(of func(*http.Request) any) func(*testing.T, ramp.ClientConfig) any {
		return func(t *testing.T, c ramp.ClientConfig) any {
			c.HTTPClient = &http.Client{Transport: wire}
			ramp.Must(call(t, c))
			return of(wire.asked)
		}
	}
	past := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	var watched watcher

	trials := map[string]trial[ramp.ClientConfig]{
		"Observer": {
			set: watched.observer(),
			see: func(t *testing.T, c ramp.ClientConfig) any {
				c.HTTPClient = &http.Client{Transport: wire}
				ramp.Must(call(t, c))
				return watched.take()
			},
			required: "", then: "start initialize initialize, start attempt initialize, end attempt initialize, end initialize initialize",
		},
		"URL": {
			set:      "https://other.example.com/v1/",
			see:      seen(func(r *http.Request) any { return r.URL.String() }),
			required: url + "/api/v2/initialize", then: "https://other.example.com/v1/api/v2/initialize",
		},
		"Key": {
			set:      otherKey,
			see:      seen(func(r *http.Request) any { return r.Header.Get("X-HMAC-SIGNATURE") }),
			required: testKey().Sign([]byte(testRequestBytes)), then: otherKey.Sign([]byte(testRequestBytes)),
		},
		"Terms": {
			set: newTerms(goldProduct()),
			see: func(t *testing.T, c ramp.ClientConfig) any {
				c.HTTPClient = &http.Client{Transport: wire}
				client := ramp.Must(ramp.NewClient(c))
				_, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
				return err == nil
			},
			required: false, then: true,
		},
		"Now": {
			set: func() time.Time { return past },
			see: func(t *testing.T, c ramp.ClientConfig) (got any) {
				synctest.Test(t, func(t *testing.T) {
					c.HTTPClient = &http.Client{Transport: &script{start: time.Now(), steps: steps{status(200, nil, okAnswer)}}}
					started := ramp.Must(call(t, c))
					got = started.ExpiresAt.UTC()
				})
				return got
			},
			required: time.Date(2000, 1, 1, 0, 5, 0, 0, time.UTC), then: past.Add(5 * time.Minute), // a bubble begins in 2000
		},
	}
	maps.Copy(trials, networkTrials(wire, func(t *testing.T, c ramp.ClientConfig) error { _, err := call(t, c); return err }))
	tryFields(t, required, trials)
}

func TestEveryFieldOfAnRPCConfig(t *testing.T) {
	const url = "https://node.example.com"
	required := func(*testing.T) ramp.RPCConfig { return ramp.RPCConfig{URL: url} }
	wire := &overWire{Transport: &chain{head: 7}}
	call := func(t *testing.T, c ramp.RPCConfig) error {
		client, err := ramp.NewRPC(c)
		if err != nil {
			return err
		}
		_, err = client.BlockNumber(t.Context())
		return err
	}
	seen := func(of func(*http.Request) any) func(*testing.T, ramp.RPCConfig) any {
		return func(t *testing.T, c ramp.RPCConfig) any {
			c.HTTPClient = &http.Client{Transport: wire}
			require.NoError(t, call(t, c))
			return of(wire.asked)
		}
	}
	own := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"ramp-go"}}
	withKey := own.Clone()
	withKey.Set("X-Api-Key", "k")
	var watched watcher

	trials := map[string]trial[ramp.RPCConfig]{
		"Observer": {
			set: watched.observer(),
			see: func(t *testing.T, c ramp.RPCConfig) any {
				c.HTTPClient = &http.Client{Transport: wire}
				require.NoError(t, call(t, c))
				return watched.take()
			},
			required: "", then: "start rpc eth_blockNumber, start attempt eth_blockNumber, end attempt eth_blockNumber, end rpc eth_blockNumber",
		},
		"URL": {
			set:      "https://other.example.com/v3/key?a=b",
			see:      seen(func(r *http.Request) any { return r.URL.String() }),
			required: url, then: "https://other.example.com/v3/key?a=b",
		},
		"Header": {
			set:      http.Header{"x-api-key": {"k"}},
			see:      seen(func(r *http.Request) any { return r.Header }),
			required: own, then: withKey,
		},
		"Fallback": {
			set: func(c *ramp.RPCConfig) { c.Fallback.URL = "https://fallback.example.com" },
			see: func(t *testing.T, c ramp.RPCConfig) any {
				c.Retries = -1
				return counted(t, func(t *testing.T, h *http.Client) { c.HTTPClient = h; _ = call(t, c) })
			},
			required: 1, then: 2,
		},
		"BatchSize": {
			set: 1,
			see: func(t *testing.T, c ramp.RPCConfig) any {
				node := &chain{}
				c.HTTPClient = &http.Client{Transport: node}
				calls := []ramp.BatchCall{{Method: "eth_chainId"}, {Method: "eth_chainId"}}
				require.NoError(t, ramp.Must(ramp.NewRPC(c)).Batch(t.Context(), calls))
				return node.requests
			},
			required: 1, then: 2,
		},
		"ChainID": {
			set: 1,
			see: func(t *testing.T, c ramp.RPCConfig) any {
				c.HTTPClient = &http.Client{Transport: &chain{}}
				return errors.Is(call(t, c), ramp.ErrWrongChain)
			},
			required: false, then: true,
		},
		"PollInterval": {
			set: time.Minute,
			see: func(t *testing.T, c ramp.RPCConfig) (got any) {
				synctest.Test(t, func(t *testing.T) {
					node := &chain{receipt: "null"}
					node.after(time.Millisecond, func() { node.receipt = mined(10, blockA) })
					c.HTTPClient = &http.Client{Transport: node}
					start := time.Now()
					ramp.Must(ramp.Must(ramp.NewRPC(c)).WaitReceipt(t.Context(), common.MaxHash, 1))
					got = time.Since(start)
				})
				return got
			},
			required: time.Second, then: time.Minute,
		},
	}
	maps.Copy(trials, networkTrials(wire, call))
	tryFields(t, required, trials)
}

func TestEveryFieldOfAnSQLStoreConfig(t *testing.T) {
	db, other := breaking(errRecorded), breaking(errRecorded)
	required := func(*testing.T) ramp.SQLStoreConfig {
		return ramp.SQLStoreConfig{DB: sql.OpenDB(db), Dialect: ramp.SQLite, Apply: applyNothing}
	}
	update := func(t *testing.T, c ramp.SQLStoreConfig) {
		*db, *other = *breaking(errRecorded), *breaking(errRecorded)
		store := ramp.Must(ramp.NewSQLStore(c))
		r := ramp.Must(ramp.ParseValidate(validateCall().bytes()))
		_, err := store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "session-1"}, r, time.Now()))
		require.ErrorIs(t, err, errRecorded)
	}

	tryFields(t, required, map[string]trial[ramp.SQLStoreConfig]{
		"DB": {
			set: sql.OpenDB(other),
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				update(t, c)
				return [2]bool{db.begins > 0, other.begins > 0}
			},
			required: [2]bool{true, false}, then: [2]bool{false, true},
		},
		"Dialect": {
			set: ramp.PostgreSQL,
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				update(t, c)
				return strings.Contains(db.statements, "$1")
			},
			required: false, then: true,
		},
		"Apply": {
			set: nil, // what it is called with, internal/dbtest tests on databases
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				_, err := ramp.NewSQLStore(c)
				return err == nil
			},
			required: true, then: false,
		},
		"TxOptions": {
			set: &sql.TxOptions{Isolation: sql.LevelSerializable},
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				update(t, c)
				return sql.IsolationLevel(db.options.Isolation)
			},
			required: sql.LevelDefault, then: sql.LevelSerializable,
		},
		"Retries": {
			set: 2,
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				c.Retryable = func(error) bool { return true }
				update(t, c)
				return db.begins
			},
			required: 4, then: 3,
		},
		"Retryable": {
			set: func(err error) bool { return errors.Is(err, errRecorded) },
			see: func(t *testing.T, c ramp.SQLStoreConfig) any {
				update(t, c)
				return db.begins
			},
			required: 1, then: 4,
		},
	})
}

// Changing a config after it was used has no effect.
func TestConfigsAreCopied(t *testing.T) {
	wire := &overWire{Transport: &chain{head: 7}}
	client := &http.Client{Transport: wire}
	header := http.Header{"X-Api-Key": {"k"}}
	rpc := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", Header: header, HTTPClient: client}))
	api := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(), HTTPClient: client}))
	header["X-Api-Key"][0] = "another"
	header.Set("X-More", "more")
	client.Transport = &script{steps: steps{disconnect}}

	ramp.Must(rpc.BlockNumber(t.Context()))
	assert.Equal(t, "k", wire.asked.Header.Get("X-Api-Key"))
	assert.Empty(t, wire.asked.Header.Get("X-More"))
	assert.Nil(t, client.CheckRedirect)
	wire.Transport = &script{steps: steps{status(200, nil, okAnswer)}}
	_, err := api.Initialize(t.Context(), testRequest())
	assert.NoError(t, err)

	db := breaking(errRecorded)
	begin := sql.TxOptions{Isolation: sql.LevelSerializable}
	store := ramp.Must(ramp.NewSQLStore(ramp.SQLStoreConfig{DB: sql.OpenDB(db), Dialect: ramp.SQLite, Apply: applyNothing, TxOptions: &begin}))
	begin.Isolation = sql.LevelReadCommitted
	r := mintRequest()
	_, err = store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "session-1"}, r, time.Now()))
	assert.ErrorIs(t, err, errRecorded)
	assert.Equal(t, sql.LevelSerializable, sql.IsolationLevel(db.options.Isolation))
}

// overWire remembers the last request.
type overWire struct {
	Transport http.RoundTripper
	asked     *http.Request
}

func (w *overWire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = r.Clone(context.Background())
	return w.Transport.RoundTrip(r)
}

// loggedBy counts the records that a call sends to the default logger and to log.
func loggedBy(t *testing.T, log *bytes.Buffer, call func()) [2]int {
	t.Helper()
	var byDefault bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&byDefault, nil)))
	log.Reset()
	call()
	return [2]int{bytes.Count(byDefault.Bytes(), []byte("\n")), bytes.Count(log.Bytes(), []byte("\n"))}
}

// timed returns the duration of a call that is never answered.
func timed(t *testing.T, call func(*testing.T, *http.Client)) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		call(t, &http.Client{Transport: &script{steps: steps{hang}}})
		took = time.Since(start)
	})
	return took
}

// counted returns the number of attempts of a call whose connections break.
func counted(t *testing.T, call func(*testing.T, *http.Client)) (attempts int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: steps{disconnect}}
		call(t, &http.Client{Transport: s})
		attempts = len(s.sent)
	})
	return attempts
}

var errRecorded = errors.New("recorded")

type strictPlayers struct{ noPlayers }

func (strictPlayers) Authenticate(context.Context, ramp.Session) error { return io.EOF }
