package main

import (
	"cmp"
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusedPairs are the pairs of flags of each command of which one means nothing beside the other. Every other
// pair means what each flag says alone.
var refusedPairs = map[string]string{
	"check": "amount unique, json q, json v, q v," +
		// nothing is tried
		"allow-remote list, amount list, asset list, assets list, burn-tokens list, header list, junit list, " +
		"key-encoding list, key-file list, late list, list login, list one-asset, list only, list parallel, " +
		"list project, list q, list restart, list result, list second-asset, list session, list settle, " +
		"list skip, list strict, list timeout, list token, list tokens, list unique, list url, list uuid, " +
		"list v, list validate, list validator",
	"trigger": "page uuid, page session, json q",
}

// refusedAlone are the flags of each command that mean nothing without another one.
var refusedAlone = map[string]string{
	"trigger": "timeout without wait, network without token or material or output, " +
		"project without token or material or output, fee without token or material or output",
	// without a UUID; with one, nothing is listed
	"orders":  "wait, timeout",
	"record":  "service-listen without service",
	"connect": "assets without game, validate without game, result without game, session without page or game",
}

// Every pair of flags of every command either means something, or is refused with a sentence.
func TestEveryPairOfFlagsMeansSomething(t *testing.T) {
	const unseen = "\u200b" // ends each command after its flags have a meaning
	set := []string{"RAMP_ASSET", "RAMP_SECOND_ASSET", "RAMP_RUN", "RAMP_STATE",
		"RAMP_RESULT_TYPE", "RAMP_FOLDER", "RAMP_RECORD_LISTEN", "RAMP_KEY_FILE", "RAMP_PROJECT", "RAMP_API_URL",
		"RAMP_ORDERS_STATE", "RAMP_SESSION"}
	for _, name := range set {
		t.Setenv(name, "x"+unseen)
	}
	var read []string // the variables of all flags
	t.Setenv("RAMP_HMAC_KEY", "")
	values := map[string]string{"timeout": "1ms", "settle": "1ms", "late": "1ms", "fault": "transaction-fails",
		"material": "a=5", "output": "a=5"}
	line := regexp.MustCompile(`(?m)^  -([a-z0-9-]+)( \S+)?$`)
	arguments := map[string]string{"trigger": "mint", "resend": "b65696e5", "advance": "1m"}
	for name := range commands {
		argument := arguments[name]
		given := map[string][]string{}
		for _, m := range line.FindAllStringSubmatch(ends(t, 0, "help", name), -1) {
			read = append(read, variable(flag.NewFlagSet(name, flag.ContinueOnError), m[1]))
			if given[m[1]] = []string{"-" + m[1]}; m[2] != "" {
				given[m[1]] = append(given[m[1]], cmp.Or(values[m[1]], "5"))
			}
		}
		require.True(t, len(given) > 0 || name == "version", name)
		refused := func(flags ...string) string {
			args := []string{name}
			for _, flag := range flags {
				args = append(args, given[flag]...)
			}
			if argument != "" {
				args = append(args, argument+unseen)
			}
			status, _, errs := command(t, args...)
			assert.Equal(t, 2, status, args)
			if !strings.Contains(errs, "mean nothing") && !strings.Contains(errs, "means nothing") {
				return ""
			}
			return errs
		}
		alone, without := []string{}, map[string][]string{}
		for _, text := range strings.Split(refusedAlone[name], ", ") {
			if flag, others, _ := strings.Cut(text, " without "); flag != "" {
				alone = append(alone, flag)
				without[flag] = strings.Split(others, " or ")
			}
		}
		pairs := strings.FieldsFunc(refusedPairs[name], func(r rune) bool { return r == ',' })
		for i := range pairs {
			words := strings.Fields(pairs[i])
			slices.Sort(words)
			pairs[i] = strings.Join(words, " ")
		}
		var names []string
		for flag := range given {
			names = append(names, flag)
			assert.Equal(t, slices.Contains(alone, flag), refused(flag) != "", "%s -%s", name, flag)
		}
		slices.Sort(names)
		for i, a := range names {
			for _, b := range names[i+1:] {
				want := slices.Contains(pairs, a+" "+b)
				for _, one := range [][2]string{{a, b}, {b, a}} {
					want = want || slices.Contains(alone, one[0]) && !slices.Contains(without[one[0]], one[1])
				}
				said := refused(a, b)
				assert.Equal(t, want, said != "", "%s -%s -%s: %s", name, a, b, said)
			}
		}
	}
	assert.Subset(t, read, set, "this test sets a variable that no flag reads")
}

func TestAListHasNoOrder(t *testing.T) {
	for _, test := range [][]string{{"-wait"}, {"-timeout", "1s"}, {"b65696e5", "-state", "done"},
		{"b65696e5", "-n", "5"}, {"b65696e5", "-session", "a"}, {"b65696e5", "-attention"},
		{"b65696e5", "-before", "a"}, {"b65696e5", "-timeout", "1s"}} {
		assert.Contains(t, ends(t, 2, append([]string{"orders", "-at", "http://127.0.0.1:1"}, test...)...),
			"means nothing", test)
	}
	assert.Contains(t, ends(t, 2, "orders", "b65696e5", "-wait", "-timeout", "1s", "-at", "http://127.0.0.1:1"),
		"there is no emulator")
	assert.Contains(t, ends(t, 2, "check", "-only", "mint", "-burn-tokens", "5"), "means nothing with -only mint")
}
