package harness

import (
	"testing"
)

func TestParseStatements_CountsByApplicationAndDatabase(t *testing.T) {
	t.Parallel()
	log := "sql berth berth: LOG:  execute stmtcache_1: \n\tselect 1\n" +
		"sql berth berth: DETAIL:  parameters: $1 = '7'\n" +
		"sql berth berth: LOG:  statement: begin\n" +
		"sql berth [unknown]: LOG:  execute stmtcache_2: select 'a statement of bench'\n" +
		"sql temporal [unknown]: LOG:  execute <unnamed>: select 1\n" +
		"sql temporal_visibility [unknown]: LOG:  statement: begin\n" +
		"sql [unknown] [unknown]: LOG:  connection received\n"
	if berth, temporal := parseStatements(log); berth != 2 || temporal != 2 {
		t.Errorf(
			"count the SQL statements in the log: got %d of berth and %d of Temporal, want 2 and 2",
			berth,
			temporal,
		)
	}
}
