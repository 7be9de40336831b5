package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// A backup of MariaDB blocks commits until it ends. The call fails at the deadline of the commit,
// and a repeat finds out what was stored.
func TestABackupThatBlocksCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	t.Setenv(envMySQL, newMariaDB(t)) // the lock is of all databases of a server, which other tests use
	p := placeOn(t, rampsql.MySQL)
	backup, err := open(t, "mysql", addressOf(t, envMySQL)).Conn(t.Context())
	check(t, err)
	defer backup.Close()
	lock := func(statement string) {
		_, err := backup.ExecContext(t.Context(), statement)
		check(t, err)
	}
	begins := true
	store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error {
		if begins {
			lock("FLUSH TABLES WITH READ LOCK")
		}
		return nil
	})
	o := newOrder("alice", mint("gold", 5))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := store.Update(ctx, o.id, o.accept())
		failed <- err
	}()
	select {
	case err := <-failed:
		expectText(t, err, "commit", "deadline exceeded")
	case <-time.After(20 * time.Second):
		t.Error("the call is not answered while the backup runs")
		lock("UNLOCK TABLES")
		<-failed
	}
	begins = false
	lock("UNLOCK TABLES")
	step, err := store.Update(t.Context(), o.id, o.accept())
	check(t, err)
	equal(t, "the state that the repeat finds", step.Order.State, ramp.OrderAccepted)
}

// newMariaDB starts a server for one test and returns its address, in the format of envMySQL.
func newMariaDB(t *testing.T) string {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		t.Skipf("*** NOT TESTED: %v ***", err)
	}
	dir, as := newServerFolder(t)
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	t.Cleanup(func() { log.Close() })
	command := func(program string, options ...string) *exec.Cmd {
		words := slices.Concat(as, []string{program, "--no-defaults",
			"--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir}, options)
		c := exec.Command(words[0], words[1:]...)
		c.Stdout, c.Stderr = log, log
		return c
	}
	failed := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, must.Get(os.ReadFile(log.Name()))(t))
		}
	}
	install := command("mariadb-install-db", "--auth-root-authentication-method=normal", "--skip-test-db")
	failed(install.Run())
	socket := filepath.Join(dir, "socket")
	server := command(program, "--skip-networking", "--socket="+socket, "--innodb-buffer-pool-size=16M")
	failed(server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = exec.Command("mariadb-admin", "--no-defaults", "--socket="+socket, "-u", "root", "shutdown").Run()
		<-ended
	})
	address := fmt.Sprintf("root@unix(%s)/", socket)
	for db := open(t, "mysql", address); db.Ping() != nil; time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			failed(fmt.Errorf("the server ended: %v", err))
		default:
		}
	}
	return address
}
