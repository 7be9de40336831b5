package ramptest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program decides for all of its packages whether http.ServeMux knows methods and wildcards,
// at its start. So the tests of each kind of address run once more, in a process that has
// switched them off.
func TestAProgramMaySwitchThePatternsOfServeMuxOff(t *testing.T) {
	t.Parallel()
	const tests = "^(TestAnOrderIsPlacedOnThePage|TestControlStartsAnOrderAndWaitsForItsEnd|" +
		"TestControlSaysWhatIsWrong|TestTheNetworksAreApart|TestInitializeFailsAsTheInterfaceSays)$"
	self, err := os.Executable()
	require.NoError(t, err)
	again := exec.Command(self, "-test.run="+tests, "-test.v")
	again.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1")
	out, err := again.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"TestAnOrderIsPlacedOnThePage", "TestControlStartsAnOrderAndWaitsForItsEnd",
		"TestControlSaysWhatIsWrong", "TestTheNetworksAreApart", "TestInitializeFailsAsTheInterfaceSays"} {
		assert.Contains(t, string(out), "--- PASS: "+name)
	}
}
