package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// incident is a game with one server, the service with its chain, and the commands of an
// operator. The tests play the runbooks of docs/on-call.md and docs/operations.md with it, from beginning to end.
type incident struct {
	*testing.T
	address string
	flags   []string // of the server and of the commands
	more    []string // of the server
	server  *process
	logged  string // by the last command
	state   string // of the service
	file    *ramptest.StateFile
	service *ramptest.Service
	client  *ramp.Client
}

func newIncident(t *testing.T, more ...string) *incident {
	t.Helper()
	return incidentOn(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), more...)
}

// incidentOn is an incident with a database that has no tables yet.
func incidentOn(t *testing.T, address string, more ...string) *incident {
	t.Helper()
	i := &incident{T: t, address: address, state: filepath.Join(t.TempDir(), "service"), more: more}
	i.console(hmacKey, validatorKey)
	i.flags = []string{"-db", i.address, "-chain-id", "1112", "-decimals", "18", "-payers", i.service.Payer().Hex(),
		"-contracts", token, "-project", "project", "-token", token, "-network", "testnet"}
	migrated(t, i.address)
	i.deploy(hmacKey, validatorKey)
	return i
}

// console starts the service with the keys that its console has. It keeps its orders and its
// chain. i.deploy tells it the address of the server.
func (i *incident) console(hmac, validator string) {
	i.Helper()
	listen := freeAddress(i.T)
	if i.service != nil {
		listen = strings.TrimPrefix(i.server.url, "http://")
		i.service.Close()
		check(i.T, i.file.Close())
	}
	i.file = must(ramptest.OpenState(i.state))(i.T)
	i.service, i.client = serviceWith(i.T, hmac, validator,
		ramptest.Config{Game: "http://" + listen, Standalone: ramptest.Standalone{State: i.file},
			Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}, Audit: ramptest.AuditReport,
			BlockTime: time.Second / 2}) // results fail until they are finished by hand
	if i.server == nil {
		i.more = append([]string{"-addr", listen}, i.more...)
	}
}

// deploy replaces the server by one with these keys.
func (i *incident) deploy(hmac, validator string, env ...string) {
	i.Helper()
	if i.server != nil {
		i.server.kill()
	}
	i.server = &process{t: i.T, args: slices.Concat(i.flags, i.more),
		env: append([]string{"RAMP_HMAC_KEY=" + hmac, "RAMP_VALIDATOR_KEY=" + validator,
			"RAMP_RPC_URL=" + i.service.RPCURL(ramp.Testnet), "RAMP_API_URL=" + i.service.URL(),
			"RAMP_FRONTEND_URL=" + i.service.URL()}, env...)}
	i.server.start()
	i.Cleanup(i.server.kill)
}

// desk runs a command of the operator.
func (i *incident) desk(args ...string) (string, error) {
	i.Helper()
	words := 1
	if args[0] == "orders" {
		words = 2
	} else {
		backdate(i.T, i.address)
	}
	printed, logged, err := command(i.T, map[string]string{"RAMP_RPC_URL": i.service.RPCURL(ramp.Testnet)},
		slices.Concat(args[:words], i.flags, args[words:])...)
	i.logged = logged
	return printed, err
}

// initialize asks for a UUID to mint a token for 10 gems, or burn one.
func (i *incident) initialize() uuid.UUID {
	i.Helper()
	gems := []ramp.Item{{ID: itemGem, Amount: ramp.NewAmount(10), IconURL: "https://example.com/icons/gem.png"}}
	return must(i.client.Initialize(i.Context(),
		ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project",
			Token: token, MintFeeBps: 100, Materials: gems, Outputs: gems}}))(i.T).UUID
}

// mint asks for a mint. A closed shop declines it.
func (i *incident) mint(s ramp.Session, faults ...ramptest.Fault) (*ramptest.PlacedOrder, error) {
	i.Helper()
	return i.service.Mint(i.Context(), i.initialize(), s, ramp.NewAmount(1), faults...)
}

