package server_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

func TestReadiness_FailsWhileNotesAreLate(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	a := servertest.StartApp(t, "api", "BERTH_DATABASE_URL="+url) // no process with the role relay
	servertest.AwaitReady(t, a)
	insertNote := func(id string, age string) {
		storetest.Exec(t, url, `
			insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, created_at)
			values ($1, 'Port', true, '', '{}', now() - $2::interval, now() - $2::interval)
			on conflict (workflow_id) do update
			set created_at = excluded.created_at`, id, age)
	}

	servertest.Await(t, "the app is ready in spite of a recent note", func() bool {
		insertNote("port/young", "1 second")
		code, _ := servertest.ReadReadiness(t, a)
		return code == http.StatusOK
	})
	insertNote("port/old", "11 seconds")

	servertest.Await(t, "only the check of notes fails", func() bool {
		code, body := servertest.ReadReadiness(t, a)
		notes := body.Checks["notes"]
		delete(body.Checks, "notes")
		othersOK := !slices.ContainsFunc(slices.Collect(maps.Values(body.Checks)), func(result string) bool { return result != "ok" })
		return code == http.StatusServiceUnavailable && strings.Contains(notes, "2 notes wait for delivery") && othersOK
	})
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

			if code != http.StatusServiceUnavailable || body.Checks[neighbour] == "ok" || body.Checks["process"] != "ok" {
				t.Errorf("/readyz while %s is unreachable: got %d %v, want 503 with this check failed and the check of the process ok",
					neighbour, code, body)
			}
			r, err := http.Get("http://" + a.Address() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("/healthz while %s is unreachable: got %s, want 200", neighbour, r.Status)
			}
		})
	}
}
