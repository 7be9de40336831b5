//go:build goexperiment.jsonv2

package main

// jsonV2 reports whether encoding/json is built on its version 2, the default since
// Go 1.27. Version 2 is faster, so rivals that use it are harder to beat.
const jsonV2 = true
