// Package pairs plays every pair of ordinary events at every place of an order, and judges what the players
// have in the end by a ledger that shares no code with ramp. It contains only tests. Read events_test.go first:
// the vocabulary. Then scenes_test.go, which puts events into orders, and ledger_test.go, which judges.
package pairs
