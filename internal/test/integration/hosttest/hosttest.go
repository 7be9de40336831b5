// Package hosttest tests docs/databases.md and docs/frameworks.md: a game moves its assets
// with a database library in the transaction of a rampsql.Store, and serves the handler in
// a framework. It contains only tests; hosts is a script.
package hosttest
