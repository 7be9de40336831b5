package dbtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The store works behind PgBouncer in transaction pooling with each mode of pgx that
// docs/databases.md names, and behind 1.24 and newer with pgx's default.
func TestBehindPgBouncer(t *testing.T) {
	racedetector.Skip(t)
	t.Parallel()
	modes := []string{"exec", "simple_protocol", "cache_describe"}
	if pgBouncerKeepsStatements(t) {
		modes = append(modes, "cache_statement")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			place := func(t *testing.T) *place { return behindPgBouncer(t, "default_query_exec_mode="+mode) }
			t.Run("Check", func(t *testing.T) { check(t, newStore(t, place(t), applyNothing).Check(t.Context(), "")) })
			t.Run("kit", func(t *testing.T) { testKit(t, place(t), nil) })
			t.Run("kill", func(t *testing.T) { testKill(t, place(t), "") })
		})
	}
}

// With pgx's default mode, Check finds a PgBouncer that loses prepared statements before
// the first order does. With only one connection, nothing is lost in this process.
func TestCheckFindsAPoolerThatLosesPreparedStatements(t *testing.T) {
	if pgBouncerKeepsStatements(t) {
		t.Skip("this PgBouncer loses none")
	}
	p := behindPgBouncer(t, "")
	p.db.SetMaxOpenConns(1)
	check(t, newStore(t, p, applyNothing).Check(t.Context(), ""))
	p.db.SetMaxOpenConns(2)
	err := newStore(t, p, applyNothing).Check(t.Context(), "")
	t.Log(err)
	expectText(t, err, "ramp: check: a pooler loses the driver's prepared statements", "docs/databases.md", "42P05")

	// A server that starts later meets the statements of the first.
	p.db = open(t, p.driver, p.dsn)
	p.db.SetMaxOpenConns(1)
	err = newStore(t, p, applyNothing).Check(t.Context(), "")
	expectText(t, err, "ramp: check: a pooler loses the driver's prepared statements", "42P05")
}

// A pool whose other connections are in use does not hold Check up.
func TestCheckOfABusyPool(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *place) {
		for _, connections := range []int{1, 2} {
			p.db.SetMaxOpenConns(connections)
			for range connections - 1 {
				conn := must.Get(p.db.Conn(t.Context()))(t)
				defer conn.Close()
			}
			start := time.Now()
			check(t, newStore(t, p, applyNothing).Check(t.Context(), ""))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("with %d connections, Check took %v", connections, took)
			}
		}
	})
}

// pgBouncer returns the path of the program.
func pgBouncer(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("*** NOT TESTED: pgbouncer is not installed ***")
	}
	return program
}

// pgBouncerKeepsStatements reports whether the installed version keeps prepared
// statements by default, as 1.24 and newer do.
func pgBouncerKeepsStatements(t *testing.T) bool {
	t.Helper()
	out := must.Get(exec.Command(pgBouncer(t), "--version").Output())(t)
	var major, minor int
	must.Get(fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor))(t)
	t.Logf("PgBouncer %d.%d", major, minor)
	return major > 1 || minor >= 24
}

// behindPgBouncer returns a place on PostgreSQL whose connections share five of the
// server in transaction pooling.
func behindPgBouncer(t *testing.T, params string) *place {
	t.Helper()
	program := pgBouncer(t)
	d := databaseOf(t, rampsql.PostgreSQL)
	p := newPlace(t, d, d.modes[0])
	run(t, p.admin, "ALTER ROLE "+p.schema+" SET search_path = "+p.schema) // PgBouncer does not pass it on
	u := must.Get(url.Parse(p.dsn))(t)

	dir := must.Get(os.MkdirTemp("", "ramp-pgbouncer-"))(t)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o777)) // PgBouncer does not run as root
	port := freePort(t)
	check(t, os.WriteFile(filepath.Join(dir, "users"), fmt.Appendf(nil, "%q \"test\"\n", p.schema), 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "ini"), fmt.Appendf(nil, `[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s/users
pool_mode = transaction
default_pool_size = 5
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`, u.Hostname(), u.Port(), port, dir), 0o644))
	args := []string{filepath.Join(dir, "ini")}
	if os.Geteuid() == 0 {
		args = []string{"-u", "nobody", args[0]}
	}
	command := exec.Command(program, args...)
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	command.Stdout, command.Stderr = log, log
	check(t, command.Start())
	t.Cleanup(func() {
		_ = p.db.Close() // first, so that PgBouncer closes its connections
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
	})

	u.Host = net.JoinHostPort("127.0.0.1", port)
	query := u.Query()
	query.Del("search_path")
	u.RawQuery = query.Encode() + "&" + params
	p.dsn = strings.TrimSuffix(u.String(), "&")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			check(t, conn.Close())
			break
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("PgBouncer does not start: %v\n%s", err, said)
		}
	}
	p.db = open(t, p.driver, p.dsn)
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(t, err)
	return port
}
