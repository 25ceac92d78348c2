package journal

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func entry(op Operation, typ, data string) Entry {
	return Entry{
		Seq:       1,
		Attempt:   1,
		Operation: op,
		Object:    Ref{Type: typ, ID: "id1"},
		Data:      json.RawMessage(data),
	}
}

func TestWriteRequest_MethodAndPath(t *testing.T) {
	t.Parallel()
	for typ, collection := range map[string]string{"network": "/networks", "subnet": "/subnets", "port": "/ports"} {
		for op, want := range map[Operation]string{Create: "POST " + collection, Update: "PUT " + collection + "/id1", Delete: "DELETE " + collection + "/id1"} {
			r, err := WriteRequest(entry(op, typ, `{"id": "id1"}`))
			if err != nil || r.Method+" "+r.Path != want {
				t.Errorf("WriteRequest to %s a %s: got %s %s (error %v), want %s",
					op, typ, r.Method, r.Path, err, want)
			}
			if (r.Body == nil) != (op == Delete) {
				t.Errorf("WriteRequest to %s a %s: got body %s, want a body, or none for a delete",
					op, typ, r.Body)
			}
		}
		if r, err := ReadRequest(entry(Create, typ, `{}`)); err != nil || r.Method != "GET" ||
			r.Path != collection+"/id1" ||
			r.Body != nil {
			t.Errorf("ReadRequest of a %s: got %+v (error %v), want GET %s/id1 without a body",
				typ, r, err, collection)
		}
	}
	if r, _ := WriteRequest(Entry{Operation: Delete, Object: Ref{Type: "port", ID: "../networks?x#y"}}); r.Path != "/ports/..%2Fnetworks%3Fx%23y" {
		t.Errorf("WriteRequest for an ID with special characters: got path %s, want the ID escaped", r.Path)
	}
}

var filterCases = []struct{ name, typ, data, create, update string }{
	{
		name:   "network without status and subnets, update without immutable attributes",
		typ:    "network",
		data:   `{"id":"n","name":"x","status":"ACTIVE","subnets":["s"],"tenant_id":"0123456789abcdef0123456789abcdef","project_id":"0123456789abcdef0123456789abcdef","mtu":1500,"qos_policy_id":null,"description":null}`,
		create: `{"network":{"id":"n","name":"x","tenant_id":"0123456789abcdef0123456789abcdef","project_id":"0123456789abcdef0123456789abcdef","mtu":1500,"description":null}}`,
		update: `{"network":{"name":"x","mtu":1500,"description":null}}`,
	},
	{
		name:   "network keeps its policy",
		typ:    "network",
		data:   `{"qos_policy_id":"q"}`,
		create: `{"network":{"qos_policy_id":"q"}}`,
		update: `{"network":{"qos_policy_id":"q"}}`,
	},
	{
		name: "subnet",
		typ:  "subnet",
		data: `{"id":"s","network_id":"n","ip_version":4,"cidr":"10.0.0.0/24","tenant_id":"0123456789abcdef0123456789abcdef","segment_id":null,"subnetpool_id":null,
			"gateway_ip":null,"enable_dhcp":true}`,
		create: `{"subnet":{"id":"s","network_id":"n","ip_version":4,"cidr":"10.0.0.0/24","tenant_id":"0123456789abcdef0123456789abcdef","project_id":"0123456789abcdef0123456789abcdef","gateway_ip":null,"enable_dhcp":true}}`,
		update: `{"subnet":{"gateway_ip":null,"enable_dhcp":true}}`,
	},
	{
		name: "port",
		typ:  "port",
		data: `{"id":"p","network_id":"n","status":"DOWN","project_id":"","security_groups":["g",{"id":"h"}],"binding:profile":{},
			"dns_name":null,"port_security_enabled":null,"qos_policy_id":null,"device_id":null,"revision_number":12345678901234567890}`,
		create: `{"port":{"id":"p","network_id":"n","project_id":"","tenant_id":"","security_groups":[{"id":"g"},{"id":"h"}],"binding:profile":"{}",
			"device_id":null,"revision_number":12345678901234567890}}`,
		update: `{"port":{"security_groups":[{"id":"g"},{"id":"h"}],"binding:profile":"{}","device_id":null,"revision_number":12345678901234567890}}`,
	},
	{
		name:   "port without groups and with a profile",
		typ:    "port",
		data:   `{"security_groups":null,"binding:profile":{"a":1},"port_security_enabled":false}`,
		create: `{"port":{"security_groups":[],"binding:profile":"{\"a\":1}","port_security_enabled":false}}`,
		update: `{"port":{"security_groups":[],"binding:profile":"{\"a\":1}","port_security_enabled":false}}`,
	},
	{
		name:   "port with VIF details that the controller cannot store",
		typ:    "port",
		data:   `{"binding:vif_details":{"port_filter":true,"bound_drivers":{"0":"opendaylight"},"gone":null}}`,
		create: `{"port":{"binding:vif_details":{"port_filter":true}}}`,
		update: `{"port":{"binding:vif_details":{"port_filter":true}}}`,
	},
	{
		name:   "port with null profile",
		typ:    "port",
		data:   `{"binding:profile":null}`,
		create: `{"port":{}}`,
		update: `{"port":{}}`,
	},
}

