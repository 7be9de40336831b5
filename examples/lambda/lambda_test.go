package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"

	dynamostore "github.com/token-ramp/ramp-go/examples/stores/dynamodb"
	"github.com/token-ramp/ramp-go/examples/stores/dynamodb/imitation"
)

const (
	hmacKey = "a key of the console"
	secret  = "a secret of the login"
	token   = "0x00000000000000000000000000000000000070c3"
)

// TestMain is also the function: the process that the cloud starts.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// account is an account of AWS, with the tables and the key.
type account struct {
	game      *game
	validator common.Address
	key       ramp.HMACKey
	env       []string
	hang      atomic.Bool // DynamoDB does not answer
	noKey     atomic.Bool // KMS fails
}

func newAccount(t *testing.T) *account {
	a := &account{key: must(ramp.TextKey(hmacKey))(t)}
	database, stop := imitation.Start()
	t.Cleanup(stop)
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.hang.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // then the server notices that the client has gone
			<-r.Context().Done()
			return
		}
		database.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { dynamo.CloseClientConnections(); dynamo.Close() })
	key := must(crypto.GenerateKey())(t)
	a.validator = crypto.PubkeyToAddress(key.PublicKey)
	kms := httptest.NewServer(&keys{key: key, fails: &a.noKey})
	t.Cleanup(kms.Close)

	store := &dynamostore.Store{Orders: "orders", Balances: "balances", Client: dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &database.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		})})}
	for _, table := range store.Tables() {
		must(store.Client.CreateTable(t.Context(), table))(t)
	}
	a.game = &game{store, []byte(secret)}
	a.env = []string{"AWS_ENDPOINT_URL_DYNAMODB=" + dynamo.URL, "AWS_ENDPOINT_URL_KMS=" + kms.URL,
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "RAMP_ORDERS=orders",
		"RAMP_BALANCES=balances", "RAMP_PROJECT=project-1", "RAMP_NETWORK=testnet", "RAMP_TOKEN=" + token,
		"RAMP_HMAC_KEY=" + hmacKey, "RAMP_KMS_KEY=alias/ramp", "RAMP_TOKEN_SECRET=" + secret, "RAMP_RPC_URL=none"}
	return a
}

// login returns the session of a player with gold.
func (a *account) login(ctx context.Context, name string, gold int64) (ramp.Session, error) {
	err := a.game.store.SetBalance(ctx, name, "gold", gold)
	return ramp.Session{ID: name, Token: a.game.token(name, time.Now().Add(time.Hour))}, err
}

// keys is KMS with one key.
type keys struct {
	key   *ecdsa.PrivateKey
	fails *atomic.Bool
}

func (k *keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Message []byte }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || k.fails.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	out := map[string]any{"KeyId": "arn:aws:kms:eu-central-1:111122223333:key/1", "KeySpec": "ECC_SECG_P256K1"}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetPublicKey") {
		curve, _ := asn1.Marshal(asn1.ObjectIdentifier{1, 3, 132, 0, 10})
		out["PublicKey"], _ = asn1.Marshal(struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}{pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1},
			Parameters: asn1.RawValue{FullBytes: curve}},
			asn1.BitString{Bytes: crypto.FromECDSAPub(&k.key.PublicKey), BitLength: 65 * 8}})
	} else {
		signature, err := crypto.Sign(in.Message, k.key)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		out["Signature"], _ = asn1.Marshal(struct{ R, S *big.Int }{
			new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:64])})
	}
	_ = json.NewEncoder(w).Encode(out)
}

