package server_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// awaitReadiness waits until /readyz answers the given status, and the result of the given check contains the
// text `result`.
func awaitReadiness(t *testing.T, a *server.App, code int, check, result string) servertest.Readiness {
	t.Helper()
	var last servertest.Readiness
	servertest.Await(
		t,
		fmt.Sprintf("/readyz answers %d with the result %q of the check %s", code, result, check),
		func() bool {
			got, body := servertest.ReadReadiness(t, a)
			last = body
			return got == code && strings.Contains(body.Checks[check], result)
		},
	)
	return last
}

// failures lists the checks of a body that failed.
func failures(body servertest.Readiness) []string {
	var failed []string
	for name, result := range body.Checks {
		if result != "ok" {
			failed = append(failed, name)
		}
	}
	slices.Sort(failed)
	return failed
}

func TestReadiness_LateNotesMakeOnlyRelaysUnready(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	relay := servertest.StartApp(t, config.Relay, "BERTH_DATABASE_URL="+url)
	api := servertest.StartApp(t, config.API, "BERTH_DATABASE_URL="+url)
	servertest.AwaitReady(t, relay)
	// the note is old, but due only after the end of the test, so the relay does not deliver it
	insertNote := func(id string, age string) {
		storetest.Exec(t, url, `
			insert into note (workflow_id, workflow, fresh, summary, attributes, attempts, due_at, created_at)
			values ($1, 'Port', true, '', '{}', 1, now() + interval '1 day', now() - $2::interval)
			on conflict (workflow_id) do update
			set created_at = excluded.created_at`, id, age)
	}

	servertest.Await(t, "the relay is ready in spite of a recent note", func() bool {
		insertNote("port/young", "1 second")
		code, _ := servertest.ReadReadiness(t, relay)
		return code == http.StatusOK
	})
	insertNote("port/old", "11 seconds")

	body := awaitReadiness(t, relay, http.StatusServiceUnavailable, "notes", "2 notes wait for delivery")
	if got := failures(body); !slices.Equal(got, []string{"notes"}) ||
		slices.Contains(body.Informational, "notes") {
		t.Errorf(
			"/readyz of a relay with late notes: got %+v, want only the check notes to fail, and to count",
			body,
		)
	}
	body = awaitReadiness(t, api, http.StatusOK, "notes", "2 notes wait for delivery")
	if !slices.Contains(body.Informational, "notes") || body.Status != "ready" {
		t.Errorf(
			"/readyz of an API process with late notes: got %+v, want ready, and notes among the informational checks",
			body,
		)
	}
}

