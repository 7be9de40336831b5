package conformance

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// restartCases returns the cases about a server that restarts between validate and
// result, because a result can come 12 hours later (interface 8).
func restartCases() []Case {
	return []Case{{ID: "restart", Section: "8", needs: aRestart, last: true,
		Fix:   "Commit orders, effects and sessions to a database before you answer; a restart loses what is in memory or in a queue.",
		Title: "After a restart, an order ends as it would have, and nothing is taken or granted again.",
		Inputs: []Input{
			{Name: "mint-fails", Title: "a mint that fails after it", Level: Must, after: []string{"mint-fails"}, run: func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.closes(o, failure, 0)
			}},
			{Name: "burn-succeeds", Title: "a burn that succeeds after it", Level: Must, after: []string{"burn-succeeds"}, run: func(t *trial) {
				o := t.approve(t.burn())
				t.restart()
				t.closes(o, success, 1)
			}},
			{Name: "result-again", Title: "results that were confirmed right before it and come again", Level: Must,
				after: []string{"repeats", "mint-fails", "burn-succeeds"}, run: func(t *trial) {
					mint := t.approve(t.mint())
					all := dues{{t.before, difference{}}}
					if t.renew(); t.before.owner.ID == mint.owner.ID {
						t.confirm(mint, failure) // the player may have one open order only
					}
					burn := t.approve(t.burn())
					all.add(t.before, t.asset, t.amounts(1))
					if t.ledger.known(mint).ended == "" {
						t.confirm(mint, failure)
					}
					t.confirm(burn, success)
					t.restart() // at once: what is not stored yet is lost
					t.settle(all)
					t.confirm(mint, failure)
					t.confirm(burn, success)
					t.settle(all)
				}},
			{Name: "validate-again", Title: "a validate call that is repeated after it", Level: Must, after: []string{"repeats", "mint-succeeds"}, run: func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.either(t.validate(o))
				t.closes(o, success, -1)
			}},
		}}}
}

// restart restarts the server and waits until it answers.
func (t *trial) restart() {
	if t.err != nil {
		return
	}
	closed, release := t.hold()
	defer release()
	if err := t.target.Restart(t.ctx); err != nil {
		t.untried("the server could not be restarted: %s", t.said(err.Error()))
		return
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		if a := t.assets(t.player); a.err == nil {
			select {
			case <-closed:
			case <-time.After(500 * time.Millisecond):
				t.untried("nothing was restarted: a connection from before the restart is still open")
			}
			return
		}
		if !sleep(t.ctx, 100*time.Millisecond) {
			break
		}
	}
	t.failAt(answer{step: "assets"}, "no answer within 30 seconds of the restart", "a server that answers again")
}

// hold makes a call over a connection that stays open until the server stops, unless the
// server keeps none open. It returns a channel that is closed with the connection.
func (t *trial) hold() (closed chan struct{}, release func()) {
	closed = make(chan struct{})
	end := sync.OnceFunc(func() { close(closed) })
	kept := *t
	kept.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := t.judge.dial(ctx, network, address)
		return &heldConn{conn, end}, err
	}}}
	if kept.assets(t.player).err != nil {
		end()
	}
	return closed, kept.client.CloseIdleConnections
}

// heldConn is a connection that says when the client notices its end.
type heldConn struct {
	net.Conn
	closed func()
}

func (c *heldConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
