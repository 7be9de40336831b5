package storetest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
)

const envData = "RAMP_STORETEST_DATA"

// message is what the two sides of an Update in another process tell each other.
type message struct {
	Asks    bool // for the step from Stored
	Stored  *ramp.Order
	Step    *ramp.Step // or Error
	Error   string
	Unknown bool // the error is ramp.ErrOrderUnknown
}

func messageOf(step ramp.Step, err error) message {
	if err != nil {
		return message{Error: err.Error(), Unknown: errors.Is(err, ramp.ErrOrderUnknown)}
	}
	return message{Step: &step}
}

func (m *message) answer() (ramp.Step, error) {
	switch {
	case m.Unknown:
		return ramp.Step{}, ramp.ErrOrderUnknown
	case m.Step == nil:
		return ramp.Step{}, errors.New(m.Error)
	}
	return *m.Step, nil
}

// Serve lets [Start] use this program as a process of its own. In such a process it opens
// the store and does not return. Otherwise it does nothing. Call it first in TestMain:
//
//	func TestMain(m *testing.M) {
//		storetest.Serve(open)
//		os.Exit(m.Run())
//	}
func Serve(open func(data string) (ramp.Store, error)) {
	data, started := os.LookupEnv(envData)
	if !started {
		return
	}
	store, err := open(data)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := loopback.Listen()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go answer(store, conn)
	}
}

// answer makes one Update, whose transition the other side computes.
func answer(store ramp.Store, conn net.Conn) {
	defer conn.Close()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	var id uuid.UUID
	if in.Decode(&id) != nil {
		return
	}
	done := messageOf(store.Update(context.Background(), id, func(stored *ramp.Order) (ramp.Step, error) {
		var m message
		if err := errors.Join(out.Encode(message{Asks: true, Stored: stored}), in.Decode(&m)); err != nil {
			return ramp.Step{}, err
		}
		return m.answer()
	}))
	time.Sleep(rand.N(3 * time.Millisecond)) // on its way, so that some answers are lost
	_ = out.Encode(done)
}

// Process is a store in a process of its own.
type Process struct {
	command *exec.Cmd
	env     []string
	address atomic.Value // string
}

// Start runs a program that calls [Serve], this test binary if program is empty, and gives
// data to its open. The process ends with the test.
func Start(t *testing.T, program, data string) *Process {
	t.Helper()
	p := &Process{command: exec.Command(cmp.Or(program, os.Args[0])),
		env: append(os.Environ(), envData+"="+data)}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill(); _ = p.command.Wait() })
	return p
}

func (p *Process) start() error {
	p.command = exec.Command(p.command.Path)
	p.command.Env, p.command.Stderr = p.env, os.Stderr
	_, err := p.command.StdinPipe()
	out, err2 := p.command.StdoutPipe()
	if err := errors.Join(err, err2, p.command.Start()); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the program does not call storetest.Serve, or its open failed: %w", err)
	}
	p.address.Store(strings.TrimSpace(line))
	return nil
}

// Update implements [ramp.Store].
func (p *Process) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address.Load().(string))
	if err != nil {
		return ramp.Step{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	err = out.Encode(id)
	for err == nil {
		var m message
		switch err = in.Decode(&m); {
		case err == nil && m.Asks:
			err = out.Encode(messageOf(next(m.Stored)))
		case err == nil:
			return m.answer()
		}
	}
	return ramp.Step{}, err
}

// kill ends the process at once, and starts it again.
func (p *Process) kill() error {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	return p.start()
}

// TestKill tests that a store loses and doubles nothing when the processes that use it are
// killed in the middle of orders. One process may begin an order, and another end it. The
// Stores of the fixture are not used. It logs how many calls were cut off after their step
// was stored. With few of them, the test proves little.
func TestKill(t *testing.T, fixture Fixture, processes ...*Process) {
	t.Helper()
	if failure := kill(t, fixture, processes...); failure != "" {
		t.Error(failure)
	}
}

func kill(t *testing.T, fixture Fixture, processes ...*Process) (failure string) {
	k := newTrial(t.Context())
	k.Fixture, k.Stores = fixture, nil
	for _, p := range processes {
		k.Stores = append(k.Stores, p)
	}
	kills, orders := 0, 0
	k.Crash = func() error { kills++; return processes[kills%len(processes)].kill() }
	failure = k.try(func(k *trial) { orders = k.interrupted("kill", 20, 60) })
	if failure == "" && k.failed.Load() == 0 {
		failure = "no kill has cut a call off, so nothing was tested"
	}
	t.Logf("%d kills, %d orders, %d calls cut off, %d of them after their step was stored", kills, orders,
		k.failed.Load(), k.late.Load())
	return failure
}
