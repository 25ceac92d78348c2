package journal

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func entry(op Operation, typ, data string) Entry {
	return Entry{Seq: 1, Attempt: 1, Operation: op, Object: Ref{Type: typ, ID: "id1"}, Data: json.RawMessage(data)}
}

func TestVerbAndPath(t *testing.T) {
	t.Parallel()
	for typ, collection := range map[string]string{"network": "/networks", "subnet": "/subnets", "port": "/ports"} {
		for op, want := range map[Operation]string{Create: "POST " + collection, Update: "PUT " + collection + "/id1", Delete: "DELETE " + collection + "/id1"} {
			r, err := RequestOf(entry(op, typ, `{"id": "id1"}`))
			if err != nil || r.Method+" "+r.Path != want {
				t.Errorf("%s %s: %s %s, %v", op, typ, r.Method, r.Path, err)
			}
			if (r.Body == nil) != (op == Delete) {
				t.Errorf("%s %s: body %s", op, typ, r.Body)
			}
		}
		if r, err := Read(entry(Create, typ, `{}`)); err != nil || r.Method != "GET" || r.Path != collection+"/id1" || r.Body != nil {
			t.Errorf("read %s: %+v, %v", typ, r, err)
		}
	}
	if r, _ := RequestOf(Entry{Operation: Delete, Object: Ref{Type: "port", ID: "../networks?x#y"}}); r.Path != "/ports/..%2Fnetworks%3Fx%23y" {
		t.Errorf("an ID escapes from its path: %s", r.Path)
	}
}

func TestBodyIsFilteredByTypeAndOperation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, typ, data, create, update string }{
		{
			name: "network loses status and subnets, an update also what never changes", typ: "network",
			data:   `{"id":"n","name":"x","status":"ACTIVE","subnets":["s"],"tenant_id":"p","project_id":"p","mtu":1500,"qos_policy_id":null,"description":null}`,
			create: `{"network":{"id":"n","name":"x","tenant_id":"p","project_id":"p","mtu":1500,"description":null}}`,
			update: `{"network":{"name":"x","mtu":1500,"description":null}}`,
		},
		{
			name: "network keeps its policy", typ: "network",
			data:   `{"qos_policy_id":"q"}`,
			create: `{"network":{"qos_policy_id":"q"}}`,
			update: `{"network":{"qos_policy_id":"q"}}`,
		},
		{
			name: "subnet", typ: "subnet",
			data: `{"id":"s","network_id":"n","ip_version":4,"cidr":"10.0.0.0/24","tenant_id":"p","segment_id":null,"subnetpool_id":null,
				"gateway_ip":null,"enable_dhcp":true}`,
			create: `{"subnet":{"id":"s","network_id":"n","ip_version":4,"cidr":"10.0.0.0/24","tenant_id":"p","project_id":"p","gateway_ip":null,"enable_dhcp":true}}`,
			update: `{"subnet":{"gateway_ip":null,"enable_dhcp":true}}`,
		},
		{
			name: "port", typ: "port",
			data: `{"id":"p","network_id":"n","status":"DOWN","project_id":"","security_groups":["g",{"id":"h"}],"binding:profile":{},
				"dns_name":null,"port_security_enabled":null,"qos_policy_id":null,"device_id":null,"revision_number":12345678901234567890}`,
			create: `{"port":{"id":"p","network_id":"n","project_id":"","tenant_id":"","security_groups":[{"id":"g"},{"id":"h"}],"binding:profile":"{}",
				"device_id":null,"revision_number":12345678901234567890}}`,
			update: `{"port":{"security_groups":[{"id":"g"},{"id":"h"}],"binding:profile":"{}","device_id":null,"revision_number":12345678901234567890}}`,
		},
		{
			name: "port without groups and with a profile", typ: "port",
			data:   `{"security_groups":null,"binding:profile":{"a":1},"port_security_enabled":false}`,
			create: `{"port":{"security_groups":[],"binding:profile":"{\"a\":1}","port_security_enabled":false}}`,
			update: `{"port":{"security_groups":[],"binding:profile":"{\"a\":1}","port_security_enabled":false}}`,
		},
		{
			name: "port with null profile", typ: "port",
			data:   `{"binding:profile":null}`,
			create: `{"port":{}}`,
			update: `{"port":{}}`,
		},
	} {
		for op, want := range map[Operation]string{Create: tt.create, Update: tt.update} {
			r, err := RequestOf(entry(op, tt.typ, tt.data))
			if err != nil {
				t.Errorf("%s, %s: %v", tt.name, op, err)
				continue
			}
			if d := cmp.Diff(decoded(t, want), decoded(t, string(r.Body))); d != "" {
				t.Errorf("%s, %s: %s", tt.name, op, d)
			}
		}
		replace, err := Replace(entry(Create, tt.typ, tt.data))
		if err != nil || replace.Method != "PUT" {
			t.Fatalf("%s: %+v, %v", tt.name, replace, err)
		}
		if d := cmp.Diff(decoded(t, tt.update), decoded(t, string(replace.Body))); d != "" {
			t.Errorf("%s, replacing: %s", tt.name, d)
		}
	}
}

