package judge

// rejected requires that an edited mint is rejected, or an edited burn if the game only burns.
func rejected(t *trial, e edit) { t.rejects(t.plain(e)) }

func rejectedMint(t *trial, e edit) { t.rejects(t.mint(e)) }

func rejectedBurn(t *trial, e edit) { t.rejects(t.burn(e)) }

// rejects requires that an order is rejected and moves nothing.
func (t *trial) rejects(o order) {
	a := t.validate(o)
	if t.either(a) && !o.burns() && t.commitsTo(o, a) {
		t.paid(o) // a mint for nothing counts even for a SHOULD
	}
	if o.burns() {
		t.rejected(a)
	} else {
		t.unsigned(a)
	}
	t.moved(0)
}

// unsigned requires that a mint is rejected. With the signature of an approval, the player has the tokens.
func (t *trial) unsigned(a answer) {
	t.rejected(a)
	if a.succeeded && a.approval().ValidatorSig != "" {
		t.does(Gives)
	}
}

// denies requires that the call of somebody who proved nothing is rejected, and moves nothing of a player.
func (t *trial) denies(a answer, then snapshot) {
	if t.err != nil {
		return
	}
	t.rejected(a)
	if a.succeeded && (a.call.Path == t.ResultPath || a.approval().ValidatorSig != "") {
		t.does(Open) // an approval that signs nothing is worth nothing
	}
	t.untouched(then)
}

// untouched requires that the call of somebody who proved nothing has moved nothing of a player.
func (t *trial) untouched(then snapshot) {
	if t.err != nil {
		return
	}
	t.still(then)
	if f, ok := t.err.(*finding); ok && f.off != nil {
		f.does = Open
	}
}

// rejectsOr requires that an order is rejected and moves nothing, or is approved and then
// does something else.
func (t *trial) rejectsOr(o order, then func()) {
	if t.offer(o) {
		then()
	} else {
		t.moved(0)
	}
}

// rejectsOrEnds requires that an order is rejected, or approved and then ends with the
// expected effect.
func (t *trial) rejectsOrEnds(o order, status string) {
	t.rejectsOrMoves(o, status, o.effect(status))
}

func (t *trial) rejectsOrMoves(o order, status string, moved difference) {
	t.rejectsOr(o, func() {
		t.confirm(o, status)
		t.movedAbout(moved)
	})
}

// paid requires that an approved mint has taken something by the time it succeeded.
func (t *trial) paid(o order) {
	if t.err == nil {
		t.tell(o, success)
	}
	wrong := t.settled(t.before, func(now snapshot) bool {
		return now.of(t.asset).Cmp(t.before.of(t.asset)) < 0
	})
	if wrong != nil {
		t.gives("an approved mint for which nothing was taken", "a rejection, or a lower balance")
	}
}

// ends requires that an order is approved and ends with its effect.
func (t *trial) ends(o order, status string, edits ...edit) { t.closes(t.approve(o), status, edits...) }

// closes requires that the edited result of an order is confirmed and that the order has then
// had its effect since the case began.
func (t *trial) closes(o order, status string, edits ...edit) {
	t.confirm(o, status, edits...)
	t.movedAs(o, status)
}
