package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const routerID = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0077"

func TestRecord_CreateUpdateDelete(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	status, answer := send(t, h, "admin", "POST", "/entries", `{"entries":[
		{"operation":"create","object_type":"router","object_id":"`+routerID+`","data":{"id":"`+routerID+`","name":"edge","project_id":"demo"}},
		{"operation":"update","object_type":"router","object_id":"`+routerID+`","data":{"id":"`+routerID+`","name":"core"},"project_id":"ops"},
		{"operation":"delete","object_type":"router","object_id":"`+routerID+`"}]}`)
	entries, _ := answer["entries"].([]any)
	if status != 201 || len(entries) != 3 {
		t.Fatalf("record three changes: got %d %v, want 201 with three entries", status, answer)
	}
	var got []string
	for _, e := range entries {
		o := e.(map[string]any)
		got = append(got, fmt.Sprintf(
			"%v %v %v %v of %v is %v",
			o["seq"], o["operation"], o["object_type"], o["name"], o["project_id"], o["state"],
		))
	}
	want := []string{
		"4 create router edge of demo is pending",
		"5 update router core of ops is pending",
		"6 delete router core of ops is pending",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	if status, answer := send(t, h, "demo:demo", "POST", "/entries", `{}`); status != 403 {
		t.Errorf("record changes as a member: got %d %v, want 403", status, answer)
	}
}

func TestRecord_InvalidChangeIsRefused(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	entry := func(op, typ, id, data string) string {
		body := fmt.Sprintf(`{"operation":%q,"object_type":%q,"object_id":%q`, op, typ, id)
		if data != "" {
			body += `,"data":` + data
		}
		return `{"entries":[` + body + `}]}`
	}
	whole := `{"id":"` + routerID + `"}`
	for _, tt := range []struct {
		body, says string
		status     int
	}{
		{entry("create", "network", routerID, whole), "/networking", 400},
		{entry("create", "volcano", routerID, whole), "no objects of that type", 400},
		{entry("melt", "router", routerID, whole), "unknown operation", 400},
		{entry("create", "router", "edge", `{"id":"edge"}`), "not a UUID", 400},
		{entry("create", "router", routerID, ""), "whole object", 400},
		{entry("create", "router", routerID, `{}`), "whole object", 400},
		{entry("create", "router", routerID, `[]`), "whole object", 400},
		{entry("create", "router", routerID, `{"id":"other"}`), "whole object", 400},
		{entry("create", "router", routerID, `{"id":"other","ID":"`+routerID+`"}`), "whole object", 400},
		{entry("create", "router", routerID, `{"Id":"`+routerID+`"}`), "whole object", 400},
		{entry("create", "router", routerID, `{"id":"`+routerID+`","name":7}`), "whole object", 400},
		{entry("delete", "router", routerID, whole), "no data", 400},
		{entry("delete", "router", routerID, ""), "does not exist", 404},
		{entry("update", "router", routerID, whole), "does not exist", 404},
		{entry("update", "l2gateway_connection", routerID, whole), "cannot update objects", 400},
		{entry("create", "member", routerID, whole), "no pool_id", 400},
		{entry("create", "bgpvpn_network_association", routerID, whole), "no bgpvpn_id or no network_id", 400},
		{entry("create", "bgpvpn_router_association", routerID, `{"id":"`+routerID+`","bgpvpn_id":"v","router_id":"r"}`), "'bgpvpn_id' is not a UUID", 400},
		{entry("create", "bgpvpn_router_association", routerID, `{"id":"`+routerID+`","bgpvpn_id":"`+routerID+`","router_id":"r"}`), "does not exist", 404},
		{entry("update", "bgpvpn_router_association", routerID, whole), "created or deleted, not updated", 400},
		{entry("melt", "bgpvpn_router_association", routerID, whole), "unknown operation", 400},
		{entry("delete", "bgpvpn_router_association", routerID, ""), "does not exist", 404},
		{entry("create", "policy", routerID, `{"id":"`+routerID+`","rules":7}`), "rules is not a list", 400},
		{`{"entries":[]}`, "1 to", 400},
		{`{"entries":[{"operation":"create","colour":"red"}]}`, "colour", 400},
		{`{"entries":[` + strings.Repeat(`{},`, 1000) + `{}]}`, "1 to", 400},
	} {
		t.Run(tt.body, func(t *testing.T) {
			status, answer := send(t, h, "admin", "POST", "/entries", tt.body)
			if status != tt.status || !strings.Contains(fmt.Sprint(answer), tt.says) {
				t.Errorf("POST /entries with the body %.200s: got %d %v, want %d and %q",
					tt.body, status, answer, tt.status, tt.says)
			}
		})
	}
}

func TestRecord_AssociationOfABGPVPN(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	const vpn, association = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0078", "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0079"
	status, answer := send(t, h, "admin", "POST", "/entries", `{"entries":[
		{"operation":"create","object_type":"bgpvpn","object_id":"`+vpn+`","data":{"id":"`+vpn+`","name":"v","project_id":"demo"}},
		{"operation":"create","object_type":"bgpvpn_router_association","object_id":"`+association+`",
			"data":{"id":"`+association+`","bgpvpn_id":"`+vpn+`","router_id":"`+routerID+`"}},
		{"operation":"delete","object_type":"bgpvpn_router_association","object_id":"`+association+`"}]}`)
	entries, _ := answer["entries"].([]any)
	var got []string
	for _, e := range entries {
		o := e.(map[string]any)
		_, shown := send(t, h, "admin", "GET", fmt.Sprintf("/entries/%v", o["seq"]), "")
		details, _ := shown["entry"].(map[string]any)
		data, _ := details["data"].(map[string]any)
		got = append(got, fmt.Sprintf(
			"%v %v %v of %v, routers %v",
			o["operation"], o["object_type"], o["object_id"] == vpn, o["project_id"],
			data["routers"],
		))
	}
	want := []string{
		"create bgpvpn true of demo, routers <nil>",
		"update bgpvpn true of demo, routers [" + routerID + "]",
		"update bgpvpn true of demo, routers []",
	}
	if d := cmp.Diff(want, got); status != 201 || d != "" {
		t.Errorf(
			"record a BGPVPN and its association: got status %d, want 201; entries (-want +got):\n%s",
			status,
			d,
		)
	}
}
