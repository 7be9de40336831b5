package rampsql

import (
	"slices"
	"strconv"
	"strings"
)

// The settings of each database that checkDurability reads, in two columns.
const (
	settingsPostgreSQL = "SELECT name, setting FROM pg_settings WHERE name IN ('fsync'," +
		" 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')"
	settingsMySQL = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit'," +
		" 'log_bin', 'sync_binlog'," +
		" 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_wait_point', " +
		"'rpl_semi_sync_master_timeout'," +
		" 'rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_wait_point', 'rpl_semi_sync_source_timeout')"
	settingsSQLite = "SELECT 'synchronous', CAST(synchronous AS TEXT) FROM pragma_synchronous" +
		" UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode"
)

func weakPostgreSQL(are map[string]string) (weak []string) {
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if are[name] == "off" {
			weak = append(weak, name+"=off: a commit may not be on disk")
		}
	}
	if are["synchronous_standby_names"] != "" && are["synchronous_commit"] == "local" {
		weak = append(weak, "synchronous_commit=local: a commit does not wait for the standby")
	}
	return weak
}

func weakMySQL(are map[string]string) (weak []string) {
	differs := func(name, right, problem string) {
		if value, known := are[name]; known && value != right {
			weak = append(weak, name+"="+value+": "+problem)
		}
	}
	differs("innodb_flush_log_at_trx_commit", "1", "a commit may not be on disk")
	if are["log_bin"] == "ON" {
		differs("sync_binlog", "1", "after a crash, what the binary log lacks is rolled back")
	}
	for _, prefix := range []string{"rpl_semi_sync_master_", "rpl_semi_sync_source_"} {
		if are[prefix+"enabled"] != "ON" {
			continue
		}
		differs(prefix+"wait_point", "AFTER_SYNC", "a repeat is answered before a replica has the order")
		const hour = 3_600_000
		if n, err := strconv.Atoi(are[prefix+"timeout"]); err == nil && n < hour {
			weak = append(weak, prefix+"timeout="+are[prefix+"timeout"]+
				": after these milliseconds, a commit is confirmed without a replica")
		}
	}
	return weak
}

func weakSQLite(are map[string]string) (weak []string) {
	mode := strings.ToLower(are["journal_mode"])
	switch level := are["synchronous"]; {
	case level == "0":
		weak = append(weak, "synchronous=off: a commit may not be on disk")
	case level == "1" && mode == "wal":
		weak = append(weak, "synchronous=normal: with WAL, the last commits are lost when the power fails")
	}
	if slices.Contains([]string{"off", "memory"}, mode) {
		weak = append(weak, "journal_mode="+mode+": a crash can destroy the database")
	}
	return weak
}
