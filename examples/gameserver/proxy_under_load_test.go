package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"go.yaml.in/yaml/v3"
)

// underLoad is a shop at night: two game servers on PostgreSQL behind the shipped HAProxy, players who
// trade, and Prometheus with the shipped alerts, for which a second is a minute.
type underLoad struct {
	*testing.T
	database, name string // its address, and its name
	servers        [2]*process
	metrics        [3]string // addresses of the servers, and of HAProxy
	service        *ramptest.Service
	proxy, watch   string // URLs of HAProxy and Prometheus
	client         *http.Client
	stopHAProxy    func()
	files          string // a directory
	nodeDown       atomic.Bool
	wrong          atomic.Pointer[wrong]
	stop           func() // the trade
	mu             sync.Mutex
	trades         []trade
}

// wrong is what is wrong with the calls of the service. The zero value is a good night.
type wrong struct {
	none   bool  // it calls no validate
	token  bool  // the token of the session is not that of the game
	tokens int64 // for the price of one; 0 means 1
}

// trade is an order that the game accepted, and how much gold its player has more when it has ended.
type trade struct {
	order *ramptest.PlacedOrder
	gold  int64
}

// Incidents of a night are played on real servers, and each calls somebody in time: 5 minutes where a
// player's money waits, otherwise 15. Between them nobody is called, and no order is lost.
func TestIncidentsUnderLoad(t *testing.T) {
	if os.Getenv("RAMP_TEST_NIGHT") == "" {
		t.Skip("it takes five minutes: make long runs it")
	}
	u := startNight(t)
	// loads, fails and the others begin an incident, and end it.
	loads := func(w wrong) (begin, end func()) {
		return func() { u.wrong.Store(&w) }, func() { u.wrong.Store(&wrong{}) }
	}
	db, admin := handle(t, u.database), handle(t, needs(t, "RAMP_TEST_POSTGRESQL"))
	fails := func(when, condition string) (begin, end func()) {
		return func() {
			must(db.Exec("CREATE FUNCTION fails() RETURNS trigger AS $$ BEGIN IF " + condition +
				" THEN RAISE EXCEPTION 'this row cannot be written'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql"))(t)
			must(db.Exec("CREATE TRIGGER fails BEFORE " + when +
				" ON ramp_orders FOR EACH ROW EXECUTE FUNCTION fails()"))(t)
		}, func() { must(db.Exec("DROP FUNCTION fails CASCADE"))(t) }
	}
	const second = "current_setting('application_name') = 'second'"
	type switches func() (begin, end func())
	for _, c := range []struct {
		what   string
		alert  string // and values of its labels
		within int    // minutes
		play   switches
	}{
		{"every validate call is rejected with INVALID_MESSAGE", "RampFewOrders", 15,
			func() (begin, end func()) { return loads(wrong{tokens: 2}) }},
		{"every validate call is rejected with INVALID_USER", "RampFewOrders", 15,
			func() (begin, end func()) { return loads(wrong{token: true}) }},
		{"the service stops calling", "RampFewOrders", 15,
			func() (begin, end func()) { return loads(wrong{none: true}) }},
		{"one of two servers answers every validate call with 500", "RampCallsFail validate " + u.metrics[1], 5,
			func() (begin, end func()) { return fails("INSERT", second) }},
		{"two of five validate calls are answered with 500", "RampCallsFail validate", 5,
			func() (begin, end func()) { return fails("INSERT", "random() < 0.4") }},
		{"one of two servers answers every result with 500", "RampCallsFail result " + u.metrics[1], 5,
			func() (begin, end func()) { return fails("UPDATE", second) }},
		{"the database cannot be reached", "RampUnreachable database", 5, func() (begin, end func()) {
			return func() {
				must(admin.Exec("ALTER DATABASE " + u.name + " ALLOW_CONNECTIONS false"))(t)
				const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
				must(admin.Exec(end, u.name))(t)
			}, func() { must(admin.Exec("ALTER DATABASE " + u.name + " ALLOW_CONNECTIONS true"))(t) }
		}},
		// A scrape waits 5 seconds for the node, longer than the half second of this Prometheus.
		{"the node does not answer", "RampNodeStuck", 5 + 10, func() (begin, end func()) {
			return func() { u.nodeDown.Store(true) }, func() { u.nodeDown.Store(false) }
		}},
		{"both servers are gone", "RampUnreachable servers", 5, func() (begin, end func()) {
			return func() { u.servers[0].kill(); u.servers[1].kill() },
				func() { u.servers[0].start(); u.servers[1].start() }
		}},
		{"the certificate ends a minute later", "RampUnreachable outside", 5 + 1, func() (begin, end func()) {
			return func() { u.startHAProxy(time.Second) }, func() { u.startHAProxy(90 * 24 * time.Hour) }
		}},
	} {
		u.quiet(c.what)
		begin, end := c.play()
		begin()
		took, others := u.called(c.alert)
		if strings.HasPrefix(c.what, "the certificate") { // it stays
			u.called("RampCertificateEnds")
		}
		end()
		t.Logf("%s: %s after %.1f minutes; others: %v", c.what, c.alert, took.Seconds(), others)
		if took > time.Duration(c.within)*time.Second {
			t.Errorf("%s: nobody is called for %.1f minutes", c.what, took.Seconds())
		}
	}
	u.quiet("a deployment")
	for n, p := range u.servers {
		p.stop()
		p.start()
		up := fmt.Sprintf(`haproxy_server_status{proxy="game",server="game-%d",state="UP"}`, n+1)
		await(t, func() bool { return scrape(t, "http://"+u.metrics[2]+"/metrics")[up] == "1" },
			func() string { return "HAProxy does not find the server" })
	}
	u.quiet("cashing out")
	u.cashOut()
	u.settle()
}

