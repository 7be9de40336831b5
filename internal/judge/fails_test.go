package judge_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// Test must fail the test of a wrong server. That test runs in a separate
// process, so that this one does not fail.
func TestItFailsTheTestOfAWrongServer(t *testing.T) {
	const flag = "RAMPTEST_WRONG_SERVER"
	if os.Getenv(flag) == "" {
		command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), flag+"=1")
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Contains(t, string(out), "--- PASS: "+t.Name()+"/assets")
		assert.Contains(t, string(out), "--- FAIL: "+t.Name()+"/mint-succeeds", "the game approves, and takes nothing")
		assert.Contains(t, string(out), "cases depend on it: mint-succeeds: MUST (interface 1)")
		assert.Contains(t, string(out), "--- SKIP: "+t.Name()+"/validate-at-once",
			"which proves nothing before a mint takes its assets")
		assert.Contains(t, string(out), "--- PASS: "+t.Name()+"/result-unknown-again", "a SHOULD is only logged")
		assert.Contains(t, string(out),
			"SHOULD (interface 6): A result for an unknown order is answered with HTTP 500.")
		assert.Contains(t, string(out), "--- SKIP: "+t.Name()+"/restart")
		return
	}
	s := newStudio(t, mutant{bug: "takes nothing + keeps what failed + confirms unknown orders"})
	s.target.Restart, s.target.Strict, s.target.Late = nil, false, time.Millisecond
	judge.Test(t, s.target)
}
