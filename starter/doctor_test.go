package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
	"berth/starter/cli"
)

func TestDoctor_NamesEachMissingServiceWithAdvice(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.awaitPollers(t)
	h.environ = append(h.environ, "BERTH_DATABASE_URL="+storetest.URL(t))

	code, output := h.run(t, "doctor")
	if code != 0 || strings.Contains(output, "FAIL") || strings.Count(output, "ok  ") != 22 {
		t.Errorf(
			"doctor with all services: got exit code %d and the output below, want 0, 22 checks and no FAIL:\n%s",
			code,
			output,
		)
	}
	for _, clock := range []string{"the API", "PostgreSQL", "Temporal"} {
		if line := lineOf(output, "clocks"); !strings.Contains(line, clock) {
			t.Errorf("doctor with all services: got the line %q, want it to name the clock of %s",
				line, clock)
		}
	}

	h.environ = append(
		h.environ, "TEMPORAL_NAMESPACE=temporal-system", "BERTH_ODL_URL=http://127.0.0.1:1",
		"BERTH_DATABASE_URL=postgres://u@127.0.0.1:1/d",
	)
	code, output = h.run(t, "doctor")
	for _, wanted := range []string{
		"no worker polls ports", "Start a worker with the role temporal",
		"temporal operator search-attribute create --namespace temporal-system", "--name BerthWaitingFor --type KeywordList",
		"cannot reach OpenDaylight at http://127.0.0.1:1", "cannot reach the database",
	} {
		if !strings.Contains(output, wanted) {
			t.Errorf("doctor with failing services: want output with %q, got\n%s", wanted, output)
		}
	}
	if code != cli.ExitUnavailable {
		t.Errorf("doctor with failing services: got exit code %d, want ExitUnavailable", code)
	}
}

func TestDoctor_SaysWhetherTransactionsUseAPooler(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	complete := storetest.StartPgBouncer(t, database, db.PoolerSettings()).URL
	h := newHarness(t)
	base := append(h.environ, "BERTH_DATABASE_URL="+database)
	for _, c := range []struct{ setting, check, want string }{
		{"BERTH_DATABASE_POOLER_URL=", "connection pooler", "-     connection pooler  not checked: BERTH_DATABASE_POOLER_URL is not set, so transactions use connections to PostgreSQL"},
		{"BERTH_DATABASE_POOLER_URL=" + complete, "connection pooler", "ok    connection pooler  transactions run through it"},
		{"BERTH_DATABASE_POOLER_URL=" + storetest.StartPgBouncer(t, database, "").URL, "connection pooler", "set connect_query of the database in PgBouncer's configuration"},
		{"BERTH_DATABASE_POOLER_URL=postgres://u@127.0.0.1:1/d", "connection pooler", "Is PgBouncer running, and is BERTH_DATABASE_POOLER_URL correct?"},
		{"BERTH_DATABASE_URL=" + complete, "database", "name PostgreSQL itself in BERTH_DATABASE_URL"},
	} {
		h.environ = append(slices.Clone(base), c.setting)
		_, output := h.run(t, "doctor")
		if line := lineOf(output, c.check); !strings.Contains(line, c.want) {
			t.Errorf("doctor with %s: got the line %q, want it to contain %q", c.setting, line, c.want)
		}
	}
}

// lineOf returns the line of doctor's output for a check, together with the next line, which may contain the
// advice.
func lineOf(output, check string) string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		if len(line) > 6 && strings.HasPrefix(line[6:], check) {
			return strings.Join(lines[i:min(i+2, len(lines))], "\n")
		}
	}
	return ""
}