// startNight starts everything.
func startNight(t *testing.T) *underLoad {
	u := &underLoad{T: t, files: t.TempDir()}
	u.name = "game_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u.wrong.Store(&wrong{})
	create(t, "pgx", needs(t, "RAMP_TEST_POSTGRESQL"), u.name)
	address := must(url.Parse(needs(t, "RAMP_TEST_POSTGRESQL")))(t)
	address.Path = "/" + u.name
	u.database = address.String()
	migrated(t, u.database)
	first, second := freeAddress(t), freeAddress(t)
	for n := range u.metrics {
		u.metrics[n] = freeAddress(t)
	}
	u.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the probe verifies
	u.proxy = "https://" + freeAddress(t)
	config := replaceAll(t, configOf(t, "HAProxy"), gameServers[0], first, gameServers[1], second,
		":8405", u.metrics[2], "/etc/haproxy/tls.pem", filepath.Join(u.files, "tls.pem"),
		"bind :8443", "bind "+strings.TrimPrefix(u.proxy, "https://"))
	check(t, os.WriteFile(filepath.Join(u.files, "haproxy.cfg"), []byte(config), 0o600))
	u.startHAProxy(90 * 24 * time.Hour)

	u.service, _ = serviceWith(t, hmacKey, validatorKey, ramptest.Config{PerOrder: true, Game: u.proxy,
		Client: u.client, Networks: map[ramp.Network]uint64{ramp.Testnet: 1112},
		Audit: ramptest.AuditOff, NoThief: true,
		Schedule: slices.Repeat([]time.Duration{5 * time.Second}, 100), Standalone: ramptest.Standalone{Speed: 1}})
	ownNode := must(url.Parse(u.service.RPCURL(ramp.Testnet)))(t)
	node := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = ownNode }}
	switched := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u.nodeDown.Load() {
			panic(http.ErrAbortHandler)
		}
		node.ServeHTTP(w, r)
	}))
	t.Cleanup(switched.Close)
	env := append(real(), "RAMP_RPC_URL="+switched.URL, "RAMP_API_URL="+u.service.URL(),
		"RAMP_FRONTEND_URL="+u.service.URL())
	for n, listen := range []string{first, second} {
		own, query := *address, address.Query()
		query.Set("application_name", []string{"first", "second"}[n])
		own.RawQuery = query.Encode()
		u.servers[n] = &process{t: t, env: env, args: []string{"-addr", listen, "-metrics", u.metrics[n],
			"-db", own.String(), "-books", filepath.Join(u.files, "books "+listen),
			"-project", "project", "-token", token, "-network", "testnet", "-chain-id", "1112", "-decimals", "18",
			"-payers", u.service.Payer().Hex(), "-contracts", token,
			"-cap", "item_gold=40000/400000/40000000/400000000"}}
		u.servers[n].start()
		t.Cleanup(func() { u.servers[n].kill() })
	}
	awaitServers(t, u.client, u.proxy)
	u.startPrometheus()
	u.startTrade()
	return u
}

