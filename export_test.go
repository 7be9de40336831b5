package ramp

// SetLimits lowers the limits of an RPC, so that a test need not send 32 MiB.
func (r *RPC) SetLimits(answerBytes int64, batchCalls int) {
	r.limit, r.batch = answerBytes, batchCalls
}
