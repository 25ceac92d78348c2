package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

// mainVariable makes this test binary behave as the worker itself, whose races are seen if it ends in good order.
const mainVariable = "BERTH_TEST_WORKER_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(inFolder(m))
}

// built is where berth's programs lie, which are built for the first test that wants them if nobody has built them yet.
var built func() (string, error)

func inFolder(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = sync.OnceValues(func() (string, error) { return devstack.Programs(context.Background(), dir) })
	return temporaltest.Main(m, storetest.Main)
}

// program is the file of one of berth's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

// process runs an app of those roles until the test ends. Settings win over a database and a namespace of its own.
func process(t *testing.T, roles string, settings ...string) *app {
	t.Helper()
	n := temporaltest.New(t)
	environ := append([]string{"BERTH_LISTEN=127.0.0.1:0", "BERTH_DATABASE_URL=" + storetest.URL(t), "BERTH_ROLES=" + roles,
		"TEMPORAL_NAMESPACE=" + n.Name, "TEMPORAL_ADDRESS=" + n.Address, "TEMPORAL_CONFIG_FILE=" + os.DevNull}, settings...)
	cfg, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(environ)-1; i < j; i, j = i+1, j-1 { // the first of a name counts
		environ[i], environ[j] = environ[j], environ[i]
	}
	a, err := open(t.Context(), cfg, environment(environ))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the process ended with %v", err)
		}
	})
	return a
}

type answer struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

func ready(t *testing.T, a *app) (int, answer) {
	t.Helper()
	r, err := http.Get("http://" + a.address() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var body answer
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, body
}

// awaitReady waits until the process is ready, or fails with what is not.
func awaitReady(t *testing.T, a *app) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		code, body := ready(t, a)
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v", body)
		}
	}
}

func TestEveryRoleBecomesReadyAndStopsInOrder(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{"api", "relay", "temporal", "api,relay,temporal"} {
		t.Run(roles, func(t *testing.T) {
			t.Parallel()
			awaitReady(t, process(t, roles))
		})
	}
}

func TestReadyOnlyWhileNotesMove(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	a := process(t, "api", "BERTH_DATABASE_URL="+url) // nobody delivers
	awaitReady(t, a)
	leave := func(id string, age string) {
		storetest.Exec(t, url, `
			insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, created_at)
			values ($1, 'Port', true, '', '{}', now() - $2::interval, now() - $2::interval)
			on conflict (workflow_id) do update
			set created_at = excluded.created_at`, id, age)
	}

	eventually(t, "a young note leaves it ready", func() bool {
		leave("port/young", "1 second")
		code, _ := ready(t, a)
		return code == http.StatusOK
	})
	leave("port/old", "11 seconds")

	eventually(t, "an old note makes it unready, and nothing else does", func() bool {
		code, body := ready(t, a)
		notes := body.Checks["notes"]
		delete(body.Checks, "notes")
		return code == http.StatusServiceUnavailable && strings.Contains(notes, "2 wait for delivery") && len(examination(body.Checks).troubles()) == 0
	})
}

func TestUnreadyNamesTheNeighbourThatIsAway(t *testing.T) {
	t.Parallel()
	for neighbour, setting := range map[string]string{
		"temporal": "TEMPORAL_ADDRESS=127.0.0.1:1",
		"database": "BERTH_DATABASE_URL=postgres://nobody@127.0.0.1:1/nowhere",
	} {
		t.Run(neighbour, func(t *testing.T) {
			t.Parallel()
			a := process(t, "api,relay,temporal", setting)

			code, body := ready(t, a)

			if code != http.StatusServiceUnavailable || body.Checks[neighbour] == "ok" || body.Checks["process"] != "ok" {
				t.Errorf("without %s: %d %v", neighbour, code, body)
			}
			r, err := http.Get("http://" + a.address() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("the process counts as dead because %s is away: %s", neighbour, r.Status)
			}
		})
	}
}

func TestMetricsTellOfRequestsAndOfTemporal(t *testing.T) {
	t.Parallel()
	a := process(t, "api,relay,temporal")
	awaitReady(t, a)

	r, err := http.Get("http://" + a.address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"go_goroutines", "process_open_fds", "temporal_request_total", "berth_notes_delivered_total"} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
}

func TestPathsAreTakenAsTheyWereSent(t *testing.T) {
	t.Parallel()
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, name, " ", r.URL.Path) })
	}
	h := dispatch(map[string]http.Handler{"networking": echo("n"), "agent/v1": echo("a")})
	for path, want := range map[string]string{
		"/networking":                  "n /networking",
		"/networking/":                 "n /networking/",
		"/networking//v2.0/../ports/.": "n /networking//v2.0/../ports/.",
		"/agent/v1/reports":            "a /agent/v1/reports",
		"/networkingx":                 "404",
		"//networking":                 "404",
		"/agent":                       "404",
		"/agent/v12":                   "404",
		"/":                            "404",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		h.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code != http.StatusOK {
			got = fmt.Sprint(w.Code)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

func TestOldSchemaIsRefusedWithTheCommandToRun(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := awaitSchema(t.Context(), url); err != nil {
		t.Errorf("a new schema is refused: %v", err)
	}
	storetest.Exec(t, url, `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`)

	err := awaitSchema(t.Context(), url)

	if err == nil || !strings.Contains(err.Error(), "lacks 1 of") || !strings.Contains(err.Error(), "`starter migrate`") {
		t.Errorf("an old schema: %v", err)
	}
}

func TestWrongCommandLineIsNamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-x":         "-x; see worker -h",
		"now":        `unexpected argument "now"`,
		"-roles=all": `-roles all: unknown role "all"`,
		"":           "BERTH_DATABASE_URL is not set",
	} {
		err := run(t.Context(), strings.Fields(line), nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("worker %s: %v", line, err)
		}
	}
}
