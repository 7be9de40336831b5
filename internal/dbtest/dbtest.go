// Package dbtest proves on real databases what ramp.SQLStore and
// ramp.OrderGame promise. It holds nothing but tests, in a module of its own, so that nobody
// who imports ramp pays for a driver.
//
// SQLite runs always. PostgreSQL and MariaDB run where RAMP_TEST_POSTGRESQL and
// RAMP_TEST_MYSQL say where they are; the script databases beside this file
// starts both.
package dbtest
