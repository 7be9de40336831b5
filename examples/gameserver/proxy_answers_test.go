package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// bearer is a header with an access token of a size.
func bearer(size int) string {
	return "X-Dapp-Authorization: Bearer " + strings.Repeat("t", size) + "\r\n"
}

// unreadableForHAProxy are the calls that HAProxy cannot read, and answers with 400 whatever its
// configuration says, as docs/operations.md does.
var unreadableForHAProxy = []string{"a header too large for HAProxy", "many headers", "two lengths"}

// dial opens a connection to a proxy, with TLS.
func dial(t *testing.T, url string, client *http.Client) net.Conn {
	t.Helper()
	config := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	return must(tls.Dial("tcp", strings.TrimPrefix(url, "https://"), config))(t)
}

// wire is a request with a small body.
func wire(method, target string, headers ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: game.example.com\r\nContent-Length: 2\r\nConnection: close\r\n" +
		strings.Join(headers, "") + "\r\n{}"
}

// What a proxy answers itself to what the service may have sent is 500.
func TestAProxyAnswersNothingForTheGame(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		url, client := startProxy(t, name, configOf(t, name), unused, unused)
		refuses := startBackend(t) // what nobody could read must not come here
		refuses.mode.Store("404")
		other, otherClient := startProxy(t, name, configOf(t, name), refuses.address, refuses.address)
		for what, request := range map[string]string{
			"validate":                        wire("POST", "/api/validate", signature),
			"a result":                        wire("POST", "/api/result", signature),
			"a result without an HMAC":        wire("POST", "/api/result"),
			"a result elsewhere, without":     wire("POST", "/game/Result/"),
			"a path that is almost right":     wire("POST", "/api/results", signature),
			"a path with a space":             wire("POST", "/api/result%20", signature),
			"a path with a parameter":         wire("POST", "/api/result;v=1", signature),
			"a path with a line end":          wire("POST", "/api/result%0A", signature),
			"a path with two slashes":         wire("POST", "//api//result", signature),
			"no path":                         wire("POST", "/", signature),
			"a query":                         wire("POST", "/callback?a=b", signature),
			"a path with a raw letter":        wire("POST", "/api/r\u00fcsult", signature),
			"a path of a health check":        wire("POST", "/healthz", signature),
			"another path of the proxy's own": wire("POST", "/proxy/again", signature),
			"a path of a balancer":            wire("POST", "/proxy/health", signature),
			"a path of the proxy's own":       wire("POST", "/proxy/elsewhere", signature),
			"a large header":                  wire("POST", "/api/result", signature, bearer(50<<10)),
			"a large header before the HMAC":  wire("POST", "/api/validate", bearer(50<<10), signature),
			"a large header, wrong path":      wire("POST", "/callback", signature, bearer(50<<10)),
			"a header too large for HAProxy":  wire("POST", "/api/validate", bearer(100<<10), signature),
			"many headers": wire("POST", "/api/validate", strings.Repeat("X-A: b\r\n", 120),
				signature),
			"a large body": "POST /api/result HTTP/1.1\r\nHost: game.example.com\r\nContent-Length: 3000000\r\n" +
				signature + "\r\n" +
				strings.Repeat(" ", 3_000_000),
			"a large body, wrong path": "POST /callback HTTP/1.1\r\nHost: game.example.com\r\nContent-Length: " +
				"3000000\r\n" + signature +
				"\r\n" + strings.Repeat(" ", 3_000_000),
			"two lengths": "POST /api/result HTTP/1.1\r\nHost: game.example.com\r\n" + signature +
				"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
			"no host": "POST /api/result HTTP/1.1\r\nContent-Length: 2\r\n" + signature + "\r\n{}",
		} {
			got := told(t, dial(t, url, client), request)
			if name == "HAProxy" && slices.Contains(unreadableForHAProxy, what) {
				equal(t, what, got, "400")
			} else if !repeated(got) {
				t.Errorf("%s: the service sees %s, and does not repeat the call", what, got)
			}
		}
		for _, target := range []string{"/api/result", "/callback"} {
			plain := must(net.Dial("tcp", strings.TrimPrefix(other, "https://")))(t)
			if got := told(t, plain, wire("POST", target, signature)); !repeated(got) {
				t.Errorf("http to the port of https: the service sees %s, and does not repeat the call", got)
			}
		}
		_ = told(t, dial(t, other, otherClient), "POST /callback HTTP/1.1\r\n"+signature+"\r\n")
		equal(t, "calls that nobody could read, at the game", refuses.calls.Load(), int64(0))
	})
}

// What players and scanners get is no business of the service.
func TestAProxyAnswersPlayersAsItAlwaysDid(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		url, client := startProxy(t, name, configOf(t, name), unused, unused)
		down := map[string]string{"nginx": "502", "HAProxy": "500"}[name]
		for what, c := range map[string]struct{ request, want string }{
			"a player, while no server is up": {wire("POST", "/login"), down},
			"a signature that is none":        {wire("POST", "/login", "X-HMAC-SIGNATURE: 00\r\n"), down},
			"a signature without a body":      {wire("GET", "/login", signature), down},
			"a health check":                  {wire("GET", "/healthz"), "404"},
			"the health check of a balancer":  {wire("GET", "/proxy/health"), "200"},
			"a large header":                  {wire("GET", "/login", bearer(100<<10)), "400"},
			"not HTTP":                        {"scan\r\n\r\n", "400"},
		} {
			equal(t, what, told(t, dial(t, url, client), c.request), c.want)
		}
		plain := must(net.Dial("tcp", strings.TrimPrefix(url, "https://")))(t)
		equal(t, "http to the port of https", told(t, plain, wire("POST", "/login")),
			map[string]string{"nginx": "400", "HAProxy": "no answer"}[name])
	})
}

