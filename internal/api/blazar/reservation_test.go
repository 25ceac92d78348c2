package blazar

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// flavor replaces the request to Nova for a flavor. The stub of Nova has the flavor m1, and the private
// flavor gpu of the project blue.
func (s *service) flavor(_ context.Context, project, id string) (lease.Flavor, error) {
	if id != "m1" && (id != "gpu" || project != "blue" && project != "") {
		return lease.Flavor{}, lease.Faultf(lease.UnknownFlavor, "Flavor %s could not be found.", id)
	}
	return lease.Flavor{
		ID:         "7",
		Name:       "m1",
		VCPUs:      2,
		MemoryMB:   512,
		DiskGB:     5,
		Ephemeral:  5,
		ExtraSpecs: map[string]string{"a": "b"},
	}, nil
}

// largeHost registers a host for four instances with 2 VCPUs each.
func (s *service) largeHost(name string) {
	s.Helper()
	s.createHypervisor(name)
	storetest.Exec(s, s.db, `
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select p.id, c.id, 4096, 0, 1, 4096, 1, 1 from provider p, resource_class c where p.name = $1 and c.name in ('MEMORY_MB', 'DISK_GB')`, name)
	s.expect(201, "POST", "/v1/os-hosts", `{"name":"`+name+`"}`)
}

// externalNetwork creates an external network and registers `addresses` floating IPs for leases, from
// 172.24.4.10 on.
func (s *service) externalNetwork(addresses int) string {
	s.Helper()
	network := uuid.NewString()
	storetest.Exec(s, s.db, `
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type)
		values ($1, 'p', 'out', '', true, false, true, 1450, true, 'local')`, network)
	storetest.Exec(s, s.db, `
		insert into subnet (id, network_id, project, name, description, cidr, gateway, dhcp, pools, dns, routes, ra_mode, address_mode)
		values ($1, $2, 'p', '', '', '172.24.4.0/24', '172.24.4.1', false, '[{"start":"172.24.4.100","end":"172.24.4.200"}]', '{}', '[]', '', '')`,
		uuid.NewString(), network)
	for i := range addresses {
		s.expect(
			201, "POST", "/v1/floatingips",
			fmt.Sprintf(`{"floating_network_id":%q,"floating_ip_address":"172.24.4.%d"}`, network, 10+i),
		)
	}
	return network
}

func reserving(reservations ...string) string {
	return `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00",` +
		`"reservations":[` + strings.Join(reservations, ",") + `]}`
}

