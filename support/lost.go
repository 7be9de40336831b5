package support

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Lost reads logs, and returns the orders in them that the store lacks, or whose end it lacks, in
// the sequence of the logs. It logs one record, "ramp: logs read", with the number of records of
// steps that the logs have. Use it after a backup was restored. The logs are those of
// [slog.JSONHandler] or [slog.TextHandler] for [ramp.HandlerConfig].Logger and [Config].Logger,
// also as Docker, Kubernetes, journald, syslog or a log service that stores JSON have wrapped each
// line. They may overlap, and have copies of records: each order has one effect for each state that
// it entered.
//
// All records of a log have one form. If one record is not wrapped, Lost reads only those that are
// not: a wrapped one may be what another program quotes, and a player could have written it. Records of
// orders of other projects are skipped.
// Besides the orders, Lost returns an error if a line is not a record of the log but quotes one, or
// if a log has no record of a step at all.
func (o *Orders) Lost(ctx context.Context, logs ...io.Reader) (lost []Logged, unread error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	count := 0
	var orders []*loggedSteps
	known := map[uuid.UUID]*loggedSteps{}
	for n, log := range logs {
		records, err := readSteps(log)
		if err != nil && len(logs) > 1 {
			err = fmt.Errorf("log %d: %w", n+1, err)
		}
		unread = errors.Join(unread, err)
		count += len(records)
		for _, r := range records {
			if o.isForeign(r) {
				continue
			}
			one := known[r.UUID]
			if one == nil {
				one = &loggedSteps{Logged: Logged{UUID: r.UUID}}
				known[r.UUID], orders = one, append(orders, one)
			}
			one.add(r)
		}
	}
	for _, one := range orders {
		stored, err := o.order(ctx, one.UUID)
		one.Missing = errors.Is(err, ramp.ErrOrderUnknown)
		switch {
		case errors.Is(err, ramp.ErrOrderForeign):
		case err != nil && !one.Missing:
			return nil, err
		case one.Missing, stored.State == ramp.OrderAccepted && one.State != ramp.OrderAccepted:
			lost = append(lost, one.logged())
		}
	}
	o.log().InfoContext(ctx, "ramp: logs read", "records", count, "orders", len(orders), "lost", len(lost))
	return lost, unread
}

// isForeign reports whether a record of a log that games share is of an order of another project or network.
func (o *Orders) isForeign(r *stepRecord) bool {
	order := ramp.Order{ProjectID: r.ProjectID, Network: o.scope.Network}
	if r.Stored.order != nil {
		order = *r.Stored.order
	}
	return order.ProjectID != "" && o.scope.Check(&order) != nil
}

// formRecords are the records of a log that have one form.
type formRecords struct {
	form  string // "" if they are not wrapped
	line  int    // of the first
	steps []*stepRecord
}

// readSteps returns the records of a log, and an error if it may have more.
func readSteps(log io.Reader) ([]*stepRecord, error) {
	var forms []*formRecords // those that are not wrapped come first
	lines := bufio.NewReader(log)
	strange, first := 0, 0 // lines that may hold a record
	for n := 1; ; n++ {
		line, end := lines.ReadBytes('\n')
		found, ok := readLine(line)
		if !ok {
			strange, first = strange+1, cmp.Or(first, n)
		}
		for _, f := range found {
			at := slices.IndexFunc(forms, func(of *formRecords) bool { return of.form == f.form })
			if at < 0 {
				forms = append(forms, &formRecords{form: f.form, line: n})
				at = len(forms) - 1
			}
			forms[at].steps = append(forms[at].steps, f.step)
		}
		if errors.Is(end, io.EOF) {
			break
		}
		if end != nil {
			return nil, fmt.Errorf("ramp: read the log: %w", end)
		}
	}
	slices.SortStableFunc(forms, func(a, b *formRecords) int {
		return cmp.Compare(min(len(a.form), 1), min(len(b.form), 1))
	})
	var steps []*stepRecord
	for n, of := range forms {
		switch {
		case n == 0:
			steps = of.steps
		case forms[0].form == "":
			strange, first = strange+len(of.steps), min(cmp.Or(first, of.line), of.line)
		default: // which of them is the server's?
			return nil, fmt.Errorf("ramp: read the log: it has records in two forms, on lines %d and %d, "+
				"and a player may have written one of them: give each form a file of its own",
				forms[0].line, of.line)
		}
	}
	const want = "give each record a line of its own, as slog.JSONHandler writes it"
	switch {
	case strange > 0:
		return steps, fmt.Errorf("ramp: read the log: lines that may hold a record, but are none: %d, "+
			"the first is line %d: %s", strange, first, want)
	case len(steps) == 0:
		return nil, fmt.Errorf("ramp: read the log: it has no record of an order: %s", want)
	}
	return steps, nil
}
