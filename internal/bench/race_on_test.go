//go:build race

package main

// raceDetector reports whether the race detector is on. Costs cannot be measured with
// it: it slows down the code, allocates, and makes a sync.Pool drop items.
const raceDetector = true
