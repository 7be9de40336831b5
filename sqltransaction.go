package ramp

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
)

// transaction is one of a [SQLStore]. It closes a gap in MySQL and SQLite: at
// some errors, such as a deadlock, they roll back the whole transaction, and the
// statements after it would commit one by one. A game that ignores the error
// would then move assets for an order that is not recorded. So MySQL has
// autocommit turned off, and SQLite a hook that refuses every commit until the
// transaction's own. PostgreSQL refuses every statement after an error, and so
// needs nothing.
type transaction struct {
	*sql.Tx
	dialect   Dialect
	conn      *sql.Conn // the connection of Tx; nil on PostgreSQL
	committed bool
	refuse    *atomic.Bool // whether the commit hook of SQLite refuses
}

// open begins a transaction.
func (s *SQLStore) open(ctx context.Context) (*transaction, error) {
	if s.config.Dialect == PostgreSQL {
		tx, err := s.config.DB.BeginTx(ctx, s.config.TxOptions)
		return &transaction{Tx: tx, dialect: PostgreSQL}, err
	}
	for attempt := 1; ; attempt++ {
		t, err := s.openOnConn(ctx)
		// The server closed the connection while it was idle. Nothing has been
		// done yet, so another one is tried, as database/sql itself does.
		if errors.Is(err, driver.ErrBadConn) && attempt < 3 {
			continue
		}
		return t, err
	}
}

func (s *SQLStore) openOnConn(ctx context.Context) (*transaction, error) {
	conn, err := s.config.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &transaction{conn: conn, dialect: s.config.Dialect, refuse: new(atomic.Bool)}
	if t.Tx, err = conn.BeginTx(ctx, s.config.TxOptions); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if t.dialect == MySQL {
		_, err = t.ExecContext(ctx, "SET autocommit = 0")
	} else {
		t.refuse.Store(true)
		err = conn.Raw(func(c any) error { setCommitHook(c, t.refuse); return nil })
	}
	if err != nil {
		t.close(ctx)
		return nil, err
	}
	return t, nil
}

// commit commits if the transaction still holds what its step wrote: check is
// the condition for it in MySQL, which alone is asked. The others refuse to
// commit a transaction that they have rolled back.
func (t *transaction) commit(ctx context.Context, check string) error {
	var err error
	switch t.dialect {
	case MySQL:
		// Turning autocommit on commits. The server works out the value first,
		// and refuses 2. So one round trip checks, commits and restores.
		_, err = t.ExecContext(context.WithoutCancel(ctx), "SET autocommit = IF("+check+", 1, 2)")
		if err == nil {
			err = t.Commit() // usually of nothing; a proxy may have kept autocommit to itself
		} else if strings.Contains(err.Error(), "'autocommit'") {
			err = fmt.Errorf("%w (%w)", errRolledBack, err)
		}
	case SQLite:
		t.refuse.Store(false)
		err = t.Commit()
		if err != nil && strings.Contains(err.Error(), "no transaction is active") {
			err = fmt.Errorf("%w (%w)", errRolledBack, err)
		}
	default:
		err = t.Commit()
	}
	t.committed = err == nil
	return err
}

// close rolls back unless there was a commit, and returns the connection to the
// pool as it was, or discards it.
func (t *transaction) close(ctx context.Context) {
	// Turning autocommit on commits what is open. So it is done only when the
	// server has said that nothing is: after a canceled context, for one,
	// database/sql may still be rolling back.
	over := t.Rollback() == nil
	if t.conn == nil {
		return
	}
	switch {
	case t.dialect == SQLite:
		t.refuse.Store(false)
	case t.committed: // and autocommit is on
	case over && t.restoreAutocommit(ctx) == nil:
	default:
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // discards it
	}
	_ = t.conn.Close()
}

func (t *transaction) restoreAutocommit(ctx context.Context) error {
	_, err := t.conn.ExecContext(context.WithoutCancel(ctx), "SET autocommit = 1")
	return err
}

// setCommitHook lets a SQLite connection refuse every commit as long as refuse is
// true. The hook stays until the next transaction sets its own, because removing
// it costs as much as setting it. It cannot be set once for good, because another
// store may set its own on the same connection meanwhile.
//
// modernc.org/sqlite and mattn/go-sqlite3 both have the method
// RegisterCommitHook, but with types of their own, and this package depends on
// no driver. On another driver it does nothing.
func setCommitHook(conn any, refuse *atomic.Bool) {
	register := reflect.ValueOf(conn).MethodByName("RegisterCommitHook")
	if !register.IsValid() || register.Type().NumIn() != 1 {
		return
	}
	hook := register.Type().In(0)
	if hook.Kind() != reflect.Func || hook.NumIn() != 0 || hook.NumOut() != 1 || !hook.Out(0).ConvertibleTo(reflect.TypeFor[int]()) {
		return
	}
	register.Call([]reflect.Value{reflect.MakeFunc(hook, func([]reflect.Value) []reflect.Value {
		code := 0
		if refuse.Load() {
			code = 1
		}
		return []reflect.Value{reflect.ValueOf(code).Convert(hook.Out(0))}
	})})
}
