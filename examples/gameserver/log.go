// This file keeps the log from stopping the game. To make it yours: set how many records fit, if a call
// of yours logs more. If you log with something else, let it do what this does, and alert on what it
// counts.

package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	logPatience = time.Second // how long a call waits for its record
	logRecords  = 4096        // how many records wait, of less than 4 KiB each
)

// logQueue writes lines to where the log goes, in their order. It is an io.Writer for a handler of
// slog that writes each record as a whole.
type logQueue struct {
	lines  chan *logLine
	newest atomic.Pointer[logLine]
	stuck  atomic.Bool  // a call has waited in vain, and nothing was written since
	lost   atomic.Int64 // records that did not fit, or could not be written
}

// logLine is a record that is or was in the queue.
type logLine struct {
	text    []byte
	written chan struct{} // is closed
}

// newLog returns a logger that writes JSON to out. A record is written before its call goes on, so that
// a server which is killed has logged what it has answered: a person corrects balances by it. If nobody
// reads the log, a call waits for a second at most, and its record in the queue.
func newLog(out io.Writer, records int) (*slog.Logger, *logQueue) {
	q := &logQueue{lines: make(chan *logLine, records)}
	go q.write(out)
	return slog.New(logHandler{slog.NewJSONHandler(q, nil), q}), q
}

// Write puts a record into the queue, or counts it if the queue is full. It never waits.
func (q *logQueue) Write(record []byte) (int, error) {
	line := &logLine{append([]byte(nil), record...), make(chan struct{})}
	select {
	case q.lines <- line:
		q.newest.Store(line)
	default:
		q.lost.Add(1)
	}
	return len(record), nil
}

func (q *logQueue) write(out io.Writer) {
	for line := range q.lines {
		if _, err := out.Write(line.text); err != nil {
			q.lost.Add(1)
		}
		q.stuck.Store(false)
		close(line.written)
	}
}

// await waits for the records up to now.
func (q *logQueue) await(patience time.Duration) {
	newest := q.newest.Load()
	if newest == nil || q.stuck.Load() {
		return
	}
	select {
	case <-newest.written:
		return
	default:
	}
	select {
	case <-newest.written:
	case <-time.After(patience):
		q.stuck.Store(true)
	}
}

// observe registers metrics with which alerts.yaml alarms.
func (q *logQueue) observe(registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ramp_log_records_waiting",
		Help: "Records that nobody has read from the log. A server that is killed loses them."},
		func() float64 { return float64(len(q.lines)) }))
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ramp_log_records_lost_total",
			Help: "Records that did not fit into the queue, or could not be written."},
			func() float64 { return float64(q.lost.Load()) }))
}

// logHandler waits for each record until it is written.
type logHandler struct {
	slog.Handler
	queue *logQueue
}

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	err := h.Handler.Handle(ctx, record)
	h.queue.await(logPatience)
	return err
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs), h.queue}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.queue}
}
