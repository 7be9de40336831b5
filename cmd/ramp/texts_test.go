package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Each text enters by a flag, an argument, a variable, a file or standard input. Each is checked there.
func TestWhatAnotherProgramDidToATextIsNamed(t *testing.T) {
	page := "http://127.0.0.1:8090/exchange?uuid=b65696e5-4f14-4a5b-9d2b-5d0a1d9d7c11&sessionId=a&accessToken=b"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"emulate", "-game", "“http://127.0.0.1:1”"}, "-game must not have quotes around it"},
		{[]string{"emulate", "-game", "http://127.0.0.1:1\u00a0"}, "-game must not begin or end with white space"},
		{[]string{"emulate", "-game", "http://127.0.0.1:1", "-project", "'7'"},
			"-project must not have quotes around it"},
		{[]string{"emulate", "-game", "http://127.0.0.1:1", "-regenerating", "energy\u200b"},
			"-regenerating must not have a zero-width space (U+200B)"},
		{[]string{"emulate", "-game", "http://127.0.0.1:1", "-listen", "127.0.0.1:0", "-validator", "0X70c3"},
			"-validator must be 0x followed by 40 hex digits, and begins with 0X"},
		{[]string{"emulate", "-game", "http://127.0.0.1:1", "-listen", "127.0.0.1:0", "-validator", "0x70c3…45a1"},
			"-validator must be whole: with …, a page shows a part of it only"},
		{[]string{"orders", "-session", "a\ufeff"}, "-session must not have a byte order mark (U+FEFF)"},
		{[]string{"orders", "b65696e5…"}, "a UUID must be whole: with …, a page shows a part of it only"},
		{[]string{"orders", "b65696e5\r"}, "the argument must not have a line break (U+000D)"},
		{[]string{"orders", "-before", "b65696e5..."}, "a UUID must be whole"},
		{[]string{"orders", "-at", "http://127.0.0.1:8090\u200b"}, "-at must not have a zero-width space"},
		{[]string{"orders", "-at", "http://127.0.0.1:99999"}, "-at, or RAMP_API_URL, must have a port from 1 to 65535"},
		{[]string{"resend", "b65696e5…"}, "the UUID must be whole"},
		{[]string{"advance", "15m\u00a0"}, "the argument must not begin or end with white space"},
		{[]string{"trigger", "mint", "-like", "b65696e5…"}, "-like must be whole"},
		{[]string{"trigger", "mint", "-material", "a=1", "-amount", "1,5"}, "-amount must be a number, such as 1.5"},
		{[]string{"trigger", "mint", "-token", "0x70c3"}, "-token must be 0x followed by 40 hex digits, and has 4"},
		{[]string{"trigger", "mint", "-material", "a=1\u200b"}, `invalid value "a=1\u200b" for flag -material`},
		{[]string{"trigger", "mint", "-page", strings.ReplaceAll(page, "&", "&amp;")},
			"-page has &amp; where its address has &"},
		{[]string{"trigger", "mint", "-page", strings.ReplaceAll(page, "&", `\u0026`)},
			`-page has \u0026 where its address has &`},
		{[]string{"trigger", "mint", "-page", "'" + page + "'"}, "-page must not have quotes around it"},
		{[]string{"connect", "-project", "${PROJECT}"},
			"-project must not be the name of a variable, which nothing has replaced"},
		{[]string{"check", "-asset", "gold "}, "-asset must not begin or end with white space"},
		{[]string{"check", "-session", "'a=b'"}, "-session must not have quotes around it"},
		{[]string{"record", "-game", "`http://127.0.0.1:1`"}, "-game must not have quotes around it"},
		{[]string{"sign", "-key-file", "'key'"}, "-key-file must not have quotes around it"},
		{[]string{"sign", "-key-file", keyFile(t, "\xff\xfek\x00e\x00y\x00")}, "it has a NUL, as in a file in UTF-16"},
		{[]string{"ready", "-at", "\"http://127.0.0.1:1\""}, "-at must not have quotes around it"},
	} {
		assert.Contains(t, ends(t, 2, test.args...), test.want, test.args)
	}
	for name, args := range map[string][]string{
		"RAMP_NETWORK":       {"emulate", "-game", "http://127.0.0.1:1"},
		"RAMP_TOKEN":         {"emulate", "-game", "http://127.0.0.1:1"},
		"RAMP_CONTROL_TOKEN": {"orders"},
		"RAMP_ACCESS_TOKEN":  {"connect"},
		"RAMP_PROJECT":       {"connect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, `"x"`)
			assert.Regexp(t, "ramp [a-z]+: "+name+"(, for -project,)? must not have quotes around it",
				ends(t, 2, args...))
		})
	}
}

// A variable that is read without these checks is one of those here, whose readers check it.
func TestEveryVariableIsChecked(t *testing.T) {
	read := regexp.MustCompile(`os\.(Getenv|LookupEnv)\(([^)]+)\)`)
	checked := map[string]bool{"name": true, `"RAMP_HMAC_KEY"`: true, `"RAMP_VALIDATOR_KEY"`: true,
		`"NO_COLOR"`: true, `"TERM"`: true}
	for _, file := range must.Get(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range read.FindAllSubmatch(must.Get(os.ReadFile(file))(t), -1) {
			assert.True(t, checked[string(m[2])], "%s: read %s with environment", file, m[0])
		}
	}
}

func TestSignSaysWhatAShellHasAddedToABody(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", testKey)
	for body, want := range map[string]string{"{}": "",
		"{}\n":     "ramp sign: the body ends with a line break, which counts\n",
		"\ufeff{}": "ramp sign: the body begins with a byte order mark, which counts\n",
		"\xff\xfe": "ramp sign: the body is in UTF-16, which counts\n"} {
		var out, errs bytes.Buffer
		require.Equal(t, 0, stdio{strings.NewReader(body), &out, &errs}.run(t.Context(), "sign", nil))
		assert.Equal(t, want, errs.String())
		assert.Len(t, out.String(), 65)
	}
}
