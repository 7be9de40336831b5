package doctest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// sources returns the names of the root package's files, without its tests.
func sources(t *testing.T) []string { return sourcesOf(t, ".") }

// sourcesOf returns the names of the files of the package in dir, without its tests.
func sourcesOf(t *testing.T, dir string) (names []string) {
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, dir, "*.go")))(t) {
		if !strings.HasSuffix(file, "_test.go") {
			names = append(names, filepath.Base(file))
		}
	}
	return names
}

// packageSource returns the text of the package, without its tests.
func packageSource(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, file := range sources(t) {
		source.WriteString(read(t, file))
	}
	return source.String()
}

// docs/errors.md has a row for the text of every code of the package, and for no others.
func TestErrorsListsEveryCode(t *testing.T) {
	listed := []string{"INVALID_BODY"} // without a constant
	for _, code := range regexp.MustCompile(
		`\b[Cc]ode[A-Z]\w+ +Code += "(\w+)"`).FindAllStringSubmatch(packageSource(t), -1) {
		listed = append(listed, code[1])
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(read(t,
		"docs/errors.md"), -1) {
		rows = append(rows, row[1])
	}
	require.Greater(t, len(rows), 10)
	require.ElementsMatch(t, listed, rows)
}

// docs/interface.md has every field of a message.
func TestInterfaceListsEveryField(t *testing.T) {
	text := read(t, "docs/interface.md")
	found := 0
	for _, message := range []any{
		ramp.InitializeRequest{}, ramp.InitializeIntent{}, ramp.Item{}, ramp.Player{}, ramp.ValidateRequest{},
		ramp.Approval{}, ramp.Result{}, ramp.Intent{}, ramp.IntentAsset{}, ramp.Receipt{}, ramp.Log{},
	} {
		kind := reflect.TypeOf(message)
		for _, field := range reflect.VisibleFields(kind) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			overRPC := kind == reflect.TypeFor[ramp.Receipt]() && (name == "from" || name == "to" || name == "feePayer")
			if name == "-" || overRPC {
				continue
			}
			found++
			listed := regexp.MustCompile("`([\\w.\\[\\]]*\\.)?" + name + `\b`)
			assert.True(t, listed.MatchString(text), "%s.%s (%s)", kind, field.Name, name)
		}
	}
	require.Greater(t, found, 50)
}

// docs/interface.md has every method, address and switch, and names no switch that does not exist.
func TestInterfaceListsMethodsAndSwitches(t *testing.T) {
	text := read(t, "docs/interface.md")
	for _, method := range []string{"eth_blockNumber", "eth_getBalance", "eth_getBlockByNumber", "eth_getBlockByHash",
		"eth_getTransactionCount", "eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_sendRawTransaction",
		"eth_sendTransaction", "eth_call", "eth_estimateGas", "eth_getLogs", "net_version"} { // interface 4.4
		require.Contains(t, text, "| `"+method+"` |")
		require.Contains(t, packageSource(t), `"`+method+`"`)
	}
	for _, parameter := range []string{"projectId", "sessionId", "accessToken", "platform", "network", "uuid"} {
		require.Regexp(t, `[?&]`+parameter+`=`, text)
	}

	_, switches, found := strings.Cut(read(t, "cmd/ramp/emulate.go"), `flags.group("What the interface leaves open`)
	require.True(t, found)
	_, open, found := strings.Cut(text, "## What the interface does not say")
	require.True(t, found)
	exist := map[string]bool{"key-encoding": true, "fault": true}
	for _, m := range regexp.MustCompile(`flags\.\w+Var\(&[\w.]+, "([\w-]+)"`).FindAllStringSubmatch(switches, -1) {
		require.Contains(t, open, "`-"+m[1], "an open point for the switch")
		exist[m[1]] = true
	}
	require.Greater(t, len(exist), 7)
	for _, m := range regexp.MustCompile("`-([a-z][\\w-]+)").FindAllStringSubmatch(open, -1) {
		require.True(t, exist[m[1]], "-%s is no switch", m[1])
	}
	config := reflect.TypeFor[ramptest.Config]()
	for _, m := range regexp.MustCompile("\\| `Config\\.(\\w+)` \\|").FindAllStringSubmatch(open, -1) {
		_, exists := config.FieldByName(m[1])
		require.True(t, exists, "ramptest.Config has no %s", m[1])
	}
}

// No document names a command of ramp that is gone, but the changelog, which tells of it.
func TestDocumentsNameCommandsOfRampThatExist(t *testing.T) {
	_, commands, _ := strings.Cut(read(t, "cmd/ramp/main.go"), "\nvar commands = ")
	commands, _, found := strings.Cut(commands, "\n}\n")
	require.True(t, found)
	named := 0
	for _, document := range documents(t) {
		for _, m := range regexp.MustCompile("(?:`|cmd/)ramp ([a-z]+)").FindAllStringSubmatch(read(t, document), -1) {
			named++
			if document != "CHANGELOG.md" && m[1] != "help" && m[1] != "not" { // "ramp not found" is an answer
				assert.True(t, strings.Contains(commands, `"`+m[1]+`": {`), "%s names ramp %s, which does not exist",
					document, m[1])
			}
		}
	}
	require.Greater(t, named, 30)
}