func TestReservation_JSONOfEveryType(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	s.largeHost("cmp-2")
	network := s.externalNetwork(2)
	s.expect(201, "POST", "/v1/networks", segmentBody)
	s.expect(201, "POST", "/v1/devices", deviceBody)
	a := s.expect(201, "POST", "/v1/leases", reserving(
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":512,"disk_gb":10,"amount":2,"affinity":"None","resource_properties":""}`,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":"512","disk_gb":0,"amount":2,"affinity":"True","resource_properties":"[\">=\",\"$vcpus\",\"2\"]"}`,
		`{"resource_type":"flavor:instance","flavor_id":"m1","amount":1,"affinity":"None"}`,
		`{"resource_type":"virtual:floatingip","network_id":"`+network+`","amount":2,"required_floatingips":["172.24.4.11"]}`,
		`{"resource_type":"network","network_name":"lab","network_properties":"","resource_properties":"[\"=\",\"$physical_network\",\"physnet1\"]"}`,
		`{"resource_type":"device","min":1,"max":"1","resource_properties":"[]","before_end":""}`,
	))
	l := a.body["lease"].(map[string]any)
	of := func(typ string, more map[string]any) map[string]any {
		v := map[string]any{
			"lease_id":          l["id"],
			"resource_type":     typ,
			"status":            "pending",
			"missing_resources": false,
			"resources_changed": false,
			"updated_at":        nil,
		}
		for key, value := range more {
			v[key] = value
		}
		return v
	}
	want := []any{
		of("virtual:instance", map[string]any{
			"vcpus":               1.0,
			"memory_mb":           512.0,
			"disk_gb":             10.0,
			"amount":              2.0,
			"affinity":            nil,
			"resource_properties": "",
			"aggregate_id":        nil,
			"server_group_id":     nil,
		}),
		of("virtual:instance", map[string]any{
			"vcpus":               1.0,
			"memory_mb":           512.0,
			"disk_gb":             0.0,
			"amount":              2.0,
			"affinity":            true,
			"resource_properties": `[">=","$vcpus","2"]`,
			"aggregate_id":        nil,
			"server_group_id":     nil,
		}),
		of("flavor:instance", map[string]any{
			"vcpus":               2.0,
			"memory_mb":           512.0,
			"disk_gb":             10.0,
			"amount":              1.0,
			"affinity":            nil,
			"resource_properties": `{"id":"7","name":"m1","vcpus":2,"ram":512,"disk":5,"ephemeral":5,"extra_specs":{"a":"b"}}`,
			"aggregate_id":        nil,
			"server_group_id":     nil,
		}),
		of("virtual:floatingip", map[string]any{
			"network_id":           network,
			"amount":               2.0,
			"required_floatingips": []any{"172.24.4.11"},
		}),
		of("network", map[string]any{
			"network_name":        "lab",
			"network_description": "",
			"network_properties":  "",
			"network_id":          nil,
			"resource_properties": `["=","$physical_network","physnet1"]`,
			"before_end":          "default",
		}),
		of("device", map[string]any{
			"min":                 1.0,
			"max":                 1.0,
			"resource_properties": "[]",
			"before_end":          "",
		}),
	}
	got := l["reservations"].([]any)
	for _, r := range got {
		r := r.(map[string]any)
		if flavor, is := r["flavor_id"]; is && flavor != r["id"] || r["resource_id"] != r["id"] {
			t.Errorf("JSON of a reservation: got %v, want its own ID as resource_id and flavor_id", r)
		}
		stamps(t, r, "id", "resource_id", "created_at")
		delete(r, "flavor_id")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReservation_FlavorIsOneOfTheProject(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	const body = `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00",
		"reservations":[{"resource_type":"flavor:instance","flavor_id":"gpu","amount":1}]}`
	for _, path := range []string{"/v1/leases", "/v1/plans"} {
		for token, status := range map[string]int{"alice:red": 404, "bob:blue": 0, "admin": 0} {
			a := s.as(token, "POST", path, body)
			if status == 0 && a.status/100 != 2 || status > 0 && a.status != status {
				t.Errorf(
					"POST %s as %s with a private flavor of the project blue: got %d %s, want %d (0: success)",
					path, token, a.status, a.raw, status,
				)
			}
		}
	}
}

func TestReservation_InvalidIsRefusedAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	network := s.externalNetwork(1)
	for body, status := range map[string]int{
		`{"resource_type":"virtual:instance","memory_mb":1,"disk_gb":1,"amount":1,"affinity":"None","resource_properties":""}`:              400,
		`{"resource_type":"virtual:instance","vcpus":"x","memory_mb":1,"disk_gb":1,"amount":1,"affinity":"None","resource_properties":""}`:  400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":0,"affinity":"None","resource_properties":""}`:    400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"maybe","resource_properties":""}`:   400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"","resource_properties":""}`:        400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":" ","resource_properties":""}`:       400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"yes ","resource_properties":""}`:    400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":" None","resource_properties":""}`:   400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"\"yes\"","resource_properties":""}`: 400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":["yes"],"resource_properties":""}`:   400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"Yes","resource_properties":""}`:     201,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":true,"resource_properties":""}`:      201,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":0,"resource_properties":""}`:         201,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"none","resource_properties":""}`:    201,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":null,"resource_properties":"[]"}`:    201,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"None","resource_properties":"[1]"}`: 400,
		`{"resource_type":"virtual:instance","vcpus":9,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"None","resource_properties":""}`:    409,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":99999,"affinity":"0","resource_properties":""}`:   409,
		`{"resource_type":"flavor:instance","flavor_id":"m2","amount":1,"affinity":"None"}`:                                                 404,
		`{"resource_type":"flavor:instance","flavor_id":"","amount":1}`:                                                                     400,
		`{"resource_type":"flavor:instance","flavor_id":"../servers/detail?all_tenants=1","amount":1}`:                                      400,
		`{"resource_type":"flavor:instance","flavor_id":"../../../identity/v3/users","amount":1}`:                                           400,
		`{"resource_type":"flavor:instance","flavor_id":"..","amount":1}`:                                                                   400,
		`{"resource_type":"flavor:instance","flavor_id":"m1?x","amount":1}`:                                                                 400,
		`{"resource_type":"flavor:instance","flavor_id":" m1","amount":1}`:                                                                  400,
		`{"resource_type":"flavor:instance","flavor_id":"m1\u000a","amount":1}`:                                                             400,
		`{"resource_type":"flavor:instance","flavor_id":"` + strings.Repeat("m", 256) + `","amount":1}`:                                     400,
		`{"resource_type":"flavor:instance","flavor_id":"m1","amount":1,"affinity":""}`:                                                     400,
		`{"resource_type":"flavor:instance","flavor_id":"m1","amount":1,"affinity":"True"}`:                                                 409,
		`{"resource_type":"flavor:instance","amount":1,"affinity":"None"}`:                                                                  400,
		`{"resource_type":"flavor:instance","flavor_id":7,"amount":1}`:                                                                      400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":2}`:                                                  400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":0}`:                                                  400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `"}`:                                                             400,
		`{"resource_type":"virtual:floatingip","network_id":"x","amount":1}`:                                                                400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":"many"}`:                                             400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":1,"required_floatingips":["x"]}`:                     400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":1,"required_floatingips":"172.24.4.10"}`:             400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":1,"required_floatingips":["172.24.4.9"]}`:            400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":1,"required_floatingips":["10.0.0.1","10.0.0.2"]}`:   400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":2,"required_floatingips":["10.0.0.1","10.0.0.1"]}`:   400,
		`{"resource_type":"network","network_properties":"","resource_properties":""}`:                                                      400,
		`{"resource_type":"network","network_name":7}`:                                                                                      400,
		`{"resource_type":"network","network_name":"lab","min":1}`:                                                                          400,
		`{"resource_type":"network","network_name":"lab"}`:                                                                                  409,
		`{"resource_type":"network","network_name":"lab","resource_properties":"[1]"}`:                                                      400,
		`{"resource_type":"network","network_name":"lab","resource_properties":"[\"=\",\"$x\",\"y\"]"}`:                                     400,
		`{"resource_type":"device","min":1,"max":1}`:                                                                                        409,
		`{"resource_type":"device","min":2,"max":1}`:                                                                                        400,
		`{"resource_type":"device","min":1}`:            400,
		`{"resource_type":"virtual:router","amount":1}`: 400,
		`{"resource_type":"virtual:floatingip","network_id":"` + network + `","amount":1,"required_floatingips":["fe80::1%eth0"]}`:             400,
		`{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"None","resource_properties":"\u0000"}`: 400,
	} {
		t.Run(body, func(t *testing.T) {
			a := s.as("admin", "POST", "/v1/leases", reserving(body))
			if a.status != status {
				t.Errorf("create a lease with the reservation %s: want status %d, got %d %s",
					body, status, a.status, a.raw)
			}
			if status == 201 {
				s.expect(204, "DELETE", "/v1/leases/"+a.body["lease"].(map[string]any)["id"].(string), "")
			}
		})
	}
	if left := s.expect(200, "GET", "/v1/leases", "").body["leases"].([]any); len(left) != 0 {
		t.Errorf("leases after refused requests: got %v, want none", left)
	}
}