// A copy of the function is frozen after each answer, and many are killed while they work on a result. No
// order is lost, and none moves twice.
func TestOrdersOutliveFrozenAndKilledFunctions(t *testing.T) {
	a := newAccount(t)
	c := newCloud(t, 10, a.env...)
	results := 0
	c.kill = func(path string) time.Duration {
		if path != ramp.PathResult {
			return 0
		}
		results++
		if results%5 == 0 {
			return 0 // it may end
		}
		return time.Duration(results%40) * time.Millisecond / 5
	}
	gateway := httptest.NewServer(c)
	t.Cleanup(gateway.Close)
	service := ramptest.Start(t, ramptest.Config{Key: a.key, Validator: a.validator, Game: gateway.URL, Closed: true})
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: a.key, Terms: terms(t)}))(t)
	session := must(a.login(t.Context(), "alice", 100_000))(t)
	rounds := 0
	for ; rounds < 6 || c.killed < 10 && rounds < 60; rounds++ { // a fast machine answers before many kills
		for _, play := range []func(uuid.UUID) error{
			func(id uuid.UUID) error {
				_, err := service.Mint(t.Context(), id, session, ramp.NewAmount(1), ramptest.TransactionFails())
				return err
			},
			func(id uuid.UUID) error {
				_, err := service.Mint(t.Context(), id, session, ramp.NewAmount(2))
				return err
			},
			func(id uuid.UUID) error {
				_, err := service.Burn(t.Context(), id, session, ramp.NewAmount(1))
				return err
			},
		} {
			order := must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
			if err := play(order.UUID); err != nil {
				t.Fatal(err)
			}
			service.Advance(13 * time.Hour) // all repeats of the result
		}
	}
	want := int64(100_000 - rounds*200 + rounds*100)
	if gold := must(a.game.store.Balance(t.Context(), "alice", "gold"))(t); gold != want {
		t.Errorf("%d gold instead of %d", gold, want)
	}
	t.Logf("%d cold starts, %d killed", c.cold, c.killed)
	if c.killed < 10 {
		t.Errorf("only %d copies were killed", c.killed)
	}
}

func terms(t *testing.T) *ramp.Terms {
	return must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products(token)}))(t)
}

// With a node, as the template deploys it: the chain proves each result, and a wallet belongs to one player.
func TestTheChainProvesEachResult(t *testing.T) {
	a := newAccount(t)
	c := newCloud(t, 10, a.env...)
	gateway := httptest.NewServer(c)
	t.Cleanup(gateway.Close)
	wallet := must(ramp.NewKeySigner(strings.Repeat("1", 64)))(t)
	service := ramptest.Start(t, ramptest.Config{Key: a.key, Validator: a.validator, Game: gateway.URL, Closed: true,
		Wallet: func(ramp.Session) *ramp.Signer { return wallet }})
	node := httptest.NewServer(service)
	t.Cleanup(node.Close)
	c.env = append(c.env, "RAMP_RPC_URL="+node.URL+"/rpc/testnet", "RAMP_CHAIN_ID=7002",
		"RAMP_PAYERS="+service.Payer().Hex(), "RAMP_CONTRACTS="+token)
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: a.key, Terms: terms(t)}))(t)
	order := func() uuid.UUID {
		return must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t).UUID
	}
	alice, bob := must(a.login(t.Context(), "alice", 1000))(t), must(a.login(t.Context(), "bob", 1000))(t)
	must(service.Mint(t.Context(), order(), alice, ramp.NewAmount(3)))(t)
	service.Advance(time.Minute)
	must(service.Burn(t.Context(), order(), alice, ramp.NewAmount(1)))(t)
	must(service.Mint(t.Context(), order(), alice, ramp.NewAmount(1), ramptest.TransactionFails(),
		ramptest.TransactionType(7)))(t) // paid by the ramp: a failure of the player's own would prove nothing
	service.Advance(time.Minute)
	if gold := must(a.game.store.Balance(t.Context(), "alice", "gold"))(t); gold != 800 {
		t.Errorf("%d gold instead of 800", gold)
	}
	var rejected *ramptest.Rejection
	_, err := service.Mint(t.Context(), order(), bob, ramp.NewAmount(1))
	if !errors.As(err, &rejected) || rejected.Code != "INVALID_WALLET" {
		t.Errorf("another player uses the wallet: %v", err)
	}
	service.Advance(time.Hour) // so that the blocks are final
	for _, job := range []string{"check", "books"} {
		jobs := newCloud(t, 1, append(c.env, "RAMP_FUNCTION="+job)...)
		jobs.limit = 20 * time.Second
		if out, err := jobs.invoke("", []byte("{}")); err != nil || string(out) != "null" {
			t.Errorf("%s: %s, %v", job, out, err)
		}
	}
	if text := must(position{a.game.store}.Read(t.Context()))(t); len(text) == 0 {
		t.Error("the books keep no position")
	}
}

// The judge finds nothing.
func TestTheJudgeFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	a := newAccount(t)
	c := newCloud(t, 100, a.env...)
	gateway := httptest.NewServer(c)
	t.Cleanup(gateway.Close)
	conformance.Test(t, conformance.Server{URL: gateway.URL, Key: a.key, Validator: a.validator,
		ProjectID: "project-1", Token: token, Asset: "gold", Amount: 200, Tokens: 2, OneAsset: true,
		Player: func(ctx context.Context, name string) (ramp.Session, error) {
			return a.login(ctx, name, 100_000)
		},
		Restart: func(context.Context) error { c.stop(); gateway.CloseClientConnections(); return nil },
	})
	if own := c.answeredItself(); len(own) > 0 {
		t.Errorf("the gateway answered in place of the function: %v", own)
	}
}