func TestWriteRequest_FiltersBodyByTypeAndOperation(t *testing.T) {
	t.Parallel()
	for _, tt := range filterCases {
		for op, want := range map[Operation]string{Create: tt.create, Update: tt.update} {
			t.Run(tt.name+" "+string(op), func(t *testing.T) {
				t.Parallel()
				r, err := WriteRequest(entry(op, tt.typ, tt.data))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(decoded(t, want), decoded(t, string(r.Body))); d != "" {
					t.Errorf("body of the write request differs (-want +got):\n%s", d)
				}
			})
		}
		replace, err := ReplaceRequest(entry(Create, tt.typ, tt.data))
		if err != nil || replace.Method != "PUT" {
			t.Fatalf("%s: ReplaceRequest: got %+v (error %v), want a PUT", tt.name, replace, err)
		}
		if d := cmp.Diff(decoded(t, tt.update), decoded(t, string(replace.Body))); d != "" {
			t.Errorf("%s: body of the ReplaceRequest differs (-want +got):\n%s", tt.name, d)
		}
	}
}

func decoded(t *testing.T, raw string) object {
	t.Helper()
	o, err := decodeObject([]byte(raw))
	if err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return o
}

func TestAttempt_FailsAnEntryWithoutValidRequest(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Entry{
		"type":      entry(Create, "unknown", `{}`),
		"operation": entry("unknown", "port", `{}`),
		"no data":   entry(Create, "port", ``),
		"null":      entry(Update, "port", `null`),
		"a list":    entry(Create, "port", `[]`),
		"cut":       entry(Create, "port", `{"a":`),
		"two":       entry(Create, "port", `{} {}`),
		"groups":    entry(Create, "port", `{"security_groups": 7}`),
		"no ID":     {Operation: Delete, Object: Ref{Type: "port"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r, err := WriteRequest(e); err == nil {
				t.Errorf("WriteRequest for an invalid entry: got %+v, want an error", r)
			}
			a := BeginAttempt(ClaimResult{Entry: e}, DefaultMaxFailures)
			if _, more := a.NextRequest(); more || a.Outcome().Kind != OutcomeFailed {
				t.Errorf(
					"begin an attempt for an invalid entry: got outcome %+v, want given-up without a request",
					a.Outcome(),
				)
			}
		})
	}
}

// Without Keystone a project ID can be any text, but the controller accepts only UUIDs as tenants.
func TestWriteRequest_ReplacesProjectsThatAreNoUUIDs(t *testing.T) {
	t.Parallel()
	request := func(project string) object {
		t.Helper()
		e := Entry{
			Object:    Ref{"policy", "q"},
			Operation: Create,
			Data: json.RawMessage(
				`{"id":"q","project_id":"` + project + `","rules":[{"id":"a","type":"bandwidth_limit"}]}`,
			),
		}
		r, err := WriteRequest(e)
		if err != nil {
			t.Fatalf("request of a policy of the project %q: %v", project, err)
		}
		sent, err := decodeObject(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return sent["policy"].(object)
	}
	for _, kept := range []string{"", "0123456789abcdef0123456789abcdef", "01234567-89AB-cdef-0123-456789abcdef"} {
		if got := request(kept)["tenant_id"]; got != kept {
			t.Errorf("tenant of the project %q: got %q, want it unchanged", kept, got)
		}
	}
	demoTenant, otherTenant := request("demo")["tenant_id"], request("other")["tenant_id"]
	if _, err := uuid.Parse(fmt.Sprint(demoTenant)); err != nil || demoTenant == otherTenant ||
		demoTenant != request("demo")["tenant_id"] {
		t.Errorf(
			"tenants of two projects that are not UUIDs: got %q and %q, want two UUIDs that stay the same",
			demoTenant,
			otherTenant,
		)
	}
	rule := request("demo")["bandwidth_limit_rules"].([]any)[0].(object)
	if rule["tenant_id"] != demoTenant {
		t.Errorf("tenant of a rule in the policy: got %q, want that of the policy, %q",
			rule["tenant_id"], demoTenant)
	}
	has := `{"id":"q","tenant_id":"` + fmt.Sprint(demoTenant) + `"}`
	differ := DifferingAttributes("policy", []byte(`{"id":"q","tenant_id":"demo"}`), []byte(has))
	if len(differ) > 0 {
		t.Errorf("compare the policy with %s: the attributes %v differ, want none", has, differ)
	}
}
