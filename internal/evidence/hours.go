package evidence

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
)

// HoursWithBlocks returns in how many of the hours since a time the chain has made a block, up to enough. It
// counts an hour once the newest block is at most [Skew] before its end. first is a block from before that
// time, or block 0. While a chain stands still, its transactions wait with it, so only these hours say how
// long it has had to take one.
func HoursWithBlocks(
	ctx context.Context, chain *ramp.RPC, since time.Time, first uint64, newest *ramp.Block, enough int,
) (int, error) {
	head, err := newest.Number.Uint64()
	if err != nil {
		return 0, err
	}
	oldest, err := BlockAt(ctx, chain, ramp.AtBlock(first))
	if err != nil {
		return 0, err
	}
	t := timeline{{first, TimeOf(oldest.Timestamp)}, {head, TimeOf(newest.Timestamp)}}
	for halve := false; ; halve = !halve { // a guess by the rate is often right, and halving always ends
		count, open := t.hours(since, enough)
		if len(open) == 0 {
			return count, nil
		}
		var numbers []uint64
		for _, o := range open {
			numbers = append(numbers, o.probe(halve))
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		blocks, calls := make([]ramp.Block, len(numbers)), make([]ramp.BatchCall, len(numbers))
		for i, n := range numbers {
			calls[i] = Call(&blocks[i], "eth_getBlockByNumber", ramp.AtBlock(n), false)
		}
		if err := AskAll(ctx, chain, calls...); err != nil {
			return 0, err
		}
		for i, n := range numbers {
			t = append(t, moment{n, TimeOf(blocks[i].Timestamp)})
		}
		slices.SortFunc(t, func(a, b moment) int { return cmp.Compare(a.block, b.block) })
	}
}

// moment is when a block was made.
type moment struct {
	block uint64
	at    time.Time
}

// timeline has some of the blocks of a chain, in their order, the newest one included.
type timeline []moment

// openHour is an hour of which nobody knows yet whether it has a block: if it has, then between two others.
type openHour struct {
	start         time.Time
	before, after moment
}

// hours returns how many hours since a time are known to have a block, and those that are open, of the first
// ones that can make it enough.
func (t timeline) hours(since time.Time, enough int) (count int, open []openHour) {
	last := t[len(t)-1].at.Add(Skew)
	for start := since; count+len(open) < enough; start = start.Add(time.Hour) {
		end := start.Add(time.Hour)
		if last.Before(end) {
			break
		}
		next := slices.IndexFunc(t, func(m moment) bool { return !m.at.Before(start) })
		switch {
		case next < 0: // the newest block is before the hour, by less than the skew
		case t[next].at.Before(end):
			count++
		case next > 0 && t[next].block-t[next-1].block > 1:
			open = append(open, openHour{start, t[next-1], t[next]})
		default: // no block is between them, so all hours up to the next one are empty
			start = start.Add(t[next].at.Sub(end).Truncate(time.Hour))
		}
	}
	return count, open
}

// probe returns a block between the two: by the rate of blocks, that in the middle of the hour.
func (o *openHour) probe(halve bool) uint64 {
	between, took := o.after.block-o.before.block, o.after.at.Sub(o.before.at)
	if halve || took <= 0 {
		return o.before.block + between/2
	}
	share := float64(o.start.Add(time.Hour/2).Sub(o.before.at)) / float64(took)
	return o.before.block + min(between-1, max(1, uint64(share*float64(between))))
}
