// This file keeps the decisions that a person makes about findings of the books. To make it yours: change
// nothing, or keep them where your game has its own ledger.

package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/rampbooks"
)

const entryColumns = "id, at, who, reason, finding, order_id, tx_hash, moved, reverses"

// Add stores what a person decided about a finding of the books, and ends the finding, or opens it again.
// Two entries with one ID are an error.
func (g *game) Add(ctx context.Context, e rampbooks.Entry) error {
	moved, err := json.Marshal(e.Moved)
	if err != nil {
		return err
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	const insert = "INSERT INTO entries (" + entryColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	err = g.change(ctx, tx, 1, insert, e.ID.String(), e.At.UnixMilli(), e.Who, e.Reason,
		string(e.Finding), textOf(e.Order), e.TxHash.Hex(), string(moved), textOf(e.Reverses))
	if err == nil {
		err = g.endFinding(ctx, tx, e)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// endFinding ends the finding that a decision is about, or opens it again for a reversal.
func (g *game) endFinding(ctx context.Context, tx *sql.Tx, e rampbooks.Entry) (err error) {
	switch {
	case e.Reverses != uuid.Nil:
		const open = "UPDATE findings SET entry = '' WHERE entry = ?"
		_, err = tx.ExecContext(ctx, g.bind(open), e.Reverses.String())
	case e.Finding != "":
		const end = "UPDATE findings SET entry = ? WHERE kind = ? AND entry = '' AND about LIKE ?"
		of := cmp.Or(textOf(e.Order), e.TxHash.String())
		_, err = tx.ExecContext(ctx, g.bind(end), e.ID.String(), string(e.Finding), "%"+of+"%")
	}
	return err
}

// Entries returns what was decided since a time.
func (g *game) Entries(ctx context.Context, since time.Time) (entries []rampbooks.Entry, err error) {
	from := since.UnixMilli()
	if since.IsZero() {
		from = 0
	}
	query := g.bind("SELECT " + entryColumns + " FROM entries WHERE at >= ? ORDER BY at, id")
	rows, err := g.db.QueryContext(ctx, query, from)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e rampbooks.Entry
		var at int64
		var id, order, hash, moved, reverses string
		err := rows.Scan(&id, &at, &e.Who, &e.Reason, &e.Finding, &order, &hash, &moved, &reverses)
		if err != nil {
			return nil, err
		}
		for n, text := range []string{id, order, reverses} {
			if text == "" {
				continue
			}
			into := []*uuid.UUID{&e.ID, &e.Order, &e.Reverses}[n]
			if *into, err = uuid.Parse(text); err != nil {
				return nil, err
			}
		}
		e.At, e.TxHash = time.UnixMilli(at).UTC(), common.HexToHash(hash)
		if err := json.Unmarshal([]byte(moved), &e.Moved); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// textOf writes a UUID, or nothing for none.
func textOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
