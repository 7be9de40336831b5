package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	asMain       = "GAMESERVER_TEST_MAIN"
	hmacKey      = "a key of these tests"
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	token        = "0x00000000000000000000000000000000000070c3"
)

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" { // this process is a game server that a test started
		main()
		return
	}
	// The databases of tests are not durable, and each command would warn of that, in no test's name.
	slog.SetDefault(quiet)
	// Most tests wait for a server, a proxy or a time limit, so more of them run at the same time than
	// there are processors.
	flag.Parse()
	own := true
	flag.Visit(func(f *flag.Flag) { own = own && f.Name != "test.parallel" })
	if own {
		_ = flag.Set("test.parallel", "4") // never fails
	}
	os.Exit(m.Run())
}

// eachDatabase runs a test on a new database of each kind, and passes it the value of
// -db. The script internal/test/databases starts the database servers.
func eachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Parallel()
	eachDatabaseAlone(t, func(t *testing.T, address string) { t.Parallel(); test(t, address) })
}

// eachDatabaseAlone is for a test that changes the environment of this process, or has prepared something
// for all databases.
func eachDatabaseAlone(t *testing.T, test func(t *testing.T, address string)) {
	name := "game_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	t.Run("SQLite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "a game? 100%.db")) })
	t.Run("PostgreSQL", func(t *testing.T) {
		admin := needs(t, "RAMP_TEST_POSTGRESQL")
		create(t, "pgx", admin, name)
		u := must(url.Parse(admin))(t)
		u.Path = "/" + name
		test(t, u.String())
	})
	t.Run("MySQL", func(t *testing.T) {
		admin := needs(t, "RAMP_TEST_MYSQL")
		create(t, "mysql", admin, name)
		config := must(mysql.ParseDSN(admin))(t)
		config.DBName = name
		test(t, "mysql:"+config.FormatDSN())
	})
}

// A new server needs its tables, and says so. It may not create them.
func TestAServerStartsAfterItsMigration(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite:") {
			t.Skip("a server creates its own file")
		}
		_, _, err := command(t, map[string]string{"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey},
			"-addr", "127.0.0.1:0", "-db", address, "-project", "project", "-token", token, "-network", "testnet")
		says(t, fmt.Sprint(err), "gameserver migrate")
		migrated(t, address)
		migrated(t, address) // again
		deploy(t, address)
	})
}

// restricted makes a user of a database with some rights on some tables, on MariaDB on all,
// and returns its address for the user. The password is in the environment, and not in the
// arguments.
func restricted(t *testing.T, address, rights, tables string) string {
	t.Helper()
	const password = "a password"
	user := "user_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:8]
	db := handle(t, address) // whose password is in its address
	t.Setenv("PGPASSWORD", password)
	t.Setenv("MYSQL_PWD", password)
	grant := func(remove string, statements ...string) {
		t.Cleanup(func() { must(db.Exec(remove))(t) }) // the database is dropped later
		for _, statement := range statements {
			must(db.Exec(statement))(t)
		}
	}
	kind, dsn, _ := strings.Cut(address, ":")
	if kind == "mysql" {
		config := must(mysql.ParseDSN(dsn))(t)
		config.User, config.Passwd = user, ""
		grant("DROP USER "+user, "CREATE USER "+user+" IDENTIFIED BY '"+password+"'",
			"GRANT "+rights+" ON "+config.DBName+".* TO "+user)
		return "mysql:" + config.FormatDSN()
	}
	u := must(url.Parse(address))(t)
	name := strings.TrimPrefix(u.Path, "/")
	u.User = url.User(user)
	grant("DROP OWNED BY "+user+"; DROP USER "+user,
		"CREATE USER "+user+" PASSWORD '"+password+"'", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"GRANT CONNECT ON DATABASE "+name+" TO "+user, "GRANT "+rights+" ON "+tables+" TO "+user)
	return u.String()
}

