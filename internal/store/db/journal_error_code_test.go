package db_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"berth/internal/store/storetest"
)

// An older program has written only the sentence of the last error.
func TestMigrateErrorCode_OpenEntriesGetTheCodeOfTheirSentence(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("migrations/00055_journal_error_code.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	url := storetest.URL(t)
	storetest.Exec(t, url, down)
	storetest.Exec(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, finished_at, last_error)
		select 'port', 'p1', 'create', '{}', '{}', 'demo', 'p1', state, case state when 'completed' then now() end, last_error
		from (values ('pending', 'the controller does not know an object that this one refers to (442)'),
			('completed', 'the controller does not know an object that this one refers to (442)'), ('pending', 'the controller answered 500'),
			('pending', '')) as entry (state, last_error)`)

	storetest.Exec(t, url, up)

	rows, err := storetest.Connect(t, url).
		Query(t.Context(), `select error_code from journal_entry order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	codes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"missing_parent", "", "", ""}, codes); d != "" {
		t.Errorf("codes after the migration (-want +got):\n%s", d)
	}
}
