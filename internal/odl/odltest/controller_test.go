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

func sendRequest(t *testing.T, h http.Handler, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	raw, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(raw)
}

func TestViolations_ChildrenWithoutParents(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for _, body := range []string{
		`subnets {"subnet":{"id":"s","network_id":"n","cidr":"10.0.0.0/24"}}`,
		`networks {"network":{"id":"n"}}`,
		`ports {"port":{"id":"p","network_id":"n","fixed_ips":[{"subnet_id":"s"},{"subnet_id":"x"}]}}`,
	} {
		collection, object, _ := strings.Cut(body, " ")
		if status, answer := sendRequest(t, c, "POST", odltest.BasePath+"/"+collection, object); status != 201 {
			t.Fatalf("create the object %s: got status %d, body %s; want 201", body, status, answer)
		}
	}
	if status, _ := sendRequest(t, c, "DELETE", odltest.BasePath+"/networks/n", ""); status != 204 {
		t.Fatal(status)
	}
	got := c.Violations()
	want := []string{"subnet s was written before its network n", "port p was written before its subnet x",
		"network n was deleted before its port p", "network n was deleted before its subnet s"}
	if len(got) == len(want) && got[2] > got[3] {
		got[2], got[3] = got[3], got[2]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestController_AcceptsWhatTheRealOneAccepts(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for body, want := range map[string]int{
		`{"network":{"id":"n","qos_policy_id":"q"}}`:  442,
		`{"network":{"id":"n","qos_policy_id":null}}`: 201,
		`{"network":{}}`:                       500,
		`{"network":[]}`:                       400,
		`{"networks":[{"id":"a"},{"id":"b"}]}`: 201,
		`[]`:                                   500,
		`{`:                                    500,
	} {
		t.Run(body, func(t *testing.T) {
			if status, _ := sendRequest(t, c, "POST", odltest.BasePath+"/networks", body); status != want {
				t.Errorf("create a network with the body %s: got status %d, want %d", body, status, want)
			}
		})
	}
	if status, _ := sendRequest(t, c, "POST", odltest.BasePath+"/ports", `{"port":{"id":"p","mac_address":"fa:16:3e:00:00:01","binding:profile":{}}}`); status != 201 {
		t.Errorf("binding:profile that is not a string: status %d", status)
	}
	_, answer := sendRequest(t, c, "GET", odltest.BasePath+"/ports/p", "")
	if !strings.Contains(answer, `"binding:profile":""`) {
		t.Errorf("binding:profile that was not a string: got %s, want an empty one", answer)
	}
}

func TestOpenFile_KeepsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "odl.json")
	open := func() *odltest.Controller {
		c, err := odltest.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open()
	sendRequest(t, c, "POST", odltest.BasePath+"/networks", `{"network":{"id":"n","revision_number":1}}`)
	sendRequest(t, c, "PUT", odltest.BasePath+"/networks/n", `{"network":{"name":"red","revision_number":4}}`)
	sendRequest(t, c, "POST", odltest.BasePath+"/networks", `{"network":{"id":"gone"}}`)
	sendRequest(t, c, "DELETE", odltest.BasePath+"/networks/gone", "")
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

func TestControl_FaultsAndLogOverHTTP(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for body, want := range map[string]int{
		`{"status":99}`:                          400,
		`{"break":"bones"}`:                      400,
		`7`:                                      400,
		`{"status":503,"times":2,"type":"port"}`: 204,
	} {
		if status, answer := sendRequest(t, c, "POST", "/_control/faults", body); status != want {
			t.Errorf(
				"inject the fault %s: got status %d, body %s; want 204 for a valid fault and 400 otherwise",
				body, status, answer,
			)
		}
	}
	statuses := []int{}
	for range 3 {
		sendRequest(t, c, "POST", odltest.BasePath+"/networks", `{"network":{"id":"n"}}`)
		status, _ := sendRequest(t, c, "POST", odltest.BasePath+"/ports",
			`{"port":{"id":"p","network_id":"n"}}`)
		statuses = append(statuses, status)
	}
	if d := cmp.Diff([]int{503, 503, 201}, statuses); d != "" {
		t.Error(d)
	}

	var log struct{ Requests []odltest.Request }
	_, raw := sendRequest(t, c, "GET", "/_control/log?after=4", "")
	if err := json.Unmarshal([]byte(raw), &log); err != nil || len(log.Requests) != 2 {
		t.Fatalf("get the log after request 4: got %s, error %v; want two requests", raw, err)
	}
	last := log.Requests[1]
	want := odltest.Request{
		Number:     6,
		ReceivedAt: last.ReceivedAt,
		Method:     "POST",
		Path:       "/ports",
		Type:       "port",
		ID:         "p",
		Status:     201,
		Applied:    true,
	}
	if d := cmp.Diff(want, last); d != "" {
		t.Error(d)
	}
	_, objects := sendRequest(t, c, "GET", "/_control/objects", "")
	if !strings.Contains(objects, `"violations":[]`) || !strings.Contains(objects, `"id":"p"`) {
		t.Error(objects)
	}
	if status, _ := sendRequest(t, c, "DELETE", "/_control/objects", ""); status != 204 ||
		c.Record("network", "n").Object != nil {
		t.Errorf("delete all objects: got status %d, want 204 and no object left", status)
	}
}

func TestPut_KeepsImmutableAttributes(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	const project = "0123456789abcdef0123456789abcdef"
	for _, step := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/networks", `{"network":{"id":"n","tenant_id":"` + project + `"}}`, 201},
		{"POST", "/subnets", `{"subnet":{"id":"s","network_id":"n","cidr":"10.0.0.0/24","ip_version":4,"project_id":"p"}}`, 201},
		{"POST", "/ports", `{"port":{"id":"p","network_id":"n","mac_address":"fa:16:3e:00:00:01","fixed_ips":[{"subnet_id":"s"}]}}`, 201},
		{"PUT", "/networks/n", `{"network":{"name":"x","tenant_id":"another"}}`, 200},
		{"PUT", "/subnets/s", `{"subnet":{"name":"x","cidr":"10.9.0.0/24"}}`, 200},
		{"PUT", "/ports/p", `{"port":{"name":"x","mac_address":"fa:16:3e:00:00:02","fixed_ips":null}}`, 200},
		{"POST", "/security-group-rules", `{"security_group_rule":{"id":"r"}}`, 500},
		{"POST", "/security-group-rules", `{"security_group_rule":{"id":"r","security_group_id":"g"}}`, 442},
	} {
		if status, answer := sendRequest(t, c, step.method, odltest.BasePath+step.path, step.body); status != step.status {
			t.Errorf("%s %s with the body %s: got status %d, body %s; want %d",
				step.method, step.path, step.body, status, answer, step.status)
		}
	}
	type o = map[string]any
	const dashed = "01234567-89ab-cdef-0123-456789abcdef"
	for _, want := range []struct {
		typ, id string
		object  o
	}{
		{"network", "n", o{
			"id":         "n",
			"name":       "x",
			"tenant_id":  dashed,
			"project_id": dashed,
		}},
		{"subnet", "s", o{
			"id":         "s",
			"name":       "x",
			"network_id": "n",
			"cidr":       "10.0.0.0/24",
			"ip_version": json.Number("4"),
			"tenant_id":  "p",
			"project_id": "p",
		}},
		{"port", "p", o{
			"id":          "p",
			"name":        "x",
			"network_id":  "n",
			"mac_address": "fa:16:3e:00:00:02",
			"fixed_ips":   []any{o{"subnet_id": "s"}},
		}},
	} {
		if d := cmp.Diff(want.object, c.Record(want.typ, want.id).Object); d != "" {
			t.Errorf("stored object of type %s differs (-want +got):\n%s", want.typ, d)
		}
	}
}

func TestControl_OperationalDataOverHTTP(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	const root = "/restconf/operational/neutron:neutron/"
	says := func(path string) string {
		_, answer := sendRequest(t, c, "GET", root+path, "")
		return strings.TrimSpace(answer)
	}
	for _, path := range []string{"neutron:features/", "hostconfigs", "ports", "ports/port/p", "nonsense"} {
		if status, answer := sendRequest(t, c, "GET", root+path, ""); status != 404 {
			t.Errorf("GET %s without operational data: got status %d, body %s; want 404",
				path, status, answer)
		}
	}
	for path, body := range map[string]string{
		"features": `{"operational-port-status":"x"}`,
		"hosts":    `[{"host-id":"h","host-type":"ODL L2","config":"{}"}]`,
		"wire":     `{"on":true}`,
	} {
		if status, answer := sendRequest(t, c, "POST", "/_control/"+path, body); status != 204 {
			t.Fatalf("control request %s: got status %d, body %s; want 204", path, status, answer)
		}
		if status, _ := sendRequest(t, c, "POST", "/_control/"+path, `7`); status != 400 {
			t.Errorf("control request %s with an invalid body: got status %d, want 400", path, status)
		}
	}
	sendRequest(t, c, "POST", odltest.BasePath+"/ports", `{"port":{"id":"p","binding:host_id":"h"}}`)
	sendRequest(t, c, "POST", odltest.BasePath+"/ports", `{"port":{"id":"q","binding:host_id":"another"}}`)
	for path, want := range map[string]string{
		"neutron:features/": `{"features":{"feature":[{"configuration":"x","service-provider-feature":"neutron-extensions:operational-port-status"}]}}`,
		"hostconfigs":       `{"hostconfigs":{"hostconfig":[{"host-id":"h","host-type":"ODL L2","config":"{}"}]}}`,
		"ports":             `{"ports":{"port":[{"status":"ACTIVE","uuid":"p"}]}}`,
		"ports/port/p":      `{"port":[{"status":"ACTIVE","uuid":"p"}]}`,
	} {
		if got := says(path); got != want {
			t.Errorf("GET the operational data at %s: got %s, want %s", path, got, want)
		}
	}
	sendRequest(t, c, "POST", "/_control/status", `{"port":"q","status":"DOWN"}`)
	sendRequest(t, c, "DELETE", odltest.BasePath+"/ports/p", "")
	if got, want := says("ports"), `{"ports":{"port":[{"status":"DOWN","uuid":"q"}]}}`; got != want {
		t.Errorf("GET the port statuses after a port was deleted: got %s, want %s", got, want)
	}
	if status, _ := sendRequest(t, c, "POST", "/restconf/operations/sal-remote:create-data-change-event-subscription", `{"input":{"path":"/another:model"}}`); status != 400 {
		t.Errorf("subscribe to an unknown path: got status %d, want 400", status)
	}
	if status, _ := sendRequest(t, c, "DELETE", "/_control/streams", ""); status != 204 ||
		c.OpenStreams() != 0 {
		t.Errorf("close all streams: got status %d and %d open streams, want 204 and none",
			status, c.OpenStreams())
	}
}

func TestController_UpdateOfAPoolDropsItsMembers(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	const members, pool = "/lbaas/pools/p/members", `{"pool":{"id":"p","members":[{"id":"m"}]}}`
	for _, step := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/lbaas/pools", pool, 201},
		{"GET", members + "/m", "", 404},
		{"POST", members, `{"members":[{"id":"m","pool_id":"p","weight":1},{"id":"n","pool_id":"p"}]}`, 201},
		{"POST", members, `{"member":{"id":"m","pool_id":"p","weight":7}}`, 201}, // changes nothing
		{"GET", members + "/n", "", 200},
		{"PUT", "/lbaas/pools/p", pool, 200},
		{"GET", members + "/m", "", 404},
		{"GET", members + "/n", "", 404},
	} {
		if step.method == "PUT" {
			if weight := c.Record("member", "m").Object["weight"]; weight != json.Number("1") {
				t.Errorf("weight of a member after a second POST: got %v, want 1", weight)
			}
		}
		if status, answer := sendRequest(t, c, step.method, odltest.BasePath+step.path, step.body); status != step.want {
			t.Errorf("%s %s %s: got status %d, body %s; want %d",
				step.method, step.path, step.body, status, answer, step.want)
		}
	}
}