// The server's user may not create, delete or drop anything.
func TestAServerNeedsToSelectInsertAndUpdateOnly(t *testing.T) {
	eachDatabaseAlone(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite:") {
			t.Skip("it has no users")
		}
		migrated(t, address)
		db := handle(t, address)
		says(t, document(t, "operations.md"), "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO game;")
		backdate(t, address)
		dsn := restricted(t, address, "SELECT, INSERT, UPDATE", "ALL TABLES IN SCHEMA public")
		p := &process{t: t, env: real(),
			args: []string{"-addr", "127.0.0.1:0", "-db", dsn, "-connections", "3", "-project", "project", "-token",
				token, "-network", "testnet", "-any-rate"}}
		p.start()
		defer p.kill()
		service, client := serviceOf(t, p.url)
		alice, gold := login(t, p.url, "alice"), item(t, "item_gold", "100")
		order := must(service.Mint(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1),
			ramptest.TransactionFails()))(t)
		must(service.Burn(t.Context(), initialize(t, client, gold), alice, ramp.NewAmount(1)))(t)
		service.Advance(time.Minute)
		owns(t, service, alice, "1000100/10000")
		if service.Deliver(t.Context(), order, ramptest.Succeeded) == nil { // a conflict, which is stored
			t.Error("the other outcome was accepted")
		}
		turn(t, "close", dsn)
		said(t, "resolve", "-db", dsn, "-who", "alice", "-reason", "case 17", order.UUID.String())
		must(db.Exec("DROP TABLE conflicts"))(t)
	})
}

// A right that the user lacks is told as such, and not as a database that needs a migration.
func TestAMissingRightIsTold(t *testing.T) {
	eachDatabaseAlone(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite:") {
			t.Skip("it has no users")
		}
		migrated(t, address)
		_, _, err := desk(t, nil, "list", "-db", restricted(t, address, "INSERT", "sessions"))
		says(t, fmt.Sprint(err), "lacks a right, which a GRANT gives", "denied")
	})
}

// A flag that the arguments do not set comes from the environment, but none that decides about an order or
// switches a check off.
func TestFlagsOfTheEnvironment(t *testing.T) {
	env := map[string]string{"RAMP_DB": "sqlite:" + filepath.Join(t.TempDir(), "game.db"), "RAMP_ANY_RATE": "no",
		"RAMP_EARLY": "no"}
	_, _, err := command(t, env, "migrate")
	check(t, err)
	printed, _, err := command(t, env, "orders", "count")
	check(t, err)
	says(t, printed, "WAITING LONGER THAN")
	env["RAMP_CHAIN_ID"] = "none"
	_, _, err = command(t, env, "orders", "count")
	says(t, fmt.Sprint(err), "RAMP_CHAIN_ID: ")
	_, help, _ := command(t, env, "orders", "abandon", "-help")
	says(t, help, "[RAMP_DB]", "[RAMP_CHAIN_ID]", "[RAMP_PAYERS]")
	for _, variable := range []string{"RAMP_EARLY", "RAMP_AGAINST_EVIDENCE", "RAMP_ANY_RATE", "RAMP_WHO"} {
		if strings.Contains(help, variable) {
			t.Errorf("%s would decide", variable)
		}
	}
	_, _, err = command(t, map[string]string{"RAMP_DB": env["RAMP_DB"]}, "orders", "list", "-player", "alcie")
	says(t, fmt.Sprint(err), `there is no player "alcie"`)
}

