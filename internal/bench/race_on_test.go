//go:build race

package main

// raceDetector says that costs cannot be measured: the detector slows what it
// watches, allocates, and makes a sync.Pool forget some of what it is given.
const raceDetector = true
