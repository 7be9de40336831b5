package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
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
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

var (
	loadRounds = flag.Int("rounds", 2, "`number` of rounds of TestLoad; the first of them warms up")
	loadOrders = flag.Int("orders", 32, "`number` of orders of each side in a round of TestLoad")
)

const (
	turns       = 4 // of each side in a round
	workers     = 16
	players     = 100 // of each side
	item        = "item_gold"
	goldOfOrder = 100
)

// TestLoad runs examples/gameserver under a mix of mints, burns, failures and duplicates, in
// turns with a rival: on SQLite the bare database with the same statements, on PostgreSQL
// the server by hand. It checks what their players own, and prints the figures of docs/performance.md.
func TestLoad(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "game.db")
		db := must.Get(sql.Open("sqlite",
			"file:"+path+
				"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"+
				"&_txlock=immediate"))(t)
		defer db.Close()
		db.SetMaxOpenConns(1)
		l := &load{t: t, db: db, size: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"}
		ours := l.start("../../../../examples/gameserver", "sqlite:"+path)
		l.login(ours)
		l.compare(ours, &side{order: l.bareOrder(newGame(db, false))})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		address := os.Getenv("RAMP_TEST_POSTGRESQL")
		if address == "" {
			t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set ***")
		}
		admin := must.Get(sql.Open("pgx", address))(t)
		name := "load_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		must.Get(admin.Exec("CREATE DATABASE " + name))(t)
		u := must.Get(url.Parse(address))(t)
		u.Path = "/" + name
		db := must.Get(sql.Open("pgx", u.String()))(t)
		t.Cleanup(func() { // after the servers have ended
			_ = db.Close()
			_, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
			assert.NoError(t, err)
			_ = admin.Close()
		})
		l := &load{t: t, db: db, size: "SELECT pg_database_size(current_database())"}
		var backend int
		require.NoError(t, db.QueryRow("SELECT pg_backend_pid()").Scan(&backend))
		l.postmaster, _ = stat(t, backend)
		var settings [3]string
		require.NoError(t,
			db.QueryRow(
				"SELECT current_setting('server_version'), current_setting('fsync'), "+
					"current_setting('synchronous_commit')").
				Scan(&settings[0], &settings[1], &settings[2]))
		fmt.Println("PostgreSQL, fsync, synchronous_commit:", settings)

		t.Run("round trips", func(t *testing.T) {
			counts := &load{t: t, db: db, executed: new(atomic.Int64), texts: new(atomic.Int64)}
			behind := counts.proxy(*u)
			ours := counts.start("../../../../examples/gameserver", behind)
			counts.login(ours)
			// Half of the orders are burns, whose grant is rehearsed: a savepoint, the grant, and back.
			const want = "6.5, and 5.0 BEGIN, COMMIT and savepoints"
			assert.Equal(t, want, counts.statements(ours.order))
			assert.Equal(t, want, counts.statements(counts.start(".", behind).order), "by hand")
			bare := must.Get(sql.Open("pgx", behind))(t)
			defer bare.Close()
			assert.Equal(t, want, counts.statements(counts.bareOrder(newGame(bare, true))), "on the bare database")
		})
		ours := l.start("../../../../examples/gameserver", u.String())
		l.login(ours)
		l.compare(ours, l.start(".", u.String()))
	})
}

// load is a database under load.
type load struct {
	t               *testing.T
	db              *sql.DB
	size            string        // selects the bytes of the database
	postmaster      int           // the process of PostgreSQL, or 0
	executed, texts *atomic.Int64 // statements that were seen on the way to PostgreSQL
	players         [2][]*player  // of ours and of the rival, in turns as they were created
}

type player struct {
	session, token string
	gold           atomic.Int64 // what they must own
}

// side is one of two that are compared.
type side struct {
	order func(p *player, c *call, twice [2]bool) error // its validate and its result call
	url   string
	key   ramp.HMACKey
	pid   int

	mu             sync.Mutex
	took           []time.Duration // of both calls of each order
	signatures     atomic.Int64    // in answers
	orders, failed atomic.Int64
}

