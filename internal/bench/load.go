package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
)

const loadUsage = `usage: go -C internal/bench run . load [-db sqlite:PATH|postgres://…] [-for 1m] [-workers 16] [-players 100] [-byhand]

Runs examples/gameserver on an empty database under a mix of mints, burns,
failures and duplicates, and in turns the bare database with the same statements,
or, with -byhand, a server without the SDK that makes the same statements.
`

const (
	loadKey       = "a key of the load"
	loadValidator = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	goldOfOrder   = 100
)

// loadMain runs the command load, and prints its report.
func loadMain(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), loadUsage); flags.PrintDefaults() }
	address := flags.String("db", "", "empty `database`; defaults to SQLite in a new directory")
	duration := flags.Duration("for", time.Minute, "`duration` of the load; the bare database takes another third of it")
	workers := flags.Int("workers", 16, "`number` of concurrent orders")
	players := flags.Int("players", 100, "`number` of players")
	byHand := flags.Bool("byhand", false, "compare the CPU time of gameserver and PostgreSQL with that of a server without the SDK")
	_ = flags.Parse(args)
	if flags.NArg() > 0 || *byHand && !strings.HasPrefix(*address, "postgres") || *workers < 1 || *players < 1 {
		flags.Usage()
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "ramp-load-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if *address == "" {
		*address = "sqlite:" + filepath.Join(dir, "game.db")
	}
	l := &load{dir: dir, address: *address, workers: *workers, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 4 * *workers}, Timeout: 30 * time.Second}}
	if l.key, err = ramp.TextKey(loadKey); err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	defer l.db.Close()
	statements, err := l.statements(gameserver, nil)
	if err != nil {
		return err
	}
	if err := l.start(l.address, nil); err != nil {
		return err
	}
	defer l.stop()
	for n := range 2 * *players {
		if err := l.login(fmt.Sprintf("player-%d", n)); err != nil {
			return err
		}
	}
	l.players, l.bystanders = l.players[:*players], l.players[*players:]
	if *byHand {
		return l.compare(*duration, statements, out)
	}
	return l.report(*duration, statements, out)
}

// load is a game server under load and its expected state.
type load struct {
	dir, address string
	postgres     bool
	db           *sql.DB // the server's database, opened separately
	workers      int
	key          ramp.HMACKey
	http         *http.Client
	source       string // directory of the server; "" means gameserver
	command      *exec.Cmd
	url          string
	wire         net.Listener // counts statements; nil if they are not counted there
	players      []*loadPlayer
	bystanders   []*loadPlayer // players of the orders on the bare database

	bareOrders                                 atomic.Int64
	orders, mints, burns, failures, duplicates atomic.Int64
	signatures                                 atomic.Int64 // in answers
	mu                                         sync.Mutex
	validates, results, whole                  []time.Duration
}

// loadPlayer is a player and the expected balance of their gold.
type loadPlayer struct {
	session, token string
	gold           atomic.Int64
}

func (l *load) open() (err error) {
	path, sqlite := strings.CutPrefix(l.address, "sqlite:")
	l.postgres = !sqlite
	if sqlite {
		l.db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
		if err == nil {
			l.db.SetMaxOpenConns(1)
		}
		return err
	}
	l.db, err = sql.Open("pgx", l.address)
	if err == nil {
		l.db.SetMaxOpenConns(20)
		l.db.SetMaxIdleConns(20)
	}
	return err
}

// gameserver is the directory of the server.
const gameserver = "../../examples/gameserver"

