package evidence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
)

// newest returns the newest block of a node.
func newest(t *testing.T, chain *ramp.RPC) *ramp.Block {
	t.Helper()
	return must.Get(evidence.BlockAt(t.Context(), chain, "latest"))(t)
}

// A transaction waits while its chain stands still, so these hours do not count.
func TestOnlyHoursWithBlocksCount(t *testing.T) {
	const hour = time.Hour
	type span [2]time.Duration
	for name, tt := range map[string]struct {
		age   time.Duration // of the order
		still []span        // since the order: from, to
		want  int
		most  int // calls
	}{
		"a chain that never stood still":      {age: 14 * hour, want: 13, most: 16},
		"12 hours and 50 minutes":             {age: 12*hour + 50*time.Minute, want: 13, most: 16},
		"12 hours and 40 minutes":             {age: 12*hour + 40*time.Minute, want: 12, most: 16},
		"it ended 10 minutes ago":             {14*hour + 10*time.Minute, []span{{time.Minute, 14 * hour}}, 1, 65},
		"it ended 70 minutes ago":             {15*hour + 10*time.Minute, []span{{time.Minute, 14 * hour}}, 2, 65},
		"it ended 5 hours ago":                {19 * hour, []span{{time.Minute, 14 * hour}}, 6, 65},
		"it ended 12 hours ago":               {26 * hour, []span{{time.Minute, 14 * hour}}, 13, 65},
		"it began before the order":           {14 * hour, []span{{-hour, 13*hour + 50*time.Minute}}, 1, 65},
		"it lasts":                            {14 * hour, []span{{3 * hour, 14 * hour}}, 3, 65},
		"50 minutes at a time":                {14 * hour, []span{{hour, hour + 50*time.Minute}}, 13, 65},
		"two hours, and three":                {19 * hour, []span{{2 * hour, 4 * hour}, {6 * hour, 9 * hour}}, 13, 210},
		"it stood still for a year, long ago": {400 * 24 * hour, []span{{2 * hour, 365 * 24 * hour}}, 13, 210},
		"an order of three weeks":             {21 * 24 * hour, nil, 13, 16},
	} {
		t.Run(name, func(t *testing.T) {
			n := &rig.Node{Begin: rig.Now.Add(-800 * 24 * hour), Head: 800 * 24 * 3600}
			accepted := rig.Now.Add(-tt.age)
			for _, s := range tt.still {
				n.StandStill(accepted.Add(s[0]), accepted.Add(s[1]))
			}
			chain := n.RPC(t)
			head := newest(t, chain)
			first := must.Get(evidence.LastBlockBefore(t.Context(), chain, accepted.Add(-24*hour), head))(t)
			n.Calls = 0
			got := must.Get(evidence.HoursWithBlocks(t.Context(), chain, accepted, first, head, 13))(t)
			assert.Equal(t, tt.want, got)
			assert.LessOrEqual(t, n.Calls, tt.most)
		})
	}
}

func TestAChainThatIsYoungerThanTheOrderHasNoEarlierHours(t *testing.T) {
	n := &rig.Node{Begin: rig.Now.Add(-5 * time.Hour), Head: 5 * 3600}
	chain := n.RPC(t)
	assert.Equal(t, 5, must.Get(
		evidence.HoursWithBlocks(t.Context(), chain, rig.Now.Add(-14*time.Hour), 0, newest(t, chain), 13))(t))
}
