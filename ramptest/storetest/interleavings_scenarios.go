package storetest

// scene is what happens at once.
type scene struct {
	name   string
	has    int64    // the player has so many of each asset; -1 is a player without a balance
	orders []string // a mint or a burn; an accepted one is there before the calls
	calls  []line
}

// line is a call: what it says, about which order, and by which transaction.
type line struct {
	order int
	says  string
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

var scenes = []scene{
	{"a validate and its repeat", 20, []string{"mint"},
		[]line{{0, validate, 0}, {0, validate, 0}}},
	{"a validate and its repeat, of a burn", 20, []string{"burn"},
		[]line{{0, validate, 0}, {0, validate, 0}}},
	{"a validate and another of the same order", 20, []string{"mint"},
		[]line{{0, validate, 0}, {0, anotherValidate, 0}}},
	{"a validate and the failure", 20, []string{"mint"},
		[]line{{0, validate, 0}, {0, failure, 1}}},
	{"a validate that is repeated late, and the failure", 20, []string{"accepted mint"},
		[]line{{0, validate, 0}, {0, failure, 1}}},
	{"a failure and its repeat", 20, []string{"accepted mint"},
		[]line{{0, failure, 1}, {0, failure, 1}}},
	{"a success and its repeat, of a burn", 20, []string{"accepted burn"},
		[]line{{0, success, 1}, {0, success, 1}}},
	{"a success and its repeat, of a burn of a new player", -1, []string{"accepted burn"},
		[]line{{0, success, 1}, {0, success, 1}}},
	{"a success and a failure", 20, []string{"accepted mint"},
		[]line{{0, success, 1}, {0, failure, 2}}},
	{"a success and a failure, of a burn", 20, []string{"accepted burn"},
		[]line{{0, success, 1}, {0, failure, 2}}},
	{"a failure and a person who abandons the order", 20, []string{"accepted mint"},
		[]line{{0, failure, 1}, {0, abandon, 0}}},
	{"a success and a person who abandons the order", 20, []string{"accepted mint"},
		[]line{{0, success, 1}, {0, abandon, 0}}},
	{"two people who abandon an order", 20, []string{"accepted mint"},
		[]line{{0, abandon, 0}, {0, abandon, 0}}},
	{"a failure and a person who settles the order by mail", 20, []string{"accepted mint"},
		[]line{{0, failure, 1}, {0, settledAbandon, 0}}},
	{"a success and a person who settles it by mail, of a burn", 20, []string{"accepted burn"},
		[]line{{0, success, 1}, {0, settledSuccess, 1}}},
	{"two mints, and assets for one", 7, []string{"mint", "mint"},
		[]line{{0, validate, 0}, {1, validate, 0}}},
	{"a mint, and the failure of another", 20, []string{"mint", "accepted mint"},
		[]line{{0, validate, 0}, {1, failure, 1}}},
	{"two burns, and one transaction", 20, []string{"accepted burn", "accepted burn"},
		[]line{{0, success, 1}, {1, success, 1}}},
	{"a burn and a failed mint, and one transaction", 20, []string{"accepted burn", "accepted mint"},
		[]line{{0, success, 1}, {1, failure, 1}}},
}

var scenesOfThree = []scene{
	{"three validates", 7, []string{"mint"},
		[]line{{0, validate, 0}, {0, validate, 0}, {0, validate, 0}}},
	{"a validate and two failures", 7, []string{"mint"},
		[]line{{0, validate, 0}, {0, failure, 1}, {0, failure, 1}}},
	{"two failures and a person who abandons the order", 7, []string{"accepted mint"},
		[]line{{0, failure, 1}, {0, failure, 1}, {0, abandon, 0}}},
	{"a success, a failure and a person who abandons the order", 7, []string{"accepted mint"},
		[]line{{0, success, 1}, {0, failure, 2}, {0, abandon, 0}}},
	{"three mints, and assets for two", 12, []string{"mint", "mint", "mint"},
		[]line{{0, validate, 0}, {1, validate, 0}, {2, validate, 0}}},
	{"three burns, and one transaction", 7, []string{"accepted burn", "accepted burn", "accepted burn"},
		[]line{{0, success, 1}, {1, success, 1}, {2, success, 1}}},
}
