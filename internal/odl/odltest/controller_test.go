package odltest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl/odltest"
)

func ask(t *testing.T, h http.Handler, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	raw, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(raw)
}

func TestControllerNoticesChildrenWithoutParents(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for _, body := range []string{
		`subnets {"subnet":{"id":"s","network_id":"n"}}`,
		`networks {"network":{"id":"n"}}`,
		`ports {"port":{"id":"p","network_id":"n","fixed_ips":[{"subnet_id":"s"},{"subnet_id":"x"}]}}`,
	} {
		collection, object, _ := strings.Cut(body, " ")
		if status, answer := ask(t, c, "POST", odltest.Base+"/"+collection, object); status != 201 {
			t.Fatalf("%s: %d %s", body, status, answer)
		}
	}
	if status, _ := ask(t, c, "DELETE", odltest.Base+"/networks/n", ""); status != 204 {
		t.Fatal(status)
	}
	got := c.Violations()
	want := []string{"subnet s came before its network n", "port p came before its subnet x",
		"network n went before its port p", "network n went before its subnet s"}
	if len(got) == len(want) && got[2] > got[3] {
		got[2], got[3] = got[3], got[2]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestControllerMissesWhatTheRealOneMisses(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for body, want := range map[string]int{
		`{"network":{"id":"n","qos_policy_id":"q"}}`:  442,
		`{"network":{"id":"n","qos_policy_id":null}}`: 201,
		`{"network":{}}`:                       500,
		`{"network":[]}`:                       400,
		`{"networks":[{"id":"a"},{"id":"b"}]}`: 201,
		`[]`:                                   400,
		`{`:                                    400,
	} {
		if status, _ := ask(t, c, "POST", odltest.Base+"/networks", body); status != want {
			t.Errorf("%s: %d, want %d", body, status, want)
		}
	}
	if status, _ := ask(t, c, "POST", odltest.Base+"/ports", `{"port":{"id":"p","binding:profile":{}}}`); status != 400 {
		t.Errorf("a binding profile that is no string: %d", status)
	}
}

func TestControllerRemembersThroughItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "odl.json")
	open := func() *odltest.Controller {
		c, err := odltest.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open()
	ask(t, c, "POST", odltest.Base+"/networks", `{"network":{"id":"n","revision_number":1}}`)
	ask(t, c, "PUT", odltest.Base+"/networks/n", `{"network":{"name":"red","revision_number":4}}`)
	ask(t, c, "POST", odltest.Base+"/networks", `{"network":{"id":"gone"}}`)
	ask(t, c, "DELETE", odltest.Base+"/networks/gone", "")
	want := c.Records()

	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"type":"network","id":"cut`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()

	for range 2 {
		if d := cmp.Diff(want, open().Records()); d != "" {
			t.Error(d)
		}
	}
}

func TestAnotherProcessScriptsAndReads(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for body, want := range map[string]int{`{"status":99}`: 400, `{"break":"bones"}`: 400, `7`: 400, `{"status":503,"times":2,"type":"port"}`: 204} {
		if status, answer := ask(t, c, "POST", "/_control/faults", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	statuses := []int{}
	for range 3 {
		ask(t, c, "POST", odltest.Base+"/networks", `{"network":{"id":"n"}}`)
		status, _ := ask(t, c, "POST", odltest.Base+"/ports", `{"port":{"id":"p","network_id":"n"}}`)
		statuses = append(statuses, status)
	}
	if d := cmp.Diff([]int{503, 503, 201}, statuses); d != "" {
		t.Error(d)
	}

	var log struct{ Requests []odltest.Seen }
	_, raw := ask(t, c, "GET", "/_control/log?after=4", "")
	if err := json.Unmarshal([]byte(raw), &log); err != nil || len(log.Requests) != 2 {
		t.Fatalf("%s, %v", raw, err)
	}
	last := log.Requests[1]
	want := odltest.Seen{N: 6, At: last.At, Method: "POST", Path: "/ports", Type: "port", ID: "p", Status: 201, Applied: true}
	if d := cmp.Diff(want, last); d != "" {
		t.Error(d)
	}
	if _, raw := ask(t, c, "GET", "/_control/objects", ""); !strings.Contains(raw, `"violations":[]`) || !strings.Contains(raw, `"id":"p"`) {
		t.Error(raw)
	}
	if status, _ := ask(t, c, "DELETE", "/_control/objects", ""); status != 204 || c.Record("network", "n").Object != nil {
		t.Errorf("the controller kept its objects: %d", status)
	}
}