func TestDoctor_DamageOfDatabaseAndTemporalIsAFailureWithAdvice(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.awaitPollers(t)
	past := time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000000")
	overdue := func(name, status string) string {
		id := h.stub.add("leases", cli.Object{"name": name, "start_date": past, "end_date": past})["id"].(string)
		if err := h.stub.set("leases", name, "status", status); err != nil {
			t.Fatal(err)
		}
		return id
	}
	h.startWorkflow(t, contract.LeaseID(overdue("attended", "ACTIVE")), contract.LeaseQueue)
	database := func(damage string) string {
		url := storetest.URL(t)
		storetest.ExecScript(t, url, damage)
		return "BERTH_DATABASE_URL=" + url
	}

	for _, c := range []struct {
		name, setting string
		damage        func()
		check         string
		wanted        []string
	}{
		{name: "overdue lease with an execution", check: "leases", wanted: []string{"WARN", "1 leases are overdue", "starter why lease/attended"}},
		{
			name:   "overdue lease without an execution",
			damage: func() { overdue("gold", "PENDING") },
			check:  "leases",
			wanted: []string{"FAIL", "1 of 2 overdue leases have no execution: lease/gold", "berth restarts their workflows"},
		},
		{
			name:    "missing namespace",
			setting: "TEMPORAL_NAMESPACE=absent",
			check:   "namespace",
			wanted:  []string{"FAIL", `no namespace "absent"`, "Set --namespace"},
		},
		{
			name:    "read-only database",
			check:   "database",
			wanted:  []string{"FAIL", "read-only", "primary server"},
			setting: database(`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`),
		},
		{
			name:    "database in which every role may create objects",
			check:   "database roles",
			wanted:  []string{"WARN", "every role (PUBLIC)", "revoke create"},
			setting: database(`grant create on schema public to public`),
		},
		{
			name:    "outdated schema",
			check:   "database",
			wanted:  []string{"FAIL", "it lacks 1 of", "starter migrate"},
			setting: database(`delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`),
		},
		{
			name:    "newer schema",
			check:   "database",
			wanted:  []string{"WARN", "schema version 99999, which is newer"},
			setting: database(`insert into goose_db_version (version_id, is_applied) values (99999, true)`),
		},
		{
			name:    "another database",
			check:   "database",
			wanted:  []string{"FAIL", "not a database of berth", "primary server"},
			setting: database(`drop schema public cascade; create schema public`),
		},
		{
			name:  "database bound to another namespace",
			check: "namespace",
			damage: func() {
				h.stub.namespace = cli.Object{"id": "4711", "name": "earlier", "bound_at": "2030-01-31T10:00:00Z"}
			},
			wanted: []string{"FAIL", "bound since 2030-01-31T10:00:00Z to another Temporal namespace (earlier, ID 4711)", "so no workflow starts", "Compare TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE of this command with those of the processes", "A process with the role relay binds the database again"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.damage != nil {
				c.damage()
			}
			damaged := h
			damaged.environ = append(damaged.environ[:len(damaged.environ):len(damaged.environ)], c.setting)
			code, output := damaged.run(t, "doctor")
			line := lineOf(output, c.check)
			for _, wanted := range c.wanted {
				if !strings.Contains(line, wanted) {
					t.Errorf("doctor with the damage: got the line\n%s\nwant it to contain %q", line, wanted)
				}
			}
			if c.wanted[0] == "FAIL" && code == 0 {
				t.Errorf("doctor with the damage: got exit code 0, want another; output:\n%s", output)
			}
		})
	}
}

// An operator can pause the schedule of the sweep and forget it.
func TestDoctor_NamesThePausedScheduleOfTheSweep(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, err := h.namespace.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID:     contract.MaintenanceID(contract.KeySweep),
		Paused: true,
		Note:   "work on rack 4",
		Action: &client.ScheduleWorkflowAction{Workflow: contract.Maintenance, TaskQueue: contract.PortQueue},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  time.Duration
		want []string
	}{
		{0, []string{"WARN  maintenance", "the schedule maintenance/sweep is paused (work on rack 4)", "--unpause"}},
		{time.Hour, []string{"FAIL  maintenance", "sweep was completed 1h", "the schedule maintenance/sweep is paused (work on rack 4)", "--unpause"}},
	} {
		h.stub.sweepAge = c.age
		_, output := h.run(t, "doctor")
		for _, want := range c.want {
			if line := lineOf(output, "maintenance"); !strings.Contains(line, want) {
				t.Errorf("doctor %s after the last sweep, with a paused schedule: got the lines\n%s\nwant them to contain %q",
					c.age, line, want)
			}
		}
	}
}

func TestDoctor_HidesTheUsersOfURLs(t *testing.T) {
	t.Parallel()
	const secret = "ann:hunter2@"
	broker := httptest.NewServer(http.NotFoundHandler()) // accepts connections, but does not speak AMQP
	t.Cleanup(broker.Close)
	common := []string{
		"BERTH_DATA=" + t.TempDir(),
		"BERTH_URL=http://127.0.0.1:1",
		"TEMPORAL_ADDRESS=127.0.0.1:1",
	}
	for name, c := range map[string]struct {
		setting string
		args    []string
	}{
		"database":             {"BERTH_DATABASE_URL=postgres://" + secret + "127.0.0.1:1/d", []string{"doctor"}},
		"database, JSON":       {"BERTH_DATABASE_URL=postgres://" + secret + "127.0.0.1:1/d", []string{"doctor", "-o", "json"}},
		"broken database URL":  {"BERTH_DATABASE_URL=postgres://" + secret + "127.0.0.1:port/d", []string{"doctor"}},
		"migration":            {"BERTH_DATABASE_URL=postgres://" + secret + "127.0.0.1:port/d", []string{"migrate"}},
		"RabbitMQ":             {"BERTH_RABBITMQ_URL=amqp://" + secret + strings.TrimPrefix(broker.URL, "http://") + "/", []string{"doctor"}},
		"unreachable RabbitMQ": {"BERTH_RABBITMQ_URL=amqp://" + secret + "127.0.0.1:1/", []string{"doctor"}},
		"API":                  {"", []string{"doctor", "--url", "http://" + secret + "127.0.0.1:1"}},
		"Temporal":             {"", []string{"doctor", "--address", secret + "127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(t.Context(), c.args, append(slices.Clone(common), c.setting), &out, &out)
			cli.ReportError(&out, err)
			output := out.String()
			if err == nil || strings.Contains(output, "hunter2") || strings.Contains(output, "://ann") ||
				strings.Contains(output, "ann@") {
				t.Errorf(
					"starter %s: got error %v and the output below, want an error without the user and the password:\n%s",
					c.args, err, output,
				)
			}
		})
	}
}