func TestReservation_UpdateOfEveryType(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	network := s.externalNetwork(3)
	l := s.expect(201, "POST", "/v1/leases", reserving(
		`{"resource_type":"virtual:instance","vcpus":2,"memory_mb":512,"disk_gb":10,"amount":2,"affinity":"None","resource_properties":""}`,
		`{"resource_type":"virtual:floatingip","network_id":"`+network+`","amount":2,"required_floatingips":["172.24.4.11"]}`)).body["lease"].(map[string]any)
	path := "/v1/leases/" + l["id"].(string)
	id := func(i int) string { return l["reservations"].([]any)[i].(map[string]any)["id"].(string) }
	for _, c := range []struct {
		change string
		status int
	}{
		{`"id":"` + id(0) + `","amount":4,"affinity":"True","min":7`, 200},
		{`"id":"` + id(0) + `","amount":5`, 409},
		{`"id":"` + id(0) + `","amount":0`, 400},
		{`"id":"` + id(0) + `","vcpus":"many"`, 400},
		{`"id":"` + id(0) + `","resource_type":"physical:host"`, 409},
		// the change may use the resources that the reservation has already
		{`"id":"` + id(1) + `","amount":3`, 200},
		{`"id":"` + id(1) + `","amount":4`, 400},
		{`"id":"` + id(1) + `","required_floatingips":[],"amount":0`, 400},
		{`"id":"` + id(0) + `","affinity":""`, 400},
		{`"id":"` + id(0) + `","affinity":"yes "`, 400},
		{`"id":"` + id(1) + `","network_id":"` + uuid.NewString() + `"`, 400},
		{`"id":"` + id(1) + `","required_floatingips":["172.24.4.10"]`, 400},
		{`"id":"` + id(1) + `","required_floatingips":[],"amount":1`, 200},
		{`"id":"` + uuid.NewString() + `","amount":1`, 400},
	} {
		t.Run(c.change, func(t *testing.T) {
			before := s.expect(200, "GET", path, "").body["lease"]
			a := s.as("admin", "PUT", path, `{"reservations":[{`+c.change+`}]}`)
			if a.status != c.status {
				t.Errorf("update a lease with the reservation change %s: want status %d, got %d %s",
					c.change, c.status, a.status, a.raw)
			}
			if after := s.expect(200, "GET", path, "").body["lease"]; c.status != 200 &&
				!cmp.Equal(before, after) {
				t.Errorf("lease after the refused change %s, want no difference (-before +after):\n%s",
					c.change, cmp.Diff(before, after))
			}
		})
	}
	got := s.expect(200, "GET", path, "").body["lease"].(map[string]any)["reservations"].([]any)
	if r := got[0].(map[string]any); r["amount"] != 4.0 || r["affinity"] != true {
		t.Errorf("host reservation after the changes: got %v, want amount 4 and affinity true", r)
	}
	if r := got[1].(map[string]any); r["amount"] != 1.0 || len(r["required_floatingips"].([]any)) != 0 {
		t.Errorf(
			"floating IP reservation after the changes: got %v, want amount 1 and no required addresses",
			r,
		)
	}

	f := s.expect(201, "POST", "/v1/leases", strings.Replace(reserving(`{"resource_type":"flavor:instance","flavor_id":"m1","amount":1}`), "2040", "2039", 2)).body["lease"].(map[string]any)
	flavorPath, flavorReservation := "/v1/leases/"+f["id"].(string), f["reservations"].([]any)[0].(map[string]any)["id"].(string)
	moved := s.expect(200, "PUT", flavorPath, `{"start_date":"2039-01-01 10:30","end_date":"2039-01-01 13:00"}`).body["lease"].(map[string]any)
	if moved["start_date"] != "2039-01-01T10:30:00.000000" ||
		moved["end_date"] != "2039-01-01T13:00:00.000000" {
		t.Errorf("new dates of a lease of instances of a flavor: got %v to %v, want 10:30 to 13:00",
			moved["start_date"], moved["end_date"])
	}
	s.expect(400, "PUT", flavorPath, `{"end_date":"2039-01-01 10:00"}`)
	for change, status := range map[string]int{
		`"amount":2`:          409,
		`"flavor_id":"m2"`:    409,
		`"affinity":"True"`:   409,
		`"flavor_id":7`:       400,
		`"flavor_id":"../m1"`: 400,
		`"amount":1,"flavor_id":"` + flavorReservation + `"`: 200,
		`"flavor_id":"7"`: 200,
	} {
		s.expect(status, "PUT", flavorPath, `{"reservations":[{"id":"`+flavorReservation+`",`+change+`}]}`)
	}
	s.expect(200, "PUT", flavorPath, `{"name":"silver"}`)
}

