package game

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrLostAnswer means that the game has answered, but a fault lost its answer: see
	// LostAnswer and SlowAnswer. It is not a failure of the game. If the answer was wrong, that is
	// said, too.
	ErrLostAnswer = errors.New("ramptest: the answer was lost on purpose")

	// ErrStoreFailed means that the game's store failed because StoreFails says so, and that the
	// game has answered as it must. It is not a failure of the game.
	ErrStoreFailed = errors.New("ramptest: the game's store failed on purpose")

	// ErrForged means that the game accepted a call that the service has not
	// signed (interface 5.2). For a validate call, Service.Mint and
	// Service.Burn return it. For a result, it is in the Delivery.Err of the
	// first delivery, and the genuine call is made nevertheless.
	ErrForged = errors.New("ramptest: the game accepted a call whose HMAC is not that of its body")
)

// ErrCanceled means that the caller has stopped waiting for the answer, as a browser
// does when the user leaves a page. It is not a failure of the game.
var ErrCanceled = fmt.Errorf("ramptest: the call was canceled before the game answered: %w", context.Canceled)

// ErrUnsent means that the game's address accepts no connections.
var ErrUnsent = errors.New("nothing was sent, so nothing moved")

// UnsentLater is [ErrUnsent] for an order about which an earlier call was sent, so the game may have moved
// assets.
const UnsentLater = "this call was not sent, but an earlier one about the order was"

type unsentLater struct{}

func (unsentLater) Error() string        { return UnsentLater }
func (unsentLater) Is(target error) bool { return target == ErrUnsent }

// errNoFailure means that a store did not fail on purpose.
var errNoFailure = errors.New("ramptest: StoreFails had no effect: the result reached no ramp.Handler " +
	"with the context of its request")

var errNoGame = errors.New(
	"ramptest: the game's server is not set: set Config.Game or Config.Handler, or call Service.SetHandler")