// mustMint mints until the transaction has ended.
func (i *incident) mustMint(s ramp.Session, faults ...ramptest.Fault) *ramptest.PlacedOrder {
	i.Helper()
	order := must(i.mint(s, faults...))(i.T)
	i.service.Advance(time.Minute)
	return order
}

// post makes a call with a signature of the body, and returns the status.
func (i *incident) post(path, key, body string) int {
	i.Helper()
	signer := must(ramp.TextKey(key))(i.T)
	request := must(http.NewRequestWithContext(i.Context(), http.MethodPost, i.server.url+path,
		strings.NewReader(body)))(i.T)
	if key != "none" {
		request.Header.Set(ramp.HeaderHMAC, signer.Sign([]byte(body)))
	}
	response := must(http.DefaultClient.Do(request))(i.T)
	check(i.T, response.Body.Close())
	return response.StatusCode
}

// waits checks how many mints wait.
func (i *incident) waits(want int) {
	i.Helper()
	if printed := must(i.desk("orders", "count"))(i.T); !regexp.MustCompile(fmt.Sprintf(`(?m)^0s +%d +0$`,
		want)).MatchString(printed) {
		i.Errorf("%d mints wait:\n%s", want, printed)
	}
}

// starts starts an exchange as the game's client does.
func (i *incident) starts(s ramp.Session, status int, want string) {
	i.Helper()
	var answer struct{ URL, Error string }
	if got := call(i.T, i.server.url+"/exchange", map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()},
		&answer); got != status ||
		!strings.Contains(answer.URL+answer.Error, want) {
		i.Errorf("/exchange answers %d: %+v", got, answer)
	}
}

// closed closes the shop, and checks that no player can trade.
func (i *incident) closed(s ramp.Session) {
	i.Helper()
	turn(i.T, "close", i.address)
	i.starts(s, 503, "the shop is closed")
	if _, err := i.mint(s); !declined(err) {
		i.Errorf("in the closed shop: %v", err)
	}
}

// opened opens the shop, and tests it with a small mint.
func (i *incident) opened(s ramp.Session) {
	i.Helper()
	turn(i.T, "open", i.address)
	i.starts(s, 200, "/exchange?uuid=")
	order := i.mustMint(s)
	confirmed(i.T, i.service, order)
}

// finished ends an order with the transaction that proves its end.
func (i *incident) finished(order *ramptest.PlacedOrder) {
	i.Helper()
	printed := must(i.desk("orders", "show", order.UUID.String()))(i.T)
	own := regexp.MustCompile(`(0x[0-9a-f]{64})  block`).FindStringSubmatch(printed)
	says(i.T,
		must(i.desk("orders", "finish", "-who", "alice", "-reason", "case 17", "-tx", own[1],
			order.UUID.String()))(i.T), "is succeeded")
}

const (
	newHMAC      = "a new key"
	newValidator = "0x2234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
)

// Closing the shop, and rotating the HMAC key after it leaked.
func TestTheRunbookOfALeakedHMACKey(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order := i.mustMint(s, ramptest.ResultNever())

	i.closed(s)
	i.console(newHMAC, validatorKey)
	i.deploy(newHMAC, validatorKey)
	equal(t, "the thief's call", i.post(ramp.PathValidate, hmacKey, "{}"), 401)
	i.waits(1)
	i.finished(order)
	i.waits(0)
	must(i.desk("reconcile"))(t)
	i.opened(s)
}

// The thief has minted with the old key. The books find it.
func TestTheRunbookOfALeakedValidatorKey(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order := i.mustMint(s, ramptest.ResultNever())
	i.mustMint(s, ramptest.MintedByStranger())

	i.closed(s)
	i.console(hmacKey, newValidator)
	i.deploy(hmacKey, newValidator)
	i.finished(order)
	if printed, err := i.desk("reconcile"); err == nil || !strings.Contains(printed, "event_without_order") {
		t.Errorf("the books: %v\n%s", err, printed)
	}
	i.opened(s)
}