// start builds a server as the Dockerfile of gameserver does, and runs it.
func (l *load) start(directory, address string) *side {
	binary := filepath.Join(l.t.TempDir(), "server")
	build := exec.Command("go", "-C", directory, "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // without the caller's flags, such as -race
	out, err := build.CombinedOutput()
	require.NoError(l.t, err, "%s", out)
	command := exec.Command(binary, "-addr", "127.0.0.1:0", "-db", address, "-token", tokenAddress)
	if directory != "." {
		out, err := exec.Command(binary, "migrate", "-db", address).CombinedOutput()
		require.NoError(l.t, err, "%s", out)
		command.Args = append(command.Args, "-network", "testnet", "-any-rate", "-any-page")
	}
	command.Env = append(os.Environ(), "RAMP_HMAC_KEY=a key of the load", "RAMP_VALIDATOR_KEY=0x"+validatorKey)
	stdout := must.Get(command.StdoutPipe())(l.t) // the log of each call goes to /dev/null
	require.NoError(l.t, command.Start())
	l.t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	ready := must.Get(bufio.NewReader(stdout).ReadString('\n'))(l.t)
	key := must.Get(ramp.TextKey("a key of the load"))(l.t)
	s := &side{url: strings.Fields(ready)[2], key: key, pid: command.Process.Pid}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * workers}, Timeout: 30 * time.Second}
	s.order = func(p *player, c *call, twice [2]bool) error {
		validate, result, err := bodies(c)
		if err != nil {
			return err
		}
		begun := time.Now()
		err = cmp.Or(s.repeat(client, p, ramp.PathValidate, validate, twice[0]),
			s.repeat(client, p, ramp.PathResult, result, twice[1]))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = append(s.took, time.Since(begun))
		return err
	}
	return s
}

// repeat makes a call once or twice, at the same time. Every call must succeed.
func (s *side) repeat(client *http.Client, p *player, path string, body []byte, twice bool) error {
	other := make(chan error, 1)
	if twice {
		go func() { other <- s.call(client, p, path, body) }()
	} else {
		other <- nil
	}
	return errors.Join(s.call(client, p, path, body), <-other)
}

func (s *side) call(client *http.Client, p *player, path string, body []byte) error {
	request, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, ramp.HeaderSession: {p.session},
		ramp.HeaderAuthorization: {"Bearer " + p.token}, ramp.HeaderHMAC: {s.key.Sign(body)}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != 200 || !bytes.Contains(answer, []byte(`"success":true`))) {
		err = fmt.Errorf("%s: HTTP %d %s", path, response.StatusCode, answer)
	}
	if bytes.Contains(answer, []byte(`"validatorSig":"0x`)) {
		s.signatures.Add(1)
	}
	return err
}

// login creates the players.
func (l *load) login(s *side) {
	for n := range 2 * players {
		response, err := http.Post(s.url+"/login", "application/json",
			strings.NewReader(fmt.Sprintf(`{"player":"player-%d"}`, n)))
		require.NoError(l.t, err)
		var login struct{ SessionID, AccessToken string }
		require.NoError(l.t, json.NewDecoder(response.Body).Decode(&login))
		_ = response.Body.Close()
		p := &player{session: login.SessionID, token: login.AccessToken}
		p.gold.Store(1_000_000) // what a new player of gameserver owns
		l.players[n%2] = append(l.players[n%2], p)
	}
}

// bareOrder returns a function that makes the statements of an order, without a server,
// HTTP, JSON of calls, and signatures.
func (l *load) bareOrder(g *game) func(*player, *call, [2]bool) error {
	ctx := context.Background()
	return func(p *player, c *call, _ [2]bool) error {
		return cmp.Or(g.authenticate(ctx, p.session, p.token), g.bindWallet(ctx, p.session, c.UserAddress),
			g.accept(ctx, p.session, c), g.end(ctx, c))
	}
}

// newCall returns what both calls of a new order say.
func newCall(session string, burn, fails bool) *call {
	var digest [32]byte
	_, _ = rand.Read(digest[:])
	hash := "0x" + hex.EncodeToString(digest[:])
	wallet := sha256.Sum256([]byte(session)) // a wallet belongs to one player
	assets, tokens := []asset{{"asset", item, json.Number(strconv.Itoa(goldOfOrder))}},
		[]asset{{"ERC20", tokenAddress, "1"}}
	c := &call{SessionID: session, UserSig: "0xa9c5", UserAddress: fmt.Sprintf("0x%x", wallet[:20]),
		ProjectID: "project-1",
		Digest:    hash, UUID: uuid.NewString(), TxHash: hash, Receipt: receipt{"0x1"},
		Intent: intent{"mint", "assemble", assets, tokens}}
	if burn {
		c.Intent = intent{"burn-permit", "disassemble", tokens, assets}
	}
	if fails {
		c.Receipt.Status = "0x0"
	}
	return c
}

