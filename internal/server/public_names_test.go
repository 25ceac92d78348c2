package server_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"berth/activities"
	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/store/storetest"
)

// publicNamesFile lists the names on which users, agents and running workflows depend, one a line.
const publicNamesFile = "testdata/public_names.list"

// A name in publicNamesFile that has been released never changes and never goes. A new name is added with
// `go test ./internal/server -run PublicNames -update`.
func TestPublicNames_AreFrozen(t *testing.T) {
	t.Parallel()
	names := slices.Concat(temporalNames(), payloadNames(), settingNames(), metricNames(t), routeNames(t), columnNames(t))
	slices.Sort(names)
	got := strings.Join(slices.Compact(names), "\n") + "\n"
	if *update {
		if err := os.WriteFile(publicNamesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(publicNamesFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("public names (-frozen +now): %s\na released name must stay; add a new one with -update", d)
	}
}

// temporalNames returns the names in Temporal: those that operators query, and those in histories.
func temporalNames() []string {
	names := []string{
		"signal " + contract.SignalProvisioningComplete,
		"signal " + contract.SignalChanged,
		"update " + contract.UpdateProvisioningComplete,
		"query " + contract.QueryWhy,
		"workflow type " + contract.Maintenance,
		"workflow ID " + contract.PortID("UUID"),
		"workflow ID " + contract.LeaseID("UUID"),
		"workflow ID " + contract.JournalID("NUMBER"),
		"workflow ID " + contract.AgentNotificationsID("UUID"),
		"workflow ID " + contract.WebhookID("UUID"),
		"workflow ID " + contract.PoolID("HOST"),
		"workflow ID " + contract.MaintenanceID(contract.KeySweep),
		"memo " + contract.MemoRequestID,
		"memo " + contract.MemoGlobalRequestID,
	}
	for key := range contract.RunWorkflows {
		names = append(names, "workflow ID "+contract.RunID(key))
	}
	for _, typ := range contract.EntityWorkflows {
		names = append(names, "workflow type "+typ, "task queue "+contract.TaskQueue(typ))
	}
	for _, a := range contract.SearchAttributes {
		names = append(names, "search attribute "+a.Name+" "+a.Type)
	}
	for name := range activities.New(activities.Options{}).Functions() {
		names = append(names, "activity "+name)
	}
	for _, typ := range []string{activities.NotFound, activities.Conflict, activities.Invalid, activities.BackendError} {
		names = append(names, "error type "+typ)
	}
	return names
}

func settingNames() (names []string) {
	for _, name := range config.Variables() {
		names = append(names, "setting "+name)
	}
	return names
}

// metricNames returns the metrics in the tables of docs/monitoring.md.
func metricNames(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range namedMetrics(t) {
		if strings.HasPrefix(name, "berth_") {
			names = append(names, "metric "+name)
		}
	}
	return names
}

// routeNames returns the methods and paths in the OpenAPI documents.
func routeNames(t *testing.T) (names []string) {
	t.Helper()
	for name, raw := range openAPIDocuments(t) {
		var document struct {
			Servers []struct{ URL string }
			Paths   map[string]map[string]any
		}
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatalf("document %s: %v", name, err)
		}
		prefix := strings.TrimSuffix(document.Servers[0].URL, "/")
		for path, operations := range document.Paths {
			for method := range operations {
				names = append(names, "route "+strings.ToUpper(method)+" "+prefix+path)
			}
		}
	}
	return names
}

// columnNames returns the columns of the tables in the database.
func columnNames(t *testing.T) []string {
	t.Helper()
	rows, err := storetest.Connect(t, storetest.URL(t)).Query(t.Context(), `
		select 'column ' || table_name || '.' || column_name
		from information_schema.columns
		where table_schema = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}
