package report

import (
	"errors"
	"fmt"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Errorf returns an error of the API.
func Errorf(code control.ErrorCode, format string, args ...any) *control.Error {
	return &control.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns the error of a request that is invalid.
func Invalid(format string, args ...any) error { return Errorf(control.CodeInvalid, format, args...) }

// Error converts an error of the service to one of the API.
func Error(err error) error {
	var known *control.Error
	if errors.As(err, &known) {
		return known
	}
	// the game did not answer, or violated the interface
	e := Errorf(control.CodeGame, "%s", text.Of(err))
	for own, code := range map[error]control.ErrorCode{
		trade.ErrNoItems: control.CodeInvalid, emulator.ErrUnknownUUID: control.CodeNotFound,
		emulator.ErrExpiredUUID: control.CodeExpired, emulator.ErrPlaced: control.CodePlaced,
		emulator.ErrPending: control.CodePending, life.ErrClosed: control.CodeClosed,
		game.ErrLostAnswer: control.CodeLostAnswer,
	} {
		if errors.Is(err, own) {
			e.Code = code
		}
	}
	if rejected := game.RejectionOf(err); rejected != nil {
		e.Code, e.GameStatus, e.ErrorCode = control.CodeRejected, rejected.Status, rejected.Code
	}
	return e
}
