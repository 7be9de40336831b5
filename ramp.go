// Package ramp connects a game to a token ramp: a service that turns in-game
// assets into on-chain tokens (mint, "assemble") and tokens back into assets
// (burn, "disassemble"). It implements the game's side of the service's
// interface, which docs/interface.md describes; section numbers refer to it.
//
// Its pieces, each of which works alone:
//
//   - [Client.Initialize] asks the service for the UUID of an order, signed with your [HMACKey].
//   - [ReadValidate] and [ReadResult] verify a call of the service, and parse it.
//   - [Signer.Sign] signs the digest of an order with your validator key.
//   - [ExchangeURL] and [CatalogURL] build the pages that a player opens.
//   - [RPC.Call] asks a node of the chain by JSON-RPC. Common questions have methods of their own.
//
// Or all of it: a [Handler] answers the three calls of the service, and moves the assets of each
// order exactly once.
//
// # What you configure
//
// The service's console gives you the HMAC key, and asks for the address of your
// validator key. Terms are what the game sells; everything else is rejected.
//
//	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY"))) // or Base64URLKey: try "ramp connect"
//	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
//	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
//		ProjectID: "project-1",
//		Network:   ramp.Testnet,
//		Products: []ramp.Product{{
//			Name:       "gold",
//			Token:      "0x00000000000000000000000000000000000070c3",
//			MintFeeBps: 100, // 1%
//			Materials:  []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: icon}},
//			Outputs:    []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80), IconURL: icon}},
//		}},
//	}))
//
// # The journey of an order
//
// Your server asks the service for a UUID, and opens the page in the player's webview:
// [Client.Initialize], [ExchangeURL].
//
//	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: apiURL, Key: key, Terms: terms}))
//	started, err := client.Initialize(ctx, ramp.InitializeRequest{PlayerID: "player-1", Product: "gold"})
//	page, err := started.ExchangeURL(rampURL, ramp.Session{ID: "session-1", Token: token})
//
// The service asks your server what the player owns: [Players]. Then it asks whether the
// order may proceed. If it is for a product of your [Terms], the [Store] records it and
// takes the assets of a mint, and the [Handler] returns your [Signer]'s signature of the
// digest. You write three methods: Authenticate and Assets of [Players], and Apply of the
// store of [github.com/token-ramp/ramp-go/rampsql], which moves assets in the database
// transaction that records the order.
//
//	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL, Apply: game.Apply,
//		Projects: []string{"project-1"}, Network: ramp.Testnet}))
//	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
//		Players: game, Store: store, Terms: terms, Key: key, Signer: signer}))
//	err := handler.Check(ctx) // the table can be written, and the key signs
//	mux.HandleFunc("/api/assets", handler.Assets) // the paths in the console
//	mux.HandleFunc("/api/validate", handler.Validate)
//	mux.HandleFunc("/api/result", handler.Result)
//
// The chain executes the order's transaction, and the service reports the outcome at
// least once. If a mint fails, the assets go back to the player. If a burn succeeds, the
// player gets the assets. Each happens exactly once, even after retries, races and
// crashes. See [Effect]. With [HandlerConfig].Confirm, the chain must confirm each report
// first: package [github.com/token-ramp/ramp-go/rampproof]. For any other database, or
// for items in another service, implement [Store].
//
// Package [github.com/token-ramp/ramp-go/ramptest] emulates the service in tests and on
// your computer, and judges a whole server. Package [github.com/token-ramp/ramp-go/support]
// ends an order whose result does not come, and package
// [github.com/token-ramp/ramp-go/rampbooks] compares the orders of a period with the chain.
// The directory examples has programs to copy, one of them without the handler:
// [ReadValidate], [ReadResult], [Accept], [Finish].
//
// # What the package guarantees
//
// With the handler, no body is parsed before its HMAC is verified, no malformed order reaches the game, and
// no signature is released before the game approves. Amounts are exact decimals. Unknown
// fields and values are read and kept. No text of an error and no log record shows a key, an
// access token or a signature. The package reads no environment variables, except that the default
// HTTPClient uses the proxy settings of [http.DefaultTransport]. It starts no background
// goroutines, except that what a call no longer waits for, because its deadline has passed, runs on: a
// signature, or a step of the store. It has no
// global state. What its constructors return is safe for concurrent use, if what you pass to
// them is.
//
// The files in [docs] describe the interface, with the section numbers cited here, every
// error, orders, stores, operations, security and testing.
//
// [docs]: https://github.com/token-ramp/ramp-go/tree/main/docs
package ramp
