//go:build !race

package ramp_test

const raceDetector = false
