package blazar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

const (
	segmentBody = `{"network_type":"vlan","physical_network":"physnet1","segment_id":"100","usage_type":"storage","rack":7}`
	deviceBody  = `{"name":"iot-1","device_type":"container","device_driver":"zun","uid":"u-1","rack":"r1"}`
)

// resourceCases has, by collection, the body of a new resource, its JSON, and bodies of other requests.
var resourceCases = map[string]struct {
	body, same, lacking, change string
	want                        map[string]any
}{
	"networks": {
		segmentBody,
		`{"network_type":"vlan","physical_network":"physnet1","segment_id":100}`,
		`{"network_type":"vlan","physical_network":"physnet1"}`,
		`{"segment_id":101,"usage_type":null}`,
		map[string]any{
			"network_type":     "vlan",
			"physical_network": "physnet1",
			"segment_id":       100.0,
			"usage_type":       "storage",
			"rack":             "7",
			"updated_at":       nil,
		},
	},
	"devices": {
		deviceBody,
		`{"name":"iot-1","device_type":"vm","device_driver":"k8s"}`,
		`{"name":"iot-2","device_type":"container"}`,
		`{"device_driver":"k8s","uid":null}`,
		map[string]any{
			"name":          "iot-1",
			"device_type":   "container",
			"device_driver": "zun",
			"uid":           "u-1",
			"rack":          "r1",
			"updated_at":    nil,
		},
	},
}

func TestResource_CreateShowUpdateDelete(t *testing.T) {
	t.Parallel()
	for collection, c := range resourceCases {
		t.Run(collection, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			singular, path := strings.TrimSuffix(collection, "s"), "/v1/"+collection
			made := s.expect(201, "POST", path, c.body).body[singular].(map[string]any)
			one := path + "/" + made["id"].(string)
			for what, got := range map[string]any{"the answer to GET": s.expect(200, "GET", one, "").body[singular],
				"the list": s.expect(200, "GET", path, "").body[collection].([]any)[0]} {
				if d := cmp.Diff(made, got); d != "" {
					t.Errorf("%s, compared with the answer to POST (-want +got):\n%s", what, d)
				}
			}
			stamps(t, made, "id", "created_at")
			if d := cmp.Diff(c.want, made); d != "" {
				t.Error(d)
			}
			changed := s.expect(200, "PUT", one, c.change).body[singular].(map[string]any)
			if _, has := changed["usage_type"]; has || changed["uid"] != nil || changed["updated_at"] == nil {
				t.Errorf("%s after the change %s: got %v", one, c.change, changed)
			}
			s.expect(204, "DELETE", one, "")
			s.expect(404, "DELETE", one, "")
		})
	}
}

func TestResource_RefusedRequests(t *testing.T) {
	t.Parallel()
	for collection, c := range resourceCases {
		t.Run(collection, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			path := "/v1/" + collection
			one := path + "/" + s.expect(201, "POST", path, c.body).body[strings.TrimSuffix(collection, "s")].(map[string]any)["id"].(string)
			for _, r := range []struct {
				method, path, body string
				status             int
			}{
				{"POST", path, c.same, 409},
				{"POST", path, c.lacking, 400},
				{"POST", path, `{}`, 400},
				{"POST", path, strings.Replace(c.body, "rack", "id", 1), 400},
				{"POST", path, strings.Replace(c.body, "rack", strings.Repeat("k", 65), 1), 400},
				{"PUT", one, `{}`, 400},
				{"PUT", one, `{"rack":[]}`, 400},
				{"PUT", path + "/" + uuid.NewString(), c.change, 404},
				{"GET", path + "/" + uuid.NewString(), "", 404},
				{"GET", path + "/7", "", 404},
				{"GET", path + "/" + uuid.Nil.String() + "/allocation", "", 404},
				{"GET", path + "/" + uuid.NewString() + "/allocation", "", 404},
				{"PATCH", path + "/properties/none", `{"private":true}`, 404},
			} {
				if a := s.as("admin", r.method, r.path, r.body); a.status != r.status {
					t.Errorf("%s %s with the body %q: want status %d, got %d %s",
						r.method, r.path, r.body, r.status, a.status, a.raw)
				}
			}
			if a := s.as("alice:red", "GET", path, ""); a.status != 403 {
				t.Errorf("GET %s as a member: want status 403, got %d", path, a.status)
			}
		})
	}
}

func TestResource_Properties(t *testing.T) {
	t.Parallel()
	for collection, c := range resourceCases {
		t.Run(collection, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			path := "/v1/" + collection
			s.expect(201, "POST", path, c.body)
			s.expect(200, "PATCH", path+"/properties/rack", `{"private":true}`)
			public := s.expect(200, "GET", path+"/properties", "").body["resource_properties"].([]any)
			if len(public) != 1 {
				t.Errorf("public properties: got %v, want one", public)
			}
			all := s.expect(200, "GET", path+"/properties?detail=True&all=True", "").body["resource_properties"].([]any)
			if d := cmp.Diff(map[string]any{"property": "rack", "private": true, "values": []any{c.want["rack"]}}, all[0]); d != "" {
				t.Errorf("the property rack (-want +got):\n%s", d)
			}
		})
	}
}

func TestResource_Allocations(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.expect(201, "POST", "/v1/networks", segmentBody).body["network"].(map[string]any)
	one := "/v1/networks/" + made["id"].(string)
	empty := map[string]any{"resource_id": made["id"], "reservations": []any{}}
	if d := cmp.Diff(map[string]any{"allocation": empty}, s.expect(200, "GET", one+"/allocation", "").body); d != "" {
		t.Errorf("allocation of a free segment (-want +got):\n%s", d)
	}

	l := s.expect(201, "POST", "/v1/leases", reserving(`{"resource_type":"network","network_name":"lab"}`)).body["lease"].(map[string]any)
	r := l["reservations"].([]any)[0].(map[string]any)
	want := map[string]any{
		"resource_id": made["id"],
		"reservations": []any{
			map[string]any{
				"id":         r["id"],
				"lease_id":   l["id"],
				"start_date": l["start_date"],
				"end_date":   l["end_date"],
			},
		},
	}
	for path, expected := range map[string]map[string]any{
		"/v1/networks/allocations":                                        {"allocations": []any{want}},
		"/v1/networks/allocations?reservation_id=" + r["id"].(string):     {"allocations": []any{want}},
		"/v1/networks/allocations?lease_id=" + uuid.NewString():           {"allocations": []any{empty}},
		"/v1/devices/allocations":                                         {"allocations": []any{}},
		one + "/allocation":                                               {"allocation": want},
		one + "/allocation?reservation_id=" + uuid.NewString() + "&what=": {"allocation": empty},
	} {
		if d := cmp.Diff(expected, s.expect(200, "GET", path, "").body); d != "" {
			t.Errorf("GET %s (-want +got):\n%s", path, d)
		}
	}
	s.expect(409, "DELETE", one, "")
	s.expect(409, "PUT", one, `{"segment_id":101}`)
	s.expect(200, "PUT", one, `{"note":"a"}`)
	refused := s.expect(409, "POST", "/v1/leases",
		reserving(`{"resource_type":"network","network_name":"lab"}`))
	if d := cmp.Diff(map[string]any{"error_code": 409.0, "error_message": "Not enough networks available", "error_name": 409.0}, refused.body); d != "" {
		t.Errorf("reserve a segment twice (-want +got):\n%s", d)
	}
}