// Whoever answers players needs to see their orders, and to change nothing.
func TestLookingNeedsToSelectOnly(t *testing.T) {
	eachDatabaseAlone(t, func(t *testing.T, address string) {
		if strings.HasPrefix(address, "sqlite:") {
			t.Skip("it has no users")
		}
		grant := regexp.MustCompile(`GRANT SELECT ON ([^;]+) TO support;`).FindStringSubmatch(document(t, "on-call.md"))
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		alice := login(t, p.url, "alice")
		mint := func(faults ...ramptest.Fault) *ramptest.PlacedOrder {
			id := initialize(t, client, item(t, "item_gold", "100"))
			return must(service.Mint(t.Context(), id, alice, ramp.NewAmount(1), faults...))(t)
		}
		order, silent := mint(), mint(ramptest.ResultNever())
		// The books end with a final block, 64 blocks behind the newest, and the chain's clock stands still. So
		// that block must be later than the end of the order by the server's clock, also on a slow machine.
		service.Advance(2 * minutesAgo)
		if service.Deliver(t.Context(), order, ramptest.Failed) == nil {
			t.Error("the other outcome was accepted")
		}
		node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
		dsn := restricted(t, address, "SELECT", grant[1])
		log := filepath.Join(t.TempDir(), "log")
		record := `{"msg":"ramp: call","uuid":"` + silent.UUID.String() + `","state":"succeeded"}`
		check(t, os.WriteFile(log, []byte(record), 0o600))
		chain := []string{"-db", dsn, "-chain-id", "7002", "-payers", service.Payer().Hex(), "-contracts", token,
			"-network", "testnet"}
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"orders", "list", "-db", dsn, "-older", "-1s"}, silent.UUID.String()},
			{[]string{"orders", "list", "-db", dsn, "-player", "alice"}, order.UUID.String()},
			{[]string{"orders", "find", "-db", dsn, "alice"}, silent.UUID.String()},
			{[]string{"orders", "count", "-db", dsn}, "WAITING LONGER THAN"},
			{[]string{"orders", "conflicts", "-db", dsn}, order.UUID.String()},
			{[]string{"orders", "decisions", "-db", dsn}, "WHO DECIDED, AND WHY"},
			{[]string{"orders", "missing", "-db", dsn, log}, silent.UUID.String() + " waits again"},
			{slices.Concat([]string{"orders", "show"}, chain, []string{silent.UUID.String()}), "proves that"},
		} {
			printed, _, err := command(t, node, c.args...)
			check(t, err)
			says(t, printed, c.want)
		}
		printed, _, err := command(t, node, slices.Concat([]string{"reconcile", "-token", token}, chain)...)
		check(t, err)
		says(t, printed, "findings: 0")
		decision := []string{"-who", "bob", "-reason", "case 44", "-tx", silent.TxHash.Hex(), silent.UUID.String()}
		_, _, err = desk(t, node, slices.Concat([]string{"finish"}, chain, decision)...)
		says(t, fmt.Sprint(err), "denied")
	})
}

// An index that a release adds is built while orders are written, although a transaction
// keeps the build waiting.
func TestAMigrationDoesNotBlockWrites(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		migrated(t, address)
		db := handle(t, address)
		switch kind, _, _ := strings.Cut(address, ":"); kind {
		case "sqlite":
			t.Skip("it has one writer at a time")
		case "mysql": // whose schema adds no index yet; LOCK=NONE fails if writes would have to wait
			must(db.Exec("ALTER TABLE ramp_orders DROP INDEX ramp_orders_ended"))(t)
			must(db.Exec(
				"ALTER TABLE ramp_orders ADD INDEX ramp_orders_ended (finished_at, uuid), ALGORITHM=INPLACE, " +
					"LOCK=NONE"))(t)
			return
		}
		must(db.Exec("DROP INDEX ramp_orders_ended"))(t)
		insert := func(db interface {
			Exec(string, ...any) (sql.Result, error)
		}) {
			t.Helper()
			must(db.Exec(
				`INSERT INTO ramp_orders (uuid, claim, state, direction, project_id, session_id, user_address,` +
					` digest, intent, reason, accepted_at) SELECT gen_random_uuid(), 'c', 'accepted', 'mint', 'p',` +
					` 's', 'u', 'd', '{}', '', 0`))(t)
		}
		open := must(db.Begin())(t)
		insert(open)
		ended := make(chan error, 1)
		go func() {
			_, _, err := command(t, nil, "migrate", "-db", address)
			ended <- err
		}()
		for waits := 0; waits == 0; { // until the build waits for the open transaction
			check(t, db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"+
				" AND query LIKE '%CREATE INDEX%ramp_orders_ended%' AND wait_event_type = 'Lock'").Scan(&waits))
			select {
			case err := <-ended:
				t.Fatalf("the migration ended before: %v", err)
			default:
			}
		}
		must(db.Exec("SET lock_timeout = '5s'"))(t)
		insert(db)
		check(t, open.Commit())
		check(t, <-ended)
		var valid bool
		check(t,
			db.QueryRow("SELECT indisvalid FROM pg_index WHERE indexrelid = 'ramp_orders_ended'::regclass").Scan(
				&valid))
		equal(t, "whether the index is valid", valid, true)
	})
}

