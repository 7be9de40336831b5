package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documentedLimits reads the table of time limits in docs/hosting.md, and returns a function that returns one.
func documentedLimits(t *testing.T) func(what string) time.Duration {
	t.Helper()
	_, table, _ := strings.Cut(document(t, "hosting.md"), "\n| what | limit | set in |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]time.Duration{}
	for _, row := range regexp.MustCompile(
		`(?m)^\| ([^|]+?) \| ([0-9]+ s)[^|]* \| ([^|]+?) \|$`).FindAllStringSubmatch(table, -1) {
		rows[row[1]] = must(time.ParseDuration(strings.ReplaceAll(row[2], " ", "")))(t)
	}
	return func(what string) time.Duration {
		t.Helper()
		limit, ok := rows[what]
		if !ok {
			t.Fatalf("docs/hosting.md has no time limit of %q, but %v", what, rows)
		}
		return limit
	}
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
	at := documentedLimits(t)
	commit := at("a commit, which may go on after its call was answered")

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
		{"two tries", "a balancer", connect + try + connect + try - time.Second, at(balancer)},
		{"the answer", "stopping", writeTimeout, endTimeout},
		{"stopping", "killing", endTimeout, at("a server that stops, until it is killed")},
		{"a balancer", "an idle connection", at(balancer), at("an idle connection to the proxy")},
	} {
		if c.a >= c.b {
			t.Errorf("%s takes %v, and %s %v", c.shorter, c.a, c.than, c.b)
		}
	}
}
