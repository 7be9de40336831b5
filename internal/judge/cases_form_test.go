package judge_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

var (
	isDigest  = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`).MatchString
	isUUID    = regexp.MustCompile(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`).MatchString
	isHexText = regexp.MustCompile(`^(0x)?([0-9a-fA-F]{2})+$`).MatchString
)

// bad reports whether a field is not what the interface requires.
func bad(path string) func(message) bool {
	return func(m message) bool {
		text, isText := m.at(path).(string)
		n, isNumber := m.at(path).(json.Number)
		entries, isList := m.at(path).([]any)
		object, isObject := m.at(path).(map[string]any)
		switch path[strings.LastIndexByte(path, '.')+1:] {
		case "digest":
			return !isDigest(text)
		case "uuid":
			return !isUUID(text) || strings.Trim(text, "0-") == ""
		case "user_sig":
			return !isHexText(text)
		case "from", "to":
			return !isList || len(entries) == 0
		case "amount":
			amount, err := ramp.ParseAmount(n.String())
			return !isNumber || err != nil || amount.Sign() <= 0
		case "intent":
			return !isObject || len(object) == 0
		default:
			return !isText || text == ""
		}
	}
}

func formMutants() map[string]mutant {
	m := map[string]mutant{
		"validate-other-project":  edits("project_id", func(message, any) any { return "project-1" }),
		"unknown-fields/validate": rejects(given("new")),
		"unknown-fields/result":   rejects(given("new")),
		"validate-uuid/capitals": says(ramp.PathResult, func(m message) bool { return !isUUID(m.text("uuid")) },
			500, no("UNKNOWN")),
		"validate-no-target-candidate": rejects(func(m message) bool { return m.at("intent.target_candidate") == nil }),
	}
	for path, name := range map[string]string{ramp.PathValidate: "validate-body/", ramp.PathResult: "result-body/"} {
		// A server that is content with a body that it cannot read.
		content := replies(func(s *studio, r *http.Request, body []byte) bool {
			return r.URL.Path == path && s.authentic(r, body) && parse(body) == nil
		}, 200, yes)
		for _, id := range []string{"empty", "null", "text", "truncated"} {
			m[name+id] = content
		}
		m[name+"array"] = reads(func(body []byte) []byte { return bytes.Trim(body, "[]") })
		m[name+"unclosed"] = reads(func(body []byte) []byte {
			if whole := append(bytes.Clone(body), '}'); json.Valid(whole) {
				return whole
			}
			return body
		})
		first := reads(func(body []byte) []byte {
			var value json.RawMessage
			if json.NewDecoder(bytes.NewReader(body)).Decode(&value) != nil {
				return body
			}
			return value
		})
		m[name+"two"], m[name+"trailing"] = first, first
	}
	for path, ids := range map[string][]string{
		"uuid": {"uuid/missing", "uuid/null", "uuid/empty", "uuid/bad", "uuid/number", "uuid/nil"},
		"user_sig": {"fields/no-user-sig", "fields/null-user-sig", "fields/empty-user-sig",
			"fields/text-user-sig"},
		"user_address":       {"fields/no-user-address", "fields/null-user-address"},
		"project_id":         {"fields/no-project", "fields/null-project"},
		"intent":             {"intent/no-intent", "intent/null-intent", "intent/text-intent"},
		"intent.method":      {"intent/no-method", "intent/null-method"},
		"intent.type":        {"intent/no-type", "intent/null-type"},
		"intent.from":        {"intent/no-from", "intent/null-from", "intent/empty-from", "intent/object-from"},
		"intent.to":          {"intent/no-to", "intent/empty-to"},
		"intent.from.0.type": {"intent/no-entry-type"},
		"intent.from.0.id":   {"intent/no-entry-id", "intent/null-entry-id"},
	} {
		for _, id := range ids {
			m["validate-"+id] = approves(bad(path))
		}
	}
	m["validate-intent/no-intent"] = signsAnything(func(m message) bool { return m["intent"] == nil })
	return m
}
