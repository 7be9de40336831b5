package conformance

import (
	"bytes"
	"math/big"
)

// formCases returns the cases about bodies that differ from sections 2.5 and 6.
func formCases() []Case {
	const (
		read = "Read the body as one JSON object and reject everything else."
		fix  = "Check that every field that section 2.5 requires is present, not null and of the right type, before you take anything."
	)
	bodies := rows[bytesEdit]{
		{"empty", "an empty body", Must, func([]byte) []byte { return nil }},
		{"null", "the body null", Must, func([]byte) []byte { return []byte("null") }},
		{"text", "a body that is a JSON string", Must, func([]byte) []byte { return []byte(`"text"`) }},
		{"array", "a body that is a list", Should, func(right []byte) []byte { return append(append([]byte("["), right...), ']') }},
		{"truncated", "half of a JSON object", Must, func(right []byte) []byte { return right[:len(right)/2] }},
		{"unclosed", "a JSON object without its last brace", Should, func(right []byte) []byte { return right[:len(right)-1] }},
		{"two", "two JSON objects", Should, func(right []byte) []byte { return append(bytes.Clone(right), right...) }},
		{"trailing", "a JSON object with text behind it", Should, func(right []byte) []byte { return append(bytes.Clone(right), "xyz"...) }},
	}
	bodiesOf := func(e endpoint) []Input {
		return bodies.inputs(func(t *trial, change bytesEdit) {
			e.rejects(t, func(_ order, right object) answer {
				body := change(right.bytes())
				return t.post(e.path(t.target), t.signed(t.player, body), body)
			})
		})
	}
	rejected := func(t *trial, e edit) { t.rejects(t.plain().bent(e)) }
	uuids := rows[edit]{
		{"missing", "without uuid", Must, drop("uuid")},
		{"null", "whose uuid is null", Must, set("uuid", nil)},
		{"empty", "whose uuid is empty", Must, set("uuid", "")},
		{"bad", "whose uuid is not a UUID", Should, set("uuid", "seven")},
		{"number", "whose uuid is a number", Should, set("uuid", number(7))},
		{"nil", "whose uuid is all zeros", Should, set("uuid", "00000000-0000-0000-0000-000000000000")},
	}
	fields := rows[edit]{
		{"no-user-sig", "without user_sig", Should, drop("user_sig")},
		{"null-user-sig", "whose user_sig is null", Should, set("user_sig", nil)},
		{"empty-user-sig", "whose user_sig is empty", Should, set("user_sig", "")},
		{"text-user-sig", "whose user_sig is not hex", Should, set("user_sig", "0xsignature")},
		{"no-user-address", "without user_address", Should, drop("user_address")},
		{"null-user-address", "whose user_address is null", Should, set("user_address", nil)},
		{"no-project", "without project_id", Should, drop("project_id")},
		{"null-project", "whose project_id is null", Should, set("project_id", nil)},
	}
	intents := rows[edit]{
		{"no-intent", "without intent", Must, drop("intent")},
		{"null-intent", "whose intent is null", Must, set("intent", nil)},
		{"text-intent", "whose intent is a string", Should, set("intent", "mint")},
		{"no-method", "without intent.method", Should, drop("intent.method")},
		{"null-method", "whose intent.method is null", Should, set("intent.method", nil)},
		{"no-type", "without intent.type", Should, drop("intent.type")},
		{"null-type", "whose intent.type is null", Should, set("intent.type", nil)},
		{"no-from", "without intent.from", Must, drop("intent.from")},
		{"null-from", "whose intent.from is null", Must, set("intent.from", nil)},
		{"empty-from", "whose intent.from is empty", Must, set("intent.from", list{})},
		{"object-from", "whose intent.from is an object", Should, set("intent.from", object{})},
		{"no-to", "without intent.to", Should, drop("intent.to")},
		{"empty-to", "whose intent.to is empty", Should, set("intent.to", list{})},
		{"no-entry-type", "with an entry without type", Should, drop("intent.from.0.type")},
		{"no-entry-id", "with an entry without id", Must, drop("intent.from.0.id")},
		{"null-entry-id", "with an entry whose id is null", Must, set("intent.from.0.id", nil)},
	}
	return []Case{
		{ID: "validate-body", Section: "2.5", Fix: read, Inputs: bodiesOf(atValidate),
			Title: "A validate call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "result-body", Section: "6", Fix: read, Inputs: bodiesOf(atResult),
			Title: "A result call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "validate-uuid", Section: "2.5", Fix: fix, Inputs: uuids.inputs(rejected),
			Title: "A mint whose uuid is missing or malformed is rejected."},
		{ID: "validate-fields", Section: "2.5", Fix: fix, Inputs: fields.inputs(rejected),
			Title: "A mint whose user_sig, user_address or project_id is missing or malformed is rejected."},
		{ID: "validate-intent", Section: "2.5", Fix: fix, Inputs: intents.inputs(rejected),
			Title: "A mint whose intent is missing or incomplete is rejected."},
		{ID: "validate-other-project", Level: Should, Section: "2.5", needs: aProject,
			Fix:   "Compare project_id with the one of your console.",
			Title: "A mint for another project is rejected.",
			run:   func(t *trial) { t.rejects(t.plain().bent(set("project_id", "another-project"))) }},
		{ID: "unknown-fields", Section: "2.5", Fix: "Ignore fields that you do not know: the service may add some.",
			Title: "A call with unknown fields is approved or confirmed.",
			Inputs: []Input{
				{Name: "validate", Title: "a mint", Level: Should, run: func(t *trial) {
					t.ends(t.plain().bent(set("new", object{"a": number(1)}), set("intent.new", list{}), set("intent.from.0.new", nil)), failure, 0)
				}},
				{Name: "result", Title: "a result", Level: Should, run: func(t *trial) {
					t.endsAs(t.plain(), func(o object) object {
						return o.with("new", object{"a": number(1)}).with("receipt.new", list{}).with("intent.new", true)
					}, failure, 0)
				}},
			}},
		{ID: "validate-no-target-candidate", Level: Must, Section: "2.5",
			Fix:   "Treat intent.target_candidate as the optional field that it is.",
			Title: "A mint without intent.target_candidate is approved.",
			run:   func(t *trial) { t.ends(t.plain().bent(drop("intent.target_candidate")), failure, 0) }},
	}
}

