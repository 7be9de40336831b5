package main

import "testing"

// It ends the test binary with status 1 if a balance is not what it should be.
func TestQuickstart(*testing.T) { main() }
