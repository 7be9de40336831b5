package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// night is what two servers of a game count from minute to minute, as Prometheus scrapes it. Players come
// at random, and two of ten who ask for an order give it up.
type night struct {
	random *rand.Rand
	series map[string][]float64
	now    map[string]float64
}

// minuteOf is what may go wrong in a minute. The zero value is a good one.
type minuteOf struct {
	noValidate bool    // the service calls no validate
	rejected   string  // every validate is rejected with this code
	fail       float64 // share of validate calls that are answered with 500
	oneServer  bool    // only by the second server
	results500 bool    // every result is answered with 500
	noResults  bool    // results do not arrive
	noDatabase bool    // no server reaches it
	noNode     bool    // no server reaches it
	noProbe    bool    // the certificate has ended
	clock      float64 // seconds that the one of the second server is ahead
	finding    bool    // the books have a mint that nobody ordered
}

// poisson returns how many of what happens so often on average happen in a minute.
func (n *night) poisson(mean float64) (count float64) {
	for product := n.random.Float64(); product > math.Exp(-mean); product *= n.random.Float64() {
		count++
	}
	return count
}

// counter and gauge note the value of a series in this minute.
func (n *night) counter(name string, more float64) { n.now[name] += more }
func (n *night) gauge(name string, value float64)  { n.now[name] = value }

// minute plays a minute of a game with so many orders, and so many mints that the chain keeps waiting.
func (n *night) minute(at int, orders, slow float64, m minuteOf) {
	seconds := float64(at) * 60
	for _, server := range []string{"a", "b"} {
		label := `instance="` + server + `",`
		broken := !m.oneServer || server == "b"
		initialize := n.poisson(orders / 2 / 0.8)
		n.counter(`ramp_client_calls_total{`+label+`kind="initialize",failed="false"}`, initialize)
		n.counter(`ramp_client_calls_total{`+label+`kind="initialize",failed="true"}`, 0)
		validate := n.poisson(orders / 2)
		if m.noValidate {
			validate = 0
		}
		failed, rejected := 0.0, 0.0
		for range int(validate) {
			if broken && n.random.Float64() < m.fail {
				failed++
			} else if m.rejected != "" {
				rejected++
			}
		}
		accepted := validate - failed - rejected
		call := `ramp_webhook_calls_total{` + label + `endpoint=`
		n.counter(call+`"validate",status="200",code="",unverified="false"}`, accepted)
		for _, code := range []string{"INVALID_MESSAGE", "INVALID_USER"} {
			more := 0.0
			if code == m.rejected {
				more = rejected
			}
			n.counter(call+`"validate",status="200",code="`+code+`",unverified="false"}`, more)
		}
		n.counter(call+`"validate",status="500",code="INTERNAL_ERROR",unverified="false"}`, failed)
		n.counter(`ramp_order_steps_total{`+label+`state="accepted",new="true"}`, accepted)
		good, bad := n.poisson(orders/2), 0.0
		switch {
		case m.noResults:
			good = 0
		case m.results500 && broken:
			good, bad = 0, good
		}
		n.counter(call+`"result",status="200",code="",unverified="false"}`, good)
		n.counter(call+`"result",status="500",code="INTERNAL_ERROR",unverified="false"}`, bad)
		n.counter(call+`"result",status="500",code="HMAC_INVALID",unverified="true"}`, 0)

		unknown := 0.0
		if m.noDatabase {
			unknown = math.NaN()
		}
		waits := n.now["waiting"]
		label = `{` + label + `direction="mint"}`
		n.gauge(`ramp_orders_slow`+label, waits+unknown)
		n.gauge(`ramp_orders_late`+label, unknown)
		n.gauge(`ramp_orders_waiting`+label, unknown)
		n.gauge(`ramp_orders_refused`+label, unknown)
		n.gauge(`ramp_orders_refused{instance="`+server+`",direction="burn"}`, unknown)
		label = `{instance="` + server + `"}`
		findings := 0.0
		if m.finding {
			findings = 1
		}
		n.gauge(`ramp_conflicts_open`+label, unknown)
		n.gauge(`ramp_books_findings{instance="`+server+`",kind="event_without_order"}`, findings+unknown)
		n.gauge(`ramp_books_unsigned_mints`+label, findings+unknown)
		n.gauge(`ramp_shop_closed`+label, unknown)
		n.gauge(`up{job="gameserver",instance="`+server+`"}`, 1)
		block := seconds
		if m.noNode {
			block = math.NaN()
		}
		n.gauge(`ramp_node_block_seconds`+label, block)
		n.gauge(`ramp_books_end_seconds`+label, seconds)
		clock := seconds
		if server == "b" {
			clock += m.clock
		}
		n.gauge(`ramp_clock_seconds`+label, clock)
		n.gauge(`ramp_log_records_waiting`+label, 0)
		n.counter(`ramp_log_records_lost_total`+label, 0)
	}
	// The chain takes longer than three minutes for some. Results that do not arrive add to them.
	if m.noResults || m.results500 {
		n.now["waiting"] += n.poisson(orders * 0.7)
	} else {
		n.now["waiting"] = n.poisson(slow)
	}
	success := 1.0
	if m.noProbe {
		success = 0
	}
	n.gauge(`probe_success{job="ramp"}`, success)
	n.gauge(`probe_success{job="ramp-post"}`, success)
	n.gauge(`probe_ssl_earliest_cert_expiry{job="ramp"}`, 90*86400)
	for name, value := range n.now {
		n.series[name] = append(n.series[name], value)
	}
}