func bodies(c *call) (validate, result []byte, err error) {
	intent, err := json.Marshal(c.Intent)
	validate = fmt.Appendf(nil,
		`{"user_sig":"%s","user_address":"%s","project_id":"%s","digest":"%s","uuid":"%s","intent":%s}`,
		c.UserSig, c.UserAddress, c.ProjectID, c.Digest, c.UUID, intent)
	result = fmt.Appendf(nil,
		`{"session_id":"%s","uuid":"%s","tx_hash":"%s","receipt":{"type":"0x7","status":"%s","logsBloom":"%s",`+
			`"logs":%s,`+
			`"transactionHash":"%[3]s","blockNumber":"0x12d687"},"intent":%[7]s}`, c.SessionID, c.UUID, c.TxHash,
		c.Receipt.Status, bloom, transferLogs(2, "0"), intent)
	return validate, result, err
}

// run makes orders in all workers.
func (l *load) run(s *side, owners []*player, orders int) {
	var left atomic.Int64
	left.Store(int64(orders))
	errs := make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for err == nil && left.Add(-1) >= 0 {
				p, burn, fails := owners[mathrand.IntN(len(owners))], mathrand.IntN(2) == 0, mathrand.IntN(10) < 2
				// Of ten orders, two have a duplicate validate call, and three a duplicate result.
				err = s.order(p, newCall(p.session, burn, fails), [2]bool{mathrand.IntN(10) < 2, mathrand.IntN(10) < 3})
				switch s.orders.Add(1); {
				case fails:
					s.failed.Add(1)
				case burn:
					p.gold.Add(goldOfOrder)
				default:
					p.gold.Add(-goldOfOrder)
				}
			}
			errs <- err
		}()
	}
	for range workers {
		require.NoError(l.t, <-errs)
	}
}

// compare makes the orders of all rounds, checks the balances, and prints a report.
func (l *load) compare(ours, theirs *side) {
	var ratios []float64
	var took, cpu, both time.Duration // of ours
	var growth int64
	size := func() (n int64) {
		require.NoError(l.t, l.db.QueryRow(l.size).Scan(&n))
		return n
	}
	for round := range *loadRounds + 1 {
		var times, costs [2]time.Duration
		_, before := stat(l.t, ours.pid)
		for turn := range turns {
			for i := range 2 {
				n := (turn + i) % 2 // each side is first in every second turn
				s := []*side{ours, theirs}[n]
				before, spent, begun := size(), l.cpuOf(s.pid), time.Now()
				l.run(s, l.players[n], *loadOrders/turns)
				times[n] += time.Since(begun)
				costs[n] += l.cpuOf(s.pid) - spent
				if n == 0 && round > 0 {
					growth += size() - before
				}
			}
		}
		if round == 0 { // it warms up
			ours.took = nil
			continue
		}
		_, after := stat(l.t, ours.pid)
		took, cpu, both = took+times[0], cpu+after-before, both+costs[0]
		ratio := times[1].Seconds() / times[0].Seconds()
		if l.postmaster != 0 {
			ratio = costs[0].Seconds() / costs[1].Seconds()
		}
		ratios = append(ratios, ratio)
	}
	l.checkBalances(ours, theirs)

	slices.Sort(ours.took)
	slices.Sort(ratios)
	n, rounds := len(ours.took), len(ratios)
	at := func(p float64) time.Duration { return ours.took[int(p*float64(n-1))].Round(10 * time.Microsecond) }
	each := func(d time.Duration) time.Duration { return (d / time.Duration(n)).Round(time.Microsecond) }
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", ours.pid)))(l.t)
	_, memory, _ := strings.Cut(string(status), "VmHWM:")
	memory, _, _ = strings.Cut(memory, "\n")
	fmt.Printf("orders: %d, %.0f a second; both calls: p50 %v, p95 %v, p99 %v\n", n, float64(n)/took.Seconds(), at(.50),
		at(.95), at(.99))
	fmt.Printf("an order: CPU of the server %v, with PostgreSQL %v; the database grows by %d bytes; %.1f signatures\n",
		each(cpu), each(both), growth/int64(n), float64(ours.signatures.Load())/float64(ours.orders.Load()))
	fmt.Printf("peak memory of the server: %s\n", strings.TrimSpace(memory))
	fmt.Printf("ratio, %d rounds: median %.2f, from %.2f to %.2f\n", rounds, (ratios[(rounds-1)/2]+ratios[rounds/2])/2,
		ratios[0], ratios[rounds-1])
}

