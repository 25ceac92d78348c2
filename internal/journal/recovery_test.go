package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRecover(t *testing.T) {
	t.Parallel()
	const old, fresh = `{"id":"id1","name":"old"}`, `{"id":"id1","name":"fresh"}`
	for _, tt := range []struct {
		op          Operation
		has, shall  string
		later       bool
		finish      bool
		sends, data string
	}{
		{Create, fresh, fresh, false, true, "", ""},
		{Create, old, fresh, false, false, "update", fresh},
		{Create, old, fresh, true, true, "", ""}, // what comes later brings the rest
		{Create, `{"id":"id1","name":"strange"}`, fresh, true, false, "update", old},
		{Create, fresh, "", true, true, "", ""},
		{Create, fresh, "", false, false, "delete", old},
		{Create, "", fresh, false, false, "create", fresh},
		{Create, "", fresh, true, false, "create", old},
		{Create, "", "", false, true, "", ""},
		{Create, "", "", true, true, "", ""},
		{Update, fresh, fresh, false, true, "", ""},
		{Update, old, fresh, false, false, "update", fresh},
		{Update, `{"id":"id1","name":"strange"}`, fresh, true, false, "update", old},
		{Update, fresh, "", false, false, "delete", old},
		{Update, fresh, "", true, true, "", ""},
		{Update, "", fresh, false, false, "create", fresh},
		{Update, "", fresh, true, false, "create", old},
		{Update, "", "", false, true, "", ""},
		{Delete, old, "", false, false, "delete", old},
		{Delete, old, "", true, false, "delete", old},
		{Delete, old, fresh, true, false, "delete", old}, // it is made again by what comes later
		{Delete, old, fresh, false, true, "", ""},
		{Delete, "", "", false, true, "", ""},
		{Delete, "", fresh, false, true, "", ""},
	} {
		o := Observed{Later: tt.later}
		if tt.has != "" {
			o.Has = json.RawMessage(tt.has)
		}
		if tt.shall != "" {
			o.Shall = json.RawMessage(tt.shall)
		}
		got := Recover(entry(tt.op, "network", old), o)
		if got.Finish != tt.finish || got.Reason == "" || !tt.finish && (string(got.Operation) != tt.sends || string(got.Data) != tt.data) {
			t.Errorf("%s, controller has %q, shall have %q, later %t: %+v %s", tt.op, tt.has, tt.shall, tt.later, got, got.Data)
		}
	}
}

func TestDifferencesAreThoseThatAnUpdateMends(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, shall, has, want string }{
		{"network", `{"id":"n","name":"a","mtu":1500,"status":"ACTIVE"}`, `{"id":"n","name":"a","mtu":1500,"status":"DOWN","own":1}`, `[]`},
		{"network", `{"name":"a","mtu":1500}`, `{"name":"b","mtu":1500.0}`, `["name"]`},
		{"network", `{"name":"a","mtu":1500,"tags":[]}`, `{"mtu":1400}`, `["mtu"]`},
		{"subnet", `{"name":"a","cidr":"10.0.0.0/24"}`, `{"name":"a","cidr":"10.0.1.0/24"}`, `[]`},
		{"port", `{"binding:profile":{"a":1},"security_groups":["g"]}`, `{"binding:profile":"{\"a\":1}","security_groups":[{"id":"g"}]}`, `[]`},
		{"l2gateway_connection", `{"name":"a"}`, `{"name":"b"}`, `[]`},
		{"network", `{"name":"a"}`, `7`, `["everything"]`},
	} {
		got, err := json.Marshal(append([]string{}, Differences(tt.typ, json.RawMessage(tt.shall), json.RawMessage(tt.has))...))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s %s, has %s: %s, want %s", tt.typ, tt.shall, tt.has, got, tt.want)
		}
	}
}

func TestListsOfTheController(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"policy", "network"} {
		if want := map[string]string{"policy": "policies", "network": "networks"}[typ]; ListKey(typ) != want {
			t.Errorf("%s: %s", typ, ListKey(typ))
		}
	}
	for raw, want := range map[string]string{
		`{"id":"0123456789abcdef0123456789abcdef"}`: "01234567-89ab-cdef-0123-456789abcdef", `{"id":"x","name":7}`: "x",
	} {
		if got, err := Listed("policy", []byte(raw)); got != want || err != nil {
			t.Errorf("%s: %s, %v", raw, got, err)
		}
	}
	for _, raw := range []string{``, `<html>`, `[]`, `null`, `7`, `{}`, `{"id":7}`, `{"id":""}`, `{"id":"a\u0000"}`, `{"id":"` + strings.Repeat("x", 256) + `"}`} {
		if got, err := Listed("policy", []byte(raw)); err == nil {
			t.Errorf("%s is read as %q", raw, got)
		}
	}
	for _, body := range []string{``, `<html>`, `[]`, `{}`, `{"network":{}}`} {
		if got, err := Shown("policy", []byte(body)); err == nil {
			t.Errorf("%s is read as %s", body, got)
		}
	}
}

// What the controller has and nobody knows is kept as it is, but for what no database can keep.
func TestStraysAreKept(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"network", `{"id":"n","name":"a","n":1234567890123456789}`, `{"id":"n","n":1234567890123456789,"name":"a"}`},
		{"network", `{"id":"n","name":"a\u0000"}`, `{"id":"n"}`},
		{"network", `{"id":"n","mtu":1e999}`, `{"id":"n"}`},
		{"network", "{\"id\":\"n\",\"name\":\"\xff\\ud800\"}", "{\"id\":\"n\",\"name\":\"\ufffd\ufffd\"}"},
		{"member", `{"id":"m","name":"\u0000","pool_id":"p"}`, `{"id":"m","pool_id":"p"}`},
		{"member", `{"id":"m","pool_id":"\u0000"}`, `{}`},
	} {
		if got := string(Kept(tt[0], tt[1][7:8], json.RawMessage(tt[1]))); got != tt[2] {
			t.Errorf("%s: %s, want %s", tt[1], got, tt[2])
		}
	}
}