// play plays hours that are good, and then what goes wrong.
func play(orders, slow float64, good, bad int, m minuteOf) []map[string]any {
	n := &night{rand.New(rand.NewPCG(7, uint64(orders*1000))), map[string][]float64{}, map[string]float64{}}
	for at := range good + bad + 1 {
		now := minuteOf{}
		if at > good {
			now = m
		}
		n.minute(at, orders, slow, now)
	}
	var list []map[string]any
	for name, values := range n.series {
		if name == "waiting" {
			continue
		}
		var text strings.Builder
		for at, value := range values {
			if at > good && m.noProbe && strings.HasPrefix(name, "probe_ssl") {
				text.WriteString("_ ") // a probe that gets no certificate has no such series
				continue
			}
			fmt.Fprint(&text, value, " ")
		}
		list = append(list, map[string]any{"series": name, "values": text.String()})
	}
	return list
}

// Fourteen incidents of a night, and in how many minutes each calls somebody: five where a player's money
// waits, otherwise fifteen.
func TestSomebodyIsCalledInTheNight(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	const before = 180
	var tests []map[string]any
	for _, c := range []struct {
		what   string
		orders float64 // a minute
		minute minuteOf
		alert  string // with its label, if it has one that says where
		within int    // minutes
	}{
		{"every validate call is rejected with INVALID_MESSAGE", 20, minuteOf{rejected: "INVALID_MESSAGE"},
			"RampFewOrders", 15},
		{"every validate call is rejected with INVALID_USER", 20, minuteOf{rejected: "INVALID_USER"},
			"RampFewOrders", 15},
		{"one of two servers answers every validate call with 500", 20, minuteOf{fail: 1, oneServer: true},
			`RampCallsFail",endpoint="validate",instance="b`, 5},
		{"two of five validate calls are answered with 500", 20, minuteOf{fail: 0.4},
			`RampCallsFail",endpoint="validate`, 5},
		{"the service stops calling a game with 2 orders a minute", 2, minuteOf{noValidate: true}, "RampFewOrders", 15},
		{"the service stops calling a game with 1 order a minute", 1, minuteOf{noValidate: true}, "RampFewOrders", 15},
		{"the service stops calling a large game", 60, minuteOf{noValidate: true}, "RampFewOrders", 10},
		{"results do not arrive", 20, minuteOf{noResults: true}, "RampMintsPileUp", 5},
		{"one of two servers answers every result with 500", 20, minuteOf{results500: true, oneServer: true},
			`RampCallsFail",endpoint="result",instance="b`, 5},
		{"the database cannot be reached", 20, minuteOf{noDatabase: true}, `RampUnreachable",what="database`, 5},
		{"the node does not answer", 20, minuteOf{noNode: true}, "RampNodeStuck", 5},
		{"the certificate has ended", 20, minuteOf{noProbe: true}, `RampUnreachable",what="outside`, 5},
		{"the clock of a server is 20 minutes ahead", 20, minuteOf{clock: 1200}, "RampClockWrong", 15},
		{"somebody mints with a key", 20, minuteOf{finding: true}, "RampMintsUnsigned", 5},
	} {
		silent, fires := []map[string]any{}, []map[string]any{}
		for _, r := range rules(t) {
			if r.Alert != watchdog {
				silent = append(silent,
					map[string]any{"alertname": r.Alert, "eval_time": fmt.Sprintf("%dm", before),
						"exp_alerts": []any{}})
			}
		}
		count := `count(ALERTS{alertstate="firing",alertname="` + c.alert + `"}) > bool 0`
		fires = append(fires, map[string]any{"expr": count, "eval_time": fmt.Sprintf("%dm", before+c.within),
			"exp_samples": []map[string]any{{"labels": "{}", "value": 1}}})
		tests = append(tests,
			map[string]any{"name": c.what, "interval": "1m",
				"input_series":    play(c.orders, 3, before, c.within, c.minute),
				"alert_rule_test": silent, "promql_expr_test": fires})
	}
	promtest(t,
		map[string]any{"rule_files": []string{must(filepath.Abs("deploy/alerts.yaml"))(t)},
			"evaluation_interval": "1m", "tests": tests})
}

// Three games in which all is well, a small one, one whose chain is slow for twenty mints at any time, and
// a large one. In six hours nobody is called.
func TestNobodyIsCalledInAQuietNight(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	var tests []map[string]any
	for _, game := range []struct{ orders, slow float64 }{{1, 0.3}, {20, 20}, {100, 5}} {
		quiet := `count(ALERTS{alertname!="` + watchdog + `",alertstate="firing"}) or vector(0)`
		var silent []map[string]any
		for at := 30; at <= 360; at++ {
			silent = append(silent, map[string]any{"expr": quiet, "eval_time": fmt.Sprintf("%dm", at),
				"exp_samples": []map[string]any{{"labels": "{}", "value": 0}}})
		}
		tests = append(tests, map[string]any{"name": fmt.Sprint(game.orders, " orders a minute"), "interval": "1m",
			"input_series": play(game.orders, game.slow, 360, 0, minuteOf{}), "promql_expr_test": silent})
	}
	promtest(t,
		map[string]any{"rule_files": []string{must(filepath.Abs("deploy/alerts.yaml"))(t)},
			"evaluation_interval": "1m", "tests": tests})
}
