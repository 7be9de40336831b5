package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A validate call contradicts its order, and the server is killed before anybody has scraped it.
func TestAConflictOutlivesTheServer(t *testing.T) {
	t.Parallel()
	metrics := freeAddress(t)
	p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-any-rate", "-addr", freeAddress(t),
		"-metrics", metrics)
	service, client := serviceOf(t, p.url)
	order := must(service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "100")),
		login(t, p.url, "alice"),
		ramp.NewAmount(1), ramptest.ValidateOtherDigest()))(t)
	address := p.args[3]
	p.kill()
	p.start()
	series := scrape(t, "http://"+metrics+"/metrics")
	equal(t, "what the counter says", series[`ramp_conflicts_total{endpoint="validate"}`], "0")
	equal(t, "open conflicts", series["ramp_conflicts_open"], "1")
	says(t, said(t, "conflicts", "-db", address), order.UUID.String()+"  accepted", "digest")
	service.Advance(time.Minute)
}

// What the books found stays open until a person decides it, or the order of it ends. Then it stays ended in
// later books, until the decision is reversed.
func TestAFindingStaysOpenUntilAPersonDecidesIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, 1_000_000)
		alice := must(shop.game.login(t.Context(), "alice"))(t)
		waits := shop.accept(alice, ramp.Mint, 100)
		registry := prometheus.NewRegistry()
		shop.game.observe(registry)
		metrics := served(t, registry)
		second, stranger := shop.accept(alice, ramp.Burn, 100), common.HexToHash("0x57")
		books := &rampbooks.Reconciliation{Findings: []rampbooks.Finding{
			{Kind: rampbooks.EventWithoutOrder, Detail: "nobody ordered this mint of Jörg's",
				Events: []rampbooks.ChainEvent{{TxHash: stranger, Direction: ramp.Mint}}},
			{Kind: rampbooks.OrderWithoutEvent, Detail: strings.Repeat("long ", 1000),
				Orders: []rampbooks.FoundOrder{{UUID: uuid.New()}, {UUID: second}}},
			{Kind: rampbooks.WaitsWithEvent, Orders: []rampbooks.FoundOrder{{UUID: waits}},
				Events: []rampbooks.ChainEvent{{Direction: ramp.Mint}}},
		}}
		open := func(strangers, without, waiting string) {
			t.Helper()
			check(t, shop.game.keepFindings(t.Context(), books)) // of the next hour
			series := scrape(t, metrics)
			equal(t, "mints of strangers", series[`ramp_books_findings{kind="event_without_order"}`], strangers)
			equal(t, "mints that were not signed", series["ramp_books_unsigned_mints"], strangers)
			equal(t, "orders without event", series[`ramp_books_findings{kind="order_without_event"}`], without)
			equal(t, "orders that wait", series[`ramp_books_findings{kind="waits_with_event"}`], waiting)
		}
		open("1", "1", "1")
		decide := func(args ...string) (entry string) {
			t.Helper()
			why := []string{"decide", "-db", address, "-who", "alice", "-reason", "key changed"}
			printed := said(t, append(why, args...)...)
			return regexp.MustCompile("entry (.*) is stored").FindStringSubmatch(printed)[1]
		}
		entry := decide("-finding", "event_without_order", "-tx", stranger.Hex())
		open("0", "1", "1")
		decide("-finding", "order_without_event", second.String()) // one of its orders
		open("0", "0", "1")
		shop.end(waits, ramp.Mint)
		open("0", "0", "0")
		says(t, said(t, "conflicts", "-db", address), stranger.Hex(), `nobody ordered this mint of J\u00f6rg's`,
			"alice: key changed")

		decide("-reverse", entry)
		open("1", "0", "0")
		_, err := shop.game.db.Exec("DELETE FROM findings") // as if it was decided before it was kept
		check(t, err)
		open("1", "1", "0")
		again := uuid.MustParse(decide("-finding", "event_without_order", "-tx", stranger.Hex()))
		must(shop.game.db.Exec("UPDATE findings SET entry = ''"))(t)
		open("1", "1", "0")
		books.Decided, books.Findings = books.Findings[:1], nil
		books.Decided[0].Decided = &rampbooks.Entry{ID: again}
		open("0", "1", "0")
	})
}

// Every metric that an alert uses has a row in the document that says what a restart, a deployment and a
// restore do to it.
func TestTheDocumentSaysWhatBeginsAnew(t *testing.T) {
	_, section, _ := strings.Cut(document(t, "on-call.md"), "\n## After a restart or a restore\n")
	section, _, _ = strings.Cut(section, "\n## ")
	metric := regexp.MustCompile(`\b(?:ramp|haproxy|nginx|probe|prometheus)_[a-z_]+[a-z]\b|\bup\b`)
	var used []string
	for _, rule := range rules(t) {
		used = append(used, metric.FindAllString(rule.Expr, -1)...)
	}
	listed := metric.FindAllString(section, -1)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(used))) {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not in the table", name)
		}
	}
	if len(used) < 20 {
		t.Error(used)
	}
	for _, table := range regexp.MustCompile("`([a-z_]+)` table").FindAllStringSubmatch(section, -1) {
		says(t, string(must(os.ReadFile("schema.go"))(t)), "CREATE TABLE IF NOT EXISTS "+table[1])
	}
}
