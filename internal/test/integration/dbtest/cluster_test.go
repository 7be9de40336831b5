package dbtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/must"
)

// envBin names the environment variable for the directory of PostgreSQL's programs.
const envBin = "RAMP_TEST_POSTGRESQL_BIN"

// server is a PostgreSQL server.
type server struct {
	t       *testing.T
	as      []string // prefix of all commands
	bin     string
	dir     string
	port    int
	options string
}

// newCluster starts a primary and a standby, for which its commits wait. The test may kill
// them: others use the server of envPostgreSQL at the same time.
func newCluster(t *testing.T) (primary, standby *server) {
	t.Helper()
	bin := os.Getenv(envBin)
	if bin == "" {
		t.Skip("*** NOT TESTED: " + envBin + " is not set ***")
	}
	dir, as := newServerFolder(t)
	port := 10_000 + rand.N(10_000)
	primary = &server{t: t, as: as, bin: bin, dir: filepath.Join(dir, "data"), port: port}
	primary.run("initdb", "-D", primary.dir, "-U", "ramp", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	config := must.Get(os.OpenFile(filepath.Join(primary.dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0))(t)
	// The tests kill servers, not machines, so nothing must be synced to disk.
	must.Get(config.WriteString("listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\n" +
		"shared_buffers = 16MB\nmax_connections = 90\ndynamic_shared_memory_type = " +
		"mmap\nsynchronous_standby_names = '*'\n"))(t)
	check(t, config.Close())
	primary.start()
	standby = &server{t: t, as: primary.as, bin: bin, dir: filepath.Join(dir, "standby"), port: port + 1}
	primary.run("pg_basebackup", "-D", standby.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "ramp", "-R",
		"-c", "fast", "--no-sync")
	standby.options = " -c synchronous_standby_names=" // it has no standby of its own
	standby.start()
	return primary, standby
}

// newServerFolder returns a folder for a database server of one test, and the prefix of the commands that
// work on it: no such server runs as root.
func newServerFolder(t *testing.T) (dir string, as []string) {
	t.Helper()
	dir = must.Get(os.MkdirTemp("", "ramp-server-"))(t)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	if os.Geteuid() == 0 {
		nobody := must.Get(user.Lookup("nobody"))(t)
		check(t, os.Chown(dir, must.Get(strconv.Atoi(nobody.Uid))(t), -1))
		as = []string{"runuser", "-u", "nobody", "--"}
	}
	return dir, as
}

func (s *server) run(program string, args ...string) {
	s.t.Helper()
	words := slices.Concat(s.as, []string{filepath.Join(s.bin, program)}, args)
	command := exec.Command(words[0], words[1:]...)
	command.Dir = filepath.Dir(s.dir)
	log := must.Get(os.CreateTemp("", "ramp-cluster-log-"))(s.t)
	defer os.Remove(log.Name())
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		server, _ := os.ReadFile(s.dir + ".log")
		s.t.Fatalf("%s: %v\n%s%s", program, err, said, server)
	}
}

func (s *server) ctl(args ...string) {
	s.t.Helper()
	s.run("pg_ctl", append([]string{"-D", s.dir, "-l", s.dir + ".log"}, args...)...)
}

func (s *server) start() {
	s.t.Helper()
	s.ctl("start", "-w", "-o", fmt.Sprintf("-p %d%s", s.port, s.options))
	s.t.Cleanup(s.kill)
}

// kill sends SIGKILL to all processes of the server, as if the machine was lost. A
// second call does nothing.
func (s *server) kill() {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "postmaster.pid"))
	if err != nil {
		return // already stopped
	}
	lines := strings.Split(string(text), "\n")
	postmaster := must.Get(strconv.Atoi(lines[0]))(s.t)
	_ = syscall.Kill(postmaster, syscall.SIGSTOP) // so that it starts no other process
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if os.IsNotExist(err) {
		return // already dead
	}
	check(s.t, err)
	for _, child := range strings.Fields(string(children)) {
		id := must.Get(strconv.Atoi(child))(s.t)
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	_ = syscall.Kill(postmaster, syscall.SIGKILL)
	check(s.t, os.Remove(filepath.Join(s.dir, "postmaster.pid")))
	if len(lines) > 6 { // shared memory outlives its processes
		if memory := strings.Fields(lines[6]); len(memory) == 2 {
			_ = exec.Command("ipcrm", "-m", memory[1]).Run()
		}
	}
}
