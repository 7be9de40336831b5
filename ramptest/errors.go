package ramptest

import (
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
)

var (
	// ErrLostAnswer means that the game has answered, but a fault lost its answer: see
	// [LostAnswer] and [SlowAnswer]. It is not a failure of the game. If the answer was wrong, that is
	// said, too.
	ErrLostAnswer = game.ErrLostAnswer

	// ErrStoreFailed means that the game's store failed because [StoreFails] says so, and that the
	// game has answered as it must. It is not a failure of the game.
	ErrStoreFailed = game.ErrStoreFailed

	// ErrForged means that the game accepted a call that the service has not
	// signed (interface 5.2). For a validate call, [Service.Mint] and
	// [Service.Burn] return it. For a result, it is in the [Delivery].Err of the
	// first delivery, and the genuine call is made nevertheless.
	ErrForged = game.ErrForged
)

var (
	// ErrUnknownUUID means that the service has not issued the UUID.
	ErrUnknownUUID = emulator.ErrUnknownUUID

	// ErrExpiredUUID means that the UUID is older than [ramp.UUIDValidity]. The
	// interface does not say what the service does in that case (3); see
	// [Config.AcceptExpired].
	ErrExpiredUUID = emulator.ErrExpiredUUID

	// ErrTwoOrders means that the game approved two different orders under one
	// UUID, such as orders of two players or of two amounts. A UUID identifies one
	// request (interface 2.5).
	ErrTwoOrders = emulator.ErrTwoOrders

	// ErrOffTerms means that the game approved an order for another token, at
	// another rate or with an item more than it offers. See [ValidateOtherToken],
	// [ValidateOtherRate] and [ValidateExtraItem].
	ErrOffTerms = emulator.ErrOffTerms

	// ErrPlaced means that faults were given for an order that is already on the
	// chain.
	ErrPlaced = emulator.ErrPlaced
)

// ErrClosed means that the service is closed.
var ErrClosed = life.ErrClosed

// ErrPending means that there is no result yet, because the transaction is not in a
// block.
var ErrPending = emulator.ErrPending

// Rejection is the game's answer with success false (interface 7.2), as an error. Status is the HTTP
// status, and Code the errorCode.
type Rejection = game.Rejection

// AssetsFailure is a scripted failure of an assets call. The error is [ErrLostAnswer].
type AssetsFailure string

// The failures.
const (
	AssetsLost     AssetsFailure = game.AssetsLost     // the answer is lost at once
	AssetsNoAnswer AssetsFailure = game.AssetsNoAnswer // until the service gives up; see [Config.Timeout]
	AssetsCutOff   AssetsFailure = game.AssetsCutOff   // half of the answer arrives
)

// InitializeFailure is a scripted failure of an initialize call.
type InitializeFailure string

// The failures of the interface (7.1), each named by its data, and four that the interface does not
// describe: an error of a proxy, rate limiting (8), no answer, and an answer that is cut off.
const (
	HMACRequired   InitializeFailure = InitializeFailure(emulator.HMACRequired)   // code 400
	InvalidMAC     InitializeFailure = InitializeFailure(emulator.InvalidMAC)     // code 500
	UnknownProject InitializeFailure = InitializeFailure(emulator.UnknownProject) // code 500: no such project
	UnknownNetwork InitializeFailure = InitializeFailure(emulator.UnknownNetwork) // code 500: no such network
	// HTTP 503 without the envelope
	Unavailable InitializeFailure = InitializeFailure(emulator.Unavailable)
	// HTTP 429, Retry-After 1 second
	TooMany  InitializeFailure = InitializeFailure(emulator.TooMany)
	NoAnswer InitializeFailure = InitializeFailure(emulator.NoAnswer) // until the game gives up
	// half of the answer arrives
	CutOff InitializeFailure = InitializeFailure(emulator.CutOff)
)

// The codes of [Service.FailRPC] that end a request without a whole answer.
const (
	RPCNoAnswer = emulator.RPCNoAnswer // the caller waits until it gives up
	RPCCutOff   = emulator.RPCCutOff   // the caller gets half of the answer
)
