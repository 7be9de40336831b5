package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/token-ramp/ramp-go/ramptest"
)

// smallPostgreSQL is a server of PostgreSQL with a small disk of its own.
type smallPostgreSQL struct {
	*testing.T
	disk, address string
	listen        string
}

func newSmallPostgreSQL(t *testing.T) *smallPostgreSQL {
	t.Helper()
	needs(t, "RAMP_TEST_POSTGRESQL_BIN")
	// Another user cannot reach what is in t.TempDir.
	p := &smallPostgreSQL{T: t, disk: must(os.MkdirTemp("", "ramp-small-disk-"))(t), listen: freeAddress(t)}
	t.Cleanup(func() { check(t, os.RemoveAll(p.disk)) })
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", p.disk)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("*** NOT TESTED: only root can make a small disk: %s ***", out)
	}
	t.Cleanup(func() {
		_, _ = p.run("pg_ctl", "stop", "-D", p.data(), "-m", "immediate")
		// After an immediate stop, processes of the server may still end, and use the disk.
		var err error
		await(t, func() bool { err = exec.Command("umount", p.disk).Run(); return err == nil },
			func() string { return fmt.Sprint("umount: ", err) })
	})
	nobody := must(user.Lookup("nobody"))(t) // PostgreSQL does not run as root
	check(t, os.Chown(p.disk, must(strconv.Atoi(nobody.Uid))(t), -1))
	p.must("initdb", "-D", p.data(), "-U", "ramp", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--wal-segsize=1")
	p.must("pg_ctl", p.start()...)
	p.address = "postgres://ramp@" + p.listen + "/postgres?sslmode=disable"
	return p
}

func (p *smallPostgreSQL) data() string { return filepath.Join(p.disk, "data") }

// start are the arguments of pg_ctl that start the server. Its log is not on the small disk.
func (p *smallPostgreSQL) start() []string {
	_, port, _ := net.SplitHostPort(p.listen)
	return []string{"start", "-w", "-D", p.data(), "-l", "/dev/null",
		"-o", "-p " + port + " -c listen_addresses=127.0.0.1 -c unix_socket_directories= " +
			"-c shared_buffers=8MB"}
}

// run runs a program of PostgreSQL.
func (p *smallPostgreSQL) run(program string, args ...string) (string, error) {
	path := filepath.Join(os.Getenv("RAMP_TEST_POSTGRESQL_BIN"), program)
	command := exec.Command("runuser", append([]string{"-u", "nobody", "--", path}, args...)...)
	command.Dir = "/"
	out, err := command.Output()
	return string(out), err
}

func (p *smallPostgreSQL) must(program string, args ...string) {
	p.Helper()
	if out, err := p.run(program, args...); err != nil {
		p.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// fill takes all room that is left on the disk, and returns what makes room again.
func (p *smallPostgreSQL) fill() (makeRoom func()) {
	p.Helper()
	name := filepath.Join(p.disk, "a file that can be deleted")
	file := must(os.Create(name))(p.T)
	for block := make([]byte, 4096); ; {
		if _, err := file.Write(block); err != nil {
			break // no space left on device
		}
	}
	check(p.T, file.Close())
	return func() { check(p.T, os.Remove(name)) }
}

// The disk of PostgreSQL is full, and it finds no room for its write-ahead log. It stops and does not start
// again until there is room. Nothing that it had acknowledged is lost.
func TestTheRunbookOfAFullDiskOfPostgreSQL(t *testing.T) {
	t.Parallel()
	disk := newSmallPostgreSQL(t)
	i := incidentOn(t, disk.address)
	s := login(t, i.server.url, "alice")
	ended := i.mustMint(s)
	failed := must(i.mint(s, ramptest.TransactionFails(), ramptest.TransactionType(7)))(t)

	makeRoom := disk.fill()
	db := handle(t, disk.address)
	for n := 0; ; n++ { // each call begins another file of the log
		_, err := db.Exec("SELECT pg_logical_emit_message(true, '', 'a row'), pg_switch_wal()")
		if err != nil {
			t.Logf("after %d files of 1 MiB: %v", n, err)
			break
		}
		if n > 1000 {
			t.Fatal("the disk is not full")
		}
	}
	await(t, func() bool { _, err := disk.run("pg_ctl", "status", "-D", disk.data()); return err != nil },
		func() string { return "PostgreSQL runs with a full disk" })
	if sent := i.service.Advance(time.Minute); len(sent) != 1 || sent[0].Status != 500 {
		t.Errorf("the result: %+v", sent)
	}
	if _, err := i.mint(s); err == nil {
		t.Error("a mint was approved")
	}
	equal(t, "/readyz", statusOf(t, http.DefaultClient, i.server.url+"/readyz"), 200)
	if _, err := disk.run("pg_ctl", disk.start()...); err == nil {
		t.Error("it starts without room")
	}

	makeRoom()
	disk.must("pg_ctl", disk.start()...)
	i.service.Advance(time.Hour)
	confirmed(t, i.service, ended)
	confirmed(t, i.service, failed)
	owns(t, i.service, s, "1000000/9990")
	confirmed(t, i.service, i.mustMint(s))
}
