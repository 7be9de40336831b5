package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// In this hour a sample comes every minute, and the queries of the dashboard are evaluated
// at its end. "0+60x60" grows by 60 each minute.
var hour = map[string]string{
	`ramp_webhook_calls_total{endpoint="validate",direction="mint",status="200",` +
		`code=""}`: "0+60x60",
	`ramp_webhook_calls_total{endpoint="validate",direction="mint",status="200",` +
		`code="INVALID_BALANCE"}`: "0+6x60",
	`ramp_webhook_calls_total{endpoint="result",direction="mint",status="500",code="INTERNAL_ERROR",` +
		`unverified="false"}`: "0x50 1+1x9",
	`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="0.5"}`:                      "0x60",
	`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="1"}`:                        "0+60x60",
	`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="+Inf"}`:                     "0+60x60",
	`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:      "0+60x60",
	`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`:  "0+48x60",
	`ramp_order_steps_total{direction="mint",effect="nothing",new="false",state="succeeded"}`: "0+6x60",
	`ramp_order_steps_total{direction="mint",effect="give back",new="true",state="failed"}`:   "0+12x60",
	`ramp_client_calls_total{kind="initialize",name="initialize",failed="true"}`:              "0+45x60",
	`ramp_client_calls_total{kind="initialize",name="initialize",failed="false"}`:             "0+15x60",
	`ramp_client_attempts_total{name="batch",failed="true"}`:                                  "0+15x60",
	`ramp_client_attempts_total{name="batch",failed="false"}`:                                 "0+45x60",
	`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="1"}`:                      "0x60",
	`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="2.5"}`:                    "0+60x60",
	`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="+Inf"}`:                   "0+60x60",
	`ramp_signatures_total`:                              "0+60x60",
	`ramp_orders_slow{direction="mint",instance="a"}`:    "20x60",
	`ramp_orders_slow{direction="mint",instance="b"}`:    "20x60",
	`ramp_orders_late{direction="mint",instance="a"}`:    "3x60",
	`ramp_orders_waiting{direction="mint",instance="a"}`: "1x60",
	`ramp_orders_refused{direction="burn",instance="a"}`: "2x60",
	`ramp_conflicts_open{instance="a"}`:                  "1x60",
	`ramp_books_unsigned_mints{instance="a"}`:            "0x60",
	`ramp_shop_closed{instance="a"}`:                     "0x60",
	`ramp_books_findings{kind="differs",instance="a"}`:   "2x60",
	`ramp_books_findings{kind="ambiguous",instance="a"}`: "1x60",
	`ramp_node_block_seconds{instance="a"}`:              "-12+60x60",
	`ramp_clock_seconds{instance="a"}`:                   "6+60x60",
	`ramp_cap_share{instance="a",window="hour"}`:         "0.4x60",
	`ramp_books_end_seconds{instance="a"}`:               "-1080+60x60",
	`ramp_log_records_waiting{instance="a"}`:             "2x60",
	`up{job="gameserver",instance="a"}`:                  "1x60",
	`probe_success{job="ramp"}`:                          "1x60",
	`probe_success{job="ramp-post"}`:                     "0x60",
	`ramp:orders_accepted:15m`:                           "90x60",
	`ramp:orders_expected:15m`:                           "100x60",
}

// samples are those of each query at the end of the hour, by their labels.
var samples = map[string]map[string]float64{
	"Calls a second, by endpoint and answer": {`{endpoint="validate",status="200"}`: 1.1,
		`{endpoint="result",status="500",unverified="false"}`: 0.017},
	"Orders a second, opened and ended": {`{direction="mint",state="accepted"}`: 1,
		`{direction="mint",state="succeeded"}`: 0.8,
		`{direction="mint",state="failed"}`:    0.2},
	"Share of mints that end in failure, and give back":      {`{}`: 0.2},
	"99th percentile of a call":                              {`{endpoint="validate"}`: 0.995},
	"Rejected orders, by reason":                             {`{code="INVALID_BALANCE"}`: 0.1},
	"Signatures in an hour, to compare with the key service": {`{}`: 3600},
	"Repeats, whose answer did not arrive in time":           {`{}`: 0.1},
	"Requests to the service and the node that fail":         {`{name="batch"}`: 0.25},
	"Time that a result waits for the chain":                 {`{}`: 2.425},
	"Orders accepted in 15 minutes, and how many to expect":  {`{is="accepted"}`: 90, `{is="expected"}`: 100},
	"Orders that wait: slow, for an hour, for 13 hours, refused": {`{direction="mint",is="slow"}`: 20,
		`{direction="mint",is="late"}`:    3,
		`{direction="mint",is="waiting"}`: 1, `{direction="burn",is="refused"}`: 2},
	"Share of what calls somebody: node, clock, cap, books, log, servers, outside": {`{is="node"}`: 0.1,
		`{is="clock"}`: 0.1, `{is="cap"}`: 0.8, `{is="books"}`: 0.1, `{is="log"}`: 1, `{is="servers"}`: 0,
		`{is="outside"}`: 1},
	"What a person has to close": {`{is="conflicts_open"}`: 1, `{is="books_unsigned_mints"}`: 0,
		`{is="shop_closed"}`: 0, `{is="books_findings"}`: 3},
}

// quietSeries are a long time in which all is well, and no alert fires.
var quietSeries = map[string]string{
	`up{job="gameserver",instance="a"}`:          "1x60",
	`up{job="gameserver",instance="b"}`:          "0x60", // one of two servers is enough
	`probe_success{job="ramp"}`:                  "1x60",
	`probe_success{job="ramp-post"}`:             "1x60",
	`probe_ssl_earliest_cert_expiry{job="ramp"}`: "10000000x60",
	`haproxy_frontend_http_responses_total{instance="haproxy",proxy="service",code="5xx"}`:       "0+1x60",
	`haproxy_frontend_http_responses_total{instance="haproxy",proxy="service",code="2xx"}`:       "0+20x60",
	`nginx_answers_total{instance="nginx"}`:                                                      "0+20x60",
	`nginx_failures_total{instance="nginx"}`:                                                     "0x60",
	`haproxy_server_http_responses_total{instance="haproxy",proxy="game",code="5xx"}`:            "0+1x60",
	`ramp_webhook_calls_total{instance="a",endpoint="validate",status="200",unverified="false"}`: "0+6x60",
	`ramp_webhook_calls_total{instance="a",endpoint="validate",status="500",unverified="false"}`: "0x60",
	`ramp_webhook_calls_total{instance="a",endpoint="result",status="200",unverified="false"}`:   "0+6x60",
	`ramp_webhook_calls_total{instance="b",endpoint="result",status="200",unverified="false"}`:   "0+6x60",
	`ramp_webhook_calls_total{instance="a",endpoint="result",status="500",unverified="false"}`:   "0x60",
	`ramp_webhook_calls_total{instance="b",endpoint="result",status="500",code="HMAC_INVALID",` +
		`unverified="true"}`: "0x60",
	`ramp_webhook_calls_total{instance="a",endpoint="result",status="500",code="BODY_TOO_LARGE",` +
		`unverified="true"}`: "0x60",
	`ramp_client_calls_total{kind="initialize",failed="false"}`:        "0+6x60",
	`ramp_order_steps_total{instance="a",state="accepted",new="true"}`: "0+6x60",
	`ramp_cap_share{instance="a",item="item_gold",of="player",` +
		`window="hour"}`: "0.4x60",
	`ramp_clock_seconds{instance="a"}`:                         "0+60x60",
	`ramp_client_calls_total{kind="initialize",failed="true"}`: "0+1x60",
	`ramp_orders_slow{direction="mint"}`:                       "3x60",
	`ramp_orders_late{direction="mint"}`:                       "0x60",
	`ramp_orders_waiting{direction="mint"}`:                    "0x60",
	`ramp_orders_refused{direction="mint"}`:                    "0x50 1x4 0x5", // until it came again
	`ramp_orders_refused{direction="burn"}`:                    "0x60",
	`ramp_conflicts_open`:                                      "0x60",
	`ramp_shop_closed`:                                         "0x60",
	`ramp_node_block_seconds{instance="a"}`:                    "0+60x60",
	`ramp_books_findings{kind="differs"}`:                      "0x60",
	`ramp_books_findings{kind="waits_without_event"}`:          "1x60", // a burn that a player gave up
	`ramp_books_unsigned_mints`:                                "0x60",
	`ramp_books_end_seconds`:                                   "0+60x60",
	`ramp_log_records_waiting{instance="a"}`:                   "0x30 2 0x29", // a busy moment
	`ramp_log_records_lost_total{instance="a"}`:                "0x60",
}

// alarms are alerts that fire, by the labels of each.
type alarms map[string][]map[string]string

// In each of these, all is well for an hour. Then the series are as in the map, and the
// alerts fire, each with its labels, and no other.
var troubles = []struct {
	name  string
	after int // minutes; 5 if 0
	// what comes after the hour, for those whose name begins so and that contain the text after a space
	series map[string]string
	fires  alarms
}{
	{name: "results have another key, one in two minutes",
		series: map[string]string{`ramp_webhook_calls_total HMAC_INVALID`: "1 1 2 2 3 3 4"},
		fires:  alarms{"RampUnverified": {{"instance": "b", "code": "HMAC_INVALID"}}}},
	{name: "a result is too large",
		series: map[string]string{`ramp_webhook_calls_total BODY_TOO_LARGE`: "1x100"},
		fires:  alarms{"RampUnverified": {{"instance": "a", "code": "BODY_TOO_LARGE"}}}},
	{name: "a burn is refused, and waits until a person ends it", after: 10, series: map[string]string{
		`ramp_orders_refused direction="burn"`: "1x1000"},
		fires: alarms{"RampOrdersStuck": {{"why": "refused"}}}},
	{name: "a burn is refused since yesterday, and no result comes any more", after: 120,
		series: map[string]string{
			`ramp_orders_refused direction="burn"`: "1x1000"},
		fires: alarms{"RampOrdersStuck": {{"why": "refused"}}}},
	{name: "the key of one of two servers is wrong", after: 36, series: map[string]string{
		`ramp_webhook_calls_total HMAC_INVALID`:                                "1+1x100",
		`ramp_webhook_calls_total instance="b",endpoint="result",status="200"`: "360x100"},
		fires: alarms{"RampUnverified": {{"instance": "b", "code": "HMAC_INVALID"}},
			"RampHMACFails": {{"instance": "b"}}}},
	{name: "the results of older orders have another key", series: map[string]string{
		`ramp_webhook_calls_total HMAC_INVALID`: "1x100", `ramp_orders_late `: "1x100"},
		fires: alarms{"RampUnverified": {{"instance": "b", "code": "HMAC_INVALID"}}, "RampHMACFails": {{}}}},
	{name: "every validate call is answered with 500", series: map[string]string{
		`ramp_webhook_calls_total endpoint="validate",status="200"`: "360x100",
		`ramp_webhook_calls_total endpoint="validate",status="500"`: "6+6x100"},
		fires: alarms{"RampCallsFail": {{"instance": "a", "endpoint": "validate"}}}},
	{name: "no server answers",
		series: map[string]string{`up `: "0x100", `probe_success `: "0x100", `ramp_ `: "stale"},
		fires: alarms{"RampUnreachable": {{"what": "servers"}, {"what": "database"}, {"what": "outside"}},
			"RampBooksNotRead": {{}}}},
	{name: "no server reaches the database",
		series: map[string]string{`ramp_orders_ `: "NaN NaN NaN NaN NaN NaN",
			`ramp_conflicts_open `: "NaN NaN NaN NaN NaN NaN",
			`ramp_shop_closed `:    "NaN NaN NaN NaN NaN NaN"},
		fires: alarms{"RampUnreachable": {{"what": "database"}}}},
	{name: "the server that compares the books is gone", series: map[string]string{`ramp_books `: "stale"},
		fires: alarms{"RampBooksNotRead": {{}}}},
	{name: "the books are not read", after: 185,
		series: map[string]string{`ramp_books_end_seconds `: "3600x200"},
		fires:  alarms{"RampBooksNotRead": {{}}}},
	{name: "the node has no new blocks", series: map[string]string{`ramp_node_block_seconds `: "3600x100"},
		fires: alarms{"RampNodeStuck": {{"instance": "a"}}}},
	{name: "the node does not answer",
		series: map[string]string{`ramp_node_block_seconds `: "NaN NaN NaN NaN NaN NaN"},
		fires:  alarms{"RampNodeStuck": {{"instance": "a"}}}},
	{name: "a result contradicts its order", series: map[string]string{`ramp_conflicts_open `: "1x100"},
		fires: alarms{"RampConflicts": {{}}}},
	{name: "a conflict that nobody closes for three hours", after: 180,
		series: map[string]string{`ramp_conflicts_open `: "1x180"},
		fires:  alarms{"RampConflicts": {{}}}},
	{name: "a mint has no signed order", series: map[string]string{
		`ramp_books_findings differs`: "1x100", `ramp_books_unsigned_mints `: "1x100"},
		fires: alarms{"RampMintsUnsigned": {{}}}},
	{name: "the books have a finding", series: map[string]string{`ramp_books_findings differs`: "1x100"},
		fires: alarms{"RampConflicts": {{}}}},
	{name: "a finding that nobody has closed for three hours", after: 180,
		series: map[string]string{`ramp_books_findings differs`: "1x180"},
		fires:  alarms{"RampConflicts": {{}}}},
	{name: "results pile up at the service",
		series: map[string]string{
			`ramp_webhook_calls_total instance="a",endpoint="result",status="500",` +
				`unverified="false"`: "1+1x100"},
		fires: alarms{"RampCallsFail": {{"instance": "a", "endpoint": "result"}}}},
	{name: "the certificate ends",
		series: map[string]string{`probe_ssl_earliest_cert_expiry `: "1000000x100"},
		fires:  alarms{"RampCertificateEnds": {{}}}},
	{name: "the certificate has ended, and the probe gets none", after: 90, series: map[string]string{
		`probe_ssl_earliest_cert_expiry `: "10000 stale", `probe_success `: "1 0x100"},
		fires: alarms{"RampCertificateEnds": {{}}, "RampUnreachable": {{"what": "outside"}}}},
	{name: "a firewall lets only GET pass",
		series: map[string]string{`probe_success job="ramp-post"`: "0x100"},
		fires:  alarms{"RampUnreachable": {{"what": "outside"}}}},
	{name: "HAProxy answers for the servers",
		series: map[string]string{`haproxy_frontend_http_responses_total 5xx`: "64+4x100"},
		fires:  alarms{"RampUnreachable": {{"instance": "haproxy", "what": "proxy"}}}},
	{name: "nginx answers for the servers", series: map[string]string{`nginx_failures_total `: "4+4x100"},
		fires: alarms{"RampUnreachable": {{"instance": "nginx", "what": "proxy"}}}},
	{name: "HAProxy answers 5 of 1,000 calls", after: 20, series: map[string]string{
		`haproxy_frontend_http_responses_total 5xx`: "62+2x100",
		`haproxy_frontend_http_responses_total 2xx`: "1400+200x100"}},
	{name: "somebody sends forged calls to a large game", after: 20, series: map[string]string{
		`ramp_webhook_calls_total HMAC_INVALID`:                                "1+1x100",
		`ramp_webhook_calls_total instance="b",endpoint="result",status="200"`: "560+200x100"}},
	{name: "something else answers for the servers", series: map[string]string{`probe_success `: "0x100"},
		fires: alarms{"RampUnreachable": {{"what": "outside"}}}},
	{name: "nothing calls from outside", series: map[string]string{`probe_success `: "stale"},
		fires: alarms{"RampUnreachable": {{"what": "outside"}}}},
	{name: "no validate calls come", after: 15,
		series: map[string]string{`ramp_webhook_calls_total endpoint="validate",status="200"`: "360x100",
			`ramp_order_steps_total `: "360x100"},
		fires: alarms{"RampFewOrders": {{}}}},
	{name: "no validate calls come, because the shop is closed", after: 15, series: map[string]string{
		`ramp_webhook_calls_total endpoint="validate",status="200"`: "360x100",
		`ramp_order_steps_total `:                                   "360x100",
		`ramp_shop_closed `:                                         "1x100"}},
	{name: "nobody starts an order any more", after: 15,
		series: map[string]string{`ramp_webhook_calls_total endpoint="validate",status="200"`: "360x100",
			`ramp_order_steps_total `: "360x100", `ramp_client_calls_total `: "360x100"}},
	{name: "a player cashes out a bug", series: map[string]string{`ramp_cap_share `: "0.6x100"},
		fires: alarms{"RampCapNear": {{"item": "item_gold", "of": "player"}}}},
	{name: "the clock of a server is wrong", series: map[string]string{`ramp_clock_seconds `: "4800+60x100"},
		fires: alarms{"RampClockWrong": {{"instance": "a"}}}},
	{name: "the shop stays closed", after: 65, series: map[string]string{`ramp_shop_closed `: "1x100"},
		fires: alarms{"RampShopClosed": {{}}}},
	{name: "mints wait, three more each minute", series: map[string]string{`ramp_orders_slow `: "6+3x100"},
		fires: alarms{"RampMintsPileUp": {{}}}},
	{name: "a mint has waited for longer than any result comes", after: 10,
		series: map[string]string{`ramp_orders_waiting `: "1x100", `ramp_orders_late `: "1x100"},
		fires:  alarms{"RampOrdersStuck": {{"why": "no result"}}}},
	{name: "nobody reads the log of a server",
		series: map[string]string{`ramp_log_records_waiting `: "40+40x100"},
		fires:  alarms{"RampLogNotRead": {{"instance": "a"}}}},
	{name: "a record of the log was lost", series: map[string]string{`ramp_log_records_lost_total `: "1x100"},
		fires: alarms{"RampLogNotRead": {{"instance": "a"}}}},
	{name: "the service rejects initialize calls",
		series: map[string]string{`ramp_client_calls_total failed="true"`: "72+12x100",
			`ramp_client_calls_total failed="false"`: "360x100"},
		fires: alarms{"RampCallsFail": {{"endpoint": "initialize"}}}},
	{name: "all is well for six hours", after: 360},
}

// rule is an alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var alerts struct{ Groups []struct{ Rules []rule } }
	check(t, yaml.Unmarshal(must(os.ReadFile("deploy/alerts.yaml"))(t), &alerts))
	// A rule without an alert records what others compare with.
	return slices.DeleteFunc(alerts.Groups[0].Rules, func(r rule) bool { return r.Alert == "" })
}

// watchdog is the alert that always fires, so that somebody notices when none can.
const watchdog = "RampPrometheusRuns"

func severityOf(r rule) string {
	if r.Alert == watchdog {
		return "none"
	}
	return "critical"
}

// Whoever is called finds the alert in the document, and from there what to do.
func TestEachAlertHasItsRunbook(t *testing.T) {
	guide := document(t, "on-call.md")
	var documented, exist []string
	_, table, _ := strings.Cut(guide, "| alert | what to do |\n|---|---|\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		documented = append(documented, regexp.MustCompile(`Ramp\w+`).FindAllString(strings.Split(line, "|")[1], -1)...)
	}
	const afterRestart = "After a restart or a restore"
	_, restart, _ := strings.Cut(guide, "\n## "+afterRestart+"\n")
	restart, _, _ = strings.Cut(restart, "\n## ")
	metrics := regexp.MustCompile(`\b(ramp|probe|haproxy|nginx)_\w+`)
	for _, r := range rules(t) {
		exist = append(exist, r.Alert)
		if r.Annotations["summary"] == "" || r.For == "" || r.Labels["severity"] != severityOf(r) &&
			r.Labels["severity"] != "warning" {
			t.Errorf("%s needs a summary, a time in for, and the severity critical or warning", r.Alert)
		}
		for _, metric := range metrics.FindAllString(r.Expr, -1) {
			if !strings.Contains(restart, "`"+metric+"`") {
				t.Errorf("%s: %q of on-call.md does not say what becomes of %s", r.Alert, afterRestart, metric)
			}
		}
		path, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		text := strings.ToLower(document(t, filepath.Base(path)))
		if !regexp.MustCompile(`(?m)^#+ ` + strings.ReplaceAll(anchor, "-", "[ ,]+") + `$`).MatchString(text) {
			t.Errorf("%s: no heading for %s#%s", r.Alert, path, anchor)
		}
	}
	slices.Sort(documented)
	slices.Sort(exist)
	if !slices.Equal(documented, exist) {
		t.Errorf("the table of \"Alerts\" in on-call.md explains\n%v\nof\n%v", documented, exist)
	}
	_, table, _ = strings.Cut(guide, "| record | meaning | who should act |\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(line, "|")
		who := cells[len(cells)-2]
		named := regexp.MustCompile(`Ramp\w+`).FindAllString(who, -1)
		if strings.Contains(who, "on call") && len(named) == 0 {
			t.Errorf("nothing calls somebody for %s", line)
		}
		for _, name := range named {
			if !slices.Contains(exist, name) {
				t.Errorf("there is no alert %s", name)
			}
		}
	}
}

