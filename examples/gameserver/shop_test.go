package main

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// turn closes or opens the shop.
func turn(t *testing.T, name, address string) string {
	t.Helper()
	var out, log bytes.Buffer
	check(t, run(t.Context(), []string{"shop", name, "-db", address, "-who", "alice", "-reason", "case 17"}, func(string) string { return "" }, &out, &log))
	if !strings.Contains(log.String(), `"msg":"`+name+`","who":"alice","reason":"case 17"`) {
		t.Errorf("it logged %s", &log)
	}
	return out.String()
}

// declined reports whether an error is the answer of a shop that is closed.
func declined(err error) bool {
	var rejected *ramptest.Rejection
	return errors.As(err, &rejected) && rejected.Code == "SHOP_CLOSED" && rejected.Status == 200
}

// One command stops every server, without a deploy: no new order is signed, and results
// are still taken.
func TestAClosedShopDeclinesNewOrdersOnEveryServer(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		first, second := deploy(t, address, "-any-rate"), deploy(t, address, "-any-rate")
		service, client := serviceOf(t, first.url)
		other, otherClient := serviceOf(t, second.url, ramptest.BooksOff) // another service, with wallets of the same players
		alice := login(t, first.url, "alice")
		gold := item(t, "item_gold", "100")
		fails, waits := initialize(t, client, gold), initialize(t, client, gold)
		before, err := service.Mint(t.Context(), fails, alice, ramp.NewAmount(1), ramptest.TransactionFails())
		check(t, err)
		_, err = service.Mint(t.Context(), waits, alice, ramp.NewAmount(1), ramptest.StaysPending())
		check(t, err)
		burn := initialize(t, client, gold)

		if printed := turn(t, "close", address); !strings.HasPrefix(printed, "The shop is closed. The last signature leaves before ") {
			t.Errorf("it printed %q", printed)
		}
		_, err = service.Mint(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1))
		_, failed := service.Burn(t.Context(), burn, alice, ramp.NewAmount(1))
		_, elsewhere := other.Mint(t.Context(), initialize(t, otherClient, gold), alice, ramp.NewAmount(1))
		_, again := service.Mint(t.Context(), waits, alice, ramp.NewAmount(1))
		if !declined(err) || !declined(failed) || !declined(elsewhere) || !declined(again) {
			t.Errorf("a mint: %v; a burn: %v; at the other server: %v; an accepted order again: %v", err, failed, elsewhere, again)
		}
		service.Advance(time.Minute)
		if service.State(before) != ramptest.Confirmed || owned(t, service, alice) != "999900/10000" {
			t.Errorf("the result of an order that was accepted before: %v, the player owns %s", service.State(before), owned(t, service, alice))
		}
		turn(t, "close", address) // again
		printed, _, err := desk(t, nil, "count", "-db", address)
		check(t, err)
		if !regexp.MustCompile(`(?m)^0s +1 +0$`).MatchString(printed) {
			t.Errorf("it counted\n%s", printed)
		}

		if printed := turn(t, "open", address); printed != "The shop is open.\n" {
			t.Errorf("it printed %q", printed)
		}
		_, err = service.Mint(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1))
		_, elsewhere = other.Mint(t.Context(), initialize(t, otherClient, item(t, "item_gem", "1")), login(t, second.url, "bob"), ramp.NewAmount(1))
		if err != nil || elsewhere != nil {
			t.Errorf("open: %v, %v", err, elsewhere)
		}
		service.Advance(time.Minute)
	})
}

func TestPlayersCannotStartInAClosedShop(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	p := start(t, address, "-metrics", freeAddress(t))
	s := login(t, p.url, "alice")
	exchange := func() (status int, text string) {
		var answer struct{ URL, Error string }
		status = call(t, p.url+"/exchange", map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()}, &answer)
		return status, answer.Error
	}
	turn(t, "close", address)
	if status, text := exchange(); status != 503 || text != "the shop is closed" {
		t.Errorf("closed: %d %s", status, text)
	}
	turn(t, "open", address)
	if status, text := exchange(); status != 200 {
		t.Errorf("open: %d %s", status, text)
	}
	p.kill()
	if err := run(t.Context(), []string{"shop", "close", "-db", address, "-who", "alice"}, func(string) string { return "" }, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, errUsage) {
		t.Errorf("without a reason: %v", err)
	}
}

