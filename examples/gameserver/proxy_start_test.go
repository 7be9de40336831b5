package main

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"go.yaml.in/yaml/v3"
)

// proxies are real proxies with the configuration that docs/operations.md explains. The
// tests replace only addresses, paths and the longest timeout.
var proxies = map[string]struct {
	config, binary, certificate, address string
	timeout                              string // the longest wait for an answer
	args                                 func(config string) []string
}{
	"nginx": {
		config: "deploy/nginx.conf", binary: "nginx", certificate: "/etc/nginx/tls/tls.crt", address: "listen 8443",
		timeout: "proxy_read_timeout ",
		args:    func(config string) []string { return []string{"-c", config, "-g", "daemon off; user root;"} },
	},
	"HAProxy": {
		config: "deploy/haproxy.cfg", binary: "haproxy", certificate: "/etc/haproxy/tls.pem", address: "bind :8443",
		timeout: "timeout server ", args: func(config string) []string { return []string{"-f", config, "-db"} },
	},
}

func eachProxy(t *testing.T, test func(t *testing.T, name string)) {
	t.Parallel()
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			if _, err := lookUp(p.binary); err != nil {
				t.Skip("*** NOT TESTED: " + p.binary + " is not installed ***")
			}
			t.Parallel()
			test(t, name)
		})
	}
}

// lookUp finds a program in the path or in /usr/sbin.
func lookUp(binary string) (string, error) {
	if path, err := exec.LookPath(binary); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + binary)
}

// nginxLog is where nginx.conf writes its log, and nginx.mtail reads it.
const nginxLog = "/var/log/nginx/access.log"

// gameServers are the addresses in the shipped configurations.
var gameServers = []string{"172.30.71.11:8080", "172.30.71.12:8080"}

// unused is an address on which nothing listens.
const unused = "127.0.0.1:1"

// startProxy starts a proxy in front of two servers, and returns its URL and a client
// that trusts its certificate.
func startProxy(t *testing.T, name, config, first, second string) (string, *http.Client) {
	t.Helper()
	return startHastyProxy(t, name, config, first, second, shippedTry)
}

// shippedTry is how long the shipped proxies wait for the answer of a game server.
const shippedTry = "13s"

// startHastyProxy is like startProxy with another timeout for an answer.
func startHastyProxy(t *testing.T, name, config, first, second, wait string) (string, *http.Client) {
	t.Helper()
	p := proxies[name]
	dir := t.TempDir()
	certificate, client := certify(t, dir, time.Hour)
	address := freeAddress(t)
	config = strings.ReplaceAll(strings.ReplaceAll(config, nginxLog, "/dev/stdout"), " /tmp/", " "+dir+"/")
	config = replaceAll(t, config,
		gameServers[0], first, gameServers[1], second,
		p.certificate, certificate,
		p.address, strings.Fields(p.address)[0]+" "+address,
		p.timeout+shippedTry, p.timeout+wait)
	config = strings.ReplaceAll(config, " :8405", " "+freeAddress(t))
	config = strings.ReplaceAll(config, strings.TrimSuffix(p.certificate, "crt")+"key", certificate)
	file := filepath.Join(dir, "proxy.conf")
	check(t, os.WriteFile(file, []byte(config), 0o644))
	log, stop := launch(t, exec.Command(must(lookUp(p.binary))(t), p.args(file)...), address)
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			var lines []string // those of other answers only
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, " 401 by ") && !strings.Contains(line, " 200 by ") {
					lines = append(lines, line)
				}
			}
			last := lines[max(0, len(lines)-10):]
			t.Logf("%s: the last %d of %d lines:\n%s", name, len(last), len(lines), strings.Join(last, ""))
		}
	})
	return "https://" + address, client
}

