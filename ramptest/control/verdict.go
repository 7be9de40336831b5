package control

import "github.com/token-ramp/ramp-go/ramptest/internal/verdict"

type (
	// A Verdict says what happened to an order or a call.
	Verdict = verdict.Verdict

	// State names, for a program, what happened: see [Verdict].
	State = verdict.State

	// Tone is for the color of a page: "good", "bad", "wait", "warn", "unknown" or "neutral"; see
	// [Verdict]. "unknown" is only for orders.
	Tone = verdict.Tone

	// Next is the next step of a [Verdict] that happens by itself.
	Next = verdict.Next
)

// The states of an order. A call has one of three: it is done, rejected or failed.
const (
	StateWaiting     = verdict.Waiting     // more happens by itself, or a fault keeps it from happening
	StateDone        = verdict.Done        // it has ended, and nothing is wrong
	StateLoss        = verdict.Loss        // it has ended, and the game moved something wrongly
	StateUnconfirmed = verdict.Unconfirmed // the game never confirmed the result, and it is not sent again
	StateDisputed    = verdict.Disputed    // results stated two outcomes, or not that of the chain
	StateUnknown     = verdict.Unknown     // it has ended, and what the game moved is unknown
	StateRejected    = verdict.Rejected    // the game answered no, as it may or must
	StateFailed      = verdict.Failed      // the call failed, or its answer is wrong
)
