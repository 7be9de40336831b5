package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// bareOrder runs the SQL statements of one order of the same mix, without a server,
// HTTP, signatures or checks.
func (l *load) bareOrder() error {
	defer l.bareOrders.Add(1)
	p := l.bystanders[mathrand.IntN(len(l.bystanders))]
	burn, fails := mathrand.IntN(2) == 0, mathrand.IntN(10) < 2
	id, claim, direction, taken, given := uuid.NewString(), rand.Text(), "mint", -goldOfOrder, 0
	var digest [32]byte
	_, _ = rand.Read(digest[:])
	hash := "0x" + hex.EncodeToString(digest[:])
	if burn {
		direction, taken = "burn", 0
	}
	state := "succeeded"
	if fails {
		state = "failed"
	}
	if burn != fails { // grant a burn that succeeds, and give back a mint that fails
		given = goldOfOrder
	}
	const columns = "uuid, claim, state, direction, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
	var read [13]sql.NullString
	into := make([]any, len(read))
	for i := range read {
		into[i] = &read[i]
	}

	if err := l.db.QueryRow(l.bind("SELECT token_hash, expires_at FROM sessions WHERE id = ?"), p.session).Scan(&read[0], &read[1]); err != nil {
		return err
	}
	if err := l.db.QueryRow(l.bind("SELECT s.player, COALESCE(w.player, ''), COALESCE(c.closed, '') FROM sessions s"+
		" LEFT JOIN wallets w ON w.wallet = ? LEFT JOIN shop c ON c.closed <> '' WHERE s.id = ?"), playerAddress, p.session).Scan(into[:3]...); err != nil {
		return err
	}
	if err := transact(l.db, func(tx *sql.Tx) error {
		if err := tx.QueryRow(l.bind("INSERT INTO ramp_orders ("+columns+") VALUES (?, ?, 'accepted', ?, 'bare', ?, ?, ?, ?, NULL, '', ?, NULL)"+
			" ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING "+columns),
			id, claim, direction, p.session, playerAddress, hash, mintIntent, time.Now().UnixMilli()).Scan(into...); err != nil {
			return err
		}
		return l.bareApply(tx, p, taken)
	}); err != nil {
		return err
	}
	return transact(l.db, func(tx *sql.Tx) error {
		lock := "SELECT " + columns + " FROM ramp_orders WHERE uuid = ? FOR UPDATE"
		if !l.postgres {
			lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + columns
		}
		if err := tx.QueryRow(l.bind(lock), id).Scan(into...); err != nil {
			return err
		}
		if _, err := tx.Exec(l.bind("UPDATE ramp_orders SET claim = ?, state = ?, tx_hash = ?, reason = '', finished_at = ? WHERE uuid = ? AND state = 'accepted'"),
			rand.Text(), state, hash, time.Now().UnixMilli(), id); err != nil {
			return err
		}
		return l.bareApply(tx, p, given)
	})
}

func (l *load) bareApply(tx *sql.Tx, p *loadPlayer, delta int) error {
	if delta == 0 {
		return nil
	}
	_, err := tx.Exec(l.bind("UPDATE inventory SET balance = balance + ? WHERE player = (SELECT player FROM sessions WHERE id = ?) AND item = 'item_gold' AND balance BETWEEN ? AND ?"),
		delta, p.session, 0, 1<<60)
	return err
}

// bind converts the placeholders of a statement to those of the database.
func (l *load) bind(statement string) string {
	if !l.postgres {
		return statement
	}
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}