// document reads a document of the package. A copy of this example has none.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Skip("*** NOT TESTED: this is a copy without the documents of the package ***")
	}
	return string(text)
}

func needs(t *testing.T, env string) string {
	t.Helper()
	value := os.Getenv(env)
	if value == "" {
		t.Skip("*** NOT TESTED: " + env + " is not set ***")
	}
	return value
}

func create(t *testing.T, driver, admin, name string) {
	t.Helper()
	db := must(sql.Open(driver, admin))(t)
	must(db.Exec("CREATE DATABASE " + name))(t)
	t.Cleanup(func() {
		must(db.Exec("DROP DATABASE " + name))(t)
		check(t, db.Close())
	})
}

// handle opens a server's database for the test.
func handle(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, _, err := openDatabase(address, 5)
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

// equal fails the test unless what it got is what it wants.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

// says fails the test unless a text has all parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

// await waits until a condition holds.
func await(t *testing.T, holds func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

// statusOf makes a GET request.
func statusOf(t *testing.T, client *http.Client, address string) int {
	t.Helper()
	response := must(client.Get(address))(t)
	check(t, response.Body.Close())
	return response.StatusCode
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return value
	}
}

// process is a game server in a process of its own.
type process struct {
	t       *testing.T
	args    []string
	env     []string
	command *exec.Cmd
	url     string
	printed *bufio.Reader
	log     *logBuffer
	pages   bool      // calls need the tokens of pages
	stderr  io.Writer // where the log goes; nil means to log
}

// logBuffer holds what a process has logged. A test may read it while the process runs.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *logBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, text...)
	return len(text), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// find waits for a match of a pattern, and returns its first group.
func (b *logBuffer) find(t *testing.T, pattern string) string {
	t.Helper()
	var found []string
	match := regexp.MustCompile(pattern)
	await(t, func() bool { found = match.FindStringSubmatch(b.String()); return found != nil },
		func() string { return fmt.Sprintf("no %s in\n%s", pattern, b) })
	return found[1]
}

// start runs a server that emulates the service.
func start(t *testing.T, address string, args ...string) *process {
	t.Helper()
	return newProcess(t, address, nil, args)
}

// deploy runs a server that has keys and therefore no emulator.
func deploy(t *testing.T, address string, args ...string) *process {
	t.Helper()
	return newProcess(t, address, real(),
		append([]string{"-project", "project", "-token", token, "-network", "testnet"}, args...))
}

func newProcess(t *testing.T, address string, env, args []string) *process {
	t.Helper()
	if env != nil { // without, the server does it
		migrated(t, address)
	}
	p := &process{t: t, args: append([]string{"-addr", "127.0.0.1:0", "-db", address}, args...), env: env}
	p.start()
	t.Cleanup(p.kill)
	return p
}

// migrated creates the tables, as an operator does before a deployment.
func migrated(t *testing.T, address string) {
	t.Helper()
	_, _, err := command(t, nil, "migrate", "-db", address)
	check(t, err)
}

func (p *process) start() {
	p.t.Helper()
	args := p.args
	if !p.pages {
		args = append([]string{"-any-page"}, args...)
	}
	p.command = exec.Command(os.Args[0], args...)
	p.command.Env = append(os.Environ(), append(p.env, asMain+"=1")...)
	p.log = &logBuffer{}
	p.command.Stderr = p.log
	if p.stderr != nil {
		p.command.Stderr = p.stderr
	}
	out := must(p.command.StdoutPipe())(p.t)
	check(p.t, p.command.Start())
	p.printed = bufio.NewReader(out)
	ready, err := p.printed.ReadString('\n')
	if err != nil {
		_ = p.command.Wait()
		p.t.Fatalf("no ready line: %v\n%s", err, p.log)
	}
	words := strings.Fields(ready)
	if len(words) < 3 || words[0] != "ready" {
		p.t.Fatalf("the ready line is %q", ready)
	}
	p.url = words[2]
}

// stop lets the server end what it does.
func (p *process) stop() {
	p.t.Helper()
	check(p.t, p.command.Process.Signal(os.Interrupt))
	check(p.t, p.command.Wait())
}

// kill sends SIGKILL.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// call posts JSON to the game and reads its answer.
func call(t *testing.T, address string, body, into any) int {
	t.Helper()
	b := must(json.Marshal(body))(t)
	response := must(http.Post(address, "application/json", bytes.NewReader(b)))(t)
	defer response.Body.Close()
	b = must(io.ReadAll(response.Body))(t)
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%v in %q", err, b)
	}
	return response.StatusCode
}

