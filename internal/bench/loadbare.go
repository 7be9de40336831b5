package main

import (
	"bufio"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
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
	var read [12]string
	var finished sql.NullString
	into := []any{&finished}
	for i := range read {
		into = append([]any{&read[i]}, into...)
	}

	if err := l.db.QueryRow(l.bind("SELECT token_hash, expires_at FROM sessions WHERE id = ?"), p.session).Scan(&read[0], &read[1]); err != nil {
		return err
	}
	if err := transact(l.db, func(tx *sql.Tx) error {
		if err := tx.QueryRow(l.bind("INSERT INTO ramp_orders ("+columns+") VALUES (?, ?, 'accepted', ?, 'bare', ?, ?, ?, ?, '', '', ?, NULL)"+
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
	var player string
	if err := tx.QueryRow(l.bind("SELECT player FROM sessions WHERE id = ?"), p.session).Scan(&player); err != nil || delta == 0 {
		return err
	}
	_, err := tx.Exec(l.bind("UPDATE inventory SET balance = balance + ? WHERE player = ? AND item = 'item_gold' AND balance BETWEEN ? AND ?"),
		delta, player, 0, 1<<60)
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

// statements counts the statements that the server sends to PostgreSQL for an order
// without duplicates.
func (l *load) statements() (string, error) {
	const orders = 200
	u, err := url.Parse(l.address)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	var executed, transactions atomic.Int64
	database := u.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", database)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { defer client.Close(); _, _ = io.Copy(client, server) }()
			go func() { defer server.Close(); countStatements(server, client, &executed, &transactions) }()
		}
	}()
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	counting := &load{dir: l.dir, key: l.key, http: l.http}
	if err := counting.start(u.String()); err != nil {
		return "", err
	}
	defer counting.stop()
	if err := counting.login("counted"); err != nil {
		return "", err
	}
	one := func(n int) error {
		validate, result := orderBodies(counting.players[0].session, n%2 == 0, n%10 < 2)
		if _, err := counting.call(counting.players[0], "/api/validate", validate); err != nil {
			return err
		}
		_, err := counting.call(counting.players[0], "/api/result", result)
		return err
	}
	for n := range orders + 20 {
		if n == 20 { // the first orders prepare their statements
			executed.Store(0)
			transactions.Store(0)
		}
		if err := one(n); err != nil {
			return "", err
		}
	}
	if _, err := l.db.Exec("DELETE FROM ramp_orders"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.1f, and %.1f BEGIN and COMMIT", float64(executed.Load())/orders, float64(transactions.Load())/orders), nil
}

// countStatements copies the messages of a PostgreSQL client and counts statements.
// Execute runs a prepared statement. Query runs a statement as text, such as BEGIN and
// COMMIT.
func countStatements(to io.Writer, from io.Reader, executed, texts *atomic.Int64) {
	const startup, execute, query = 0, 'E', 'Q'
	in := bufio.NewReader(from)
	for first := true; ; first = false {
		kind := byte(startup)
		var message []byte
		if !first {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			kind, message = b, []byte{b}
		}
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		rest := make([]byte, max(4, binary.BigEndian.Uint32(length[:]))-4)
		if _, err := io.ReadFull(in, rest); err != nil {
			return
		}
		switch kind {
		case execute:
			executed.Add(1)
		case query:
			texts.Add(1)
		}
		if _, err := to.Write(append(append(message, length[:]...), rest...)); err != nil {
			return
		}
	}
}
