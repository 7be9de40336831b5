// Package pairs plays every pair of ordinary events at every place of an order, and judges what the
// players have in the end by a ledger that shares no code with ramp. It contains only tests. Read
// events_test.go first: the vocabulary. Then read scenes_test.go, which puts events into orders, and
// ledger_test.go, which judges.
//
//	go test .                                   each event alone, and the pairs of the core
//	PAIRS_ALL=1 go test -v -timeout 8h .        all pairs, triples, and the planted faults
//	PAIRS_ALL=1 PAIRS_PART=3/20 go test -v .    a part of these pairs and triples
//	PAIRS_WITH='…' go test -v -run TestPairs .  only the pairs with this event, or with "one | another"
//	PAIRS='…' go test -v -run TestOne .         one scene, as a failure names it
//	PAIRS_PLANT='…' go test -v -run TestPlants .  one planted fault
//
// An event is a line of events_test.go. What it lasts for is two events, its begin and its end. It is
// skipped only by what is true in the world, never by an answer of the product, because a fault would then
// become a skip. A fault that a scene shows and that is not mended at once goes into the list of
// red_test.go, with its issue.
package pairs