// startHAProxy starts the proxy, or lets it have a new certificate.
func (u *underLoad) startHAProxy(life time.Duration) {
	u.Helper()
	certificate, _ := certify(u.T, u.files, life)
	if u.stopHAProxy != nil {
		u.stopHAProxy()
	}
	authorities := must(os.OpenFile(filepath.Join(u.files, "ca.pem"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))(u.T)
	_ = must(authorities.Write(must(os.ReadFile(certificate))(u.T)))(u.T)
	check(u.T, authorities.Close())
	haproxy := exec.Command(must(lookUp("haproxy"))(u.T), "-f", filepath.Join(u.files, "haproxy.cfg"), "-db")
	_, u.stopHAProxy = launch(u.T, haproxy, strings.TrimPrefix(u.proxy, "https://"))
}

// startPrometheus starts it with the shipped files, in which a minute is a second, and blackbox_exporter.
func (u *underLoad) startPrometheus() {
	u.Helper()
	probe, web := freeAddress(u.T), freeAddress(u.T)
	u.watch = "http://" + web
	write := func(name, text string) string {
		file := filepath.Join(u.files, name)
		check(u.T, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	var modules map[string]map[string]map[string]any
	check(u.T, yaml.Unmarshal(must(os.ReadFile("deploy/blackbox.yml"))(u.T), &modules))
	for _, module := range modules["modules"] {
		module["http"].(map[string]any)["tls_config"] = map[string]any{"ca_file": filepath.Join(u.files, "ca.pem")}
	}
	blackbox := write("blackbox.yml", string(must(yaml.Marshal(modules))(u.T)))

	shipped := string(must(os.ReadFile("deploy/alerts.yaml"))(u.T))
	rules := strings.NewReplacer("[1d]", "[24h]", "[14d]", "[336h]").Replace(shipped)
	duration := regexp.MustCompile(`(\[|offset |for: )(\d+)([mh])`)
	write("alerts.yaml", duration.ReplaceAllStringFunc(rules, func(found string) string {
		return found[:len(found)-1] + map[byte]string{'m': "s", 'h': "m"}[found[len(found)-1]]
	}))
	config := replaceAll(u.T, string(must(os.ReadFile("deploy/prometheus.yml"))(u.T)), "30s", "500ms",
		"game-1:9090", u.metrics[0], "game-2:9090", u.metrics[1], "haproxy:8405", u.metrics[2], "nginx:3903", unused,
		"blackbox:9115", probe, "https://game.example.com", u.proxy)
	launch(u.T, exec.Command("prometheus-blackbox-exporter", "--config.file="+blackbox,
		"--web.listen-address="+probe, "--timeout-offset=0.1"), probe) // of the half second between two scrapes
	launch(u.T, exec.Command("prometheus", "--config.file="+write("prometheus.yml", config),
		"--web.listen-address="+web, "--storage.tsdb.path="+filepath.Join(u.files, "samples")), web)
}

// startTrade lets 80 players trade, four at a time.
func (u *underLoad) startTrade() {
	var all sync.WaitGroup
	stopped := make(chan struct{})
	for worker := range 4 {
		var sessions []ramp.Session
		for player := range 20 {
			sessions = append(sessions, login(u.T, u.servers[0].url, fmt.Sprintf("player %d.%d", worker, player)))
		}
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				case <-time.After(200 * time.Millisecond):
					u.trade(sessions[n%len(sessions)], n)
				}
			}
		})
	}
	u.stop = func() { close(stopped); all.Wait() }
}

// trade lets a player ask for an order, and the service call the game.
func (u *underLoad) trade(s ramp.Session, n int) {
	w := u.wrong.Load()
	asked := must(json.Marshal(map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()}))(u.T)
	response, err := u.client.Post(u.proxy+"/exchange", "application/json", bytes.NewReader(asked))
	if err != nil {
		return
	}
	defer response.Body.Close()
	var page struct{ UUID uuid.UUID }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil || page.UUID == uuid.Nil || w.none {
		return
	}
	if w.token {
		s.Token = ramp.NewAccessToken("none")
	}
	call, gold, faults := u.service.Mint, int64(-100), []ramptest.Fault(nil)
	switch n % 5 {
	case 0:
		call, gold = u.service.Burn, 100
	case 1:
		gold, faults = 0, []ramptest.Fault{ramptest.TransactionFails(), ramptest.TransactionType(7)}
	}
	order, err := call(u.Context(), page.UUID, s, ramp.NewAmount(cmp.Or(w.tokens, 1)), faults...)
	if err == nil {
		u.mu.Lock()
		u.trades = append(u.trades, trade{order, gold})
		u.mu.Unlock()
	}
}

