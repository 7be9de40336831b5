//go:build race

package ramp_test

// raceDetector says that allocations cannot be counted: the detector makes a
// sync.Pool forget some of what it is given.
const raceDetector = true
