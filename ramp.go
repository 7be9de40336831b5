// Package ramp connects a game to a token ramp: a service that turns in-game
// assets into on-chain tokens (mint, "assemble") and tokens back into assets
// (burn, "disassemble"). It implements the game's side of the service's
// interface, which docs/interface.md describes; section numbers refer to it.
//
// # The journey of a mint
//
//  1. Your server asks the service for a UUID: [Client.Initialize].
//  2. Your client opens [ExchangeURL] in the player's webview.
//  3. The service asks your server what the player owns: [Players].
//  4. The service asks whether the order may proceed. If it is for a product of your
//     [Terms], the [Store] records it and takes the assets, and the [Handler] returns
//     your [Signer]'s signature of the digest.
//  5. The chain executes the transaction.
//  6. The service reports the outcome, at least once. A failed mint gives the assets
//     back, and a successful burn grants them, exactly once: [Effect].
//  7. If [HandlerConfig] has a Chain, the chain must confirm each report before it has
//     its effect: [RPC.Confirm].
//
// # The integration
//
//	key, err := ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")) // or Base64URLKey
//	signer, err := ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY"))
//
//	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: game.Apply})
//	err = store.Check(ctx) // the table exists and can be written
//	terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{{
//		Name:       "gold",
//		Token:      "0x00000000000000000000000000000000000070c3",
//		MintFeeBps: 100, // 1%
//		Materials:  []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: icon}},
//		Outputs:    []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80), IconURL: icon}},
//	}}})
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: store, Terms: terms, Key: key, Signer: signer})
//	mux.HandleFunc("/api/assets", handler.Assets) // the paths set in the console
//	mux.HandleFunc("/api/validate", handler.Validate)
//	mux.HandleFunc("/api/result", handler.Result)
//
//	client, err := ramp.NewClient(ramp.ClientConfig{URL: apiURL, Key: key, Terms: terms})
//	started, err := client.Initialize(ctx, ramp.InitializeRequest{PlayerID: "player-1", Product: "gold"})
//	page, err := started.ExchangeURL(rampURL, ramp.Session{ID: "session-1", Token: token})
//
// You write three methods: Authenticate and Assets of [Players], and Apply of the
// [SQLStore], which moves assets in the transaction that records the order. Each
// effect is applied exactly once, through retries, races and crashes. For any other
// database, implement [Store]. With a ledger of your own, implement [Game].
//
// Package [github.com/token-ramp/ramp-go/ramptest] emulates the service in tests
// and on your desk, and tests a whole server. The examples directory has complete
// programs to copy.
//
// # What the package guarantees
//
// No body is parsed before its HMAC is verified, no malformed order reaches the
// game, and no signature is released before the game approves. Amounts are
// exact decimals. Unknown fields and values are read and kept. No error and no
// log record holds a key, a token or a signature; errors show the beginning of what the
// other side answered. The package reads no
// environment variables, keeps no goroutine running and has no global state. Everything
// that its constructors return is safe for concurrent use.
//
// You set what the interface leaves open: how the HMAC key is read ([TextKey] or
// [Base64URLKey]), whether prices are those of one token ([TermsConfig].PerOrder), and in
// [HandlerConfig] the errorCode values, the status of a
// rejected order and the maximum size of bodies.
//
// The files in [docs] describe the interface, with the section numbers cited here,
// every error, orders, stores, operations, security and testing.
//
// [docs]: https://github.com/token-ramp/ramp-go/tree/main/docs
package ramp
