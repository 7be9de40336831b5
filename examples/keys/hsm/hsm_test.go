package hsm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/miekg/pkcs11"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// newToken makes a token of SoftHSM for one test. One process can have one at a time.
func newToken(t *testing.T) Config {
	t.Helper()
	c := Config{Token: "game", PIN: "1234", Label: "ramp validator"}
	for _, path := range []string{
		"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so",
		"/usr/local/lib/softhsm/libsofthsm2.so", "/opt/homebrew/lib/softhsm/libsofthsm2.so",
	} {
		if _, err := os.Stat(path); err == nil {
			c.Library = path
		}
	}
	if c.Library == "" {
		t.Skip("*** NOT TESTED: a key in an HSM, because softhsm2 is not installed ***")
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "softhsm2.conf")
	text := "directories.tokendir = " + dir + "\nlog.level = ERROR\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOFTHSM2_CONF", settings)
	if out, err := exec.Command("softhsm2-util", "--init-token", "--free", "--label", c.Token, "--pin", c.PIN,
		"--so-pin", "5678").CombinedOutput(); err != nil {
		t.Fatalf("softhsm2-util: %v\n%s", err, out)
	}
	return c
}

// openedKey returns a new key in a new token.
func openedKey(t *testing.T) *Key {
	t.Helper()
	c := newToken(t)
	if err := Generate(c); err != nil {
		t.Fatal(err)
	}
	k, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// bank is a game whose only player has gold.
type bank struct {
	mu   sync.Mutex
	gold int64
}

var alice = ramp.Session{ID: "alice", Token: ramp.NewAccessToken("secret")}

func (*bank) Authenticate(_ context.Context, s ramp.Session) error {
	if s.ID != alice.ID || !s.Token.Equal(alice.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (b *bank) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &ramp.Player{PlayerID: "alice", Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(b.gold)}}}, nil
}

func (b *bank) Apply(_ context.Context, step ramp.Step) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asset := range step.Effect.Assets { // only gold
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil || step.Effect.Kind == ramp.Take && b.gold+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		b.gold += delta
	}
	return nil
}

func TestAKeyInATokenSignsOrders(t *testing.T) {
	key := openedKey(t)
	game := &bank{gold: 1000}
	gold := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	terms := must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: []ramp.Product{{Name: "gold", Token: "0x00000000000000000000000000000000000070c3",
			Materials: gold, Outputs: gold}}}))(t)
	console := must(ramp.TextKey("key of the console"))(t)
	handler := must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Terms: terms, Key: console,
		Store: &ramp.MemoryStore{Apply: game.Apply}, Signer: key.Signer()}))(t)
	if err := handler.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	service := ramptest.Start(t, ramptest.Config{Key: console, Validator: key.Signer().Address(), Handler: handler,
		Closed: true})
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: console, Terms: terms,
		HTTPClient: service.Client()}))(t)
	type call = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
		...ramptest.Fault) (*ramptest.PlacedOrder, error)
	trade := func(call call, tokens int64, faults ...ramptest.Fault) {
		t.Helper()
		started := must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
		if _, err := call(t.Context(), started.UUID, alice, ramp.NewAmount(tokens), faults...); err != nil {
			t.Fatal(err)
		}
		service.Advance(time.Hour)
	}
	trade(service.Mint, 3, ramptest.ValidateTwice())
	trade(service.Mint, 2, ramptest.TransactionFails())
	trade(service.Burn, 1)
	if game.gold != 1000-300+100 {
		t.Errorf("alice has %d gold", game.gold)
	}
}

func TestNobodyReadsTheKey(t *testing.T) {
	k := openedKey(t)
	s := must(k.login(0))(t)
	private := must(k.object(s, pkcs11.CKO_PRIVATE_KEY))(t)
	_, err := k.module.GetAttributeValue(s, private, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_VALUE, nil)})
	if err != pkcs11.Error(pkcs11.CKR_ATTRIBUTE_SENSITIVE) {
		t.Errorf("the token answered %v", err)
	}
}

