package main

import "encoding/json"

// These structs are the baseline: what a studio would write to read a call with
// encoding/json. They hold only the fields that decide something, and everything
// else is skipped. That makes them hard to beat, on purpose: reading hashes,
// logs and the bloom filter, keeping what is unknown, and reporting what is
// wrong must not cost more than not doing so. They do not check anything. Don't
// add fields to make us look better.

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

// Amount is a json.Number, because an amount of tokens need not fit a float64.
type plainAsset struct {
	Type   string      `json:"type"`
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"`
}
