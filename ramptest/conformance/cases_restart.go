package conformance

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// restartCases returns the cases about a server that restarts between validate and
// result, because a result can come 12 hours later (interface 8).
func restartCases() []Case {
	const fix = "Commit orders, effects and sessions to a database before you answer; a restart loses what is in memory or in a queue."
	return []Case{
		{ID: "restart-mint-fails", after: []string{"mint-fails"}, Level: Must, Section: "3", Fix: fix, needs: aRestart,
			Title: "A mint that fails after a restart gives its assets back.",
			run: func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.confirm(o, failure)
				t.moved(0)
			}},
		{ID: "restart-burn-succeeds", after: []string{"burn-succeeds"}, Level: Must, Section: "1", Fix: fix, needs: aRestart,
			Title: "A burn that succeeds after a restart grants its assets.",
			run: func(t *trial) {
				o := t.approve(t.burn())
				t.restart()
				t.confirm(o, success)
				t.moved(1)
			}},
		{ID: "restart-result-again", after: []string{"repeats", "mint-fails", "burn-succeeds"}, Level: Must, Section: "6", Fix: fix, needs: aRestart,
			Title: "A result that was confirmed right before a restart has its effect after it, and no second one when it is repeated.",
			run: func(t *trial) {
				mint := t.approve(t.mint())
				all := dues{{t.before, difference{}}}
				if t.renew(); t.before.owner.ID == mint.owner.ID {
					t.confirm(mint, failure) // the player may have one open order only
				}
				burn := t.approve(t.burn())
				all.add(t.before, t.asset, t.amounts(1))
				if !t.ledger.ends(mint) {
					t.confirm(mint, failure)
				}
				t.confirm(burn, success)
				t.restart() // at once: what is not stored yet is lost
				t.settle(all)
				t.confirm(mint, failure)
				t.confirm(burn, success)
				t.settle(all)
			}},
		{ID: "restart-validate-again", after: []string{"repeats", "mint-succeeds"}, Level: Must, Section: "2.5", Fix: fix, needs: aRestart,
			Title: "A validate call that is repeated after a restart does not take the assets again.",
			run: func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.either(t.validate(o))
				t.confirm(o, success)
				t.moved(-1)
			}},
	}
}

// restart restarts the server and waits until it answers.
func (t *trial) restart() {
	if t.err != nil {
		return
	}
	t.client.CloseIdleConnections()
	held := t.hold()
	if held != nil {
		defer held.Close()
	}
	if err := t.target.Restart(t.ctx); err != nil {
		t.untried("the server could not be restarted: %s", t.said(err.Error()))
		return
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		if a := t.assets(t.player); a.err == nil {
			if held != nil && open(held) {
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

// hold makes a call and returns its connection, which stays open until the server stops.
// It returns nil if the server does not keep connections open.
func (t *trial) hold() net.Conn {
	ctx, cancel := context.WithTimeout(t.ctx, t.target.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.target.URL+t.target.AssetsPath, http.NoBody)
	if err != nil {
		return nil
	}
	request.Header = t.withTargetHeader(t.headers(t.player))
	conn, err := t.dial(ctx, request.URL)
	if err != nil {
		return nil
	}
	if request.Write(conn) == nil {
		if response, err := http.ReadResponse(bufio.NewReader(conn), request); err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if err == nil && !response.Close {
				return conn
			}
		}
	}
	_ = conn.Close()
	return nil
}

// dial connects to the server of a URL. The connection has the deadline of ctx.
func (t *trial) dial(ctx context.Context, server *url.URL) (net.Conn, error) {
	port := "80"
	if server.Scheme == "https" {
		port = "443"
	}
	conn, err := t.judge.dial(ctx, "tcp", net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), port)))
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if server.Scheme == "https" {
		return tls.Client(conn, &tls.Config{ServerName: server.Hostname()}), nil
	}
	return conn, nil
}

// open reports whether the other side still has a connection open.
func open(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}