// send sends a result, and returns the answer's status.
func send(t *testing.T, a *account, url string) int {
	t.Helper()
	body := fmt.Sprintf(`{"session_id":"alice","uuid":%q,"tx_hash":"0x%064x","receipt":{"status":"0x1"},"intent":{}}`,
		uuid.New(), 1)
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, url+ramp.PathResult, strings.NewReader(body)))(t)
	r.Header.Set("X-HMAC-SIGNATURE", a.key.Sign([]byte(body)))
	answer := must(http.DefaultClient.Do(r))(t)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Whatever hangs or fails, the function answers 500 itself, before it would be killed.
func TestTheFunctionAnswersBeforeItsEnd(t *testing.T) {
	a := newAccount(t)
	c := newCloud(t, 1, a.env...)
	c.own = 504 // so that the gateway's own answers are seen
	gateway := httptest.NewServer(c)
	t.Cleanup(gateway.Close)

	a.noKey.Store(true)
	if status := send(t, a, gateway.URL); status != 500 {
		t.Errorf("without the key: HTTP %d", status)
	}
	a.noKey.Store(false) // the same copy makes its handler now
	if status := send(t, a, gateway.URL); status != 500 {
		t.Errorf("of an unknown order: HTTP %d", status)
	}
	a.hang.Store(true)
	c.limit = 1500 * time.Millisecond
	begun := time.Now()
	if status := send(t, a, gateway.URL); status != 500 || time.Since(begun) > c.limit {
		t.Errorf("while DynamoDB hangs: HTTP %d after %v", status, time.Since(begun))
	}
	if c.cold != 1 || len(c.answeredItself()) > 0 {
		t.Errorf("%d copies; the gateway answered %v", c.cold, c.answeredItself())
	}
}

// A gateway that cannot change its own answers loses results: this is what template.yaml prevents.
func TestTheGatewayAnswersForAFunctionThatIsGone(t *testing.T) {
	a := newAccount(t)
	for own, want := range map[int]int{500: 500, 502: 502} {
		c := newCloud(t, 1, a.env...)
		c.own, c.kill = own, func(string) time.Duration { return time.Nanosecond }
		gateway := httptest.NewServer(c)
		if status := send(t, a, gateway.URL); status != want || len(c.answeredItself()) != 1 {
			t.Errorf("HTTP %d instead of %d, %v", status, want, c.answeredItself())
		}
		gateway.Close()
	}
}

// The jobs, each as a process: the deployment's check, and the books of an hour.
func TestJobs(t *testing.T) {
	a := newAccount(t)
	for _, job := range []string{"check", "books"} {
		c := newCloud(t, 1, append(a.env, "RAMP_FUNCTION="+job)...)
		c.limit = 20 * time.Second
		if out, err := c.invoke("", []byte("{}")); err != nil || string(out) != "null" {
			t.Errorf("%s: %s, %v", job, out, err)
		}
	}
	c := newCloud(t, 1, append(a.env, "RAMP_FUNCTION=check", "RAMP_BALANCES=misspelled")...)
	if _, err := c.invoke("", []byte("{}")); err == nil {
		t.Error("the check has not found that a table is missing")
	}
	p := position{a.game.store}
	if text := must(p.Read(t.Context()))(t); text != nil {
		t.Errorf("the position is %q before the first books", text)
	}
	want := rand.Text()
	if err := p.Write(t.Context(), []byte(want)); err != nil {
		t.Fatal(err)
	}
	if text := must(p.Read(t.Context()))(t); string(text) != want {
		t.Errorf("the position is %q instead of %q", text, want)
	}
}

// A path is what stands behind a stage or the path of a domain.
func TestPath(t *testing.T) {
	for want, e := range map[string]request{
		"/api/result": {Resource: "/{proxy+}", Path: "/base/api/result",
			PathParameters: map[string]string{"proxy": "api/result"}},
		"/api/assets": {Resource: "/api/{proxy+}", Path: "/api/assets",
			PathParameters: map[string]string{"proxy": "assets"}},
		"/other": {Resource: "/other", Path: "/other"},
	} {
		if got := path(e); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
