package main

import (
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"testing"
)

// freeAddress returns an address on which nothing listens, and which no other test takes until this one
// has ended: a server may be started on it, stopped, and started again. What keeps it is a UDP socket
// with the same number, which the system gives to one process only, and takes back when that is gone. A
// TCP socket would not do: HAProxy shares a port with others that listen on it. The ports are below those
// of internal/test/databases, and below those that Linux and macOS give to whoever asks for any.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(10_000))
		kept, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil { // not even a program that is no test
			check(t, l.Close())
			t.Cleanup(func() { _ = kept.Close() })
			return address
		}
		_ = kept.Close()
	}
	t.Fatal("no port is free")
	return ""
}

// Another test, also one in another process, never gets an address that is taken, whether or not
// something listens on it.
func TestAnAddressIsTakenOnce(t *testing.T) {
	address := freeAddress(t)
	again, err := net.ListenPacket("udp", address)
	if err == nil {
		_ = again.Close()
		t.Error("another test could take", address)
	}
	listener, err := net.Listen("tcp", address)
	check(t, err)
	check(t, listener.Close())
}

// launch starts a program, and waits until it listens on an address. stop interrupts it, and the end of the test
// does.
func launch(t *testing.T, command *exec.Cmd, address string) (log *logBuffer, stop func()) {
	t.Helper()
	log = new(logBuffer)
	command.Stdout, command.Stderr = log, log
	check(t, command.Start())
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	stop = func() { _ = command.Process.Signal(os.Interrupt); <-ended }
	t.Cleanup(stop)
	await(t, func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended:\n%s", command, log)
		default:
		}
		return listens(address)
	}, func() string { return fmt.Sprintf("%s does not listen on %s", command, address) })
	return log, stop
}

func listens(address string) bool {
	connection, err := net.Dial("tcp", address)
	return err == nil && connection.Close() == nil
}
