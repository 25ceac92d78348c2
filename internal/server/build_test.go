package server_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

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
		"/healthz": `"schema":\{"minimum":\d+,"newest":\d+\},"status":"alive","version":"` + regexp.QuoteMeta(build.Version) + `"`,
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