func TestRequirements_EveryRequestIsNormalizedAndLimited(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	s.expect(201, "POST", "/v1/networks", segmentBody)
	s.expect(201, "POST", "/v1/devices", deviceBody)
	blanks := strings.Repeat(" ", 16<<10)
	long := strings.Repeat("x", lease.MaxRequirementsSize)
	for _, c := range []struct {
		reservation, property    string // a reservation without its property of requirements
		written, stored, tooLong string
	}{
		{`"resource_type":"physical:host","min":1,"max":1,"resource_properties":""`, "hypervisor_properties",
			`[">=",` + blanks + `"$vcpus", "2"]`, `[">=","$vcpus","2"]`, `["!=","$cpu_info","` + long + `"]`},
		{`"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":""`, "resource_properties",
			blanks, "", `["!=","$cpu_info","` + long + `"]`},
		{`"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":0,"amount":1,"affinity":"None"`, "resource_properties",
			`["and", ["<", "$vcpus", "\u0039"]` + blanks + `]`, `["and",["<","$vcpus","9"]]`, `["!=","$cpu_info","` + long + `"]`},
		{`"resource_type":"network","network_name":"lab"`, "network_properties",
			blanks + `["=", "$physical_network", "physnet1"]`, `["=","$physical_network","physnet1"]`, `["!=","$physical_network","` + long + `"]`},
		{`"resource_type":"device","min":1,"max":1`, "resource_properties",
			`[` + blanks + `]`, `[]`, `["!=","$name","` + long + `"]`},
	} {
		t.Run(c.reservation, func(t *testing.T) {
			with := func(reservation, text string) string { return fmt.Sprintf("{%s,%q:%q}", reservation, c.property, text) }
			stored := func(l any) any { return l.(map[string]any)["reservations"].([]any)[0].(map[string]any)[c.property] }
			expectStored := func(request string, l any) {
				t.Helper()
				if got := stored(l); got != c.stored {
					t.Errorf("%s: got %s %.100q, want %q", request, c.property, got, c.stored)
				}
			}
			l := s.expect(201, "POST", "/v1/leases", reserving(with(c.reservation, c.written))).body["lease"].(map[string]any)
			path, id := "/v1/leases/"+l["id"].(string), l["reservations"].([]any)[0].(map[string]any)["id"].(string)
			defer s.expect(204, "DELETE", path, "")
			expectStored("POST /v1/leases", l)
			s.expect(200, "PUT", path, `{"reservations":[`+with(`"id":"`+id+`"`, "[]")+`]}`)
			expectStored(
				"PUT /v1/leases",
				s.expect(200, "PUT", path, `{"reservations":[`+with(`"id":"`+id+`"`, c.written)+`]}`).body["lease"],
			)
			expectStored("GET /v1/leases", s.expect(200, "GET", path, "").body["lease"])

			later := strings.ReplaceAll(reserving(with(c.reservation, c.tooLong)), "2040", "2041")
			for _, a := range []answer{
				s.as("admin", "POST", "/v1/leases", later),
				s.as("admin", "POST", "/v1/plans", later),
				s.as("admin", "PUT", path, `{"reservations":[`+with(`"id":"`+id+`"`, c.tooLong)+`]}`),
			} {
				want := map[string]any{"error_code": 400.0, "error_name": 400.0,
					"error_message": "Malformed requirements: without blanks, they must not be longer than 4096 bytes."}
				if d := cmp.Diff(want, a.body); d != "" || a.status != 400 {
					t.Errorf(
						"send requirements that are too long: got status %d, want 400 with another body (-want +got):\n%s",
						a.status,
						d,
					)
				}
			}
			expectStored("after refused requests", s.expect(200, "GET", path, "").body["lease"])
		})
	}
}

