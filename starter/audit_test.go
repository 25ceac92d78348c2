package main

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/operator"
	"berth/internal/auditlog"
	"berth/internal/identity"
	"berth/internal/store"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
	"berth/starter/cli"
)

// auditCommands runs command lines against an API whose audit log has the records that a test adds.
type auditCommands struct {
	store *store.Store
	url   string // of the database
	api   string // URL of the API
}

func newAuditCommands(t *testing.T) auditCommands {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	api := httptest.NewServer(openapitest.API(t, operator.Description(), operator.New(operator.Options{Audit: s.Audit, Identity: identity.Noauth{}})))
	t.Cleanup(api.Close)
	return auditCommands{s, url, api.URL}
}

// add commits a transaction with one record for each ID of a port, and seals the records.
func (a auditCommands) add(t *testing.T, r auditlog.Record, ports ...string) {
	t.Helper()
	ctx := db.WithRecorder(t.Context(), &auditstore.Request{Record: func() auditlog.Record { return r }})
	if err := a.store.DB.InTx(ctx, func(tx db.Tx) error {
		for _, id := range ports {
			tx.Changed(db.Change{
				Type:   "port",
				ID:     id,
				Before: new(int64(3)),
				After:  new(int64(4)),
			})
		}
		_, err := tx.Exec(ctx, `insert into resource_class (name) values ($1)`, "CUSTOM_"+ports[0])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = a.store.Audit.Seal(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func (a auditCommands) run(t *testing.T, line ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), line, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + a.api}, &out, &out)
	if err != nil {
		cli.ReportError(&out, err)
	}
	return cli.ExitCode(err), out.String()
}

func TestAudit_ListSelectsRecords(t *testing.T) {
	t.Parallel()
	a := newAuditCommands(t)
	record := auditlog.Record{
		At:      time.Now().Add(-3 * time.Hour),
		Outcome: auditlog.Success,
		User:    "ann",
		Project: "demo",
		Method:  "PUT",
		Route:   "/r",
	}
	a.add(t, record, "one")
	record.At, record.User, record.Project = time.Now().Add(-time.Hour), "bob", "other"
	a.add(t, record, "two", "three")
	record.Outcome = auditlog.Denied
	a.add(t, record, "four")

	for line, want := range map[string]string{
		"audit list":                                    "four three two one",
		"audit list --limit 2":                          "four three",
		"audit list --limit 2 --marker 3":               "two one",
		"audit list --project demo":                     "one",
		"audit list --user bob":                         "four three two",
		"audit list --object two":                       "two",
		"audit list --object port/two":                  "two",
		"audit list --object network/two":               "",
		"audit list --outcome denied":                   "four",
		"audit list --outcome success --user bob":       "three two",
		"audit list --since 2h":                         "four three two",
		"audit list --until 2h":                         "one",
		"audit list --since 1d --until 90m":             "one",
		"audit list --since 2000-01-01 --until 99d":     "",
		"audit list --since 2000-01-01T00:00:00+02:00":  "four three two one",
		"audit list --project demo --object port/three": "",
	} {
		code, out := a.run(t, strings.Fields(line+" -o json")...)
		var got []struct {
			ID string `json:"object_id"`
		}
		if err := cli.Decode([]byte(out), &got); err != nil || code != cli.ExitOK {
			t.Errorf("starter %s: got exit code %d and %s, want JSON", line, code, out)
		}
		var ids []string
		for _, g := range got {
			ids = append(ids, g.ID)
		}
		if d := cmp.Diff(want, strings.Join(ids, " ")); d != "" {
			t.Errorf("starter %s: other records (-want +got):\n%s", line, d)
		}
	}
	if _, out := a.run(t, "audit", "list", "--limit", "1"); !strings.Contains(out, "denied") ||
		!strings.Contains(out, "bob") ||
		!strings.Contains(out, "PUT") {
		t.Errorf("starter audit list: got the table\n%s, want the outcome, the user and the method", out)
	}
	for line, code := range map[string]int{
		"--since soon":    cli.ExitUsage,
		"--outcome maybe": cli.ExitOther,
		"--limit 0":       cli.ExitOther,
		"--marker -1":     cli.ExitOther,
	} {
		if got, out := a.run(t, strings.Fields("audit list "+line)...); got != code {
			t.Errorf("starter audit list %s: got exit code %d and %s, want %d", line, got, out, code)
		}
	}
}

// onTerminal runs a command line whose output is a terminal, and returns what the terminal gets.
func (a auditCommands) onTerminal(t *testing.T, line ...string) string {
	t.Helper()
	screen, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	shown := make(chan []byte, 1)
	go func() {
		raw, _ := io.ReadAll(screen) // ends with an error when the program has closed the terminal
		shown <- raw
	}()
	err = run(t.Context(), line, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + a.api}, program, program)
	_ = program.Close()
	if err != nil {
		t.Errorf("starter %s on a terminal: %v", strings.Join(line, " "), err)
	}
	return strings.ReplaceAll(string(<-shown), "\r\n", "\n") // the terminal adds the \r
}

