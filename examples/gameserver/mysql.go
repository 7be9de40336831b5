// To make it yours: remove this file if you do not use MySQL or MariaDB.

package main

import (
	"cmp"
	"database/sql"
	"os"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/token-ramp/ramp-go/rampsql"
)

func init() {
	// The name of a lock counts on the whole server, and has at most 64 characters.
	const lock = "CONCAT('migration.7242164.', MD5(DATABASE()))"
	dialects["mysql"] = dialect{sql: rampsql.MySQL, form: "mysql:DSN", open: openMySQL,
		translate: translateMySQL(), denied: "command denied to user",
		lock: "SELECT GET_LOCK(" + lock + ", 0) = 1", unlock: "SELECT RELEASE_LOCK(" + lock + ")",
		impatient: "SET lock_wait_timeout = 1", patient: "SET lock_wait_timeout = DEFAULT",
		gaveUp: "Error 1205"}
}

func openMySQL(address string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(strings.TrimPrefix(address, "mysql:"))
	if err != nil {
		return nil, err
	}
	config.Passwd = cmp.Or(config.Passwd, os.Getenv("MYSQL_PWD")) // pgx reads PGPASSWORD itself
	config.Timeout = cmp.Or(config.Timeout, connectTimeout)
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["autocommit"] = "1" // which a server may have turned off
	return sql.Open("mysql", config.FormatDSN())
}

// translateMySQL returns what translates ON CONFLICT. INSERT IGNORE would also ignore other errors.
func translateMySQL() func(statement string) string {
	inserted := regexp.MustCompile(`INSERT INTO (\w+) \((\w+)`)
	update := regexp.MustCompile(`ON CONFLICT \([^)]*\) DO UPDATE SET`)
	excluded := regexp.MustCompile(`excluded\.(\w+)`)
	return func(statement string) string {
		if into := inserted.FindStringSubmatch(statement); into != nil {
			nothing := "ON DUPLICATE KEY UPDATE " + into[2] + " = " + into[1] + "." + into[2]
			statement = strings.Replace(statement, "ON CONFLICT DO NOTHING", nothing, 1)
			statement = update.ReplaceAllString(statement, "ON DUPLICATE KEY UPDATE")
			return excluded.ReplaceAllString(statement, "VALUES($1)")
		}
		if strings.Contains(statement, "CREATE TABLE") { // its text is not case-sensitive by default
			return strings.ReplaceAll(statement, ") NOT NULL",
				") CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
		}
		return statement
	}
}