// The alert about a conflict ends when a person has closed it, and comes back for no repeat.
func TestAConflictStaysOpenUntilAPersonClosesIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, _, err := (&settings{database: address}).open(t.Context(), true)
		check(t, err)
		defer game.db.Close()
		registry := prometheus.NewRegistry()
		game.observe(registry)
		metrics := served(t, registry)
		open := func(want string) {
			t.Helper()
			if got := scrape(t, metrics)["ramp_conflicts_open"]; got != want {
				t.Errorf("%s conflicts are open, not %s", got, want)
			}
		}
		open("0")
		id := uuid.New()
		happen := func() {
			check(t, game.keepConflict(t.Context(), &ramp.ConflictError{Order: ramp.Order{State: ramp.OrderFailed}, Field: "receipt.status"},
				&ramp.Result{UUID: id}))
		}
		happen()
		open("1")
		if _, _, err := desk(t, nil, "resolve", "-db", address, id.String()); !errors.Is(err, errUsage) {
			t.Errorf("closed by nobody: %v", err)
		}
		printed, _, err := desk(t, nil, "resolve", "-db", address, "-who", "alice", "-reason", "took back 100 item_gold", id.String())
		check(t, err)
		if printed != "The conflicts are closed.\n" {
			t.Errorf("it printed %q", printed)
		}
		printed, _, err = desk(t, nil, "conflicts", "-db", address)
		check(t, err)
		if !strings.Contains(printed, "alice: took back 100 item_gold") {
			t.Errorf("it listed\n%s", printed)
		}
		happen()
		open("0")
		if _, _, err := desk(t, nil, "resolve", "-db", address, "-who", "bob", "-reason", "again", id.String()); err == nil {
			t.Error("closed twice")
		}
	})
}

// incident is a game with one server and the commands of its operator.
type incident struct {
	*testing.T
	address, state string
	flags          []string
	server         *process
	service        *ramptest.Service
	client         *ramp.Client
	file           *ramptest.StateFile
}

// rotate starts the server with these keys, and the service with what its console then has.
// The service keeps its orders and its chain.
func (i *incident) rotate(hmac, validator string) {
	i.Helper()
	if i.server != nil {
		i.server.kill()
		i.service.Close()
		check(i.T, i.file.Close())
	}
	key, err := ramp.TextKey(hmac)
	check(i.T, err)
	signer, err := ramp.NewKeySigner(validator)
	check(i.T, err)
	i.file, err = ramptest.OpenState(i.state)
	check(i.T, err)
	listen := freeAddress(i.T)
	i.service = ramptest.Start(i.T, ramptest.Config{Key: key, Validator: signer.Address(), Game: "http://" + listen, State: i.file,
		Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}, Books: ramptest.BooksReport, BlockTime: time.Second / 2}) // results fail until they are finished by hand
	i.server = newProcess(i.T, i.address, []string{"RAMP_HMAC_KEY=" + hmac, "RAMP_VALIDATOR_KEY=" + validator, "RAMP_RPC_URL=" + i.node()},
		append([]string{"-addr", listen}, i.flags[2:]...))
	i.client, err = ramp.NewClient(ramp.ClientConfig{URL: i.service.URL(), Key: key})
	check(i.T, err)
}

func (i *incident) node() string { return i.service.RPCURL(ramp.Testnet) }

// desk runs a command of the operator.
func (i *incident) desk(args ...string) (string, error) {
	i.Helper()
	var out, log bytes.Buffer
	command := 1
	if args[0] == "orders" {
		command = 2
	}
	err := run(i.Context(), slices.Concat(args[:command], i.flags, args[command:]), func(name string) string {
		return map[string]string{"RAMP_RPC_URL": i.node()}[name]
	}, &out, &log)
	return out.String(), err
}

func (i *incident) mint(s ramp.Session, faults ...ramptest.Fault) (*ramptest.Order, error) {
	i.Helper()
	started, err := i.client.Initialize(i.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project",
		Token: token, MintFeeBps: 100, Materials: []ramp.Item{{ID: itemGem, Amount: ramp.NewAmount(10), IconURL: "https://example.com/icons/gem.png"}}}})
	check(i.T, err)
	return i.service.Mint(i.Context(), started.UUID, s, ramp.NewAmount(1), faults...)
}

