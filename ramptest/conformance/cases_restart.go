package conformance

import (
	"net/http"
	"net/http/httptrace"
	"time"
)

// restartCases returns the cases about a server that restarts between validate and
// result, because a result can come 12 hours later (interface 8).
func restartCases() []Case {
	ends := func(t *trial, o order, status string) {
		t.restart()
		t.closes(o, status)
	}
	return []Case{{ID: "restart", needs: aRestart, last: true,
		Fix:   "Commit orders, their transactions, effects and sessions to a database before you answer; a restart loses what is in memory or in a queue.",
		Title: "After a restart, an order ends as it would have, and nothing is taken or granted again.",
		Inputs: append([]Input{
			mintFails.as("mint-fails", "a mint that fails after it", ends),
			burnEnds.as("burn-succeeds", "a burn that succeeds after it", ends),
			must("result-again", "results that were confirmed right before it and come again", func(t *trial) {
				mint := t.approve(t.mint())
				all := dues{{t.before, difference{}}}
				if t.renew(); t.before.owner.ID == mint.owner.ID {
					t.confirm(mint, failure) // the player may have one open order only
				}
				burn := t.approve(t.burn())
				all.add(t.before, burn.effect(success))
				if t.ledger.known(mint).ended == "" {
					t.confirm(mint, failure)
				}
				t.confirm(burn, success)
				t.restart() // at once: what is not stored yet is lost
				t.settle(all)
				t.confirm(mint, failure)
				t.confirm(burn, success)
				t.settle(all)
			}, "repeats", "mint-fails", "burn-succeeds"),
			must("validate-again", "a validate call that is repeated after it", func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.offer(o)
				t.closes(o, success)
			}, "repeats", "mint-succeeds"),
		}, mild(should("same-hash", "a burn that is reported with the tx_hash of one that ended before it", func(t *trial) { t.sameHash(true) },
			"burn-succeeds"))...)}}
}

// restart restarts the server and waits until it answers. A connection that stays open
// until the server stops, unless the server keeps none open, shows that it did stop.
func (t *trial) restart() {
	if t.err != nil {
		return
	}
	old, client := *t, *t.client
	transport, reused := &http.Transport{DialContext: t.judge.dial}, false
	defer transport.CloseIdleConnections()
	client.Transport, old.client = transport, &client
	old.ctx = httptrace.WithClientTrace(t.ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }})
	old.assets(t.player)
	if err := t.Restart(t.ctx); err != nil {
		t.untried("the server could not be restarted: %s", t.said(err.Error()))
		return
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		switch a := old.assets(t.player); {
		case a.err == nil && !reused:
			return
		case a.err == nil && time.Since(began) > 500*time.Millisecond:
			t.untried("nothing was restarted: a connection from before the restart is still open")
			return
		}
		if !sleep(t.ctx, 100*time.Millisecond) {
			break
		}
	}
	t.failAt(answer{step: "assets"}, "no answer within 30 seconds of the restart", "a server that answers again")
}
