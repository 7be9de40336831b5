package storetest

// scenario is what happens at once.
type scenario struct {
	name   string
	has    int64    // the player has so many of each asset; -1 is a player without a balance
	orders []string // a mint or a burn; an accepted one is there before the calls
	calls  []action
}

// action is a call: of which kind it is, about which order, and by which transaction.
type action struct {
	order int
	kind  string
	tx    int
}

const (
	validate        = "validate"
	anotherValidate = "another validate" // that signs something else
	success         = "success"
	failure         = "failure"
	abandon         = "abandon"
	settledAbandon  = "abandon, settled by mail"
	settledSuccess  = "success, settled by mail"
)

var scenarios = []scenario{
	{"a validate and its repeat", 20, []string{"mint"},
		[]action{{0, validate, 0}, {0, validate, 0}}},
	{"a validate and its repeat, of a burn", 20, []string{"burn"},
		[]action{{0, validate, 0}, {0, validate, 0}}},
	{"a validate and another of the same order", 20, []string{"mint"},
		[]action{{0, validate, 0}, {0, anotherValidate, 0}}},
	{"a validate and the failure", 20, []string{"mint"},
		[]action{{0, validate, 0}, {0, failure, 1}}},
	{"a validate that is repeated late, and the failure", 20, []string{"accepted mint"},
		[]action{{0, validate, 0}, {0, failure, 1}}},
	{"a failure and its repeat", 20, []string{"accepted mint"},
		[]action{{0, failure, 1}, {0, failure, 1}}},
	{"a success and its repeat, of a burn", 20, []string{"accepted burn"},
		[]action{{0, success, 1}, {0, success, 1}}},
	{"a success and its repeat, of a burn of a new player", -1, []string{"accepted burn"},
		[]action{{0, success, 1}, {0, success, 1}}},
	{"a success and a failure", 20, []string{"accepted mint"},
		[]action{{0, success, 1}, {0, failure, 2}}},
	{"a success and a failure, of a burn", 20, []string{"accepted burn"},
		[]action{{0, success, 1}, {0, failure, 2}}},
	{"a failure and a person who abandons the order", 20, []string{"accepted mint"},
		[]action{{0, failure, 1}, {0, abandon, 0}}},
	{"a success and a person who abandons the order", 20, []string{"accepted mint"},
		[]action{{0, success, 1}, {0, abandon, 0}}},
	{"two people who abandon an order", 20, []string{"accepted mint"},
		[]action{{0, abandon, 0}, {0, abandon, 0}}},
	{"a failure and a person who settles the order by mail", 20, []string{"accepted mint"},
		[]action{{0, failure, 1}, {0, settledAbandon, 0}}},
	{"a success and a person who settles it by mail, of a burn", 20, []string{"accepted burn"},
		[]action{{0, success, 1}, {0, settledSuccess, 1}}},
	{"two mints, and assets for one", 7, []string{"mint", "mint"},
		[]action{{0, validate, 0}, {1, validate, 0}}},
	{"a mint, and the failure of another", 20, []string{"mint", "accepted mint"},
		[]action{{0, validate, 0}, {1, failure, 1}}},
	{"two burns, and one transaction", 20, []string{"accepted burn", "accepted burn"},
		[]action{{0, success, 1}, {1, success, 1}}},
	{"a burn and a failed mint, and one transaction", 20, []string{"accepted burn", "accepted mint"},
		[]action{{0, success, 1}, {1, failure, 1}}},
}

var scenariosOfThree = []scenario{
	{"three validates", 7, []string{"mint"},
		[]action{{0, validate, 0}, {0, validate, 0}, {0, validate, 0}}},
	{"a validate and two failures", 7, []string{"mint"},
		[]action{{0, validate, 0}, {0, failure, 1}, {0, failure, 1}}},
	{"two failures and a person who abandons the order", 7, []string{"accepted mint"},
		[]action{{0, failure, 1}, {0, failure, 1}, {0, abandon, 0}}},
	{"a success, a failure and a person who abandons the order", 7, []string{"accepted mint"},
		[]action{{0, success, 1}, {0, failure, 2}, {0, abandon, 0}}},
	{"three mints, and assets for two", 12, []string{"mint", "mint", "mint"},
		[]action{{0, validate, 0}, {1, validate, 0}, {2, validate, 0}}},
	{"three burns, and one transaction", 7, []string{"accepted burn", "accepted burn", "accepted burn"},
		[]action{{0, success, 1}, {1, success, 1}, {2, success, 1}}},
}
