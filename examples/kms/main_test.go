package main

import "testing"

// main exits with status 1 if the signature is from another key, which fails the
// test.
func TestKMS(*testing.T) { main() }
