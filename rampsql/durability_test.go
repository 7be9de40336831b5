package rampsql

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Which settings lose a commit depends on others.
func TestSettingsThatLoseCommits(t *testing.T) {
	type settings = map[string]string
	for name, c := range map[string]struct {
		weak func(map[string]string) []string
		are  settings
		want []string
	}{
		"a local commit beside a standby": {weakPostgreSQL, settings{"synchronous_commit": "local",
			"synchronous_standby_names": "*"},
			[]string{"synchronous_commit=local: a commit does not wait for the standby"}},
		"a local commit, alone": {weakPostgreSQL, settings{"synchronous_commit": "local"}, nil},
		"no full pages": {weakPostgreSQL, settings{"full_page_writes": "off", "fsync": "on"},
			[]string{"full_page_writes=off: a commit may not be on disk"}},

		"MySQL's defaults": {weakMySQL, settings{"innodb_flush_log_at_trx_commit": "1",
			"log_bin": "ON", "sync_binlog": "1", "rpl_semi_sync_source_enabled": "OFF",
			"rpl_semi_sync_source_wait_point": "AFTER_COMMIT"}, nil},
		"MariaDB's defaults, with a binary log": {weakMySQL, settings{"innodb_flush_log_at_trx_commit": "1",
			"log_bin": "ON", "sync_binlog": "0"},
			[]string{"sync_binlog=0: after a crash, what the binary log lacks is rolled back"}},
		"no binary log": {weakMySQL, settings{"log_bin": "OFF", "sync_binlog": "0"}, nil},
		"a replica, by default": {weakMySQL, settings{"rpl_semi_sync_master_enabled": "ON",
			"rpl_semi_sync_master_wait_point": "AFTER_COMMIT", "rpl_semi_sync_master_timeout": "10000"},
			[]string{"rpl_semi_sync_master_wait_point=AFTER_COMMIT: " +
				"a repeat is answered before a replica has the order",
				"rpl_semi_sync_master_timeout=10000: " +
					"after these milliseconds, a commit is confirmed without a replica"}},
		"a replica that is waited for": {weakMySQL, settings{"rpl_semi_sync_source_enabled": "ON",
			"rpl_semi_sync_source_wait_point": "AFTER_SYNC", "rpl_semi_sync_source_timeout": "4294967295"}, nil},

		"SQLite's default": {weakSQLite, settings{"synchronous": "2", "journal_mode": "delete"}, nil},
		"no journal": {weakSQLite, settings{"synchronous": "2", "journal_mode": "memory"},
			[]string{"journal_mode=memory: a crash can destroy the database"}},
		"normal without WAL": {weakSQLite, settings{"synchronous": "1", "journal_mode": "delete"}, nil},
	} {
		assert.Equal(t, c.want, c.weak(c.are), name)
	}
}
