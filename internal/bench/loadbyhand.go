package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"
)

// compare measures the CPU time that an order costs the server and PostgreSQL together, in
// turns with the server that makes the same statements by hand. Both sides run on the same
// tables and get the same load.
func (l *load) compare(duration time.Duration, statements string, out io.Writer) error {
	const rounds = 8
	hand := &load{dir: l.dir, key: l.key, http: l.http, db: l.db, postgres: true, workers: l.workers, players: l.bystanders, source: "byhand"}
	byHand, err := l.statements("byhand", l.bystanders[0])
	switch {
	case err != nil:
		return err
	case byHand != statements:
		return fmt.Errorf("gameserver makes %s, but the server by hand %s: they cannot be compared", statements, byHand)
	}
	if err := hand.start(l.address, nil); err != nil {
		return err
	}
	defer hand.stop()
	postmaster, err := l.postmaster()
	if err != nil {
		return err
	}
	cost := func(side *load) (time.Duration, error) {
		before, err := usageOfAll(postmaster, side.command.Process.Pid)
		orders := side.orders.Load()
		if err == nil {
			_, err = side.during(duration/(2*rounds), side.order)
		}
		after, err2 := usageOfAll(postmaster, side.command.Process.Pid)
		return (after - before) / time.Duration(max(1, side.orders.Load()-orders)), errors.Join(err, err2)
	}
	var ours, theirs []time.Duration
	var ratios []float64
	for round := range rounds + 1 {
		a, err := cost(l)
		b, err2 := cost(hand)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if round > 0 { // the first warms up
			ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, float64(a)/float64(b))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	slices.Sort(ratios)
	fmt.Fprintf(out, "CPU time of the server and PostgreSQL, an order: %v; by hand, with the same statements (%s): %v\n",
		ours[rounds/2], statements, theirs[rounds/2])
	fmt.Fprintf(out, "ratio, %d rounds: median %.2f, from %.2f to %.2f\n", rounds, (ratios[rounds/2-1]+ratios[rounds/2])/2, ratios[0], ratios[rounds-1])
	return nil
}

// postmaster returns the process whose children serve the connections.
func (l *load) postmaster() (int, error) {
	var backend int
	if err := l.db.QueryRow("SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	parent, _, err := stat(backend)
	return parent, err
}

// usageOfAll returns the CPU time of a process, of the children of another and of itself.
func usageOfAll(parent, process int) (sum time.Duration, err error) {
	entries, err := os.ReadDir("/proc")
	for _, entry := range entries {
		id, notProcess := strconv.Atoi(entry.Name())
		if notProcess != nil {
			continue
		}
		if of, cpu, gone := stat(id); gone == nil && (id == process || id == parent || of == parent) {
			sum += cpu
		}
	}
	return sum, err
}