func newIncident(t *testing.T) *incident {
	dir := t.TempDir()
	i := &incident{T: t, address: "sqlite:" + filepath.Join(dir, "game.db"), state: filepath.Join(dir, "service")}
	i.flags = []string{"-db", i.address, "-chain-id", "1112", "-any-failure", "-project", "project", "-token", token, "-network", "testnet"}
	i.rotate(hmacKey, validatorKey)
	return i
}

// listedHash finds a transaction in what orders show has printed.
var listedHash = regexp.MustCompile(`(0x[0-9a-f]{64})  block`)

// The runbook of docs/operations.md, from the decision to the open shop.
func TestTheRunbookOfALeakedHMACKey(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order, err := i.mint(s, ramptest.ResultNever())
	check(t, err)
	i.service.Advance(time.Minute)

	turn(t, "close", i.address)
	if _, err := i.mint(s); !declined(err) {
		t.Errorf("in the closed shop: %v", err)
	}
	i.rotate("a new key", validatorKey)
	leaked, err := ramp.TextKey(hmacKey)
	check(t, err)
	forged, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.server.url+"/api/validate", strings.NewReader("{}"))
	check(t, err)
	forged.Header.Set("X-HMAC-SIGNATURE", leaked.Sign([]byte("{}")))
	response, err := http.DefaultClient.Do(forged)
	check(t, err)
	check(t, response.Body.Close())
	if response.StatusCode != 401 {
		t.Errorf("the thief's call is answered with %d", response.StatusCode)
	}
	if printed, err := i.desk("orders", "count"); err != nil || !regexp.MustCompile(`(?m)^0s +1 +0$`).MatchString(printed) {
		t.Errorf("what waits: %v\n%s", err, printed)
	}
	printed, err := i.desk("orders", "show", order.UUID.String())
	check(t, err)
	printed, err = i.desk("orders", "finish", "-who", "alice", "-reason", "case 17", "-tx", listedHash.FindStringSubmatch(printed)[1], order.UUID.String())
	if err != nil || !strings.Contains(printed, "is succeeded") {
		t.Errorf("finish: %v\n%s", err, printed)
	}
	if printed, err := i.desk("orders", "count"); err != nil || !regexp.MustCompile(`(?m)^0s +0 +0$`).MatchString(printed) {
		t.Errorf("what waits at the end: %v\n%s", err, printed)
	}
	if printed, err := i.desk("reconcile"); err != nil {
		t.Errorf("the books: %v\n%s", err, printed)
	}
	turn(t, "open", i.address)
	if _, err := i.mint(s); err != nil {
		t.Errorf("in the open shop: %v", err)
	}
	i.service.Advance(time.Minute)
}

// The thief has minted with the old key. The books find it.
func TestTheRunbookOfALeakedValidatorKey(t *testing.T) {
	const newKey = "0x2234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	order, err := i.mint(s, ramptest.ResultNever())
	check(t, err)
	_, err = i.mint(s, ramptest.MintedByStranger())
	check(t, err)
	i.service.Advance(time.Minute)

	turn(t, "close", i.address)
	if _, err := i.mint(s); !declined(err) {
		t.Errorf("in the closed shop: %v", err)
	}
	i.rotate(hmacKey, newKey)
	printed, err := i.desk("orders", "show", order.UUID.String())
	check(t, err)
	printed, err = i.desk("orders", "finish", "-who", "alice", "-reason", "case 18", "-tx", listedHash.FindStringSubmatch(printed)[1], order.UUID.String())
	if err != nil || !strings.Contains(printed, "is succeeded") {
		t.Errorf("finish: %v\n%s", err, printed)
	}
	if printed, err := i.desk("reconcile"); err == nil || !strings.Contains(printed, "event_without_order") {
		t.Errorf("the books: %v\n%s", err, printed)
	}
	turn(t, "open", i.address)
	if _, err := i.mint(s); err != nil {
		t.Errorf("a small mint with the new key: %v", err)
	}
	i.service.Advance(time.Minute)
}
