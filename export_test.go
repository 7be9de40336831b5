package ramp

// SetLimits lowers the limits of an RPC, so that a test need not send 32 MiB.
func (r *RPC) SetLimits(answerBytes int64, batchCalls int) {
	r.limit, r.batch = answerBytes, batchCalls
}

// CallsOnConflict reports whether the game has a function for conflicts. What it
// is called with, internal/dbtest tests on databases.
func (g *SQLGame) CallsOnConflict() bool { return g.conflict != nil }
