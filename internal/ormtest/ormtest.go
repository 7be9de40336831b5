// Package ormtest tests docs/databases.md: a game that uses a database library moves its
// assets in the transaction of a ramp.SQLStore. It contains only tests.
package ormtest