// The alert RampUnreachable has the answers of a proxy itself, and how many of all these are. mtail counts
// those of nginx, in its access log.
func TestAProxyCountsWhatItAnswersItself(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		metrics, log := freeAddress(t), filepath.Join(t.TempDir(), "access.log")
		server := startBackend(t)
		config := strings.NewReplacer(" :8405", " "+metrics, nginxLog, `"`+log+`"`).Replace(configOf(t, name))
		proxy, client := startProxy(t, name, config, server.address, server.address)
		if name == "nginx" {
			says(t, string(must(os.ReadFile("deploy/nginx.mtail"))(t)), "--logs "+nginxLog)
			_, port, _ := net.SplitHostPort(metrics)
			if _, err := exec.LookPath("mtail"); err != nil {
				t.Skip("*** NOT TESTED: mtail is not installed ***")
			}
			launch(t, exec.Command("mtail", "--progs", "deploy/nginx.mtail", "--logs", log, "--address", "127.0.0.1",
				"--port", port), metrics)
		}
		server.mode.Store("500")
		for n := range 3 { // the server answers one of them
			equal(t, fmt.Sprint("call ", n), seen(client, proxy), "500")
			server.close()
		}
		var all, own float64
		// A call is counted after its answer.
		for end, before := time.Now().Add(20*time.Second), 0.0; before < 3; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s counts %v answers, %v of its own", name, all, own)
			}
			before, all, own = all, 0, 0
			for series, value := range scrape(t, "http://"+metrics+"/metrics") {
				n, _ := strconv.ParseFloat(value, 64)
				switch metric, _, _ := strings.Cut(series, "{"); {
				case metric == "nginx_answers_total": // after nginx_failures_total
					all += n
				case metric == "nginx_failures_total":
					own += n
				case series == `haproxy_frontend_http_responses_total{proxy="service",code="5xx"}`:
					all, own = all+n, own+n
				case metric == "haproxy_server_http_responses_total" && strings.Contains(series, `proxy="game"`) &&
					strings.Contains(series, `code="5xx"`):
					own -= n
				}
			}
		}
		equal(t, "answers of its own", own, 2)
	})
}

// probes are what blackbox_exporter calls from outside.
func probes(t *testing.T) map[string]func(client *http.Client, url string) bool {
	t.Helper()
	var config struct {
		Modules map[string]struct {
			HTTP struct {
				Method      string   `yaml:"method"`
				Status      []int    `yaml:"valid_status_codes"`
				NeedsInBody []string `yaml:"fail_if_body_not_matches_regexp"`
			} `yaml:"http"`
		}
	}
	check(t, yaml.Unmarshal(must(os.ReadFile("deploy/blackbox.yml"))(t), &config))
	list := map[string]func(*http.Client, string) bool{}
	for name, module := range config.Modules {
		list[name] = func(client *http.Client, url string) bool {
			request := must(http.NewRequest(cmp.Or(module.HTTP.Method, "GET"), url+ramp.PathAssets, nil))(t)
			response := must(client.Do(request))(t)
			defer response.Body.Close()
			body := must(io.ReadAll(response.Body))(t)
			succeeds := slices.Contains(module.HTTP.Status, response.StatusCode)
			for _, pattern := range module.HTTP.NeedsInBody {
				succeeds = succeeds && regexp.MustCompile(pattern).Match(body)
			}
			return succeeds
		}
	}
	return list
}

// What blackbox_exporter calls from outside is answered so by the game only.
func TestAProbeTellsTheGameFromTheProxy(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		metrics := freeAddress(t)
		game := start(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-metrics", metrics)
		for server, want := range map[string]bool{strings.TrimPrefix(game.url, "http://"): true, unused: false} {
			proxy, client := startProxy(t, name, configOf(t, name), server, unused)
			for probe, succeeds := range probes(t) {
				equal(t, probe+" with the server "+server, succeeds(client, proxy), want)
			}
		}
		for series, value := range scrape(t, "http://"+metrics+"/metrics") {
			if strings.HasPrefix(series, "ramp_webhook_calls_total") && strings.Contains(series, `unverified="true"`) &&
				value != "0" {
				t.Errorf("a probe looks like a forged call: %s %s", series, value)
			}
		}
	})
}

// A firewall lets only GET pass.
func TestAProbeSeesAFirewallThatBlocksPOST(t *testing.T) {
	t.Parallel()
	game := start(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	behind := httputil.NewSingleHostReverseProxy(must(url.Parse(game.url))(t))
	for _, status := range []int{403, 405} {
		firewall := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(status)
				return
			}
			behind.ServeHTTP(w, r)
		}))
		t.Cleanup(firewall.Close)
		equal(t, "GET", probes(t)["ramp"](firewall.Client(), firewall.URL), true)
		equal(t, fmt.Sprint("POST, answered with ", status),
			probes(t)["ramp-post"](firewall.Client(), firewall.URL), false)
	}
}