func TestFloatingIP_CreateListDelete(t *testing.T) {
	t.Parallel()
	s := newService(t)
	network := s.externalNetwork(0)
	a := s.expect(201, "POST", "/v1/floatingips",
		`{"floating_network_id":"`+network+`","floating_ip_address":"172.24.4.10"}`)
	created := a.body["floatingip"].(map[string]any)
	path := "/v1/floatingips/" + created["id"].(string)
	if at, _ := created["created_at"].(string); len(at) != len(dateOut) || at[10] != 'T' {
		t.Errorf("created_at of a floating IP: got %v, want a date in the format of dateOut",
			created["created_at"])
	}
	leaseResponse := s.expect(200, "GET", path, "").body["floatingip"].(map[string]any)
	if d := cmp.Diff([]any{leaseResponse}, s.expect(200, "GET", "/v1/floatingips.json", "").body["floatingips"]); d != "" {
		t.Error(d)
	}
	stamps(t, leaseResponse, "id", "subnet_id", "created_at")
	if d := cmp.Diff(map[string]any{
		"floating_network_id": network,
		"floating_ip_address": "172.24.4.10",
		"reservable":          true,
		"updated_at":          nil,
	}, leaseResponse); d != "" {
		t.Error(d)
	}
	for body, status := range map[string]int{
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.10"}`:            409,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.1"}`:             400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.100"}`:           400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.0"}`:             400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.255"}`:           400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"10.0.0.1"}`:               404,
		`{"floating_network_id":"` + uuid.NewString() + `","floating_ip_address":"172.24.4.11"}`:   404,
		`{"floating_network_id":"` + network + `","floating_ip_address":"::ffff:172.24.4.12"}`:     400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4"}`:               400,
		`{"floating_network_id":"` + network + `"}`:                                                400,
		`{"floating_network_id":"x","floating_ip_address":"172.24.4.11"}`:                          400,
		`{"floating_network_id":"` + network + `","floating_ip_address":"172.24.4.11","what":"?"}`: 400,
	} {
		t.Run(body, func(t *testing.T) {
			if a := s.as("admin", "POST", "/v1/floatingips", body); a.status != status {
				t.Errorf("register a floating IP with the body %s: want status %d, got %d %s",
					body, status, a.status, a.raw)
			}
		})
	}
	if a := s.as("alice:red", "POST", "/v1/floatingips", `{}`); a.status != 403 {
		t.Errorf("register a floating IP as a member: got status %d, want 403", a.status)
	}
	l := s.expect(201, "POST", "/v1/leases", reserving(`{"resource_type":"virtual:floatingip","network_id":"`+network+`","amount":1}`)).body["lease"].(map[string]any)
	s.expect(409, "DELETE", path, "")
	s.expect(204, "DELETE", "/v1/leases/"+l["id"].(string), "")
	s.expect(204, "DELETE", path, "")
	s.expect(404, "DELETE", path, "")
	s.expect(404, "GET", "/v1/floatingips/x", "")
}

