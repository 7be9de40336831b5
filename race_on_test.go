//go:build race

package ramp_test

// raceDetector means that allocations cannot be counted, because the detector makes
// a sync.Pool drop some of its contents.
const raceDetector = true
