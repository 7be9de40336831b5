//go:build !race

// Package racedetector tells tests whether the race detector is on. The detector slows
// code down, allocates, and makes a sync.Pool drop items, so costs cannot be measured with
// it, and a test that computes for minutes runs without it.
package racedetector

// On reports whether the race detector is on.
const On = false
