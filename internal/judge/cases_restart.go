package judge

// restartCases returns the cases about a server that restarts between validate and
// result, because a result can come 12 hours later (interface 8).
func restartCases() []Case {
	ends := func(t *trial, o order, status string) {
		t.restart()
		t.closes(o, status)
	}
	return []Case{{ID: "restart", needs: aRestart, last: true,
		Fix: "Commit orders, their transactions, effects and sessions to a database before you answer; " +
			"a restart loses what is in memory or in a queue.",
		Title: "After a restart, an order ends as it would have, and nothing is taken or granted again.",
		Inputs: append([]Input{
			mintFails.as("mint-fails", "a mint that fails after it", ends),
			burnEnds.as("burn-succeeds", "a burn that succeeds after it", ends),
			must("result-again", "results that were confirmed right before it and come again",
				func(t *trial) {
					mint := t.approve(t.mint())
					all := dues{{t.before, difference{}}}
					if t.renew(); t.before.owner.ID == mint.owner.ID {
						t.confirm(mint, failure) // the player may have one open order only
					}
					burn := t.approve(t.burn())
					all.add(t.before, burn.effect(success))
					if t.ledger.known(mint).ended == "" {
						t.confirm(mint, failure)
					}
					t.confirm(burn, success)
					t.restart() // at once: what is not stored yet is lost
					t.settle(all)
					t.confirm(mint, failure)
					t.confirm(burn, success)
					t.settle(all)
				}, "repeats", "mint-fails", "burn-succeeds"),
			must("validate-again", "a validate call that is repeated after it", func(t *trial) {
				o := t.approve(t.mint())
				t.restart()
				t.offer(o)
				t.closes(o, success)
			}, "repeats", "mint-succeeds"),
		},
			mild(should("same-hash", "a burn that is reported with the tx_hash of one that ended before it",
				func(t *trial) { t.sameHash(true) },
				"burn-succeeds"))...)}}
}
