package judge

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
	"strings"
)

// formCases returns the cases about bodies that differ from sections 2.5 and 6.
func formCases() []Case {
	const (
		read = "Read the body as one JSON object and reject everything else."
		fix  = "Check that every field that section 2.5 requires is present, not null and of the right " +
			"type, before you take anything."
	)
	// in which RIGHT is the right body, HALF its first half, and ALMOST lacks its end
	bodies := rows[string]{Must: {
		{"empty", "an empty body", ""},
		{"null", "the body null", "null"},
		{"text", "a body that is a JSON string", `"text"`},
		{"truncated", "half of a JSON object", "HALF"},
	}, Should: {
		{"array", "a body that is a list", "[RIGHT]"},
		{"two", "two JSON objects", "RIGHTRIGHT"},
		{"trailing", "a JSON object with text behind it", "RIGHTxyz"},
		{"unclosed", "a JSON object without its last brace", "ALMOST"},
	}}
	bodiesOf := func(e endpoint) []Input {
		return bodies.inputs(func(t *trial, text string) {
			e.rejects(t, func(v valid) answer {
				all := string(v.body.bytes())
				body := strings.NewReplacer("RIGHT", all, "HALF", all[:len(all)/2], "ALMOST",
					all[:len(all)-1]).Replace(text)
				return t.deliver(v.call([]byte(body)))
			})
		})
	}
	uuids := rows[edit]{Must: {
		{"missing", "without uuid", drop("uuid")},
		{"null", "whose uuid is null", set("uuid", nil)},
		{"empty", "whose uuid is empty", set("uuid", "")},
	}, Should: {
		// another one each time: a server may have stored it,
		{"bad", "whose uuid is not a UUID", set("uuid", rand.Text())},
		{"number", "whose uuid is a number", set("uuid", number(mathrand.Int64N(1<<53)))},
		{"nil", "whose uuid is all zeros", set("uuid", "00000000-0000-0000-0000-000000000000")},
	}}
	fields := rows[edit]{Should: slices.Concat(
		leftOut("user-sig", "user_sig"), leftOut("user-address", "user_address"),
		leftOut("project", "project_id"), []row[edit]{
			{"empty-user-sig", "whose user_sig is empty", set("user_sig", "")},
			{"text-user-sig", "whose user_sig is not hex", set("user_sig", "0xsignature")},
		})}
	intents := rows[edit]{
		Must: slices.Concat(leftOut("intent", "intent"), leftOut("from", "intent.from"),
			leftOut("entry-id", "intent.from.0.id"), []row[edit]{
				{"empty-from", "whose intent.from is empty", set("intent.from", list{})},
			}),
		Should: slices.Concat(leftOut("method", "intent.method"), leftOut("type", "intent.type"), []row[edit]{
			{"text-intent", "whose intent is a string", set("intent", "mint")},
			{"object-from", "whose intent.from is an object", set("intent.from", object{})},
			{"no-to", "without intent.to", drop("intent.to")},
			{"empty-to", "whose intent.to is empty", set("intent.to", list{})},
			{"no-entry-type", "with an entry without type", drop("intent.from.0.type")},
		}),
	}
	return []Case{
		{ID: "validate-body", Fix: read, Inputs: bodiesOf(atValidate),
			Title: "A validate call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "result-body", Section: "6", Fix: read, Inputs: bodiesOf(atResult),
			Title: "A result call whose body is not one JSON object is rejected and moves nothing."},
		{ID: "validate-uuid", Inputs: append(uuids.inputs(rejected),
			must("capitals", "whose uuid is in capitals, unless it ends as any other", func(t *trial) {
				o := t.plain()
				t.rejectsOrEnds(o.bent(set("uuid", strings.ToUpper(o.uuid()))), failure)
			})),
			Fix: "Reject a uuid that is no UUID before you take anything, and find the order of a " +
				"result under the text that you stored.",
			Title: "A mint whose uuid is missing or malformed is rejected; one in capitals is rejected or " +
				"ends as any other."},
		{ID: "validate-fields", Fix: fix, Inputs: fields.inputs(rejected),
			Title: "A mint whose user_sig, user_address or project_id is missing or malformed is rejected."},
		{ID: "validate-intent", Fix: fix, Inputs: intents.inputs(rejected),
			Title: "A mint whose intent is missing or incomplete is rejected."},
		{ID: "validate-other-project", Level: Should, needs: aProject,
			Fix:   "Compare project_id with the one of your console.",
			Title: "A mint for another project is rejected.",
			run:   func(t *trial) { t.rejects(t.plain(set("project_id", "another-project"))) }},
		{ID: "unknown-fields", early: true,
			Fix:   "Ignore fields that you do not know: the service may add some.",
			Title: "A call with unknown fields is approved or confirmed.",
			Inputs: []Input{
				should("validate", "a mint", func(t *trial) {
					t.ends(t.plain(set("new", object{"a": number(1)}), set("intent.new", list{}),
						set("intent.from.0.new", nil)), failure)
				}),
				should("result", "a result", func(t *trial) {
					t.ends(t.plain(), failure, set("new", object{"a": number(1)}), set("receipt.new", list{}),
						set("intent.new", true))
				}),
			}},
		{ID: "validate-no-target-candidate",
			Fix:   "Treat intent.target_candidate as the optional field that it is.",
			Title: "A mint without intent.target_candidate is approved.",
			run:   func(t *trial) { t.ends(t.plain(drop("intent.target_candidate")), failure) }},
	}
}