// rejects requires that an order is rejected and moves nothing.
func (t *trial) rejects(o order) {
	a := t.validate(o)
	if t.answered(a) && a.succeeded() && !o.burns() && t.commitsTo(o, a) {
		t.paid(o) // a mint for nothing counts even for a SHOULD
	}
	t.rejected(a)
	t.moved(0)
}

// rejectsOr requires that an order is rejected and moves nothing, or is approved and then
// does something else.
func (t *trial) rejectsOr(o order, then func()) {
	if !t.either(t.validate(o)) {
		t.moved(0)
		return
	}
	then()
}

// rejectsOrEnds requires that an order is rejected, or approved and then ends with the
// expected effect.
func (t *trial) rejectsOrEnds(o order, status string, moved *big.Rat) {
	t.rejectsOr(o, func() {
		t.confirm(o, status)
		t.movedAbout(moved)
	})
}

// paid requires that an approved mint has taken something by the time it succeeded.
func (t *trial) paid(o order) {
	if t.err == nil {
		t.answered(t.report(o, o.result(success)))
	}
	wrong := t.settled(t.before, func(now snapshot) bool { return now.of(t.asset).Cmp(t.before.of(t.asset)) < 0 })
	if wrong != nil {
		t.gives("an approved mint for which nothing was taken", "a rejection, or a lower balance")
	}
}

// ends requires that an order is approved and ends with the expected effect.
func (t *trial) ends(o order, status string, moved int64) { t.closes(t.approve(o), status, moved) }

// closes requires that the result of an order is confirmed and that the player's balance has
// then changed by a number of order amounts since the case began.
func (t *trial) closes(o order, status string, moved int64) {
	t.confirm(o, status)
	t.moved(moved)
}