func login(t *testing.T, server, player string) ramp.Session {
	t.Helper()
	var s struct{ SessionID, AccessToken string }
	if status := call(t, server+"/login", map[string]string{"player": player}, &s); status != http.StatusOK {
		t.Fatalf("login answered %d", status)
	}
	return ramp.Session{ID: s.SessionID, Token: ramp.NewAccessToken(s.AccessToken)}
}

// real is the environment of a server that has keys and therefore no emulator.
func real() []string {
	return []string{"RAMP_HMAC_KEY=" + hmacKey, "RAMP_VALIDATOR_KEY=" + validatorKey}
}

// serviceOf plays the service for a server with the keys of real.
func serviceOf(t *testing.T, game string, audit ...ramptest.Audit) (*ramptest.Service, *ramp.Client) {
	t.Helper()
	return serviceWith(t, hmacKey, validatorKey,
		ramptest.Config{PerOrder: true, Game: game, Audit: cmp.Or(append(audit, 0)...)})
}

// minutesAgo is when the clock of the service begins, because books end two minutes before now.
const minutesAgo = 5 * time.Minute

// backdate moves what has just ended or was decided in a database to the time of the service.
func backdate(t *testing.T, address string) {
	t.Helper()
	db := handle(t, address)
	for _, statement := range []string{
		"UPDATE ramp_orders SET accepted_at = accepted_at - %[1]d, finished_at = finished_at - %[1]d" +
			" WHERE finished_at > %[2]d", "UPDATE entries SET at = at - %[1]d WHERE at > %[2]d"} {
		must(db.Exec(fmt.Sprintf(statement, minutesAgo.Milliseconds(),
			time.Now().Add(-minutesAgo/2).UnixMilli())))(t)
	}
}

// serviceWith plays the service with the keys that its console has.
func serviceWith(t *testing.T, hmac, validator string, config ramptest.Config) (*ramptest.Service, *ramp.Client) {
	t.Helper()
	if config.Standalone.Speed == 0 { // one that runs is compared with the time
		config.Epoch = time.Now().Add(-minutesAgo)
	}
	config.Key, config.Validator = must(ramp.TextKey(hmac))(t), must(ramp.NewKeySigner(validator))(t).Address()
	service := ramptest.Start(t, config)
	return service, must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: config.Key}))(t)
}

