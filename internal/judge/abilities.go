package judge

import "slices"

// abilities are the cases on which others build, in the order in which to fix them.
var abilities = []string{
	"assets", "refusal", "result-log", "result-answer", "mint-succeeds", "mint-fails", "burn-succeeds",
	"burn-fails", "repeats", "balance", "unknown-order",
}

// ability returns the index of a case in abilities, or -1.
func ability(id string) int {
	return slices.Index(abilities, id)
}

// abilityOf names the ability that a kind of event shows.
var abilityOf = map[eventKind]string{
	mintSucceeded: "mint-succeeds", mintFailed: "mint-fails", burnSucceeded: "burn-succeeds",
	burnFailed: "burn-fails",
}

// handlerID is the ID of the case about what stands before the handler.
const handlerID = "handler"
