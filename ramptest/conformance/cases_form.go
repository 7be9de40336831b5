package conformance

import (
	"crypto/rand"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"strings"
)

// formCases returns the cases about bodies that differ from sections 2.5 and 6.
func formCases() []Case {
	const (
		read = "Read the body as one JSON object and reject everything else."
		text = "Reject a uuid that is no UUID before you take anything, and find the order of a result under the text that you stored."
		fix  = "Check that every field that section 2.5 requires is present, not null and of the right type, before you take anything."
	)
	bodies := rows[string]{ // in which RIGHT is the right body
		{"empty", "an empty body", Must, ""},
		{"null", "the body null", Must, "null"},
		{"text", "a body that is a JSON string", Must, `"text"`},
		{"array", "a body that is a list", Should, "[RIGHT]"},
		{"two", "two JSON objects", Should, "RIGHTRIGHT"},
		{"trailing", "a JSON object with text behind it", Should, "RIGHTxyz"},
		{"truncated", "half of a JSON object", Must, "HALF"},
		{"unclosed", "a JSON object without its last brace", Should, "ALMOST"},
	}
	bodiesOf := func(e endpoint) []Input {
		return bodies.inputs(func(t *trial, text string) {
			e.rejects(t, func(_ order, right object) answer {
				all := string(right.bytes())
				body := strings.NewReplacer("RIGHT", all, "HALF", all[:len(all)/2], "ALMOST", all[:len(all)-1]).Replace(text)
				return t.deliver(e.call(t, []byte(body)))
			})
		})
	}
	rejected := func(t *trial, e edit) { t.rejects(t.plain().bent(e)) }
	uuids := rows[edit]{
		{"missing", "without uuid", Must, drop("uuid")},
		{"null", "whose uuid is null", Must, set("uuid", nil)},
		{"empty", "whose uuid is empty", Must, set("uuid", "")},
		{"bad", "whose uuid is not a UUID", Should, set("uuid", rand.Text())}, // another one each time: a server may have stored it,
		{"number", "whose uuid is a number", Should, set("uuid", number(mathrand.Int64N(1<<53)))},
		{"nil", "whose uuid is all zeros", Should, set("uuid", "00000000-0000-0000-0000-000000000000")},
	}
	fields := slices.Concat(leftOut("user-sig", "user_sig", Should), leftOut("user-address", "user_address", Should), leftOut("project", "project_id", Should), rows[edit]{
		{"empty-user-sig", "whose user_sig is empty", Should, set("user_sig", "")},
		{"text-user-sig", "whose user_sig is not hex", Should, set("user_sig", "0xsignature")},
	})
	intents := slices.Concat(leftOut("intent", "intent", Must), leftOut("method", "intent.method", Should), leftOut("type", "intent.type", Should),
		leftOut("from", "intent.from", Must), leftOut("entry-id", "intent.from.0.id", Must), rows[edit]{
			{"text-intent", "whose intent is a string", Should, set("intent", "mint")},
			{"empty-from", "whose intent.from is empty", Must, set("intent.from", list{})},
			{"object-from", "whose intent.from is an object", Should, set("intent.from", object{})},
			{"no-to", "without intent.to", Should, drop("intent.to")},
			{"empty-to", "whose intent.to is empty", Should, set("intent.to", list{})},
			{"no-entry-type", "with an entry without type", Should, drop("intent.from.0.type")},
		})
	return []Case{
		{ID: "validate-body", Section: "2.5", Fix: read, Inputs: bodiesOf(atValidate),
			Title: "A validate call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "result-body", Section: "6", Fix: read, Inputs: bodiesOf(atResult),
			Title: "A result call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "validate-uuid", Section: "2.5", Fix: text, Inputs: append(uuids.inputs(rejected),
			must("capitals", "whose uuid is in capitals, unless it ends as any other", func(t *trial) {
				o := t.plain()
				t.rejectsOrEnds(o.bent(set("uuid", strings.ToUpper(o.uuid()))), failure, new(big.Rat))
			})),
			Title: "A mint whose uuid is missing or malformed is rejected; one in capitals is rejected or ends as any other."},
		{ID: "validate-fields", Section: "2.5", Fix: fix, Inputs: fields.inputs(rejected),
			Title: "A mint whose user_sig, user_address or project_id is missing or malformed is rejected."},
		{ID: "validate-intent", Section: "2.5", Fix: fix, Inputs: intents.inputs(rejected),
			Title: "A mint whose intent is missing or incomplete is rejected."},
		{ID: "validate-other-project", Level: Should, Section: "2.5", needs: aProject,
			Fix:   "Compare project_id with the one of your console.",
			Title: "A mint for another project is rejected.",
			run:   func(t *trial) { t.rejects(t.plain().bent(set("project_id", "another-project"))) }},
		{ID: "unknown-fields", early: true, Section: "2.5", Fix: "Ignore fields that you do not know: the service may add some.",
			Title: "A call with unknown fields is approved or confirmed.",
			Inputs: []Input{
				{Name: "validate", Title: "a mint", Level: Should, run: func(t *trial) {
					t.ends(t.plain().bent(set("new", object{"a": number(1)}), set("intent.new", list{}), set("intent.from.0.new", nil)), failure, 0)
				}},
				{Name: "result", Title: "a result", Level: Should, run: func(t *trial) {
					t.endsAs(ending{of: (*trial).plainOf, status: failure}, func(o object) object {
						return o.with("new", object{"a": number(1)}).with("receipt.new", list{}).with("intent.new", true)
					})
				}},
			}},
		{ID: "validate-no-target-candidate", Section: "2.5",
			Fix:   "Treat intent.target_candidate as the optional field that it is.",
			Title: "A mint without intent.target_candidate is approved.",
			run:   func(t *trial) { t.ends(t.plain().bent(drop("intent.target_candidate")), failure, 0) }},
	}
}

// rejects requires that an order is rejected and moves nothing.
func (t *trial) rejects(o order) {
	a := t.validate(o)
	if t.either(a) && !o.burns() && t.commitsTo(o, a) {
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
		t.tell(o, success)
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