func TestReadiness_APIProcessIsReadyWithoutTemporal(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API, "TEMPORAL_ADDRESS=127.0.0.1:1")

	body := awaitReadiness(t, a, http.StatusOK, "temporal", "")

	if body.Checks["temporal"] == "ok" || !slices.Contains(body.Informational, "temporal") {
		t.Errorf(
			"/readyz of an API process without Temporal: got %+v, want temporal as a failed informational check",
			body,
		)
	}
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://"+a.Address()+"/networking/v2.0/networks",
		strings.NewReader(`{"network":{"name":"blue"}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("create a network without Temporal: got %s, want 201", answer.Status)
	}
}

func TestReadiness_RelayAndWorkersNeedTheNamespace(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{config.Relay, config.Temporal, "api,relay,temporal"} {
		t.Run(roles, func(t *testing.T) {
			t.Parallel()
			a := servertest.StartApp(t, roles, "TEMPORAL_NAMESPACE=absent")

			body := awaitReadiness(t, a, http.StatusServiceUnavailable, "temporal", "absent")

			if slices.Contains(body.Informational, "temporal") {
				t.Errorf(
					"/readyz while Temporal runs without the namespace: got %+v, want the check temporal to count",
					body,
				)
			}
		})
	}
}

func TestReadiness_NeedsWritableDatabaseOfBerth(t *testing.T) {
	t.Parallel()
	const endSessions = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
	for name, fault := range map[string]struct{ damage, repair, result string }{
		"read-only": {
			`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`,
			`set transaction read write; do $$ begin execute format('alter database %I reset default_transaction_read_only', current_database()); end $$`,
			"read-only"},
		"another database":     {`alter schema public rename to moved; create schema public`, `drop schema public; alter schema moved rename to public`, "not a database of berth"},
		"another schema":       {`alter table port rename to moved`, `alter table moved rename to port`, "not a database of berth"},
		"an outdated schema":   {`update goose_db_version set version_id = -version_id where version_id > 0`, `update goose_db_version set version_id = -version_id where version_id < 0`, "starter migrate"},
		"a newer schema is ok": {`insert into goose_db_version (version_id, is_applied) values (99999, true)`, `delete from goose_db_version where version_id = 99999`, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			a := servertest.StartApp(t, config.API, "BERTH_DATABASE_URL="+url)
			servertest.AwaitReady(t, a)

			storetest.ExecScript(t, url, fault.damage)
			storetest.Exec(t, url, endSessions)

			if fault.result == "ok" {
				awaitReadiness(t, a, http.StatusOK, "database", "ok")
				return
			}
			awaitReadiness(t, a, http.StatusServiceUnavailable, "database", fault.result)
			storetest.ExecScript(t, url, fault.repair)
			storetest.Exec(t, url, endSessions)
			awaitReadiness(t, a, http.StatusOK, "database", "ok")
		})
	}
}

func TestReadiness_NamesUnreachableServer(t *testing.T) {
	t.Parallel()
	for neighbour, setting := range map[string]string{
		"temporal": "TEMPORAL_ADDRESS=127.0.0.1:1",
		"database": "BERTH_DATABASE_URL=postgres://nobody@127.0.0.1:1/nowhere",
	} {
		t.Run(neighbour, func(t *testing.T) {
			t.Parallel()
			a := servertest.StartApp(t, "api,relay,temporal", setting)

			code, body := servertest.ReadReadiness(t, a)

			if code != http.StatusServiceUnavailable || body.Checks[neighbour] == "ok" ||
				body.Checks["process"] != "ok" {
				t.Errorf(
					"/readyz while %s is unreachable: got %d %v, want 503 with this check failed and the check of the process ok",
					neighbour, code, body,
				)
			}
			if got := getStatus(t, a, "/healthz"); got != http.StatusOK {
				t.Errorf("/healthz while %s is unreachable: got %d, want 200", neighbour, got)
			}
		})
	}
}

// getStatus sends a GET request and returns the status of the answer.
func getStatus(t *testing.T, a *server.App, path string) int {
	t.Helper()
	r, err := http.Get("http://" + a.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

func TestHealthPaths_MatchOnlyThemselves(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API)
	servertest.AwaitReady(t, a)
	for path, want := range map[string]int{
		"/healthz":            200,
		"/readyz":             200,
		"/metrics":            200,
		"/healthz?verbose":    200,
		"/healthz/":           404,
		"/healthz/x":          404,
		"/healthzx":           404,
		"//healthz":           404,
		"/readyz/":            404,
		"/readyz/database":    404,
		"/metrics/":           404,
		"/metrics/x":          404,
		"/metricsfoo":         404,
		"/networking/healthz": 401,
	} {
		if got := getStatus(t, a, path); got != want {
			t.Errorf("GET %s: got %d, want %d", path, got, want)
		}
	}
}

func TestReadiness_RelayBindsARestoredDatabaseAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	relay := servertest.StartApp(t, config.Relay, "BERTH_DATABASE_URL="+url)
	servertest.AwaitReady(t, relay)

	var body servertest.Readiness
	servertest.Await(
		t,
		"/readyz answers 503 because the database is bound to another Temporal namespace",
		func() bool {
			// has no effect before the relay has bound the database
			storetest.Exec(t, url,
				`update temporal_namespace set id = 'other', adopted_at = now() + interval '1 hour'`)
			var code int
			code, body = servertest.ReadReadiness(t, relay)
			const reason = "the database is bound to another Temporal namespace (ID other)"
			return code == http.StatusServiceUnavailable && strings.Contains(body.Checks["temporal"], reason)
		},
	)
	if got := failures(body); !slices.Contains(got, "temporal") ||
		slices.Contains(body.Informational, "temporal") {
		t.Errorf(
			"/readyz of a relay while another process has bound the database: got %+v, want the check temporal to fail, and to count",
			body,
		)
	}

	storetest.Exec(t, url,
		`update temporal_namespace set id = 'earlier', adopted_at = now() - interval '1 hour'`)
	servertest.AwaitReady(t, relay)
}
