package main

import (
	"errors"
	"regexp"
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
	printed, logged, err := command(t, nil, "shop", name, "-db", address, "-who", "alice", "-reason", "case 17")
	check(t, err)
	says(t, document(t, "on-call.md"), "`"+name+"`")
	says(t, logged, `"msg":"`+name+`","who":"alice","reason":"case 17"`)
	return printed
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
		// another service, with wallets of the same players
		other, otherClient := serviceOf(t, second.url, ramptest.AuditOff)
		alice := login(t, first.url, "alice")
		gold := item(t, "item_gold", "100")
		fails, waits := initialize(t, client, gold), initialize(t, client, gold)
		before := must(service.Mint(t.Context(), fails, alice, ramp.NewAmount(1), ramptest.TransactionFails()))(t)
		must(service.Mint(t.Context(), waits, alice, ramp.NewAmount(1), ramptest.StaysPending()))(t)
		burn := initialize(t, client, gold)

		if printed := turn(t, "close", address); !strings.HasPrefix(printed,
			"The shop is closed. The last signature leaves before ") {
			t.Errorf("it printed %q", printed)
		}
		_, err := service.Mint(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1))
		_, failed := service.Burn(t.Context(), burn, alice, ramp.NewAmount(1))
		_, elsewhere := other.Mint(t.Context(), initialize(t, otherClient, gold), alice, ramp.NewAmount(1))
		_, again := service.Mint(t.Context(), waits, alice, ramp.NewAmount(1))
		if !declined(err) || !declined(failed) || !declined(elsewhere) || again != nil { // she has paid for that one
			t.Errorf("a mint: %v; a burn: %v; at the other server: %v; an accepted order again: %v", err, failed,
				elsewhere, again)
		}
		service.Advance(time.Minute)
		confirmed(t, service, before) // it was accepted before
		owns(t, service, alice, "999900/10000")
		turn(t, "close", address) // again
		printed := said(t, "count", "-db", address)
		if !regexp.MustCompile(`(?m)^0s +1 +0$`).MatchString(printed) {
			t.Errorf("it counted\n%s", printed)
		}

		equal(t, "printed", turn(t, "open", address), "The shop is open.\n")
		_, err = service.Mint(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1))
		_, elsewhere = other.Mint(t.Context(), initialize(t, otherClient, item(t, "item_gem", "1")),
			login(t, second.url, "bob"), ramp.NewAmount(1))
		check(t, errors.Join(err, elsewhere))
		service.Advance(time.Minute)

		decided := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  (close|open)    alice: case 17$`)
		equal(t, "decisions", len(decided.FindAllString(said(t, "decisions", "-db", address), -1)), 3)

		game, _ := open(t, address)
		must(game.db.ExecContext(t.Context(), "DELETE FROM shop"))(t)
		if _, _, err := desk(t, nil, "close", "-db", address, "-who", "alice", "-reason", "case 17"); err == nil {
			t.Error("a shop without its row was called closed")
		}
	})
}

// The alert about a conflict ends when a person has closed it, and comes back for no repeat.
func TestAConflictStaysOpenUntilAPersonClosesIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, _ := open(t, address)
		registry := prometheus.NewRegistry()
		game.observe(registry)
		metrics := served(t, registry)
		open := func(want string) {
			t.Helper()
			equal(t, "open conflicts", scrape(t, metrics)["ramp_conflicts_open"], want)
		}
		open("0")
		id := uuid.New()
		happen := func() {
			conflict := &ramp.ConflictError{Order: ramp.Order{State: ramp.OrderFailed}, Field: "receipt.status"}
			check(t, game.keepConflict(t.Context(), id, conflict, ""))
		}
		happen()
		open("1")
		if _, _, err := desk(t, nil, "resolve", "-db", address, id.String()); !errors.Is(err, errUsage) {
			t.Errorf("closed by nobody: %v", err)
		}
		equal(t, "printed",
			said(t, "resolve", "-db", address, "-who", "alice", "-reason", "took back 100 item_gold", id.String()),
			"Closed: 1.\n")
		says(t, said(t, "conflicts", "-db", address), "alice: took back 100 item_gold")
		says(t, said(t, "decisions", "-db", address), "resolve  "+id.String()+"  alice: took back 100 item_gold")
		happen()
		open("0")
		if _, _, err := desk(t, nil, "resolve", "-db", address, "-who", "bob", "-reason", "again",
			id.String()); err == nil {
			t.Error("closed twice")
		}
		if strings.Contains(said(t, "decisions", "-db", address), "bob") {
			t.Error("what was not decided is listed")
		}
	})
}
