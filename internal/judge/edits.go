package judge

import "encoding/json"

func set(path string, value any) edit {
	return func(o object) object { return o.with(path, value) }
}

func drop(path string) edit {
	return func(o object) object { return o.without(path) }
}

// changed changes a text.
func changed(path string, change func(string) string) edit {
	return func(o object) object { return o.with(path, change(literalText(o.at(path)))) }
}

// multiplied multiplies an amount.
func multiplied(path string, n int64) edit {
	return func(o object) object { return o.with(path, scaled(o.at(path).(json.Number), n)) }
}

// edits makes several edits.
func edits(all ...edit) edit {
	return func(o object) object { return o.bent(all...) }
}
