package conformance_test

func orderMutants() map[string]mutant {
	return map[string]mutant{
		"mint-succeeds":                   {bug: "takes nothing"},
		"mint-fails":                      {bug: "keeps what failed"},
		"burn-succeeds":                   {bug: "never grants"},
		"burn-fails":                      {bug: "grants what failed"},
		"mint-takes-at-validate":          {bug: "holds until the result"},
		"burn-grants-at-result":           {bug: "shows burns at validate"},
		"burn-spent-early":                {bug: "grants at validate"},
		"mint-several":                    {bug: "one order a player"},
		"validate-twice":                  {bug: "takes again"},
		"repeats":                         {bug: "takes again"},
		"validate-twice-approved":         {bug: "rejects repeats"},
		"validate-at-once":                {bug: "looks, then takes"},
		"mints-at-once":                   {bug: "reads, then writes"},
		"mints-at-once-short":             {bug: "reads, then writes"},
		"validate-other-amount":           {bug: "approves whatever is known"},
		"validate-other-amount-rejected":  {bug: "pins no amount"},
		"validate-other-order/digest":     {bug: "pins no amount"},
		"validate-other-order/tokens":     {bug: "pins no amount"},
		"validate-other-order/direction":  {bug: "pins no amount"},
		"validate-other-owner":            {bug: "approves whatever is known"},
		"validate-other-owner-rejected":   {bug: "approves whatever is known"},
		"validate-other-digest-rejected":  repeats(),
		"validate-failed-other-digest":    {bug: "approves whatever is known"},
		"validate-succeeded-other-digest": {bug: "approves whatever is known"},
		"validate-after-failure":          {bug: "approves whatever is known"},
		"validate-after-success":          {bug: "forgets settled orders"},
		"validate-rejected-then-right":    {bug: "remembers rejected orders"},
	}
}
