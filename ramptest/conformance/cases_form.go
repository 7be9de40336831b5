package conformance

import "bytes"

// formCases returns the cases about bodies that differ from sections 2.5 and 6.
func formCases() []Case {
	const (
		read = "Read the body as one JSON object and refuse everything else."
		fix  = "Check that every field that section 2.5 requires is present, not null and of the right type."
	)
	var cases []Case
	for _, c := range []struct {
		id, title string
		level     Level
		body      func(right []byte) []byte
	}{
		{"empty", "an empty body", Must, func([]byte) []byte { return nil }},
		{"null", "the body null", Must, func([]byte) []byte { return []byte("null") }},
		{"text", "a body that is a JSON string", Must, func([]byte) []byte { return []byte(`"text"`) }},
		{"array", "a body that is a list", Should, func(right []byte) []byte { return append(append([]byte("["), right...), ']') }},
		{"truncated", "half of a JSON object", Must, func(right []byte) []byte { return right[:len(right)/2] }},
		{"unclosed", "a JSON object without its last brace", Should, func(right []byte) []byte { return right[:len(right)-1] }},
		{"two", "two JSON objects", Should, func(right []byte) []byte { return append(bytes.Clone(right), right...) }},
		{"trailing", "a JSON object with text behind it", Should, func(right []byte) []byte { return append(bytes.Clone(right), "xyz"...) }},
	} {
		for _, e := range []endpoint{atValidate, atResult} {
			cases = append(cases, Case{ID: e.name + "-body-" + c.id, Level: c.level, Section: bodySection[e.name], Fix: read,
				Title: "A " + e.name + " call with " + c.title + " is refused and moves nothing.",
				run: func(t *trial) {
					o, right := e.body(t)
					then := t.now()
					body := c.body(right.bytes())
					t.refused(t.post(e.path(t.target), t.signed(t.player, body), body))
					t.still(then)
					e.over(t, o)
					t.moved(0)
				}})
		}
	}
	for _, c := range []struct {
		id, title string
		level     Level
		edit      edit
	}{
		{"no-uuid", "without uuid", Must, drop("uuid")},
		{"null-uuid", "whose uuid is null", Must, set("uuid", nil)},
		{"empty-uuid", "whose uuid is empty", Must, set("uuid", "")},
		{"bad-uuid", "whose uuid is not a UUID", Should, set("uuid", "seven")},
		{"number-uuid", "whose uuid is a number", Should, set("uuid", number(7))},
		{"nil-uuid", "whose uuid is all zeros", Should, set("uuid", "00000000-0000-0000-0000-000000000000")},
		{"no-user-sig", "without user_sig", Should, drop("user_sig")},
		{"null-user-sig", "whose user_sig is null", Should, set("user_sig", nil)},
		{"empty-user-sig", "whose user_sig is empty", Should, set("user_sig", "")},
		{"text-user-sig", "whose user_sig is not hex", Should, set("user_sig", "0xsignature")},
		{"no-user-address", "without user_address", Should, drop("user_address")},
		{"null-user-address", "whose user_address is null", Should, set("user_address", nil)},
		{"no-project", "without project_id", Should, drop("project_id")},
		{"null-project", "whose project_id is null", Should, set("project_id", nil)},
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
	} {
		cases = append(cases, Case{ID: "validate-" + c.id, Level: c.level, Section: "2.5", Fix: fix,
			Title: "A mint " + c.title + " is declined.", run: declines(mint, c.edit)})
	}
	return append(cases,
		Case{ID: "validate-other-project", Level: Should, Section: "2.5", needs: aProject,
			Fix:   "Compare project_id with the one of your console.",
			Title: "A mint for another project is declined.",
			run:   declines(mint, set("project_id", "another-project"))},
		Case{ID: "validate-unknown-fields", Level: Should, Section: "2.5",
			Fix:   "Ignore fields that you do not know: the service may add some.",
			Title: "A mint with unknown fields is approved.",
			run: takes(mint, failure, 0,
				set("new", object{"a": number(1)}), set("intent.new", list{}), set("intent.from.0.new", nil))},
		Case{ID: "result-unknown-fields", Level: Should, Section: "6",
			Fix:   "Ignore fields that you do not know: the service may add some.",
			Title: "A result with unknown fields is confirmed.",
			run: func(t *trial) {
				o := t.approve(t.mint())
				t.confirmed(t.report(o, o.result(failure).with("new", object{"a": number(1)}).with("receipt.new", list{}).with("intent.new", true)))
				t.moved(0)
			}},
		Case{ID: "validate-no-target-candidate", Level: Must, Section: "2.5",
			Fix:   "Treat intent.target_candidate as the optional field that it is.",
			Title: "A mint without intent.target_candidate is approved.",
			run:   takes(mint, failure, 0, drop("intent.target_candidate"))},
	)
}

var bodySection = map[string]string{"validate": "2.5", "result": "6"}

func mint(t *trial) order { return t.mint() }
func burn(t *trial) order { return t.burn() }

// declines tells the story of an order that is declined and moves nothing.
func declines(start func(*trial) order, edits ...edit) func(*trial) {
	return func(t *trial) {
		o := start(t).bent(edits...)
		a := t.validate(o)
		if t.answered(a) && a.succeeded() && !o.burns() && t.commitsTo(o, a) {
			t.paid(o) // a mint for nothing counts even for a SHOULD
		}
		t.refused(a)
		t.moved(0)
	}
}

// declinesOrMoves tells the story of an order that is declined, or approved and then
// moves a number of amounts.
func declinesOrMoves(start func(*trial) order, moved int64, edits ...edit) func(*trial) {
	return func(t *trial) {
		o := start(t).bent(edits...)
		if !t.either(t.validate(o)) {
			t.moved(0)
			return
		}
		t.answered(t.report(o, o.result(success)))
		t.moved(moved)
	}
}

// declinesOrTakes tells the story of a mint that is declined, or takes something.
func declinesOrTakes(edits ...edit) func(*trial) {
	return func(t *trial) {
		o := t.mint().bent(edits...)
		if !t.either(t.validate(o)) {
			t.moved(0)
			return
		}
		t.paid(o)
	}
}

// paid requires that an approved mint has taken something by the time it succeeded.
func (t *trial) paid(o order) {
	if t.err == nil {
		t.answered(t.report(o, o.result(success)))
	}
	wrong := t.settled(t.before, func(now snapshot) judgement {
		if now.of(t.asset).Cmp(t.before.of(t.asset)) < 0 {
			return rightBalance
		}
		return wrongBalance
	})
	if wrong != nil {
		t.gives("an approved mint for which nothing was taken", "a refusal, or a lower balance")
	}
}

// takes tells the story of an order that is approved and ends with the expected effect.
func takes(start func(*trial) order, status string, moved int64, edits ...edit) func(*trial) {
	return func(t *trial) {
		o := t.approve(start(t).bent(edits...))
		t.confirm(o, status)
		t.moved(moved)
	}
}
