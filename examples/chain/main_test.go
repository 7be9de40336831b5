package main

import "testing"

// It ends the test binary with status 1 if the chain does not answer.
func TestChain(*testing.T) { main() }
