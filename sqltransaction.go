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

// transaction is a transaction of a [SQLStore]. It closes a gap of MySQL and
// SQLite: at some errors, such as a deadlock, they roll back the whole transaction,
// and later statements would commit one by one. A game that ignores the error would
// then move assets for an order that is not recorded. Therefore autocommit is
// turned off on MySQL, and on SQLite a hook refuses every commit but the
// transaction's own. PostgreSQL refuses every statement after an error, and needs
// neither.
type transaction struct {
	*sql.Tx
	dialect   Dialect
	conn      *sql.Conn // the connection of Tx; nil on PostgreSQL
	committed bool
	refuse    *atomic.Bool // whether the commit hook of SQLite refuses commits
}

// open begins a transaction.
func (s *SQLStore) open(ctx context.Context) (*transaction, error) {
	if s.config.Dialect == PostgreSQL {
		tx, err := s.config.DB.BeginTx(ctx, s.config.TxOptions)
		return &transaction{Tx: tx, dialect: PostgreSQL}, err
	}
	for attempt := 1; ; attempt++ {
		t, err := s.openOnConn(ctx)
		// The server may have closed an idle connection. Nothing has been done yet,
		// so retry with another one, as database/sql does.
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

// commit commits if the transaction still holds what its step wrote. check is the
// SQL condition for that on MySQL. The others refuse to commit a transaction that
// they have rolled back.
func (t *transaction) commit(ctx context.Context, check string) error {
	var err error
	switch t.dialect {
	case MySQL:
		// Turning autocommit on commits. The server evaluates the condition first
		// and rejects the value 2. So one round trip checks, commits and restores.
		_, err = t.ExecContext(context.WithoutCancel(ctx), "SET autocommit = IF("+check+", 1, 2)")
		if err == nil {
			err = t.Commit() // usually a no-op, but a proxy may not have passed autocommit on
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

// close rolls back unless the transaction was committed. It returns the connection
// to the pool in its original state, or discards it.
func (t *transaction) close(ctx context.Context) {
	// Turning autocommit on commits an open transaction. Do so only after the
	// server has confirmed the rollback: after a canceled context, for example,
	// database/sql may still be rolling back.
	rolledBack := t.Rollback() == nil
	if t.conn == nil {
		return
	}
	switch {
	case t.dialect == SQLite:
		t.refuse.Store(false)
	case t.committed: // autocommit is on again
	case rolledBack && t.restoreAutocommit(ctx) == nil:
	default:
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // discards it
	}
	_ = t.conn.Close()
}

func (t *transaction) restoreAutocommit(ctx context.Context) error {
	_, err := t.conn.ExecContext(context.WithoutCancel(ctx), "SET autocommit = 1")
	return err
}

// setCommitHook makes a SQLite connection refuse every commit while refuse is true.
// The hook stays until the next transaction sets its own, because removing it costs
// as much as setting it. It cannot be set once per connection, because another
// store may set its own meanwhile.
//
// modernc.org/sqlite and mattn/go-sqlite3 both have the method RegisterCommitHook,
// but with their own types, and this package does not depend on a driver. With
// other drivers, setCommitHook does nothing.
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
