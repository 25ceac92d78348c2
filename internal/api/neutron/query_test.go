package neutron_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestList_FiltersSortsAndPages(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	byName := map[string]string{}
	for i, name := range []string{"a", "b", "c", "d", "d"} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			p := c.port(net, fmt.Sprintf(
				`,"name":%q,"mac_address":"fa:16:3e:00:00:0%x","fixed_ips":[{"ip_address":"10.0.0.%d"}],"admin_state_up":%v`,
				name, i+10, i+10, i%2 == 0,
			))
			byName[fmt.Sprintf("%s%d", name, i)] = p["id"].(string)
		})
	}
	other, _ := c.createNetwork("10.0.0.0/24")
	c.port(other, `,"name":"z","fixed_ips":[{"ip_address":"10.0.0.99"}],"binding:host_id":"cmp-1"`)
	names := func(query string) string {
		t.Helper()
		var got []string
		for _, p := range c.must(200, "GET", "/v2.0/ports?"+query, "")["ports"].([]any) {
			got = append(got, p.(object)["name"].(string))
		}
		return strings.Join(got, "")
	}

	for query, want := range map[string]string{
		"sort_key=name&sort_dir=asc&name=a&name=b":                                   "ab",
		"sort_key=name&sort_dir=asc&name=a&name=z&network_id=" + net:                 "a",
		"sort_key=name&sort_dir=desc&network_id=" + net:                              "ddcba",
		"sort_key=name&sort_dir=asc&admin_state_up=False":                            "bd",
		"mac_address=FA:16:3E:00:00:0A":                                              "a",
		"fixed_ips=ip_address=10.0.0.11":                                             "b",
		"sort_key=name&sort_dir=asc&fixed_ips=subnet_id=" + subnet:                   "abcdd",
		"sort_key=name&sort_dir=asc&fixed_ips=ip_address_substr=0.0.1&name=c":        "c",
		"fixed_ips=ip_address=":                                                      "",
		"binding:host_id=cmp-1":                                                      "z",
		"status=ACTIVE":                                                              "",
		"id=" + byName["a0"] + "&id=" + byName["c2"] + "&sort_key=name&sort_dir=asc": "ac",
		"device_owner=&name=a":                                                       "a",
	} {
		t.Run(query, func(t *testing.T) {
			if got := names(query); got != want {
				t.Errorf("list ports with the query %s: want the names %q, got %q", query, want, got)
			}
		})
	}
	if got := ids(c.must(200, "GET", "/v2.0/ports", ""), "ports"); !slices.IsSorted(got) || len(got) != 6 {
		t.Errorf("list of ports without sort_key: got %v, want 6 ports in the order of their IDs", got)
	}
	if o := c.must(200, "GET", "/v2.0/ports?fields=&name=a&sort_key=&sort_dir=", "")["ports"].([]any)[0].(object); o["id"] == nil {
		t.Errorf("list of ports with empty fields: got %v, want all attributes", o)
	}
	c.must(200, "GET", "/v2.0/networks?sort_key=status&sort_dir=desc", "")
	if n := len(ids(c.must(200, "GET", "/v2.0/agents?description=&host=cmp-1", ""), "agents")); n != 1 {
		t.Errorf("agents on cmp-1, listed with the empty filter description=: got %d, want 1", n)
	}
	o := c.must(200, "GET", "/v2.0/ports?fields=name&fields=security_group_ids&name=a", "")
	if d := cmp.Diff(object{"ports": []any{object{"name": "a"}}}, o); d != "" {
		t.Error(d)
	}
}

// PostgreSQL searches the text of each address for each part.
func TestList_FilterHasFewPartsOfAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	c.port(net, `,"fixed_ips":[{"ip_address":"10.0.0.12"}]`)
	parts := func(n int, text func(i int) string) string {
		q := "/v2.0/ports?fields=id"
		for i := range n {
			q += "&fixed_ips=ip_address_substr=" + text(i)
		}
		return q
	}

	const want = "400 HTTPBadRequest: " +
		"Invalid filter for fixed_ips: 17 values of ip_address_substr are more than 16"
	if got := c.faultMessage("GET", parts(17, strconv.Itoa), ""); got != want {
		t.Errorf("list ports with 17 parts of addresses: got %s, want %s", got, want)
	}
	for what, query := range map[string]string{
		"16 different parts": parts(16, strconv.Itoa),
		"1,000 equal parts":  parts(1000, func(int) string { return "0.12" }),
	} {
		if n := len(ids(c.must(200, "GET", query, ""), "ports")); n != 1 {
			t.Errorf("list ports with %s of addresses: got %d ports, want 1", what, n)
		}
	}
}

func TestList_PageLinksCoverTheWholeListInBothDirections(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	for i := range 5 {
		c.port(net, fmt.Sprintf(`,"name":"p%d"`, i/2))
	}
	whole := ids(c.must(200, "GET", "/v2.0/ports?sort_key=name&sort_dir=desc", ""), "ports")
	follow := func(o object, rel string) string {
		for _, l := range o["ports_links"].([]any) {
			if link := l.(object); link["rel"] == rel {
				return link["href"].(string)
			}
		}
		return ""
	}

	var there []string
	var last object
	for next := "/v2.0/ports?sort_key=name&sort_dir=desc&limit=2"; next != ""; next = follow(last, "next") {
		last = c.must(200, "GET", next, "")
		there = append(there, ids(last, "ports")...)
	}
	if d := cmp.Diff(whole, there); d != "" {
		t.Errorf("ports read page by page in forward direction (-want +got):\n%s", d)
	}
	var back []string
	for previous := follow(last, "previous"); previous != ""; previous = follow(last, "previous") {
		last = c.must(200, "GET", previous, "")
		back = append(ids(last, "ports"), back...)
	}
	if d := cmp.Diff(whole[:4], back); d != "" {
		t.Errorf("ports read page by page in reverse direction (-want +got):\n%s", d)
	}
}

func TestFilter_ImpossibleValueMatchesNothing(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/29")
	c.port(net, `,"name":"web"`)
	for _, q := range []string{"id=web", "network_id=blue", "mac_address=x",
		"fixed_ips=ip_address=x", "fixed_ips=subnet_id=x", "fixed_ips=ip_address_substr=%25", "security_groups=x"} {
		t.Run(q, func(t *testing.T) {
			c := c.in(t)
			if got := ids(c.must(200, "GET", "/v2.0/ports?"+q, ""), "ports"); len(got) != 0 {
				t.Errorf("list of ports with the filter %s: got %v, want none", q, got)
			}
		})
	}
}
