package ramptest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// What moves by itself accuses nobody, and nobody reads that it was right. The rest of the order is
// judged.
func TestWhatMovesByItselfIsNotJudged(t *testing.T) {
	for _, test := range []struct {
		name         string
		regenerating []string
		result       moved // of a failed mint of 100 gold and 1 gem
		failed       bool
		want         string
	}{
		{"the rest is given back", []string{"item_gold"}, moved{37, 1}, false,
			"The transaction failed. The game gave back 1 item_gem. " +
				"Not judged, because it moves by itself: item_gold."},
		{"the rest is lost", []string{"item_gold"}, moved{100, 0}, true,
			"The transaction failed. The game did not give back 1 item_gem. It answered HTTP 200: no further attempt."},
		{"all of it moves by itself", []string{"item_gold", "item_gem"}, moved{-5, 0}, false,
			"The transaction failed. Not judged, because it moves by itself: item_gem, item_gold."},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVault()
			v.result = func(v *vault, s ramp.Session, _ *ramp.Result) error {
				v.shift(s.ID, test.result)
				return nil
			}
			p := play(t, v, func(c *ramptest.Config) { c.Regenerating = test.regenerating })
			o, err := p.order(t, "session-1", false, ramptest.TransactionFails())
			require.NoError(t, err)
			p.service.Advance(time.Minute)
			_, shown := p.control(t, "GET", "/control/orders/"+o.UUID.String(), "")
			assert.Equal(t, test.want, shown.Said)
			assert.NotEqual(t, ramptest.State("good"), ramptest.State(shown.Tone))
			assert.Equal(t, test.failed, shown.Loss)
			failed, said := p.test.end()
			assert.Equal(t, test.failed, failed, said)
			assert.Contains(t, said, "not judged, because Config.Regenerating names it: item_g")
		})
	}
}