func decoded(t *testing.T, raw string) object {
	t.Helper()
	o, err := decodeObject([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return o
}

func TestEntryThatNoRequestCanExpress(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Entry{
		"type":      entry(Create, "volcano", `{}`),
		"operation": entry("melt", "port", `{}`),
		"no data":   entry(Create, "port", ``),
		"null":      entry(Update, "port", `null`),
		"a list":    entry(Create, "port", `[]`),
		"cut":       entry(Create, "port", `{"a":`),
		"two":       entry(Create, "port", `{} {}`),
		"groups":    entry(Create, "port", `{"security_groups": 7}`),
		"no ID":     {Operation: Delete, Object: Ref{Type: "port"}},
	} {
		if r, err := RequestOf(e); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
		a := Begin(Take{Entry: e})
		if _, more := a.Next(); more || a.Outcome().Kind != GivenUp {
			t.Errorf("%s: %+v", name, a.Outcome())
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, sent, got string
		want            bool
	}{
		{"equal", `{"a":1,"b":"x"}`, `{"b":"x","a":1}`, true},
		{"the controller adds its own", `{"a":1}`, `{"a":1,"b":2}`, true},
		{"other value", `{"a":1}`, `{"a":2}`, false},
		{"other type", `{"a":1}`, `{"a":"1"}`, false},
		{"missing", `{"a":1}`, `{}`, false},
		{"missing, same revision", `{"a":1,"revision_number":3}`, `{"revision_number":3}`, true},
		{"missing, other revision", `{"a":1,"revision_number":3}`, `{"revision_number":2}`, false},
		{"same revision, other value", `{"a":1,"revision_number":3}`, `{"a":2,"revision_number":3}`, false},
		{"null and nothing", `{"a":null}`, `{}`, true},
		{"empty and nothing", `{"a":[],"b":{}}`, `{}`, true},
		{"null and a value", `{"a":null}`, `{"a":1}`, false},
		{"empty and a value", `{"a":[]}`, `{"a":[1]}`, false},
		{"false and nothing", `{"a":false}`, `{}`, false},
		{"number written otherwise", `{"a":1.0}`, `{"a":1}`, true},
		{"huge exponent", `{"a":1e999999999}`, `{"a":2e999999999}`, false},
		{"dashed UUID", `{"a":"0123456789abcdef0123456789abcdef"}`, `{"a":"01234567-89ab-cdef-0123-456789abcdef"}`, true},
		{"dashed text", `{"a":"web1"}`, `{"a":"web-1"}`, false},
		{"inside lists", `{"a":[{"i":"1"},{"i":"2"}]}`, `{"a":[{"i":"1","more":1},{"i":"2"}]}`, true},
		{"shorter list", `{"a":[1,2]}`, `{"a":[1]}`, false},
		{"other order", `{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{"null inside", `{"a":null,"b":[null]}`, `{"b":[[]]}`, true},
	} {
		got := Same(json.RawMessage(`{"port":`+tt.sent+`}`), json.RawMessage(`{"port":`+tt.got+`}`))
		if got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for _, got := range []string{``, `null`, `[]`, `{}`, `{"port":null}`, `{"port":[]}`, `{"network":{"a":1}}`, `garbage`} {
		if Same(json.RawMessage(`{"port":{"a":1}}`), json.RawMessage(got)) {
			t.Errorf("same as %q", got)
		}
	}
}
