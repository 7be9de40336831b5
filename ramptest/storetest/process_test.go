package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
)

func TestMain(m *testing.M) {
	Serve(func(file string) (ramp.Store, error) { return openLog(file) })
	os.Exit(m.Run())
}

// logged is a store whose file has a line for each step. If the file's name says so, it
// writes what moves before the order.
type logged struct {
	mu       sync.Mutex
	file     *os.File
	orders   map[uuid.UUID]ramp.Order
	balances map[string]int64
}

type logLine struct {
	Order *ramp.Order
	Moves map[string]int64
}

func openLog(name string) (*logged, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	text, err2 := os.ReadFile(name)
	l := &logged{file: file, orders: map[uuid.UUID]ramp.Order{}, balances: map[string]int64{}}
	if whole := bytes.LastIndexByte(text, '\n') + 1; err == nil && whole < len(text) { // a kill cut the last write off
		text, err = text[:whole], file.Truncate(int64(whole))
	}
	for written := range bytes.Lines(text) {
		var line logLine
		err2 = errors.Join(err2, json.Unmarshal(written, &line))
		l.apply(line)
	}
	return l, errors.Join(err, err2)
}

func (l *logged) apply(line logLine) {
	for asset, n := range line.Moves {
		l.balances[asset] += n
	}
	if line.Order != nil {
		l.orders[line.Order.UUID] = *line.Order
	}
}

func (l *logged) write(line logLine) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	l.apply(line)
	return err
}

func (l *logged) Update(_ context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var stored *ramp.Order
	if o, ok := l.orders[id]; ok {
		stored = &o
	}
	began := time.Now()
	step, err := next(stored)
	asked := time.Since(began)
	if err != nil || !step.New {
		return step, err
	}
	moves := map[string]int64{}
	for _, asset := range step.Effect.Assets {
		moves[step.Order.SessionID+asset.ID], err = step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Step{}, err
		}
	}
	if strings.HasSuffix(l.file.Name(), "two-writes") && len(moves) > 0 {
		if err := l.write(logLine{Moves: moves}); err != nil {
			return ramp.Step{}, err
		}
		time.Sleep(time.Millisecond + 4*asked) // most of the time, so that kills come here on slow machines too
		moves = nil
	}
	return step, l.write(logLine{&step.Order, moves})
}

// killed returns what the kit says of a store whose process is killed.
func killed(t *testing.T, name string) string {
	name = filepath.Join(t.TempDir(), name)
	return kill(t, Fixture{
		Give: func(_ context.Context, session, asset string, n int64) error {
			l, err := openLog(name)
			return errors.Join(err, l.write(logLine{Moves: map[string]int64{session + asset: n}}), l.file.Close())
		},
		Balance: func(_ context.Context, session, asset string) (int64, error) {
			l, err := openLog(name)
			return l.balances[session+asset], errors.Join(err, l.file.Close())
		},
	}, Start(t, "", name))
}

func TestKillsLoseNothing(t *testing.T) { assert.Empty(t, killed(t, "one-write")) }

func TestAKillBetweenTwoWritesIsFound(t *testing.T) {
	assert.Contains(t, killed(t, "two-writes"), "the balance is ")
}