// start builds the server as its Dockerfile does, and runs it in a process of its own.
// The process inherits counted, if it is not nil.
func (l *load) start(address string, counted *os.File, buildFlags ...string) error {
	source := cmp.Or(l.source, gameserver)
	binary := filepath.Join(l.dir, filepath.Base(source))
	build := exec.Command("go", slices.Concat([]string{"-C", source, "build", "-ldflags=-s -w", "-o", binary}, buildFlags, []string{"."})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // without the caller's flags, such as -race
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	l.command = exec.Command(binary, "-addr", "127.0.0.1:0", "-db", address)
	if source == gameserver {
		if out, err := exec.Command(binary, "migrate", "-db", address).CombinedOutput(); err != nil && counted == nil { // on SQLite, the server does it
			return fmt.Errorf("create the tables: %w\n%s", err, out)
		}
		l.command.Args = append(l.command.Args, "-token", tokenAddress, "-network", "testnet", "-any-rate")
	}
	l.command.Env = append(os.Environ(), "RAMP_HMAC_KEY="+loadKey, "RAMP_VALIDATOR_KEY="+loadValidator)
	if counted != nil {
		l.command.ExtraFiles = []*os.File{counted} // as sqlitecount.FD
	}
	l.command.Stderr = io.Discard // it logs every call, as it would in production
	out, err := l.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.command.Start(); err != nil {
		return err
	}
	slow := time.AfterFunc(time.Minute, func() { _ = l.command.Process.Kill() })
	defer slow.Stop()
	ready, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(ready)
	if err != nil || len(words) < 3 {
		return fmt.Errorf("the server does not start: %q", ready)
	}
	l.url = words[2]
	return nil
}

func (l *load) stop() {
	if l.command != nil && l.command.Process != nil {
		_ = l.command.Process.Signal(os.Interrupt)
		_ = l.command.Wait()
	}
	if l.wire != nil {
		_ = l.wire.Close()
	}
}

func (l *load) login(player string) error {
	body, _ := json.Marshal(map[string]string{"player": player})
	response, err := l.http.Post(l.url+"/login", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var s struct{ SessionID, AccessToken string }
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil || response.StatusCode != 200 {
		return fmt.Errorf("login: HTTP %d, %w", response.StatusCode, err)
	}
	p := &loadPlayer{session: s.SessionID, token: s.AccessToken}
	p.gold.Store(1_000_000) // what a new player of gameserver owns
	l.players = append(l.players, p)
	return nil
}

// order runs one order from validate to result. Of ten orders, on average, five are
// burns, two fail, two have a duplicate validate, and three have a duplicate result.
// Half of the duplicates are concurrent.
func (l *load) order() error {
	p := l.players[mathrand.IntN(len(l.players))]
	burn, fails := mathrand.IntN(2) == 0, mathrand.IntN(10) < 2
	begun := time.Now()
	validate, result := orderBodies(p.session, burn, fails)
	took, err := l.repeat(p, ramp.PathValidate, validate, mathrand.IntN(10) < 2)
	if err != nil {
		return err
	}
	took2, err := l.repeat(p, ramp.PathResult, result, mathrand.IntN(10) < 3)
	if err != nil {
		return err
	}
	whole := time.Since(begun)
	l.orders.Add(1)
	if fails {
		l.failures.Add(1)
	}
	switch {
	case burn && !fails:
		p.gold.Add(goldOfOrder)
	case !burn && !fails:
		p.gold.Add(-goldOfOrder)
	}
	if burn {
		l.burns.Add(1)
	} else {
		l.mints.Add(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.validates, l.results, l.whole = append(l.validates, took), append(l.results, took2), append(l.whole, whole)
	return nil
}

// orderBodies returns the bodies of the two calls of a new order.
func orderBodies(session string, burn, fails bool) (validate, result []byte) {
	id := uuid.NewString()
	var digest [32]byte
	_, _ = rand.Read(digest[:])
	asset := fmt.Sprintf(`[{"type":"asset","id":"item_gold","amount":%d}]`, goldOfOrder)
	token := `[{"type":"ERC20","id":"` + tokenAddress + `","amount":1}]`
	intent := `{"method":"mint","type":"assemble","from":` + asset + `,"to":` + token + `,"target_candidate":{}}`
	if burn {
		intent = `{"method":"burn-permit","type":"disassemble","from":` + token + `,"to":` + asset + `,"target_candidate":{}}`
	}
	status := "0x1"
	if fails {
		status = "0x0"
	}
	hash := "0x" + hex.EncodeToString(digest[:])
	wallet := sha256.Sum256([]byte(session)) // a wallet belongs to one player
	validate = fmt.Appendf(nil, `{"user_sig":"0xa9c5","user_address":"0x%x","project_id":"project-1","digest":"%s","uuid":"%s","intent":%s}`,
		wallet[:20], hash, id, intent)
	result = fmt.Appendf(nil, `{"session_id":"%s","uuid":"%s","tx_hash":"%s","receipt":{"type":"0x7","status":"%s","logsBloom":"%s","logs":%s,`+
		`"transactionHash":"%[3]s","blockNumber":"0x12d687"},"intent":%[7]s}`, session, id, hash, status, bloom, transferLogs(2, "0"), intent)
	return validate, result
}

// repeat makes a call once or twice. A second call is made concurrently or afterwards.
// Every call must succeed.
func (l *load) repeat(p *loadPlayer, path string, body []byte, twice bool) (time.Duration, error) {
	if !twice {
		return l.call(p, path, body)
	}
	l.duplicates.Add(1)
	if mathrand.IntN(2) == 0 {
		took, err := l.call(p, path, body)
		if err == nil {
			_, err = l.call(p, path, body)
		}
		return took, err
	}
	other := make(chan error, 1)
	go func() { _, err := l.call(p, path, body); other <- err }()
	took, err := l.call(p, path, body)
	return took, errors.Join(err, <-other)
}

func (l *load) call(p *loadPlayer, path string, body []byte) (time.Duration, error) {
	request, err := http.NewRequest(http.MethodPost, l.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = l.header(p)
	request.Header.Set(ramp.HeaderHMAC, l.key.Sign(body))
	begun := time.Now()
	response, err := l.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	took := time.Since(begun)
	if err == nil && (response.StatusCode != 200 || !bytes.Contains(answer, []byte(`"success":true`))) {
		err = fmt.Errorf("%s: HTTP %d %s", path, response.StatusCode, answer)
	}
	if bytes.Contains(answer, []byte(`"validatorSig":"0x`)) {
		l.signatures.Add(1)
	}
	return took, err
}

func (l *load) header(p *loadPlayer) http.Header {
	return http.Header{"Content-Type": {"application/json"}, ramp.HeaderSession: {p.session}, ramp.HeaderAuthorization: {"Bearer " + p.token}}
}

// during runs work in all workers for the duration, and returns how long it really
// took.
func (l *load) during(duration time.Duration, work func() error) (time.Duration, error) {
	begun := time.Now()
	errs := make(chan error, l.workers)
	for range l.workers {
		go func() {
			for time.Since(begun) < duration {
				if err := work(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var err error
	for range l.workers {
		err = errors.Join(err, <-errs)
	}
	return time.Since(begun), err
}

// report measures the server and the bare database in turns, so that other work on the
// machine slows both alike.
func (l *load) report(duration time.Duration, statements string, out io.Writer) error {
	const rounds = 12
	if _, err := l.during(duration/rounds, l.order); err != nil { // warm up
		return err
	}
	if _, err := l.during(duration/rounds/3, l.bareOrder); err != nil {
		return err
	}
	l.validates, l.results, l.whole = nil, nil, nil
	counted := []*atomic.Int64{&l.orders, &l.mints, &l.burns, &l.failures, &l.duplicates, &l.signatures}
	before := make([]int64, len(counted))
	for i, c := range counted {
		before[i] = c.Load()
	}
	var took, cpu time.Duration
	var memory, growth int64
	var bares, ratios []float64
	for range rounds {
		size, err := l.size()
		if err != nil {
			return err
		}
		cpuBefore, _, err := l.usage()
		if err != nil {
			return err
		}
		orders := l.orders.Load()
		round, err := l.during(duration/rounds, l.order)
		if err != nil {
			return err
		}
		cpuAfter, most, err := l.usage()
		if err != nil {
			return err
		}
		sizeAfter, err := l.size()
		if err != nil {
			return err
		}
		took, cpu, memory, growth = took+round, cpu+cpuAfter-cpuBefore, most, growth+sizeAfter-size
		bareOrders := l.bareOrders.Load()
		bareRound, err := l.during(duration/rounds/3, l.bareOrder)
		if err != nil {
			return err
		}
		bares = append(bares, float64(l.bareOrders.Load()-bareOrders)/bareRound.Seconds())
		ratios = append(ratios, float64(l.orders.Load()-orders)/round.Seconds()/bares[len(bares)-1])
	}
	n := l.orders.Load() - before[0]
	if err := l.booksAreExact(); err != nil {
		return err
	}
	settings, err := l.settings()
	if err != nil {
		return err
	}
	slices.Sort(bares)
	slices.Sort(ratios)
	fmt.Fprintf(out, "%s, %d workers, %d players, %v\n\n", settings, l.workers, len(l.players), took.Round(time.Second))
	fmt.Fprintln(out, "| gameserver | |\n|---|---|")
	fmt.Fprintf(out, "| orders | %d: %d mints, %d burns; %d failed, %d calls came twice |\n", n, l.mints.Load()-before[1],
		l.burns.Load()-before[2], l.failures.Load()-before[3], l.duplicates.Load()-before[4])
	fmt.Fprintf(out, "| orders a second | %.0f |\n", float64(n)/took.Seconds())
	fmt.Fprintf(out, "| the bare database, same statements | %.0f orders a second |\n", bares[rounds/2])
	fmt.Fprintf(out, "| gameserver compared with it | %.2f, quartiles %.2f to %.2f |\n", ratios[rounds/2], ratios[rounds/4], ratios[rounds*3/4])
	fmt.Fprintf(out, "| validate | %s |\n", percentiles(l.validates))
	fmt.Fprintf(out, "| result | %s |\n", percentiles(l.results))
	fmt.Fprintf(out, "| an order, both calls | %s |\n", percentiles(l.whole))
	fmt.Fprintf(out, "| CPU of the server, an order | %v |\n", (cpu / time.Duration(n)).Round(time.Microsecond))
	fmt.Fprintf(out, "| most memory of the server | %s |\n", byteSize(float64(memory)))
	fmt.Fprintf(out, "| growth of the database, an order | %s |\n", byteSize(float64(growth)/float64(n)))
	fmt.Fprintf(out, "| statements, an order | %s |\n", statements)
	fmt.Fprintf(out, "| signatures, an order | %.1f |\n", float64(l.signatures.Load()-before[5])/float64(n))
	fmt.Fprintf(out, "| books | exact: %d players, %d orders with the warm-up |\n", len(l.players), l.orders.Load())
	return nil
}

func percentiles(all []time.Duration) string {
	slices.Sort(all)
	at := func(p float64) time.Duration {
		return all[min(len(all)-1, int(p*float64(len(all))))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p95 %v, p99 %v", at(.50), at(.95), at(.99))
}

// usage returns the CPU time and the peak memory of the server (see proc(5)).
func (l *load) usage() (cpu time.Duration, memory int64, err error) {
	_, cpu, err = stat(l.command.Process.Pid)
	status, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.command.Process.Pid))
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err3 := strconv.ParseInt(strings.Fields(most + " 0")[0], 10, 64)
	return cpu, kilobytes << 10, errors.Join(err, err2, err3)
}

// stat returns the parent of a process, and its CPU time with that of its children that
// have ended.
func stat(process int) (parent int, cpu time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, err = strconv.Atoi(fields[1])
	for _, field := range fields[11:15] { // of user and system, and of both of the children
		ticks, failed := strconv.ParseInt(field, 10, 64)
		cpu, err = cpu+time.Duration(ticks)*10*time.Millisecond, cmp.Or(err, failed)
	}
	return parent, cpu, err
}

// size returns the size of the database on disk.
func (l *load) size() (n int64, err error) {
	if l.postgres {
		err = l.db.QueryRow("SELECT pg_database_size(current_database())").Scan(&n)
		return n, err
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(strings.TrimPrefix(l.address, "sqlite:") + suffix)
		if err == nil {
			n += info.Size()
		}
	}
	return n, nil
}

// settings returns the settings that determine how fast a commit is.
func (l *load) settings() (string, error) {
	if !l.postgres {
		return "SQLite, synchronous=full", nil
	}
	var version, fsync, commit string
	err := l.db.QueryRow("SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')").
		Scan(&version, &fsync, &commit)
	return fmt.Sprintf("PostgreSQL %s, fsync=%s, synchronous_commit=%s", version, fsync, commit), err
}

// booksAreExact checks that every player owns what the orders make of it, as the service
// reads it, that the table contains every order, and that no order waits.
func (l *load) booksAreExact() error {
	for _, p := range l.players {
		request, err := http.NewRequest(http.MethodGet, l.url+ramp.PathAssets, nil)
		if err != nil {
			return err
		}
		request.Header = l.header(p)
		response, err := l.http.Do(request)
		if err != nil {
			return err
		}
		var answer ramp.Response[struct {
			V1 ramp.Player `json:"v1"`
		}]
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err != nil || answer.Data == nil {
			return fmt.Errorf("assets: HTTP %d, %w", response.StatusCode, err)
		}
		for _, a := range answer.Data.V1.Assets {
			if want := ramp.NewAmount(p.gold.Load()); a.ID == "item_gold" && a.Balance.Cmp(want) != 0 {
				return fmt.Errorf("THE BOOKS ARE WRONG: a player owns %s gold, not %s", a.Balance, want)
			}
		}
	}
	var stored, failed, waiting int64
	err := l.db.QueryRow("SELECT count(*), coalesce(sum(CASE state WHEN 'failed' THEN 1 ELSE 0 END), 0), coalesce(sum(CASE state WHEN 'accepted' THEN 1 ELSE 0 END), 0) FROM ramp_orders WHERE project_id <> 'bare'").
		Scan(&stored, &failed, &waiting)
	if err == nil && (stored != l.orders.Load() || failed != l.failures.Load() || waiting != 0) {
		err = fmt.Errorf("THE BOOKS ARE WRONG: %d orders are stored, %d failed, %d wait; %d and %d were made", stored, failed, waiting, l.orders.Load(), l.failures.Load())
	}
	return err
}