// The page for the day before names alerts that exist.
func TestGoLiveNamesAlertsThatExist(t *testing.T) {
	alerts := read(t, "examples/gameserver/deploy/alerts.yaml")
	names := regexp.MustCompile(`\bRamp[A-Z]\w+`).FindAllString(read(t, "docs/go-live.md"), -1)
	require.Greater(t, len(names), 4)
	for _, name := range names {
		require.Contains(t, alerts, "alert: "+name+"\n")
	}
}

// What a document says a test or a case of the judge shows, that test or case exists for.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	exists := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			exists[m[1]] = true
		}
		return err
	}))
	found := 0
	for _, document := range documents(t) {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(read(t, document), -1) {
			require.True(t, exists[m[1]], "%s names %s, which does not exist", document, m[1])
			found++
		}
	}
	require.Greater(t, found, 50)
}

// The second column of docs/by-hand.md has cases of the judge, and the third a test.
func TestEveryMistakeHasATest(t *testing.T) {
	cases := map[string]bool{}
	for _, c := range judge.Cases() {
		cases[c.ID] = true
	}
	code, rows := regexp.MustCompile("`([^`]+)`"), 0
	for _, line := range strings.Split(read(t, "docs/by-hand.md"), "\n") {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || strings.Trim(columns[1], "- ") == "" || strings.TrimSpace(columns[1]) == "mistake" {
			continue
		}
		rows++
		for _, m := range code.FindAllStringSubmatch(columns[2], -1) {
			assert.True(t, cases[m[1]], "%s is no case of the judge", m[1])
		}
		assert.Contains(t, columns[3], "`Test", line)
	}
	require.Greater(t, rows, 20)
}

// Every exported name that the documents mention is in the golden file of its package.
func TestDocumentsNameWhatExists(t *testing.T) {
	names, types, members := map[string]bool{}, map[string]bool{}, map[string]bool{}
	word := regexp.MustCompile(`\b[A-Z]\w*`)
	method := regexp.MustCompile(`^func \((?:\w+ )?\*?(\w+)\) (\w+)`)
	inside := ""
	for _, line := range strings.Split(read(t, goldenAPI(".")), "\n") {
		for _, name := range word.FindAllString(line, -1) {
			names[name] = true
		}
		if m := method.FindStringSubmatch(line); m != nil {
			members[m[1]+"."+m[2]] = true
		}
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "type "):
			inside = word.FindString(fields[1])
			types[inside] = true
		case strings.HasPrefix(line, "\t") && inside != "":
			for _, field := range strings.Split(line, ",") { // A, B uint64
				members[inside+"."+word.FindString(field)] = true
			}
		default:
			inside = ""
		}
	}
	found, exported := 0, map[string]string{}
	for _, dir := range publicPackages(t) {
		name := path.Base(strings.Replace(dir, ".", "ramp", 1))
		exported[name] = read(t, goldenAPI(dir))
	}
	for _, document := range documents(t) {
		text := read(t, document)
		for _, m := range regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`).FindAllStringSubmatch(text, -1) {
			if api, ok := exported[m[1]]; ok {
				require.Regexp(t, `\b`+m[2]+`\b`, api, "%s names %s, which does not exist", document, m[0])
				found++
			}
		}
		for _, m := range regexp.MustCompile("`([A-Z]\\w*)\\.([A-Z]\\w*)").FindAllStringSubmatch(text, -1) {
			if types[m[1]] {
				require.True(t, members[m[1]+"."+m[2]], "%s names %s.%s, which does not exist", document, m[1], m[2])
				found++
			}
		}
	}
	for _, m := range regexp.MustCompile("`([A-Z]\\w*)`").FindAllStringSubmatch(read(t, "README.md"), -1) {
		require.True(t, names[m[1]], "README.md names %s, which does not exist", m[1])
		found++
	}
	require.Greater(t, found, 100)
}

// The package, support, rampbooks and rampsql log every record that docs/on-call.md explains.
func TestOperationsNamesTheLogRecords(t *testing.T) {
	source := packageSource(t)
	for _, dir := range []string{"support", "rampbooks", "rampsql"} {
		for _, file := range sourcesOf(t, dir) {
			source += read(t, dir+"/"+file)
		}
	}
	records := regexp.MustCompile("`(ramp: [a-z ]+)`").FindAllStringSubmatch(read(t, "docs/on-call.md"), -1)
	require.Greater(t, len(records), 8)
	for _, m := range records {
		require.True(t, strings.Contains(source, `"`+m[1]+`"`), "nothing logs %s", m[1])
	}
}