// firing returns the alerts that fire, each with the values of its labels.
func (u *underLoad) firing() (list []string) {
	u.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	response := must(http.Get(u.watch + "/api/v1/alerts"))(u.T)
	defer response.Body.Close()
	check(u.T, json.NewDecoder(response.Body).Decode(&answer))
	for _, alert := range answer.Data.Alerts {
		name := alert.Labels["alertname"]
		if alert.State != "firing" || name == watchdog {
			continue
		}
		text := name
		for _, label := range []string{"endpoint", "what", "why", "code", "of", "instance"} {
			if value := alert.Labels[label]; value != "" {
				text += " " + value
			}
		}
		list = append(list, text)
	}
	return list
}

// called waits for an alert, and returns how long it took, and which others fired meanwhile.
func (u *underLoad) called(alert string) (took time.Duration, others []string) {
	u.Helper()
	seen := map[string]bool{}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		found := false
		for _, fires := range u.firing() {
			if strings.HasPrefix(fires, alert) {
				found = true
			} else if !seen[fires] {
				seen[fires] = true
				others = append(others, fires)
			}
		}
		if took = time.Since(begin); found {
			return took, others
		}
		if took > time.Minute {
			u.Fatalf("%s does not fire, but %v", alert, others)
		}
	}
}

// quiet waits until the last incident is over, and fails the test if an alert fires within 15 minutes after.
func (u *underLoad) quiet(before string) {
	u.Helper()
	last := time.Now()
	for begin := last; time.Since(last) < 15*time.Second; time.Sleep(50 * time.Millisecond) {
		if fires := u.firing(); len(fires) > 0 {
			last = time.Now()
			if time.Since(begin) > 90*time.Second {
				u.Fatalf("before %s: %v", before, fires)
			}
		}
	}
}

// cashOut lets a player with a bug mint as fast as both servers can. They keep the cap together.
func (u *underLoad) cashOut() {
	u.Helper()
	thief := login(u.T, u.servers[0].url, "thief")
	client := must(ramp.NewClient(ramp.ClientConfig{URL: u.service.URL(), Key: must(ramp.TextKey(hmacKey))(u.T)}))(u.T)
	var all sync.WaitGroup
	var accepted, rejected atomic.Int64
	begin := time.Now()
	for range 8 {
		all.Go(func() {
			for range 10 {
				id := initialize(u.T, client, item(u.T, itemGold, "1000"), item(u.T, itemGem, "10"))
				order, err := u.service.Mint(u.Context(), id, thief, ramp.NewAmount(10))
				switch {
				case err == nil:
					accepted.Add(1)
					u.mu.Lock()
					u.trades = append(u.trades, trade{order, -1000})
					u.mu.Unlock()
				case codeOf(err) == "LIMIT_REACHED":
					rejected.Add(1)
				default:
					u.Error(err)
				}
			}
		})
	}
	all.Wait()
	minted := time.Since(begin)
	took, others := u.called("RampCapNear player")
	u.Logf("cashing out: %d mints of 1,000 gold accepted and %d rejected in %v; others: %v",
		accepted.Load(), rejected.Load(), minted.Round(time.Millisecond), others)
	u.Logf("RampCapNear %.1f minutes after the last of them", took.Seconds())
	equal(u.T, "mints of the thief", accepted.Load(), 40)
}

// settle checks that every order has ended, and that the players own what they should.
func (u *underLoad) settle() {
	u.Helper()
	u.stop()
	u.service.Advance(10 * time.Minute)
	want, open := int64(81*1_000_000), 0
	for _, made := range u.trades {
		want += made.gold
		if u.service.State(made.order) != ramptest.Confirmed {
			open++
		}
	}
	var orders, waiting, gold int64
	row := handle(u.T, u.database).QueryRow(`SELECT count(*), count(*) FILTER (WHERE state = 'accepted'),
		(SELECT sum(balance) FROM inventory WHERE item = 'item_gold') FROM ramp_orders`)
	check(u.T, row.Scan(&orders, &waiting, &gold))
	u.Logf("%d orders, of which the service knows %d; %d wait, %d are not confirmed",
		orders, len(u.trades), waiting, open)
	equal(u.T, "orders that are not confirmed", open, 0)
	// An order whose signature did not arrive has no transaction, and waits for a person.
	equal(u.T, "orders that wait", waiting, orders-int64(len(u.trades)))
	if gold > want || gold < want-100*waiting {
		u.Errorf("the players own %d gold, not %d, less 100 for each mint of the %d that wait", gold, want, waiting)
	}
}
