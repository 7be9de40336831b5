package rampbooks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// The books never count as moved what was settled in another way.
func TestTheBooksDoNotCountWhatWasSettledInAnotherWay(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 1)
	settled := s.Place(t, s.Service.Burn, 1)
	s.Change(settled.UUID, func(o *ramp.Order) { o.Settled = "by mail" })
	books := s.Books(t, s.Begin, time.Time{})
	require.Len(t, books.Totals, 2)
	burns := books.Totals[1]
	assert.Equal(t, 1, burns.Succeeded)
	assert.Empty(t, burns.Granted)
	assert.Equal(t, map[string]rampbooks.Amount{"item_gold": {Amount: ramp.NewAmount(100)}}, burns.Settled)
	assert.Empty(t, books.Findings)
	var csv strings.Builder
	require.NoError(t, books.WriteTotalsCSV(&csv, rampbooks.DecimalPoint))
	assert.Contains(t, csv.String(), `,"burn","items_settled","item_gold",,100,,,`)
	assert.NotContains(t, csv.String(), "items_granted")
}