// A record contains texts of Keystone and of clients. A file gets the bytes that the hash covers.
func TestAudit_RecordsControlNoTerminal(t *testing.T) {
	t.Parallel()
	const user = "ann\x1b[2J\u009b31m\u202e"
	a := newAuditCommands(t)
	a.add(t, auditlog.Record{At: time.Now(), Outcome: auditlog.Success, User: user, Address: user}, "one")

	for _, line := range []string{"audit export", "audit list", "audit list -o json"} {
		shown := a.onTerminal(t, strings.Fields(line)...)
		if !strings.Contains(shown, "ann") ||
			strings.ContainsFunc(strings.ReplaceAll(shown, "\n", ""), controlsTerminal) {
			t.Errorf("starter %s on a terminal: got %q, want the record without control characters", line, shown)
		}
	}

	_, file := a.run(t, "audit", "export")
	if !strings.Contains(file, "\u202e") {
		t.Errorf("starter audit export into a file: got %q, want the bytes of the record", file)
	}
	for _, text := range []string{file, a.onTerminal(t, "audit", "export")} {
		var r struct{ Record struct{ User string } }
		if err := cli.Decode([]byte(text), &r); err != nil || r.Record.User != user {
			t.Errorf("exported record %s: got the user %q, error %v; want %q", text, r.Record.User, err, user)
		}
	}
}

func TestAudit_ExportAndVerifyReadEveryPage(t *testing.T) {
	t.Parallel()
	a := newAuditCommands(t)
	ports := make([]string, 2100)
	for i := range ports {
		ports[i] = string(rune('A'+i%26)) + "-" + time.Duration(i).String()
	}
	a.add(t, auditlog.Record{At: time.Now(), Outcome: auditlog.Success, User: "ann"}, ports...)

	code, out := a.run(t, "audit", "export")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != cli.ExitOK || len(lines) != len(ports) {
		t.Fatalf("starter audit export: got exit code %d and %d lines, want 0 and %d",
			code, len(lines), len(ports))
	}
	v := auditlog.Verifier{}
	var all auditlog.Page
	for i, line := range lines {
		var r auditlog.Sealed
		if err := cli.Decode([]byte(line), &r); err != nil ||
			!strings.Contains(line, `"object_id":"`+ports[i]+`"`) {
			t.Fatalf("line %d of the export: got %s, error %v, want the record of %s", i, line, err, ports[i])
		}
		all.Records, all.Head = append(all.Records, r), r.Position
	}
	if err := v.Check(all); err != nil {
		t.Errorf("verify the export: %v", err)
	}
	if code, out := a.run(t, "audit", "export", "--object", ports[7]); code != cli.ExitOK ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("starter audit export --object: got exit code %d and\n%s, want one line", code, out)
	}
	head := all.Head.String()
	if code, out := a.run(t, "audit", "verify"); code != cli.ExitOK ||
		out != "2100 records are intact; head "+head+"\n" {
		t.Errorf("starter audit verify: got exit code %d and %s, want 0 and the head %s", code, out, head)
	}
	a.add(t, auditlog.Record{At: time.Now(), Outcome: auditlog.Success}, "later")
	if code, out := a.run(t, "audit", "verify", "--head", head); code != cli.ExitOK {
		t.Errorf("starter audit verify --head: got exit code %d and %s, want 0", code, out)
	}
	if code, out := a.run(t, "audit", "verify", "--head", "12"); code != cli.ExitUsage {
		t.Errorf("starter audit verify --head 12: got exit code %d and %s, want %d", code, out, cli.ExitUsage)
	}

	storetest.Exec(t, a.url,
		`update audit_record set record = replace(record::text, 'ann', 'eve')::json where sequence = 1500`)

	if code, out := a.run(t, "audit", "verify"); code != cli.ExitBroken ||
		!strings.Contains(out, "the audit log is broken at record 1500") {
		t.Errorf(
			"starter audit verify of a changed log: got exit code %d and %s, want %d and record 1500",
			code, out, cli.ExitBroken,
		)
	}
}