// initialize asks for a UUID to trade items for the token.
func initialize(t *testing.T, client *ramp.Client, items ...ramp.AssetAmount) uuid.UUID {
	t.Helper()
	return initializeFor(t, client, token, items...)
}

func initializeFor(t *testing.T, client *ramp.Client, token string, items ...ramp.AssetAmount) uuid.UUID {
	t.Helper()
	var list []ramp.Item
	for _, item := range items {
		list = append(list, ramp.Item{ID: item.ID, Amount: item.Amount, IconURL: "https://example.com/icon.png"})
	}
	return must(client.Initialize(t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project", Token: token, Materials: list, Outputs: list}}))(t).UUID
}

func item(t *testing.T, id, text string) ramp.AssetAmount {
	t.Helper()
	return ramp.AssetAmount{ID: id, Amount: amount(t, text)}
}

// owned returns the player's assets as the service reads them, as gold/gems.
func owned(t *testing.T, service *ramptest.Service, s ramp.Session) string {
	t.Helper()
	player := must(service.Assets(t.Context(), s))(t)
	balances := map[string]ramp.Amount{}
	for _, a := range player.Assets {
		balances[a.ID] = a.Balance
	}
	return balances["item_gold"].String() + "/" + balances["item_gem"].String()
}

func owns(t *testing.T, service *ramptest.Service, s ramp.Session, want string) {
	t.Helper()
	equal(t, "what the player owns", owned(t, service, s), want)
}

// codeOf returns the code with which an order was rejected, or "".
func codeOf(err error) ramp.Code {
	var rejected *ramptest.Rejection
	if err != nil && !errors.As(err, &rejected) {
		return ramp.Code(err.Error())
	} else if err != nil {
		return rejected.Code
	}
	return ""
}

func confirmed(t *testing.T, service *ramptest.Service, order *ramptest.PlacedOrder) {
	t.Helper()
	if state := service.State(order); state != ramptest.Confirmed {
		t.Errorf("the order is %s\n%s", state, service.Timeline())
	}
}

func TestWithoutAnySettingTheServiceIsEmulated(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := start(t, address)
		s := login(t, p.url, "alice")
		response := must(http.Get(p.url + "/play?player=alice"))(t)
		view := must(io.ReadAll(response.Body))(t)
		check(t, response.Body.Close())
		if response.StatusCode != 200 || !strings.HasSuffix(response.Request.URL.Path, "/exchange") ||
			!strings.Contains(string(view), "item_gold") {
			t.Errorf("/play led to %s with %d: %s", response.Request.URL.Path, response.StatusCode, view)
		}
		var page struct {
			URL       string
			ExpiresIn int
		}
		if status := call(t, p.url+"/exchange", map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()},
			&page); status != 200 || !strings.Contains(page.URL, "/exchange?uuid=") {
			t.Errorf("/exchange answered %d %q", status, page.URL)
		}
		if page.ExpiresIn < 240 || page.ExpiresIn > 300 { // seconds, which need no right clock
			t.Errorf("the page expires in %d", page.ExpiresIn)
		}
		p.kill()
		if strings.Contains(p.log.String(), s.Token.Reveal()) {
			t.Error("the log holds an access token")
		}
	})
}

func TestWhatCannotBeKeptExactlyIsRejected(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		s := login(t, p.url, "alice")
		for _, c := range []struct {
			amount, id string
			mint, burn ramp.Code // "" approves
		}{
			{"0.5", "item_gold", "INVALID_AMOUNT", "INVALID_AMOUNT"},
			{"1e-30", "item_gold", "INVALID_AMOUNT", "INVALID_AMOUNT"},
			{"1000001", "item_gold", "INVALID_BALANCE", ""},
			{"9223372036854775807", "item_gold", "INVALID_AMOUNT", "INVALID_AMOUNT"},
			{"1e30", "item_gold", "INVALID_AMOUNT", "INVALID_AMOUNT"},
			{"1", "item_shield", "INVALID_ITEM", "INVALID_ITEM"},
		} {
			_, err := service.Mint(t.Context(), initialize(t, client, item(t, c.id, c.amount)), s, ramp.NewAmount(1))
			equal(t, "a mint of "+c.amount+" "+c.id, codeOf(err), c.mint)
			_, err = service.Burn(t.Context(), initialize(t, client, item(t, c.id, c.amount)), s, ramp.NewAmount(1))
			equal(t, "a burn of "+c.amount+" "+c.id, codeOf(err), c.burn)
		}
		owns(t, service, s, "1000000/10000")
		service.Advance(time.Minute)
	})
}

