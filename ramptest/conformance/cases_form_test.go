package conformance_test

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
		"validate-other-project": edits("project_id", func(message, any) any { return "project-1" }),
		"validate-unknown-fields": refuses(func(m message) bool {
			return m["new"] != nil
		}),
		"result-unknown-fields": refuses(func(m message) bool { return m["new"] != nil }),
		"validate-no-target-candidate": refuses(func(m message) bool {
			return m.at("intent.target_candidate") == nil
		}),
	}
	for path, name := range map[string]string{ramp.PathValidate: "validate-body-", ramp.PathResult: "result-body-"} {
		// A server that is content with a body that it cannot read.
		content := layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if r.URL.Path == path && s.authentic(r, body) && parse(body) == nil {
				reply(w, 200, yes)
				return
			}
			next.ServeHTTP(w, r)
		})
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
		"uuid":               {"no-uuid", "null-uuid", "empty-uuid", "bad-uuid", "number-uuid", "nil-uuid"},
		"user_sig":           {"no-user-sig", "null-user-sig", "empty-user-sig", "text-user-sig"},
		"user_address":       {"no-user-address", "null-user-address"},
		"project_id":         {"no-project", "null-project"},
		"intent":             {"no-intent", "null-intent", "text-intent"},
		"intent.method":      {"no-method", "null-method"},
		"intent.type":        {"no-type", "null-type"},
		"intent.from":        {"no-from", "null-from", "empty-from", "object-from"},
		"intent.to":          {"no-to", "empty-to"},
		"intent.from.0.type": {"no-entry-type"},
		"intent.from.0.id":   {"no-entry-id", "null-entry-id"},
	} {
		for _, id := range ids {
			m["validate-"+id] = approves(bad(path))
		}
	}
	return m
}
