package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

// bookkeeper compares the orders with the token's events; see [support.Orders.Reconcile].
// It corrects nothing. Run it on one server only.
type bookkeeper struct {
	orders   *support.Orders
	period   support.Period // without its times
	position string         // file with the end of the last books; "" keeps none
	log      *slog.Logger

	mu     sync.Mutex
	counts map[support.FindingKind]int
	to     time.Time
}

// newBookkeeper returns a bookkeeper for what is sold.
func newBookkeeper(ctx context.Context, store *ramp.SQLStore, chain *ramp.RPC, c chainFlags, t terms, project, position string, log *slog.Logger) (*bookkeeper, error) {
	c.anyFailure = true // only its contracts and decimals count
	erc20 := common.HexToAddress(t.tokens[0])
	proof, err := c.proof(ctx, chain, &erc20)
	if err != nil {
		return nil, err
	}
	orders, err := support.New(support.Config{Store: store, Chain: chain, Proof: proof, Confirmations: c.confirmations, ProjectID: project, Logger: log})
	return &bookkeeper{orders: orders, period: support.Period{Products: t.products, Network: t.network}, position: position, log: log, to: time.Now()}, err
}

// keep looks every hour until ctx is done.
func (b *bookkeeper) keep(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		books, err := b.look(ctx, time.Time{}, time.Time{})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.log.ErrorContext(ctx, "the books were not read", "error", err)
		default:
			for _, f := range books.Findings {
				attrs := []any{"kind", f.Kind, "detail", f.Detail, "time", f.Time()}
				for _, o := range f.Orders {
					attrs = append(attrs, "uuid", o.UUID)
				}
				for _, e := range f.Events {
					attrs = append(attrs, "tx_hash", e.TxHash, "user", e.User)
				}
				b.log.ErrorContext(ctx, "the books do not close", attrs...)
			}
			err = b.done(books)
			if err != nil {
				b.log.ErrorContext(ctx, "the position of the books was not kept", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the books of a time. By default they begin where the last ones ended, or a
// day ago, and end now.
func (b *bookkeeper) look(ctx context.Context, from, to time.Time) (*support.Books, error) {
	p := b.period
	p.From, p.To = from, to
	if from.IsZero() {
		p.From = time.Now().Add(-24 * time.Hour)
		var last struct{ To time.Time }
		text, err := os.ReadFile(b.position)
		switch {
		case b.position == "", errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case json.Unmarshal(text, &last) != nil || last.To.IsZero():
			return nil, fmt.Errorf("%s is not a position of the books", b.position)
		default:
			p.From = last.To.Add(-support.Overlap)
		}
	}
	return b.orders.Reconcile(ctx, p)
}

// done keeps the position of books that were reported: as a whole, or not at all.
func (b *bookkeeper) done(books *support.Books) error {
	b.mu.Lock()
	b.counts, b.to = books.Counts(), books.To
	b.mu.Unlock()
	if b.position == "" {
		return nil
	}
	text, err := json.Marshal(struct{ To time.Time }{books.To})
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.position+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(b.position+".new", b.position)
}

// findings returns how many findings of each kind the last books have, and until when
// they were read, for metrics.
func (b *bookkeeper) findings() (counts map[support.FindingKind]int, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts, b.to
}

// reconcile prints the books of a time. If they do not close, it fails.
func reconcile(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gameserver reconcile", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("db", "sqlite:gameserver.db", "`database` of the server")
	position := flags.String("position", "", "`file` with the end of the last books, where these begin unless -from is set")
	format := flags.String("format", "text", "text, json, csv (the findings) or totals (as CSV)")
	var from, to day
	flags.Var(&from, "from", "beginning, a `date` or a time in RFC 3339; by default where the last books ended, or a day ago")
	flags.Var(&to, "to", "end, likewise, and not included; by default now")
	var s sold
	s.add(flags)
	var c chainFlags
	c.add(flags)
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	write := map[string]func(*support.Books) error{
		"text":   func(b *support.Books) error { _, err := io.WriteString(stdout, b.Text()); return err },
		"json":   func(b *support.Books) error { return json.NewEncoder(stdout).Encode(b) },
		"csv":    func(b *support.Books) error { return b.WriteCSV(stdout) },
		"totals": func(b *support.Books) error { return b.WriteTotalsCSV(stdout) },
	}[*format]
	if write == nil {
		return usageError("-format must be text, json, csv or totals")
	}
	terms, err := s.terms()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	chain, err := openChain(ctx, getenv("RAMP_RPC_URL"), c.id, log, ramp.Observer{})
	if err == nil && chain == nil {
		err = errors.New("RAMP_RPC_URL and -chain-id are required: the orders are compared with the chain")
	}
	if err != nil {
		return err
	}
	game, store, err := openOrders(ctx, *address)
	if err != nil {
		return err
	}
	defer game.db.Close()
	keeper, err := newBookkeeper(ctx, store, chain, c, terms, s.project, *position, log)
	if err != nil {
		return err
	}
	books, err := keeper.look(ctx, time.Time(from), time.Time(to))
	if err != nil {
		return err
	}
	if err := cmp.Or(write(books), keeper.done(books)); err != nil {
		return err
	}
	if books.To.Before(time.Time(to)) {
		log.WarnContext(ctx, "the books end before -to: later blocks are not final yet", "end", books.To)
	}
	if n := len(books.Findings); n > 0 {
		return fmt.Errorf("the books do not close; findings: %d", n)
	}
	return nil
}

// day is a flag that holds a date or a time.
type day time.Time

func (d *day) String() string { return time.Time(*d).Format(time.RFC3339) }

func (d *day) Set(text string) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			*d = day(at)
			return nil
		}
	}
	return errors.New("must be a date such as 2026-11-01, or a time in RFC 3339")
}