// The request to Nova for a flavor has the rights of berth's service user.
func TestFlavor_RequestsOfAProjectAskNovaLittleAtATime(t *testing.T) {
	t.Parallel()
	const requests = 6
	s := newService(t, "cmp-1")
	var asked, running, most atomic.Int64
	begun, end := make(chan struct{}, 100*requests), make(chan struct{})
	s.serveAPI(&handler{
		deletionWait: time.Hour,
		Options: Options{Store: s.store.Lease, Identity: identity.Noauth{},
			Flavor: func(_ context.Context, project, id string) (lease.Flavor, error) {
				if project == "red" {
					asked.Add(1)
					now := running.Add(1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
					}
					begun <- struct{}{}
					<-end
					running.Add(-1)
				}
				return lease.Flavor{ID: id, Name: id, VCPUs: 1, MemoryMB: 1, DiskGB: 1}, nil
			}},
	})
	same := `{"resource_type":"flavor:instance","flavor_id":"m1","amount":1}`
	body := reserving(slices.Repeat([]string{same}, 50)...)
	var ended sync.WaitGroup
	for range requests {
		ended.Go(func() { s.as("eve:red", "POST", "/v1/leases", body) })
	}
	for range flavorReadsOfClient {
		<-begun
	}
	if a := s.as("bob:blue", "POST", "/v1/leases", body); a.status >= 500 {
		t.Errorf("a lease of another project meanwhile: got %d %s, want an answer", a.status, a.raw)
	}
	close(end)
	ended.Wait()
	if asked.Load() != requests || most.Load() > flavorReadsOfClient {
		t.Errorf("%d requests of a project, each with 50 reservations of a flavor: got %d requests to Nova, %d at a time; want %d, at most %d at a time",
			requests, asked.Load(), most.Load(), requests, flavorReadsOfClient)
	}
}
