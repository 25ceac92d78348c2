package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDifferingAttributes_OnlyThoseThatAnUpdateCorrects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, shall, has, want string }{
		{"network", `{"id":"n","name":"a","mtu":1500,"status":"ACTIVE"}`, `{"id":"n","name":"a","mtu":1500,"status":"DOWN","own":1}`, `[]`},
		{"network", `{"name":"a","mtu":1500}`, `{"name":"b","mtu":1500.0}`, `["name"]`},
		{"network", `{"name":"a","mtu":1500,"tags":[]}`, `{"mtu":1400}`, `["mtu"]`},
		{"subnet", `{"name":"a","cidr":"10.0.0.0/24"}`, `{"name":"a","cidr":"10.0.1.0/24"}`, `[]`},
		{"port", `{"binding:profile":{"a":1},"security_groups":["g"]}`, `{"binding:profile":"{\"a\":1}","security_groups":[{"id":"g"}]}`, `[]`},
		{"network", `{"provider:segmentation_id":7}`, `{"provider:segmentation_id":"7"}`, `[]`},
		{"port", `{"fixed_ips":[{"ip_address":"10.0.0.5"},{"ip_address":"10.0.0.6"}]}`, `{"fixed_ips":[{"ip_address":"10.0.0.6"},{"ip_address":"10.0.0.5"}]}`, `[]`},
		{"trunk", `{"sub_ports":[{"port_id":"p","segmentation_id":9}]}`, `{"sub_ports":[{"port_id":"p","segmentation_id":"9"}]}`, `[]`},
		{"policy", `{"bandwidth_limit_rules":[{"id":"r","max_kbps":100}]}`, `{"bandwidth_limit_rules":[{"max_kbps":"100"}]}`, `[]`},
		{"policy", `{"bandwidth_limit_rules":[{"id":"r","max_kbps":100}]}`, `{"bandwidth_limit_rules":[{"max_kbps":"99"}]}`, `["bandwidth_limit_rules"]`},
		{"policy", `{"bandwidth_limit_rules":[{"id":"r","max_kbps":100}]}`, `{"bandwidth_limit_rules":[{"burst":1}]}`, `["bandwidth_limit_rules"]`},
		{"port", `{"name":"a","revision_number":3}`, `{"name":"a","revision_number":"2"}`, `[]`},
		{"port", `{"name":"a","revision_number":3}`, `{"name":"a","revision_number":4}`, `["revision_number"]`},
		{"port", `{"name":"a","revision_number":3}`, `{"name":"a","revision_number":"many"}`, `[]`},
		{"l2gateway_connection", `{"name":"a"}`, `{"name":"b"}`, `[]`},
		{"network", `{"name":"a"}`, `7`, `["everything"]`},
	} {
		t.Run(tt.typ+" "+tt.shall, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(
				append(
					[]string{},
					DifferingAttributes(tt.typ, json.RawMessage(tt.shall), json.RawMessage(tt.has))...),
			)
			if err != nil || string(got) != tt.want {
				t.Errorf("DifferingAttributes for the controller's object %s: got %s, want %s",
					tt.has, got, tt.want)
			}
		})
	}
}

func TestParseListedID_RejectsWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"policy", "network"} {
		if want := map[string]string{"policy": "policies", "network": "networks"}[typ]; ListKey(typ) != want {
			t.Errorf("ListKey of type %s: got %s, want %s", typ, ListKey(typ), want)
		}
	}
	for raw, want := range map[string]string{
		`{"id":"0123456789abcdef0123456789abcdef"}`: "01234567-89ab-cdef-0123-456789abcdef", `{"id":"x","name":7}`: "x",
	} {
		if got, err := ParseListedID("policy", []byte(raw)); got != want || err != nil {
			t.Errorf("parse the ID of the listed object %s: got %s, error %v; want %s", raw, got, err, want)
		}
	}
	for _, raw := range []string{``, `<html>`, `[]`, `null`, `7`, `{}`, `{"id":7}`, `{"id":""}`, `{"id":"a\u0000"}`, `{"id":"` + strings.Repeat("x", 256) + `"}`} {
		if got, err := ParseListedID("policy", []byte(raw)); err == nil {
			t.Errorf("parse the ID of the listed object %s: got %q, want an error", raw, got)
		}
	}
	for _, body := range []string{``, `<html>`, `[]`, `{}`, `{"network":{}}`} {
		if got, err := UnwrapObject("policy", []byte(body)); err == nil {
			t.Errorf("unwrap the policy from the response %s: got %s, want an error", body, got)
		}
	}
}

func TestStorableObject_KeepsWhatTheDatabaseCanStore(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"network", `{"id":"n","name":"a","n":1234567890123456789}`, `{"id":"n","n":1234567890123456789,"name":"a"}`},
		{"network", `{"id":"n","name":"a\u0000"}`, `{"id":"n"}`},
		{"network", `{"id":"n","mtu":1e999}`, `{"id":"n"}`},
		{"network", "{\"id\":\"n\",\"name\":\"\xff\\ud800\"}", "{\"id\":\"n\",\"name\":\"\ufffd\ufffd\"}"},
		{"member", `{"id":"m","name":"\u0000","pool_id":"p"}`, `{"id":"m","pool_id":"p"}`},
		{"member", `{"id":"m","pool_id":"\u0000"}`, `{}`},
	} {
		t.Run(tt[1], func(t *testing.T) {
			t.Parallel()
			if got := string(StorableObject(tt[0], tt[1][7:8], json.RawMessage(tt[1]))); got != tt[2] {
				t.Errorf("StorableObject: got %s, want %s", got, tt[2])
			}
		})
	}
}