// What the game answers arrives, whatever the call is, except what only something in between can
// have answered.
func TestAProxyPassesTheAnswersOfTheGame(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		server := startBackend(t)
		url, client := startProxy(t, name, configOf(t, name), server.address, server.address)
		for _, target := range []string{"/api/result", "/api/validate", "/callback"} {
			for _, status := range []string{"200", "301", "400", "401", "403", "404", "405", "409", "429", "500"} {
				server.mode.Store(status)
				equal(t, target+" is answered with",
					told(t, dial(t, url, client), wire("POST", target, signature)), status)
			}
			for _, status := range []string{"502", "503", "504"} {
				server.mode.Store(status)
				equal(t, target+": "+status+" becomes",
					told(t, dial(t, url, client), wire("POST", target, signature)), "500")
			}
		}
		for _, status := range []string{"200", "400", "401", "429", "500", "502", "503"} {
			server.mode.Store(status)
			equal(t, "a player is answered with", told(t, dial(t, url, client), wire("POST", "/mail")), status)
		}
		server.mode.Store("fine")
		_ = told(t, dial(t, url, client), wire("POST", "/a%20b?c=%2F", signature))
		equal(t, "the path", server.target, "/a%20b?c=%2F")
	})
}

// The limit for players of nginx meets a call of the service on a path that is almost right.
func TestALimitAnswersACallThatComesAgainWith500(t *testing.T) {
	eachProxy(t, func(t *testing.T, name string) {
		if name != "nginx" {
			t.Skip("it limits nobody")
		}
		server := startBackend(t)
		url, client := startProxy(t, name, configOf(t, name), server.address, server.address)
		seen := map[string]int{}
		for range 60 {
			seen["player "+told(t, dial(t, url, client), wire("POST", "/login"))]++
			seen["service "+told(t, dial(t, url, client), wire("POST", "/callback", signature))]++
			seen["result "+told(t, dial(t, url, client), wire("POST", "/api/result", signature))]++
			seen["validate "+told(t, dial(t, url, client), wire("POST", "/api/validate", signature))]++
		}
		if seen["player 429"] == 0 || seen["service 500"] == 0 || seen["service 200"]+seen["service 500"] != 60 {
			t.Error(seen)
		}
		equal(t, "results that a limit lets pass", seen["result 200"]+seen["validate 200"], 120)
	})
}

// Behind a balancer, all players come from its address, and nginx would limit them as one. Once it trusts
// the balancer's network, and no other, each has a limit of their own.
func TestPlayersBehindABalancerAreNotOne(t *testing.T) {
	t.Parallel()
	if _, err := lookUp("nginx"); err != nil {
		t.Skip("*** NOT TESTED: nginx is not installed ***")
	}
	server := startBackend(t)
	trusts := func(network string) string {
		return replaceAll(t, configOf(t, "nginx"), "#set_real_ip_from 10.0.0.0/8;", "set_real_ip_from "+network+";",
			"#real_ip_header", "real_ip_header")
	}
	for _, c := range []struct {
		what, config string
		player       func(n int) string // the address that the balancer names
		limited      bool
	}{
		{"as shipped", configOf(t, "nginx"), func(n int) string { return fmt.Sprint("203.0.113.", n) }, true},
		{"with the balancer's network", trusts("127.0.0.0/8"),
			func(n int) string { return fmt.Sprint("203.0.113.", n) }, false},
		{"one player, who says to be another", trusts("127.0.0.0/8"),
			func(n int) string { return fmt.Sprintf("198.51.100.%d, 203.0.113.9", n) }, true},
		{"from another network", trusts("10.0.0.0/8"), func(n int) string { return fmt.Sprint("203.0.113.", n) }, true},
	} {
		url, client := startProxy(t, "nginx", c.config, server.address, server.address)
		seen := map[string]int{}
		for n := range 40 {
			seen[told(t, dial(t, url, client), wire("POST", "/login", "X-Forwarded-For: "+c.player(n)+"\r\n"))]++
		}
		t.Log(c.what, seen)
		if limited := seen["429"] > 0; limited != c.limited || seen["200"]+seen["429"] != 40 {
			t.Errorf("%s: %v", c.what, seen)
		}
	}
}

// A balancer keeps a connection to the proxy for a minute and longer, and sends the next call on it.
func TestAProxyKeepsAConnectionLongerThanABalancer(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for 61 s")
	}
	call := map[string]func(){}
	for name, p := range proxies {
		if _, err := lookUp(p.binary); err != nil {
			t.Log("*** NOT TESTED: " + p.binary + " is not installed ***")
			continue
		}
		server := startBackend(t)
		url, client := startProxy(t, name, configOf(t, name), server.address, server.address)
		connection := dial(t, url, client)
		t.Cleanup(func() { _ = connection.Close() })
		answers := bufio.NewReader(connection)
		call[name] = func() {
			t.Helper()
			must(io.WriteString(connection,
				strings.Replace(wire("POST", "/api/result", signature), "Connection: close\r\n", "", 1)))(t)
			response, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			must(io.Copy(io.Discard, response.Body))(t)
			equal(t, name, response.StatusCode, 200)
		}
		call[name]()
	}
	idle := time.Now()
	t.Parallel() // the time is the subject, and passes while other tests run
	time.Sleep(time.Until(idle.Add(61 * time.Second)))
	for _, again := range call {
		again()
	}
}