// Making a validator key with the documented command, and replacing the old one by plan: its
// signatures are used up before the console changes.
func TestTheRunbookOfANewValidatorKey(t *testing.T) {
	command := regexp.MustCompile("`(openssl [^`]*)`").FindStringSubmatch(document(t, "operations.md"))
	words := strings.Fields(command[1])
	key := strings.TrimSpace(string(must(exec.Command(words[0], words[1:]...).Output())(t)))
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	must(i.mint(s))(t)

	i.closed(s)
	i.waits(1)
	i.service.Advance(5 * time.Minute)
	i.waits(0)
	i.console(hmacKey, key)
	i.deploy(hmacKey, key)
	signer := must(ramp.NewKeySigner(key))(t)
	equal(t, "the address that the server says",
		strings.ToLower(i.server.log.find(t, `"validator":"(0x[0-9a-fA-F]{40})"`)),
		strings.ToLower(signer.Address().Hex()))
	i.opened(s)
}

// Rotating the HMAC key by plan. Then a server has the wrong key, and its log says so.
func TestTheRunbookOfANewHMACKey(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	i.mustMint(s, ramptest.TransactionFails(), ramptest.TransactionType(7), ramptest.ResultLate(6*time.Minute))

	i.deploy(hmacKey, validatorKey, "RAMP_HMAC_KEY_PREVIOUS="+newHMAC) // the first of several servers
	i.opened(s)
	i.console(newHMAC, validatorKey)
	i.deploy(newHMAC, validatorKey, "RAMP_HMAC_KEY_PREVIOUS="+hmacKey)
	i.service.Advance(10 * time.Minute)
	owns(t, i.service, s, "1000000/9990")
	equal(t, "a repeat with the old key", i.post(ramp.PathResult, hmacKey, "{}"), 500)
	i.server.log.find(t, `("previous_key":1)`)
	i.deploy(newHMAC, validatorKey) // after 13 hours
	i.opened(s)

	order := must(i.mint(s, ramptest.ResultLate(2*time.Minute)))(t)
	i.deploy(hmacKey, validatorKey) // by mistake
	i.service.Advance(3 * time.Minute)
	i.server.log.find(t, `("outcome":"HMAC_INVALID")`)
	i.deploy(hmacKey, validatorKey, "RAMP_HMAC_KEY_PREVIOUS="+newHMAC)
	i.service.Advance(time.Hour)
	confirmed(t, i.service, order)
}

// Each call that is not genuine, or not received as it was sent, says in the log what to look at.
func TestTheRunbookOfForgedCalls(t *testing.T) {
	i := newIncident(t)
	for outcome, c := range map[string]struct{ path, key, body, names string }{
		"HMAC_INVALID":   {ramp.PathResult, newHMAC, "{}", ""},
		"HMAC_MISSING":   {ramp.PathResult, "none", "{}", ""},
		"BODY_TOO_LARGE": {ramp.PathResult, hmacKey, strings.Repeat(" ", 1<<20+1), "1048576"},
		"NOT_FOUND":      {"/ramp/result", hmacKey, "{}", "/ramp/result"},
	} {
		equal(t, outcome, i.post(c.path, c.key, c.body), 500)
		says(t, i.server.log.find(t, `(.*"outcome":"`+outcome+`".*)`), c.names)
	}
}

