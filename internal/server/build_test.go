package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/version"
)

func TestBuild_DescribedByHealthMetricsAndTemporalIdentity(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,relay,temporal")
	servertest.AwaitReady(t, a)
	build := version.Read()

	for path, want := range map[string]string{
		"/healthz": `"apis":\[.*\{"name":"placement","minimum":"1\.0","newest":"1\.39"\}.*\],"commit":"[^"]+","commit_date":"[^"]+",.*"schema":\{"minimum":\d+,"newest":\d+\},"status":"alive","version":"` + regexp.QuoteMeta(build.Version) + `"`,
		"/metrics": `(?m)^berth_build_info\{goversion="` + regexp.QuoteMeta(build.Go) + `",revision="[^"]+",schema="\d+",version="` + regexp.QuoteMeta(build.Version) + `"\} 1$`,
	} {
		if body := getBody(t, a.URL()+path); !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("GET %s: got\n%s\nwant a text that matches %s", path, body, want)
		}
	}
	servertest.Await(
		t,
		"Temporal shows the version of berth as a part of the identity of the worker",
		func() bool {
			queue, err := a.Temporal.DescribeTaskQueue(t.Context(), contract.PortQueue,
				enums.TASK_QUEUE_TYPE_WORKFLOW)
			if err != nil {
				return false
			}
			for _, p := range queue.GetPollers() {
				if strings.HasSuffix(p.GetIdentity(), "/"+build.Version) {
					return true
				}
			}
			return false
		},
	)
}

// TestBuild_KnowsTheVersionOfEachAPI compares the APIs that the program names with the documents of the APIs.
func TestBuild_KnowsTheVersionOfEachAPI(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for name, raw := range openAPIDocuments(t) {
		var document struct{ Info struct{ Version string } }
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatalf("document %s: %v", name, err)
		}
		want[strings.TrimSuffix(name, ".json")] = document.Info.Version
	}
	got := map[string]string{}
	for _, a := range version.APIs() {
		got[a.Name] = a.Newest
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("newest versions of the APIs (-documents +program):\n%s", d)
	}
}

func getBody(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