// replaceAll replaces texts, and fails the test if one does not occur.
func replaceAll(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the configuration does not have %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// certify writes a key and its certificate to one file.
func certify(t *testing.T, dir string, life time.Duration) (file string, client *http.Client) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(life),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate := must(x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key))(t)
	private := must(x509.MarshalPKCS8PrivateKey(key))(t)
	file = filepath.Join(dir, "tls.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	check(t, os.WriteFile(file, text, 0o600))
	parsed := must(x509.ParseCertificate(certificate))(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	return file, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
}

func configOf(t *testing.T, name string) string {
	t.Helper()
	return string(must(os.ReadFile(proxies[name].config))(t))
}

// backend is a game server whose behavior the tests choose.
type backend struct {
	address string
	close   func()
	mode    atomic.Value // string
	calls   atomic.Int64
	mu      sync.Mutex
	header  http.Header // of the last call
	body    []byte
	target  string
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{}
	b.mode.Store("fine")
	server := httptest.NewUnstartedServer(b)
	check(t, server.Listener.Close())
	server.Listener = must(net.Listen("tcp", freeAddress(t)))(t) // nothing else answers there once it is closed
	server.Start()
	t.Cleanup(server.Close)
	b.address, b.close = server.Listener.Addr().String(), server.Close
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mode := b.mode.Load().(string)
	if r.URL.Path == "/readyz" { // always succeeds, as if the server failed just after the check
		return
	}
	b.calls.Add(1)
	body, err := io.ReadAll(r.Body)
	b.mu.Lock()
	b.header, b.body, b.target = r.Header.Clone(), body, r.RequestURI
	b.mu.Unlock()
	switch mode {
	case "fine":
		if err == nil {
			_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":null}`)
		}
	case "stops": // and is up again for the next call
		b.mode.Store("fine")
		panic(http.ErrAbortHandler)
	case "closes":
		panic(http.ErrAbortHandler)
	case "hangs":
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	case "silent":
		<-r.Context().Done()
	default:
		status, err := strconv.Atoi(mode)
		if err != nil {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	}
}

// seen makes a result call and returns "no answer" or the status, as the service sees
// it.
func seen(client *http.Client, url string) string {
	response, err := client.Post(url+ramp.PathResult, "application/json", strings.NewReader(`{"uuid":"…"}`))
	if err != nil {
		return "no answer"
	}
	_ = response.Body.Close()
	return fmt.Sprint(response.StatusCode)
}

// failures are the ways in which the servers behind a proxy fail during a deployment.
var failures = []string{"502", "503", "504", "hangs", "closes", "down"}

func TestAProxyNeverEndsAResult(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		first, second := startBackend(t), startBackend(t)
		url, client := startProxy(t, name, configOf(t, name), first.address, second.address)
		down, downClient := startProxy(t, name, configOf(t, name), unused, unused)
		half, halfClient := startProxy(t, name, configOf(t, name), unused, second.address)
		hasty, hastyClient := startHastyProxy(t, name, configOf(t, name), first.address, second.address, "100ms")
		for _, mode := range failures {
			t.Run(mode, func(t *testing.T) {
				defer func() { first.mode.Store("fine"); second.mode.Store("fine") }()
				if mode == "down" {
					if got := seen(downClient, down); !repeated(got) {
						t.Errorf("with no server, the service sees %s", got)
					}
					for range 4 {
						equal(t, "with one server, the service", seen(halfClient, half), "200")
					}
					return
				}
				url, client := url, client
				if mode == "hangs" {
					url, client = hasty, hastyClient
				}
				first.mode.Store(mode)
				for range 4 { // so that each server is tried first
					if got := seen(client, url); got != "200" && (mode != "hangs" || !repeated(got)) {
						t.Errorf("with one bad server, the service sees %s", got)
					}
				}
				second.mode.Store(mode)
				if got := seen(client, url); !repeated(got) {
					t.Errorf("the service sees %s, and does not repeat the result", got)
				}
			})
		}
		large, err := client.Post(url+ramp.PathResult, "application/json", bytes.NewReader(make([]byte, 3<<20)))
		if err == nil { // the proxy may close the connection, too
			check(t, large.Body.Close())
			if got := fmt.Sprint(large.StatusCode); got != "200" && !repeated(got) {
				t.Errorf("with a large body, the service sees %s", got)
			}
		}
		first.mode.Store("502")
		second.mode.Store("502")
		wrong := must(client.Post(url+"/ramp/Result/", "application/json", strings.NewReader("{}")))(t)
		check(t, wrong.Body.Close())
		equal(t, "with a wrong path", wrong.StatusCode, 500)
		first.mode.Store("400")
		second.mode.Store("400")
		equal(t, "the rejection of a handler", seen(client, url), "400")
		for _, path := range []string{"/healthz", "/readyz"} {
			equal(t, path+" from outside", statusOf(t, client, url+path), 404)
		}
	})
}

