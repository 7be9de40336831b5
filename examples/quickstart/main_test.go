package main

import "testing"

// main exits with status 1 if a balance is wrong, which fails the test.
func TestQuickstart(*testing.T) { main() }
