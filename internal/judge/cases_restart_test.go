package judge_test

func restartMutants() map[string]mutant {
	return map[string]mutant{
		"restart/mint-fails":     {bug: "forgets orders"},
		"restart/burn-succeeds":  {bug: "forgets orders"},
		"restart/result-again":   {bug: "stores later"},
		"restart/validate-again": {bug: "forgets orders"},
		"restart/same-hash":      {bug: "forgets transactions"},
	}
}
