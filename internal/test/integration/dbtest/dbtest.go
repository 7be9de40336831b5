// Package dbtest tests the guarantees of rampsql.Store and ramp.Handler on real
// databases. It contains only tests.
//
// The tests always run on SQLite. They run on PostgreSQL and MariaDB if
// RAMP_TEST_POSTGRESQL and RAMP_TEST_MYSQL are set. The script
// internal/test/databases starts both.
package dbtest
