package main

import "encoding/json"

// These structs are the baseline: a studio would write them to read a call with
// encoding/json. They have only the fields that affect the outcome, skip all others,
// and check nothing. That makes them hard to beat, on purpose: reading hashes, logs
// and the Bloom filter, keeping unknown values, and reporting problems must not cost
// more than not doing so. Do not add fields to make the SDK look better.

type plainResult struct {
	UUID    string `json:"uuid"`
	Receipt struct {
		Status string `json:"status"`
	} `json:"receipt"`
	Intent plainIntent `json:"intent"`
}

type plainValidate struct {
	UserSig string      `json:"user_sig"`
	Digest  string      `json:"digest"`
	UUID    string      `json:"uuid"`
	Intent  plainIntent `json:"intent"`
}

type plainIntent struct {
	Method string       `json:"method"`
	Type   string       `json:"type"`
	From   []plainAsset `json:"from"`
	To     []plainAsset `json:"to"`
}

// Amount is a json.Number, because an amount of tokens may not fit into a float64.
type plainAsset struct {
	Type   string      `json:"type"`
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"`
}
