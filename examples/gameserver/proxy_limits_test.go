package main

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// The time limits of both proxies are those of docs/hosting.md, and nginx has the time for a second try.
func TestTheTimeLimitsOfTheProxies(t *testing.T) {
	at := documentedLimits(t)
	nginx := func(name string) time.Duration { return setting(t, "nginx.conf", name) }
	haproxy := func(name string) time.Duration { return setting(t, "haproxy.cfg", name) }
	for name, try := range map[string]time.Duration{"nginx": nginx("proxy_read_timeout"),
		"HAProxy": haproxy("timeout server")} {
		equal(t, name+": a try", try, at("a try of the proxy"))
	}
	for name, connect := range map[string]time.Duration{"nginx": nginx("proxy_connect_timeout"),
		"HAProxy": haproxy("timeout connect")} {
		equal(t, name+": connecting", connect, at("connecting to a server"))
	}
	for name, idle := range map[string]time.Duration{"nginx": nginx("keepalive_timeout"),
		"HAProxy": haproxy("timeout http-keep-alive"),
		"HAProxy, which closes idle connections by another limit, too": haproxy("timeout client")} {
		equal(t, name+": an idle connection", idle, at("an idle connection to the proxy"))
	}
	once := at("connecting to a server") + at("a try of the proxy") - time.Second
	if limit := nginx("proxy_next_upstream_timeout"); once >= limit {
		t.Errorf("a try takes %v, and the time in which nginx makes another is %v", once, limit)
	}
	says(t, configOf(t, "HAProxy"), "\n    retries 1\n")
	says(t, configOf(t, "nginx"), "proxy_next_upstream_tries 2;")
}

// One server accepts connections and never answers. With the shipped times, the other one answers
// each call.
func TestACallGetsToTheOtherServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the shipped times")
	}
	eachProxy(t, func(t *testing.T, name string) {
		frozen, healthy := startBackend(t), startBackend(t)
		frozen.mode.Store("silent")
		url, client := startProxy(t, name, configOf(t, name), frozen.address, healthy.address)
		var calls sync.WaitGroup
		for n := range 8 {
			target := []string{"/api/validate", "/api/result", "/callback", "/api/validate"}[n%4]
			calls.Go(func() {
				begun := time.Now()
				equal(t, fmt.Sprintf("%s, call %d", target, n),
					told(t, dial(t, url, client), wire("POST", target, signature)), "200")
				if took := time.Since(begun); took > 28*time.Second {
					t.Errorf("%s, call %d took %v", target, n, took)
				}
			})
		}
		calls.Wait()
		if frozen.calls.Load() == 0 {
			t.Error("the frozen server got no call")
		}
	})
}