// Prometheus itself lets each alert fire, within 5 minutes of the trouble.
func TestEachTroubleRaisesItsAlert(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	type object = map[string]any
	file := must(filepath.Abs("deploy/alerts.yaml"))(t)
	silent := map[string]bool{}
	for _, r := range rules(t) {
		silent[r.Alert] = true
	}
	var tests []object
	for _, trouble := range troubles {
		var series, alerts []object
		used, after := map[string]bool{}, cmp.Or(trouble.after, 5)
		for name, values := range quietSeries {
			whole := strings.Replace(values, "x60", fmt.Sprintf("x%d", 60+after), 1)
			for which, then := range trouble.series {
				prefix, part, _ := strings.Cut(which, " ")
				if strings.HasPrefix(name, prefix) && strings.Contains(name, part) {
					whole, used[which] = values+" "+then, true
				}
			}
			series = append(series, object{"series": name, "values": whole})
		}
		if len(used) != len(trouble.series) {
			t.Errorf("%s: each of %v must begin as a series of quietSeries", trouble.name, trouble.series)
		}
		for _, r := range rules(t) {
			if r.Alert == watchdog {
				silent[r.Alert] = false
				one := []object{{"exp_labels": r.Labels, "exp_annotations": r.Annotations}}
				alerts = append(alerts,
					object{"alertname": r.Alert, "eval_time": fmt.Sprintf("%dm", 60+after), "exp_alerts": one})
				continue
			}
			fires := []object{}
			for _, want := range trouble.fires[r.Alert] {
				silent[r.Alert] = false
				all, annotations := maps.Clone(r.Labels), maps.Clone(r.Annotations)
				maps.Copy(all, want)
				for label, value := range want {
					placeholder := "{{ $labels." + label + " }}"
					annotations["summary"] = strings.ReplaceAll(annotations["summary"], placeholder, value)
				}
				fires = append(fires, object{"exp_labels": all, "exp_annotations": annotations})
			}
			alerts = append(alerts,
				object{"alertname": r.Alert, "eval_time": fmt.Sprintf("%dm", 60+after), "exp_alerts": fires},
				object{"alertname": r.Alert, "eval_time": "60m", "exp_alerts": []object{}})
		}
		tests = append(tests,
			object{"name": trouble.name, "interval": "1m", "input_series": series, "alert_rule_test": alerts})
	}
	for name, never := range silent {
		if never {
			t.Errorf("no trouble raises %s: add one to troubles", name)
		}
	}
	promtest(t, map[string]any{"rule_files": []string{file}, "evaluation_interval": "1m", "tests": tests})
}

