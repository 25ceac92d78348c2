package neutron_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIPAvailability_CountsUsedAndTotalAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/29")
	six := c.must(201, "POST", "/v2.0/subnets", `{"subnet":{"network_id":"`+net+`","ip_version":6,"cidr":"fd00::/124"}}`)["subnet"].(object)["id"].(string)
	c.port(net, `,"fixed_ips":[{"subnet_id":"`+subnet+`"}]`)
	c.port(net, `,"fixed_ips":[{"subnet_id":"`+subnet+`"},{"subnet_id":"`+six+`"}]`)
	c.createNetwork("10.0.0.0/29")
	want := func(total, used float64, subnets ...any) object {
		return object{
			"network_id":             net,
			"network_name":           "blue",
			"project_id":             "admin",
			"tenant_id":              "admin",
			"total_ips":              total,
			"used_ips":               used,
			"subnet_ip_availability": subnets,
		}
	}
	four := object{
		"subnet_id":   subnet,
		"subnet_name": "",
		"ip_version":  4.0,
		"cidr":        "10.0.0.0/29",
		"total_ips":   5.0,
		"used_ips":    2.0,
	}

	of4 := c.must(200, "GET", "/v2.0/network-ip-availabilities?ip_version=4&network_id="+net, "")
	if d := cmp.Diff(object{"network_ip_availabilities": []any{want(5, 2, four)}}, of4); d != "" {
		t.Error(d)
	}
	whole := c.must(200, "GET",
		"/v2.0/network-ip-availabilities/"+net+"?fields=total_ips&fields=used_ips", "")
	if d := cmp.Diff(object{"network_ip_availability": object{"total_ips": 20.0, "used_ips": 3.0}}, whole); d != "" {
		t.Error(d)
	}
	all := c.must(200, "GET", "/v2.0/network-ip-availabilities?network_name=blue", "")
	if len(all["network_ip_availabilities"].([]any)) != 2 {
		t.Errorf("availabilities of the networks named blue: got %v, want two", all)
	}
	var names []any
	for next := "/v2.0/network-ip-availabilities?limit=1&sort_key=network_name&sort_dir=desc&fields=network_name"; next != ""; {
		page := c.must(200, "GET", next, "")
		next = ""
		for _, item := range page["network_ip_availabilities"].([]any) {
			names = append(names, item.(object)["network_name"])
		}
		for _, link := range page["network_ip_availabilities_links"].([]any) {
			if link.(object)["rel"] == "next" {
				next = link.(object)["href"].(string)
			}
		}
	}
	if d := cmp.Diff([]any{"blue", "blue"}, names); d != "" {
		t.Errorf("network names, read page by page (-want +got):\n%s", d)
	}
	for path, refused := range map[string]string{"?sort_key=mtu": "400 HTTPBadRequest", "?x=1": "400 HTTPBadRequest", "/blue": "404 NetworkNotFound"} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("GET", "/v2.0/network-ip-availabilities"+path, ""); got != refused {
				t.Errorf("GET network-ip-availabilities%s: want %s, got %s", path, refused, got)
			}
		})
	}
	// as in Neutron, only administrators see them, by default
	member := c.as("ann:demo")
	own := member.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
	if seen := member.must(200, "GET", "/v2.0/network-ip-availabilities", ""); len(seen["network_ip_availabilities"].([]any)) != 0 {
		t.Errorf("availabilities that a member sees: got %v, want none", seen)
	}
	if got := member.fault("GET", "/v2.0/network-ip-availabilities/"+own, ""); got != "404 NetworkNotFound" {
		t.Errorf("availability of a network of the member's project: got %s, want 404", got)
	}
}
