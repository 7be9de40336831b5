//go:build goexperiment.jsonv2

package main

// jsonV2 says that encoding/json is built on its version 2, the default since Go
// 1.27. It is faster, so that a rival which uses it is harder to beat.
const jsonV2 = true
