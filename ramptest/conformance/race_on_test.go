//go:build race

package conformance_test

// raceDetector means that whole judgements of many servers take minutes. They run
// without it; one whole judgement runs with it.
const raceDetector = true