// A person ended an order with the transaction of another one.
func TestTheRunbookOfATransactionThatEndedAnotherOrder(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	wrong := must(i.mint(s, ramptest.StaysPending()))(t)
	order := i.mustMint(s, ramptest.ResultNever())
	finish := []string{"orders", "finish", "-who", "bob", "-reason", "case 18", "-tx", order.TxHash.Hex()}
	if _, err := i.desk(append(finish, wrong.UUID.String())...); err == nil {
		t.Error("a transaction that fits two orders has ended one, and nobody was asked whose it is")
	}
	must(i.desk(append(finish, "-against-evidence", wrong.UUID.String())...))(t)
	if err := i.service.Resend(t.Context(), order); err == nil {
		t.Error("one transaction has ended two orders")
	}
	says(t, must(i.desk("orders", "conflicts"))(t), order.UUID.String(), "tx_hash")

	must(handle(t,
		i.address).Exec(regexp.MustCompile("`(UPDATE ramp_orders SET tx_hash = )'0x…'( WHERE uuid = ')<order 1>'`").
		ReplaceAllString(regexp.MustCompile("`UPDATE ramp_orders [^`]*`").FindString(document(t, "on-call.md")),
			"${1}NULL${2}"+wrong.UUID.String()+"'")))(t)
	check(t, i.service.Resend(t.Context(), order))
	must(i.desk("orders", "resolve", "-who", "bob", "-reason", "case 18", order.UUID.String()))(t)
	i.waits(0)
	owns(t, i.service, s, "1000000/9980")
}

// A full disk fails every write, and nothing is lost.
func TestTheRunbookOfAFullDisk(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order := must(i.mint(s, ramptest.TransactionFails(), ramptest.TransactionType(7)))(t)
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("*** NOT TESTED: prlimit is not installed ***")
	}
	limit := func(size string) { // the soft limit, which may be raised again
		t.Helper()
		out, err := exec.Command("prlimit", "--pid", strconv.Itoa(i.server.command.Process.Pid),
			"--fsize="+size+":").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	limit("1")
	if sent := i.service.Advance(time.Minute); len(sent) != 1 || sent[0].Status != 500 {
		t.Errorf("the result: %+v", sent)
	}
	if _, err := i.mint(s); err == nil {
		t.Error("a mint was approved")
	}
	equal(t, "/readyz", statusOf(t, http.DefaultClient, i.server.url+"/readyz"), 200)
	i.server.log.find(t, `("error":"[^"]*(?:disk|full|I/O))`)
	limit("unlimited")
	i.service.Advance(time.Hour)
	owns(t, i.service, s, "1000000/10000")
	confirmed(t, i.service, order)
}

// A candidate that does not prove the end of an order is no evidence, and keeps a person from
// abandoning it by mistake.
func TestTheRunbookOfACandidateThatDoesNotProve(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order := must(i.service.Burn(t.Context(), i.initialize(), s, ramp.NewAmount(2), ramptest.BurnsLess(),
		ramptest.ResultNever(), ramptest.TransactionType(7)))(t)
	i.service.Advance(time.Minute)
	before, id := owned(t, i.service, s), order.UUID.String()
	printed := must(i.desk("orders", "show", id))(t)
	says(t, printed, "does not prove")
	decide := func(command string, more ...string) (string, error) {
		return i.desk(slices.Concat([]string{"orders", command, "-who", "alice", "-reason", "case 18"}, more,
			[]string{id})...)
	}
	candidate := regexp.MustCompile(`(0x[0-9a-f]{64})  block`).FindStringSubmatch(printed)[1]
	_, err := decide("finish", "-tx", candidate)
	says(t, fmt.Sprint(err), rampproof.ErrNotProven.Error())
	_, err = decide("abandon")
	says(t, fmt.Sprint(err), candidate+" may be its own")
	_, err = decide("abandon", "-early", "-without-evidence")
	says(t, fmt.Sprint(err), candidate+" may be its own")
	_, err = decide("abandon", "-against-evidence")
	says(t, fmt.Sprint(err), "wait, or abandon it early")
	// the service names another
	says(t, must(decide("abandon", "-against-evidence", "-without-evidence", "-early"))(t), "is abandoned")
	owns(t, i.service, s, before)
}
