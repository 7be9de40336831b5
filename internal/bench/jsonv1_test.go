//go:build !goexperiment.jsonv2

package main

const jsonV2 = false