// promtest runs the tests of a document with promtool.
func promtest(t *testing.T, document any) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("*** NOT TESTED: promtool is not installed ***")
	}
	file := filepath.Join(t.TempDir(), "stories.yaml") // JSON is YAML
	b := must(json.Marshal(document))(t)
	check(t, os.WriteFile(file, b, 0o600))
	command := exec.Command(promtool, "test", "rules", file)
	command.Env = append(os.Environ(), "GOGC=400") // collecting so little saves a quarter of the time
	if out, err := command.CombinedOutput(); err != nil {
		lines := slices.DeleteFunc(strings.Split(string(out), "\n"),
			func(line string) bool { return strings.TrimSpace(line) == "" })
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	// and the rules
	if out, err := exec.Command(promtool, "check", "config", "deploy/prometheus.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// queries returns the queries of the dashboard by their panels.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	text := must(os.ReadFile("deploy/dashboard.json"))(t)
	check(t, json.Unmarshal(text, &dashboard))
	found := map[string]string{}
	for _, panel := range dashboard.Panels {
		found[panel.Title] = panel.Targets[0].Expr
		if at := panel.GridPos; at.X+at.W > 24 || at.Y+at.H > 24 {
			t.Errorf("panel %q is not on the first screen", panel.Title)
		}
	}
	return found
}

// Whoever is called by a gauge sees it on the dashboard.
func TestTheDashboardHasEachGaugeThatCallsSomebody(t *testing.T) {
	all := strings.Join(slices.Collect(maps.Values(queries(t))), "\n")
	found := 0
	for _, r := range rules(t) {
		for _, metric := range regexp.MustCompile(`\b(ramp[:_][\w:]+|probe_success|up\{)`).FindAllString(r.Expr, -1) {
			if r.Labels["severity"] != "critical" || strings.HasSuffix(metric, "_total") {
				continue
			}
			found++
			if !strings.Contains(all, metric) {
				t.Errorf("%s needs %s, which no panel of dashboard.json shows", r.Alert, metric)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d gauges were found", found)
	}
}

// Prometheus itself evaluates the queries of the dashboard.
func TestPrometheusUnderstandsTheQueries(t *testing.T) {
	var series, evaluations []map[string]any
	for name, values := range hour {
		series = append(series, map[string]any{"series": name, "values": values})
	}
	for title, query := range queries(t) {
		var expected []map[string]any
		for labels, value := range samples[title] {
			expected = append(expected, map[string]any{"labels": labels, "value": value})
		}
		if len(expected) == 0 {
			t.Errorf("hour and samples have nothing for the query of the panel %q", title)
		}
		evaluations = append(evaluations,
			map[string]any{"expr": "round(" + query + ", 0.001)", "eval_time": "60m", "exp_samples": expected})
	}
	promtest(t,
		map[string]any{"tests": []any{map[string]any{"interval": "1m", "input_series": series,
			"promql_expr_test": evaluations}}})
}