// What is stolen from the database opens no session. The judge tries the tokens of others.
func TestATokenIsStoredAsItsHash(t *testing.T) {
	game, _ := open(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	first := loggedIn(t, game, "alice")
	stored := must(game.column(t.Context(), game.db, "SELECT token_hash FROM sessions WHERE id = ?", first.ID))(t)
	if len(stored) != 1 || stored[0] != hash(first.Token.Reveal()) || game.loggedIn(t.Context(), first) != nil {
		t.Errorf("stored is %q", stored)
	}
	first.Token = ramp.NewAccessToken(stored[0])
	if game.loggedIn(t.Context(), first) == nil {
		t.Error("the hash is a token")
	}
	alice, bob := loggedIn(t, game, "alice"), loggedIn(t, game, "bob")
	owns := must(game.Assets(t.Context(), alice))(t)
	if owns.PlayerID != "alice" || len(owns.Assets) != 3 {
		t.Errorf("alice owns %+v", owns)
	}
	must(game.db.Exec("UPDATE sessions SET expires_at = 1 WHERE id = '" + bob.ID + "'"))(t)
	if game.loggedIn(t.Context(), bob) == nil || game.loggedIn(t.Context(), alice) != nil {
		t.Error("an expired token opens a session, or another does not")
	}
}

// What cannot work is said when a command or a server starts, and not when a player pays.
func TestWhatCannotWorkIsSaidAtOnce(t *testing.T) {
	service, _ := serviceOf(t, "http://127.0.0.1:1") // its chain is 7002
	mistyped := filepath.Join(t.TempDir(), "mistyped.db")
	node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
	chain := "-network testnet -project project -token " + token + " -chain-id 7002 "
	decision := " -db DB -who bob -reason x "
	project := " -project p -network testnet"
	for _, c := range []struct {
		args string
		env  map[string]string // nil has the keys only
		want string
	}{
		{"serve", nil, `there is no command "serve": use orders list|`},
		{"orders", nil, `there is no command "orders": use orders list|`},
		{"orders -help", nil, `there is no command "orders": use orders list|`},
		{"orders forget", nil, `there is no command "forget"`},
		{"orders conflicts -db DB again", nil, `unexpected argument "again"`},
		{"orders show -db DB", nil, "one argument is required"},
		{"orders list -db sqlite:" + mistyped, nil, "no such file"},
		{"orders finish" + decision + "-tx 0x" + strings.Repeat("1", 64) + " " + uuid.NewString(), nil,
			"RAMP_RPC_URL and -chain-id are required"},
		{"orders abandon" + decision + uuid.NewString(), nil, "unknown order"},
		{"orders resolve" + decision + uuid.NewString(), nil, "has no open conflict"},
		{"orders resolve" + decision, nil, "a UUID or a transaction to resolve"},
		{"shop close -db DB -who alice", nil, "-who and -reason are required"},
		{"orders prune -direction mint -before 2020-01-01 -db DB -who alice", nil, "-who and -reason are required"},
		{"orders prune -before 2020-01-01" + project + decision, nil, "direction must be"},
		{"orders prune -direction mint" + decision, nil, `cannot parse ""`},
		{"orders prune -direction mint -before 2100-01-01" + project + decision, nil, "at least 7 days ago"},
		{"reconcile -db DB -token " + token, nil, "RAMP_RPC_URL and -chain-id are required"},
		{"reconcile -db DB", nil, "-token is required"},
		{"-help", nil, "help requested"},
		{"-port 1", nil, "flag provided but not defined: -port"},
		{"-books position " + chain, nil, "RAMP_RPC_URL and -chain-id need each other"},
		{"-books position -network testnet -project project -token " + token, nil,
			"-books needs RAMP_RPC_URL and -chain-id"},
		{"-db oracle://scott:tiger@host -token " + token + " -network testnet -project p", nil, "-db must be"},
		{"-addr nowhere:x -network testnet -project p -token " + token, nil, "listen"},
		{"-project 'p' -network testnet -token " + token, nil, "-project has quotes around it"},
		{"-project p\u200b -network testnet -token " + token, nil,
			"-project has a character that nobody sees (U+200B)"},
		{"", map[string]string{"RAMP_TOKEN": `"` + token + `"`}, "RAMP_TOKEN has quotes around it"},
		{"", map[string]string{"RAMP_VALIDATOR_KEY": ""}, "RAMP_VALIDATOR_KEY"},
		{"", map[string]string{"RAMP_HMAC_KEY_ENCODING": "hex"}, "RAMP_HMAC_KEY_ENCODING"},
		{"", map[string]string{"RAMP_HMAC_KEY": "tiger!", "RAMP_HMAC_KEY_ENCODING": "base64url"}, "base64url"},
		{"", map[string]string{"RAMP_HMAC_KEY_PREVIOUS": " "}, "RAMP_HMAC_KEY_PREVIOUS"},
		{"", nil, "-token is required"},
		{"-network testnet -token " + token, nil, "TermsConfig.ProjectID is required"},
		{"-network Testnet -token " + token, nil, "TermsConfig.Network must be mainnet or testnet"},
		{"-network testnet -token 70c3", nil, `invalid value "70c3" for flag -token`},
		{"-network testnet -project project -payers " + token + " -token " + token, nil,
			"-payers, -contracts, -any-failure and -decimals mean nothing without RAMP_RPC_URL and -chain-id"},
		{"-payers 0x1", nil, `invalid value "0x1" for flag -payers`},
		{chain + "-decimals 18", node, "-payers is required, because RAMP_RPC_URL is set"},
		{chain + "-any-failure -decimals 6", node,
			"Config.Decimals is 6 for token " + token + ", but its contract says 18"},
		{chain + "-any-failure -decimals 18 -chain-id 1", node, "its chain ID is 7002, but RPCConfig.ChainID is 1"},
		{chain + "-any-failure", map[string]string{"RAMP_RPC_URL": "tiger"}, "RPCConfig.URL"},
		{"-network testnet -project project -token " + token, node, "RAMP_RPC_URL and -chain-id need each other"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(c.args, "DB", ready(t)))
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				args = append([]string{"-addr=127.0.0.1:0", "-db=" + ready(t)}, args...)
			}
			env := map[string]string{"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey}
			maps.Copy(env, c.env)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // stops the server if it starts by mistake
			defer cancel()
			var out bytes.Buffer
			err := run(ctx, args, func(name string) string { return env[name] }, &out, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "tiger") ||
				strings.Contains(out.String(), "ready") {
				t.Errorf("%v, having printed %q", err, &out)
			}
		})
	}
	if _, err := os.Stat(mistyped); err == nil {
		t.Error("a database was created")
	}
}

func TestATableWithoutAColumnIsSaidAtTheStart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		newProcess(t, address, nil, nil).kill()
		must(handle(t, address).Exec("ALTER TABLE ramp_orders DROP COLUMN reason"))(t)
		_, _, err := command(t, nil, "-addr", "127.0.0.1:0", "-db", address)
		says(t, fmt.Sprint(err), "ramp: check: table ramp_orders", "reason")
	})
}
