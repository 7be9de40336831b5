package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit is a row of the table of time limits in docs/hosting.md.
type limit struct {
	what  string
	least time.Duration // as documented
	named string        // where it is set
}

// documentedLimits reads the table.
func documentedLimits(t *testing.T) map[string]limit {
	t.Helper()
	_, table, _ := strings.Cut(document(t, "hosting.md"), "\n| what | limit | set in |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]limit{}
	for _, row := range regexp.MustCompile(
		`(?m)^\| ([^|]+?) \| ([0-9]+ s)[^|]* \| ([^|]+?) \|$`).FindAllStringSubmatch(table, -1) {
		rows[row[1]] = limit{row[1], must(time.ParseDuration(strings.ReplaceAll(row[2], " ", "")))(t), row[3]}
	}
	return rows
}

// setting returns a duration of a shipped file.
func setting(t *testing.T, file, name string) time.Duration {
	t.Helper()
	text := string(must(os.ReadFile("deploy/" + file))(t))
	found := regexp.MustCompile(`(?m)^\s*` + name + `:? (\d+m?s)\b`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("deploy/%s does not set %s", file, name)
	}
	return must(time.ParseDuration(found[1]))(t)
}

// Whoever waits waits longer than what it waits for, in the shipped files as in the document.
func TestTheTimeLimitsAreAChain(t *testing.T) {
	rows := documentedLimits(t)
	at := func(what string) time.Duration {
		t.Helper()
		row, ok := rows[what]
		if !ok {
			t.Fatalf("docs/hosting.md has no time limit of %q, but %v", what, rows)
		}
		return row.least
	}
	commit := at("a commit, which may go on after its call was answered")
	nginx := func(name string) time.Duration { return setting(t, "nginx.conf", name) }
	haproxy := func(name string) time.Duration { return setting(t, "haproxy.cfg", name) }

	// The numbers of the document are those of the files.
	equal(t, "a call", at("a call"), callDeadline)
	equal(t, "reading it", at("reading a call"), readTimeout)
	equal(t, "the answer", at("the answer of a server"), writeTimeout)
	equal(t, "stopping", at("the calls in progress when a server stops"), endTimeout)
	equal(t, "a host of the database", at("connecting to a host of the database"), connectTimeout)
	equal(t, "killing", at("a server that stops, until it is killed"), setting(t, "compose.yaml", "stop_grace_period"))
	for what, source := range map[string][2]string{
		"a commit, which may go on after its call was answered": {"rampsql/transaction.go", "commitTime = "},
		"the node, until a result is confirmed":                 {"rampproof/confirmed.go", "confirmationWait = "},
		"the key service":                                       {"handler.go", "cmp.Or(c.SignTimeout, "},
	} {
		says(t, string(must(os.ReadFile("../../"+source[0]))(t)), source[1]+fmt.Sprint(at(what).Seconds()))
	}
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

	// Each is shorter than the next.
	const balancer = "a balancer in front"
	connect, try := at("connecting to a server"), at("a try of the proxy")
	for _, c := range []struct {
		shorter string
		than    string
		a, b    time.Duration
	}{
		{"a confirmation", "a call", at("the node, until a result is confirmed"), callDeadline},
		{"a signature", "a call", at("the key service"), callDeadline},
		{"two hosts of the database", "a call", 2 * connectTimeout, callDeadline},
		{"a call and its commit", "the answer", callDeadline + commit, writeTimeout},
		{"reading", "the answer", readTimeout, writeTimeout},
		{"the answer", "a try", writeTimeout, try},
		{"a try", "the time in which nginx makes another", connect + try - time.Second,
			nginx("proxy_next_upstream_timeout")},
		{"two tries", "a balancer", connect + try + connect + try - time.Second, at(balancer)},
		{"the answer", "stopping", writeTimeout, endTimeout},
		{"stopping", "killing", endTimeout, at("a server that stops, until it is killed")},
		{"a balancer", "an idle connection", at(balancer), at("an idle connection to the proxy")},
	} {
		if c.a >= c.b {
			t.Errorf("%s takes %v, and %s %v", c.shorter, c.a, c.than, c.b)
		}
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
