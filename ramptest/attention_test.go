package ramptest_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// An order with a loss, one that is right, and a validate call that failed: the page, the API, the
// command and the test count the same.
func TestWhatNeedsAttentionIsOneNumber(t *testing.T) {
	command := must.Get(buildCommand())(t)
	v := newVault()
	v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
		if v.orders[r.UUID].request.Intent.From[0].Amount.String() == "7" {
			return nil // never given back
		}
		return v.finish(s, r)
	}
	p := play(t, v, served(t), func(c *ramptest.Config) {
		c.Audit = ramptest.AuditReport
	})
	o := p.goldOrder(t, "session-1", false, 7, ramptest.TransactionFails())
	p.goldOrder(t, "session-1", false, 8)
	p.service.Advance(time.Minute)
	v.mu.Lock()
	v.validate = func(*vault, ramp.Session, *ramp.ValidateRequest) error {
		return &ramp.Rejection{Status: http.StatusForbidden, Code: "BANNED"}
	}
	v.mu.Unlock()
	started := must.Get(p.client.Initialize(t.Context(), request()))(t)
	_, err := p.service.Mint(t.Context(), started.UUID, session1, ramp.NewAmount(10))
	require.Error(t, err)

	_, all := p.control(t, "GET", "/control/orders", "")
	assert.Equal(t, 2, all.Needing)
	_, list := p.control(t, "GET", "/control/orders?attention=true", "")
	require.Len(t, list.Orders, 1)
	assert.Equal(t, o.UUID, list.Orders[0].UUID)
	require.Len(t, list.Calls, 1)
	assert.Equal(t, started.UUID, list.Calls[0].UUID)
	assert.Equal(t, 2, list.Needing)

	page := p.page(t, "/")
	assert.Contains(t, page, "Needs attention 2")
	out, err := exec.Command(command, "orders", "-attention", "-at", p.service.URL()).CombinedOutput()
	assert.Error(t, err, "the exit status")
	assert.Contains(t, string(out), o.UUID.String()[:8])
	assert.Contains(t, string(out), started.UUID.String()[:8])
	_, said := p.test.end()
	assert.Contains(t, said, "ramptest: 2 need attention: orders 1, calls that led to none 1; the newest of these: "+
		"The game rejected the call with HTTP 403 and BANNED. No transaction was made.")
	assert.Equal(t, 1, strings.Count(said, "ramptest: player of session-1's mint "))
}
