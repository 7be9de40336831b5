package judge

import "net/http"

// finding is the error of a trial whose server did something wrong.
type finding struct {
	saw, want string
	grave     bool // something is lost, doubled or given away, so it counts even for a SHOULD
	does      Harm // what was seen of the money, if no balance shows it

	// If an answer is wrong, step is what was asked, and status the HTTP status of
	// the answer. The status is 0 if there was no answer.
	step   string
	status int

	// If a balance is wrong, off is how much too much is owned, and predicted is
	// what the known faults of the opening account for.
	off, predicted difference
	asset          string    // the asset of the case's orders
	late           bool      // it may be what an approved mint took late
	side           bool      // the wrong balance is of an asset that no order was about
	kind           eventKind // the last event before it

	note      string // an explanation
	confusing string // the path of the endpoint whose rejections look like successes
	look      string // of a wrong answer
	call      *Call  // the call that failed, if it is not the last one
}

// harm returns what was seen of the money.
func (f *finding) harm() Harm {
	more := false // than is owned by right
	for _, by := range f.off {
		more = more || by.Sign() > 0
	}
	switch {
	case more, f.grave && f.off == nil:
		return max(f.does, Gives)
	case f.grave:
		return max(f.does, Loses)
	default:
		return f.does
	}
}

// unreachable reports whether the server may be unreachable.
func (f *finding) unreachable() bool {
	return f.step != "" && (f.status == 0 || isUnavailable(f.status))
}

func (f *finding) Error() string { return "saw " + f.saw + ", want " + f.want }

// skip is the error of a trial whose case does not apply to the target.
type skip string

func (s skip) Error() string { return string(s) }

// unasked is the error of a trial for which the target lacks a setting. If a MUST ends so, the
// server did not pass.
type unasked struct{ why, set string }

func (u unasked) Error() string { return u.why }

// isUnavailable reports whether a status is one that a proxy answers for an unreachable
// server.
func isUnavailable(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable ||
		status == http.StatusGatewayTimeout
}