// The HMAC covers the bytes that the service sent, and the headers identify the
// player.
func TestAProxyLeavesTheCallAlone(t *testing.T) {
	key := must(ramp.TextKey(hmacKey))(t)
	eachProxy(t, func(t *testing.T, name string) {
		backend := startBackend(t)
		url, client := startProxy(t, name, configOf(t, name), backend.address, backend.address)
		token := strings.Repeat("long-token.", 1900) // 20 KiB
		for what, body := range map[string][]byte{
			"pretty-printed":          []byte("{\r\n\t\"uuid\" : \"…\",\n  \"name\": \"홍길동\\u0000\" }\n\n"),
			"as large as can be":      bytes.Repeat([]byte("x "), 1<<19),
			"empty":                   {},
			"with bytes of all kinds": {0, 255, '\r', '\n', '%', '+', 0x1f, 0x8b},
		} {
			for _, chunked := range []bool{false, true} {
				var reader io.Reader = bytes.NewReader(body)
				if chunked {
					reader = io.MultiReader(reader) // hides the length from net/http
				}
				request := must(http.NewRequestWithContext(t.Context(), http.MethodPost,
					url+ramp.PathResult, reader))(t)
				header := map[string]string{
					"X-HMAC-SIGNATURE": key.Sign(body), "X-Dapp-Authorization": "Bearer " + token,
					"x-dapp-sessionid": "session-1", "Content-Type": "application/json", "Accept-Encoding": "gzip",
				}
				for name, value := range header {
					request.Header.Set(name, value)
				}
				response := must(client.Do(request))(t)
				response.Body.Close()
				if response.StatusCode != 200 {
					t.Fatalf("%s: HTTP %d", what, response.StatusCode)
				}
				if !bytes.Equal(backend.body, body) ||
					key.Verify(backend.body, backend.header.Get("X-Hmac-Signature")) != nil {
					t.Errorf("%s, chunked %v: the body changed", what, chunked)
				}
				for name, value := range header {
					if got := backend.header.Values(name); len(got) != 1 || got[0] != value {
						t.Errorf("%s: %s arrived %d times, or changed", what, name, len(got))
					}
				}
				equal(t, what+": Content-Encoding", backend.header.Get("Content-Encoding"), "")
			}
		}
	})
}

// Two game servers are replaced one after the other, and then both are down.
func TestARollingDeployLosesNoResult(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		database := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
		first, second := freeAddress(t), freeAddress(t)
		one := deploy(t, database, "-any-rate", "-addr", first)
		two := deploy(t, database, "-any-rate", "-addr", second)
		url, client := startProxy(t, name, configOf(t, name), first, second)
		service, api := serviceWith(t, hmacKey, validatorKey, ramptest.Config{PerOrder: true, Game: url, Client: client,
			Audit: ramptest.AuditReport}) // during the outage, what a player owns is unknown
		s := login(t, one.url, "alice")
		mint := func() *ramptest.PlacedOrder {
			t.Helper()
			return must(service.Mint(t.Context(), initialize(t, api, item(t, "item_gold", "100")), s,
				ramp.NewAmount(1), ramptest.TransactionFails()))(t)
		}

		for _, p := range []*process{one, two} { // one at a time, so that no result is late
			mint()
			p.stop()
			sent := service.Advance(time.Minute)
			if len(sent) != 1 || sent[0].Status != 200 {
				t.Errorf("while one server is replaced: %+v", sent)
			}
			p.start()
			awaitServers(t, client, url)
		}
		order := mint()
		one.stop()
		two.stop()
		sent := service.Advance(time.Minute)
		if len(sent) != 1 || sent[0].Status != 500 && sent[0].Status != 0 || sent[0].Next.IsZero() {
			t.Errorf("while both servers are down: %+v", sent)
		}
		one.start()
		awaitServers(t, client, url)
		service.Advance(5 * time.Minute)
		confirmed(t, service, order)
		owns(t, service, s, "1000000/10000")
	})
}

// awaitServers waits until a server answers through the proxy.
func awaitServers(t *testing.T, client *http.Client, url string) {
	t.Helper()
	await(t, func() bool {
		response, err := client.Get(url + ramp.PathAssets)
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusUnauthorized
	}, func() string { return "the servers do not come back" })
}

// The settings that the documentation names are in the files.
func TestTheDocumentationNamesTheseSettings(t *testing.T) {
	_, table, _ := strings.Cut(document(t, "operations.md"), "\n| | nginx | HAProxy |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]int{}
	for _, row := range strings.Split(table, "\n")[1:] {
		for i, column := range strings.Split(row, "|")[2:4] {
			name := []string{"nginx", "HAProxy"}[i]
			for _, setting := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(column, -1) {
				named[name]++
				if !strings.Contains(configOf(t, name), setting[1]) {
					t.Errorf("%s does not have %s", proxies[name].config, setting[1])
				}
			}
		}
	}
	if named["nginx"] < 5 || named["HAProxy"] < 5 {
		t.Error("settings that the documentation names:", named)
	}
}
