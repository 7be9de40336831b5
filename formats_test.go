package ramp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// testdata/formats has what each release stored, in a directory for each format. This
// release reads all of them, and writes the newest. internal/dbtest does the same with
// the tables. A release that writes something else adds a directory; the files of the
// others never change.
func TestThisReleaseReadsWhatEveryReleaseHasStored(t *testing.T) {
	const newest = "testdata/formats/1"
	files, err := filepath.Glob("testdata/formats/*/order-*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var order ramp.Order
			require.NoError(t, json.Unmarshal(text, &order))
			assert.True(t, strings.HasPrefix(filepath.Base(file), "order-"+string(order.State)+"-"+string(order.Direction)), file)
			if filepath.Dir(file) == newest {
				written, err := json.Marshal(order)
				require.NoError(t, err)
				assert.Equal(t, strings.TrimSpace(string(text)), string(written), "a new format needs a directory of its own")
			}
			step, err := ramp.Finish(reported(order, 0), atResult)(&order)
			switch order.State {
			case ramp.OrderAccepted:
				require.NoError(t, err)
				assert.True(t, step.New)
			case ramp.OrderSucceeded:
				assert.ErrorIs(t, err, ramp.ErrOrderConflict)
			default:
				require.NoError(t, err)
				assert.False(t, step.New)
			}
		})
	}
}
