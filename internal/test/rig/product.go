package rig

import "github.com/token-ramp/ramp-go"

// Product is what the shop sells.
var Product = func() ramp.Product {
	intent := request().Intent
	return ramp.Product{Name: "gold", Token: intent.Token, MintFeeBps: 200, Materials: intent.Materials,
		Outputs: intent.Outputs}
}()

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// request is an initialize call for one gold a token.
func request() ramp.InitializeRequest {
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100),
		IconURL: "https://example.com/gold.png"}}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
		Token: "0x00000000000000000000000000000000000070c3", Materials: item, Outputs: item}}
}
