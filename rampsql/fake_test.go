package rampsql_test

import (
	"context"
	"database/sql/driver"
	"io"
)

// fakeDB is a database that answers each statement with a value, or breaks off.
type fakeDB struct {
	answer     func(statement string) (string, error) // the value of the only row; "" for no row
	begins     int
	options    driver.TxOptions
	statements string
}

// breaking returns a database that breaks off in every answer.
func breaking(err error) *fakeDB {
	return &fakeDB{answer: func(string) (string, error) { return "", err }}
}

func (d *fakeDB) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (*fakeDB) Driver() driver.Driver                          { return nil }
func (*fakeDB) Close() error                                   { return nil }
func (d *fakeDB) Begin() (driver.Tx, error)                    { return d, nil }
func (*fakeDB) Commit() error                                  { return nil }
func (*fakeDB) Rollback() error                                { return nil }

func (d *fakeDB) BeginTx(_ context.Context, options driver.TxOptions) (driver.Tx, error) {
	d.begins++
	d.options = options
	return d, nil
}

func (d *fakeDB) Prepare(statement string) (driver.Stmt, error) {
	d.statements += statement
	value, err := d.answer(statement)
	return &fakeAnswer{value, err}, nil
}

// fakeAnswer is a statement and its answer.
type fakeAnswer struct {
	value string
	err   error
}

func (*fakeAnswer) Close() error  { return nil }
func (*fakeAnswer) NumInput() int { return -1 }
func (a *fakeAnswer) Exec([]driver.Value) (driver.Result, error) {
	return driver.RowsAffected(0), a.err
}
func (a *fakeAnswer) Query([]driver.Value) (driver.Rows, error) { return a, nil }
func (*fakeAnswer) Columns() []string                           { return []string{"only"} }
func (a *fakeAnswer) Next(into []driver.Value) (err error) {
	if a.err == nil && a.value == "" {
		return io.EOF
	}
	into[0], a.value = a.value, ""
	return a.err
}