// A wrong key, or a wrong setting, is an error when the key is opened, and says what it is.
func TestOpenRejects(t *testing.T) {
	c := newToken(t)
	with := func(change func(*Config)) Config {
		changed := c
		change(&changed)
		return changed
	}
	labeled := func(label string) Config { return with(func(c *Config) { c.Label = label }) }
	p256 := []byte{0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}
	for _, err := range []error{
		Generate(c),
		generate(labeled("of P-256"), p256, true),
		generate(labeled("for everybody"), secp256k1, false),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"no library": {with(func(c *Config) { c.Library = "/no/library.so" }),
			"hsm: /no/library.so cannot be loaded as a PKCS #11 library"},
		"another token": {with(func(c *Config) { c.Token = "other" }),
			fmt.Sprintf(`hsm: %s has no token with the label "other"`, c.Library)},
		"a wrong PIN": {with(func(c *Config) { c.PIN = "9999" }),
			`hsm: login to the token "game": pkcs11: 0xA0: CKR_PIN_INCORRECT`},
		"no key": {labeled("lost"), `hsm: the token "game" has no private key "lost"`},
		"a key of P-256": {labeled("of P-256"), `hsm: the key "of P-256": ramp: validator key is unusable: ` +
			"it is not a point on secp256k1: the key must be on this curve"},
		"a key that can be read": {labeled("for everybody"),
			`hsm: the key "for everybody" can be read out of the token: Generate another one`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(tt.config); err == nil || err.Error() != tt.want {
				t.Errorf("the error is %v\nand must be   %s", err, tt.want)
			}
		})
	}
	if err := Generate(c); err == nil || err.Error() != `hsm: the token "game" has a key "ramp validator"` {
		t.Errorf("a second key: %v", err)
	}
}

func digest(n byte) ramp.Digest { return ramp.Digest(crypto.Keccak256([]byte{n})) }

// checkSigns signs many digests at the same time.
func checkSigns(t *testing.T, signer *ramp.Signer) {
	t.Helper()
	var group sync.WaitGroup
	for n := range byte(4 * atOnce) {
		group.Go(func() {
			signature, err := signer.Sign(t.Context(), digest(n))
			if err != nil {
				t.Error(err)
			} else if by, err := ramp.Recover(digest(n), signature); err != nil || by != signer.Address() {
				t.Errorf("%s signed", by)
			}
		})
	}
	group.Wait()
}

func TestSessionsThatEndAreOpenedAgain(t *testing.T) {
	k := openedKey(t)
	checkSigns(t, k.Signer())
	if err := k.module.CloseAllSessions(k.slot); err != nil { // as a token does when it restarts
		t.Fatal(err)
	}
	checkSigns(t, k.Signer())
}

// A token locks itself after a few wrong PINs, so a server tries one only once.
func TestAWrongPINIsTriedOnce(t *testing.T) {
	k := openedKey(t)
	right := k.config.PIN
	k.config.PIN = "9999" // as if it was changed in the token
	const want = `ramp: sign: hsm: sign with the key "ramp validator": hsm: the token "game" has rejected the PIN`
	for range 2 * atOnce {
		if _, err := k.Signer().Sign(t.Context(), digest(1)); err == nil || err.Error() != want {
			t.Errorf("the error is %v", err)
		}
	}
	k.config.PIN = right
	k.wrongPIN.Store(false)
	checkSigns(t, k.Signer())
}

// A token that hangs holds no call longer than the handler waits, and a call that has ended
// signs nothing later.
func TestATokenThatHangs(t *testing.T) {
	k := openedKey(t)
	var held []session
	for range atOnce {
		held = append(held, <-k.free)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := k.sign(ctx, make([]byte, 32)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	for _, s := range held {
		k.free <- s
	}
	checkSigns(t, k.Signer())
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

// A program logs its settings.
func TestAConfigShowsNoPIN(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		shown := fmt.Sprintf(verb, Config{Token: "game", PIN: "123456", Label: "key"})
		if shown != `"key" in token "game"` {
			t.Errorf("%s: %s", verb, shown)
		}
	}
}