// checkBalances checks that every player owns what the orders make of it, that the table
// contains every order, and that no order waits.
func (l *load) checkBalances(sides ...*side) {
	for _, p := range slices.Concat(l.players[0], l.players[1]) {
		var gold int64
		require.NoError(l.t, l.db.QueryRow("SELECT i.balance FROM sessions s JOIN inventory i ON i.player = s.player"+
			" WHERE i.item = 'item_gold' AND s.id = $1", p.session).Scan(&gold))
		assert.Equal(l.t, p.gold.Load(), gold)
	}
	var want, got [3]int64
	for _, s := range sides {
		want[0] += s.orders.Load()
		want[1] += s.failed.Load()
	}
	require.NoError(l.t,
		l.db.QueryRow(
			"SELECT count(*), sum(CASE state WHEN 'failed' THEN 1 ELSE 0 END), sum(CASE state WHEN 'accepted' THEN "+
				"1 ELSE 0 END)"+
				" FROM ramp_orders").Scan(&got[0], &got[1], &got[2]))
	assert.Equal(l.t, want, got, "orders, failed and waiting ones")
}

// cpuOf returns the CPU time of a process, and that of PostgreSQL and its children.
func (l *load) cpuOf(pid int) (sum time.Duration) {
	for _, entry := range must.Get(os.ReadDir("/proc"))(l.t) {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			if parent, cpu := stat(nil, id); id == pid || l.postmaster != 0 &&
				(id == l.postmaster || parent == l.postmaster) {
				sum += cpu
			}
		}
	}
	return sum
}

// stat returns the parent of a process, and its CPU time with that of its children that
// have ended (see proc(5)). Without t, the process may have ended.
func stat(t *testing.T, process int) (parent int, cpu time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if t != nil {
		require.NoError(t, err)
	}
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	for _, field := range fields[11:15] { // of user and system, and of both of the children
		ticks, _ := strconv.ParseInt(field, 10, 64)
		cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return parent, cpu
}

// proxy returns the address of PostgreSQL behind a proxy that counts statements: each is a
// round trip.
func (l *load) proxy(u url.URL) string {
	database := u.Host
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(l.t)
	l.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", database)
			if err != nil {
				l.t.Errorf("the database behind the proxy: %v", err)
				_ = client.Close()
				return
			}
			go func() { defer client.Close(); _, _ = io.Copy(client, server) }()
			go func() {
				defer server.Close()
				in := pgproto3.NewBackend(io.TeeReader(client, server), nil)
				_, err := in.ReceiveStartupMessage()
				for err == nil {
					var message pgproto3.FrontendMessage
					switch message, err = in.Receive(); message.(type) {
					case *pgproto3.Execute: // a prepared statement
						l.executed.Add(1)
					case *pgproto3.Query: // a text, such as BEGIN
						l.texts.Add(1)
					}
				}
			}()
		}
	}()
	u.Host, u.RawQuery = listener.Addr().String(), "sslmode=disable"
	return u.String()
}

// statements counts the statements of an order without duplicates.
func (l *load) statements(order func(*player, *call, [2]bool) error) string {
	const warmUp, orders = 10, 50 // the first orders prepare their statements
	var executed, texts int64
	for n := range warmUp + orders {
		if n == warmUp {
			executed, texts = l.executed.Load(), l.texts.Load()
		}
		p := l.players[0][0]
		require.NoError(l.t, order(p, newCall(p.session, n%2 == 0, n%10 < 2), [2]bool{}))
	}
	executed, texts = l.executed.Load()-executed, l.texts.Load()-texts
	must.Get(l.db.Exec("DELETE FROM ramp_orders"))(l.t)
	return fmt.Sprintf("%.1f, and %.1f BEGIN, COMMIT and savepoints", float64(executed)/orders, float64(texts)/orders)
}
