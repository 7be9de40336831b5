package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/bench/sqlitecount"
)

// statements counts the statements that the server executes for an order without
// duplicates. They are counted on another run of the server, which is not measured.
// player is one who exists, or nil if one has to log in first.
func (l *load) statements(source string, player *loadPlayer) (string, error) {
	const warmUp, orders = 10, 50 // the first orders prepare their statements
	server := &load{dir: l.dir, key: l.key, http: l.http, source: source}
	start := server.startCountedSQLite
	if l.postgres {
		start = server.startCountedPostgreSQL
	}
	count, err := start(l.address)
	defer server.stop()
	if err != nil {
		return "", err
	}
	if player == nil {
		if err := server.login("counted"); err != nil {
			return "", err
		}
		player = server.players[0]
	}
	var before, after statementCount
	for n := range warmUp + orders {
		if n == warmUp {
			if before, err = count(); err != nil {
				return "", err
			}
		}
		validate, result := orderBodies(player.session, n%2 == 0, n%10 < 2)
		if _, err := server.call(player, ramp.PathValidate, validate); err != nil {
			return "", err
		}
		if _, err := server.call(player, ramp.PathResult, result); err != nil {
			return "", err
		}
	}
	if after, err = count(); err != nil {
		return "", err
	}
	if after == before {
		return "", errors.New("count statements: none was counted")
	}
	if _, err := l.db.Exec("DELETE FROM ramp_orders"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.1f, and %.1f BEGIN and COMMIT", float64(after.executed-before.executed)/orders,
		float64(after.transactions-before.transactions)/orders), nil
}

// statementCount is how many statements a server has executed since its start.
type statementCount struct{ executed, transactions int64 }

// startCountedSQLite starts a server whose SQLite driver writes one byte for each
// statement to a file. The server is built from the same source, except for the line
// that opens the database.
func (l *load) startCountedSQLite(address string) (func() (statementCount, error), error) {
	overlay, err := l.overlay()
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(l.dir, "statements"))
	if err != nil {
		return nil, err
	}
	defer file.Close() // the server keeps its own
	if err := l.start(address, file, "-overlay", overlay); err != nil {
		return nil, err
	}
	return func() (statementCount, error) {
		written, err := os.ReadFile(file.Name())
		return statementCount{
			executed:     int64(bytes.Count(written, []byte{sqlitecount.Execute})),
			transactions: int64(bytes.Count(written, []byte{sqlitecount.Transaction})),
		}, err
	}, nil
}

// overlay writes a file for go build -overlay that gives gameserver the package
// sqlitecount, and opens SQLite with it.
func (l *load) overlay() (string, error) {
	game, err := filepath.Abs(gameserver)
	if err != nil {
		return "", err
	}
	counter, err := filepath.Abs("sqlitecount/sqlitecount.go")
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(game, "database.go"))
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, edit := range []struct{ before, after string }{
		{`sql.Open("sqlite", `, `sqlitecount.Open(`},
		{"import (", `import (` + "\n\t" + `"github.com/token-ramp/ramp-go/examples/gameserver/sqlitecount"`},
	} {
		if strings.Count(text, edit.before) != 1 {
			return "", fmt.Errorf("count statements: database.go of gameserver does not have one %q", edit.before)
		}
		text = strings.Replace(text, edit.before, edit.after, 1)
	}
	edited, overlay := filepath.Join(l.dir, "database.go"), filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(edited, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(game, "database.go"):                   edited,
		filepath.Join(game, "sqlitecount", "sqlitecount.go"): counter,
	}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// startCountedPostgreSQL starts a server behind a proxy to PostgreSQL that counts the
// messages on the wire.
func (l *load) startCountedPostgreSQL(address string) (func() (statementCount, error), error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.wire = listener
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
	return func() (statementCount, error) {
		return statementCount{executed.Load(), transactions.Load()}, nil
	}, l.start(u.String(), nil)
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
