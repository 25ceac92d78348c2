package hostile

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/internal/api/osapi"
)

// invalidValues are JSON values that are invalid for most fields.
var invalidValues = []string{
	`null`, `true`, `-1`, `0`, `0.5`, `1e400`, `-1e400`, `9223372036854775807`, `9223372036854775808`, `2147483648`, `99999999999999999999999`, `""`, `" "`, `"x"`,
	`"` + strings.Repeat("x", 300) + `"`, `"` + strings.Repeat("☃", 255) + `"`, `"` + strings.Repeat("y", 70000) + `"`,
	`"\u0000"`, `"\ud800"`, "\"\xff\xfe\"",
	`"'; drop table port; --"`, `"{zero}"`, `"NaN"`, `"9999-12-31 23:59"`, `"0000-00-00 00:00"`, `"::/0"`, `"0.0.0.0"`, `"255.255.255.255/32"`, `"fe80::1%eth0"`,
	`[]`, `{}`, `[null]`, `[[]]`, `["",""]`, `{"":null}`, `{"\u0001":{"a":[1e400]}}`, `[{}]`,
}

// invalidBodies are request bodies that are not valid JSON objects.
var invalidBodies = []string{
	"{", "}", "nul", "null", "true", "1", "1e400", "NaN", "[]", "[[]]", `"x"`, "{}{}", `{"a":1,"a":2}`, `{"a":NaN}`, `{"a":Infinity}`, "{'a':1}", "{\"\xff\":1}", "\xff\xfe{\x00", "\xef\xbb\xbf{}", "\x00",
	`{"\u0000":1}`, strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "a=b&c=d", "<x/>",
}

// oversizedBodies are very large invalid request bodies. The test sends one of the oversizedBodies to every
// fourth route, because all routes read request bodies with the same code.
var oversizedBodies = []string{
	strings.Repeat("[", 100000),
	`{"a":"` + strings.Repeat("x", 2<<20) + `"}`,
	`{"` + strings.Repeat("k", 500000) + `":1}`,
	"[" + strings.Repeat("{},", 300000) + "{}]",
	strings.Repeat(" ", 3<<20),
}

// mutations returns changed copies of a JSON document. In each copy of the document, one field has an invalid
// value or is left out, or an unknown field is added. To save time, mutations tries only every second of the
// invalid values for a field, and tries the other half of the invalid values for the next field. It tries the
// very long values for a quarter of the fields.
func mutations(document string) []string {
	if document == "" {
		return nil
	}
	var root any
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		panic(err)
	}
	const here = "@here@"
	var all []string
	turn := 0
	emit := func() {
		raw, _ := json.Marshal(root)
		turn++
		for i := turn % 2; i < len(invalidValues); i += 2 {
			if len(invalidValues[i]) > 5000 && turn%8 > 1 {
				continue
			}
			all = append(all, string(bytes.Replace(raw, []byte(`"`+here+`"`), []byte(invalidValues[i]), 1)))
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, old := range v {
				v[key] = here
				emit()
				delete(v, key)
				raw, _ := json.Marshal(root)
				all = append(all, string(raw))
				v[key] = old
				walk(old)
			}
			for _, name := range []string{"unheard of", "", "☃", "\x01", "drop table", strings.Repeat("k", 3000)} {
				v[name] = 1
				raw, _ := json.Marshal(root)
				all = append(all, string(raw))
				delete(v, name)
			}
		case []any:
			for i, old := range v {
				v[i] = here
				emit()
				v[i] = old
				walk(old)
			}
		}
	}
	walk(root)
	return all
}

func TestHostileBody_RejectedWithoutWrite(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"/placement", "/networking", "/reservation", "/agent/v1", "/journal/v1"} {
		t.Run(strings.Trim(prefix, "/"), func(t *testing.T) {
			t.Parallel()
			h := newHostileClient(t)
			turn := 0
			forEachRoute(h, func(api *osapi.API, r osapi.Route) {
				if api.Prefix != prefix || strings.HasSuffix(r.Path, ".json") || r.Method == http.MethodGet ||
					r.Method == http.MethodDelete {
					return
				}
				name := r.Method + " " + api.Prefix + r.Path
				body, known := validBodies[name]
				if !known {
					t.Errorf("route %s has no body in the table validBodies, want one", name)
				}
				path := h.concretePath(api.Prefix + r.Path)
				if got := h.attack(attack{method: r.Method, path: path, body: h.fill(body)}); got >= 400 {
					t.Logf("%s: the API refused the body from validBodies with status %d", name, got)
				}
				bodies := slices.Concat(mutations(h.fill(body)), invalidBodies)
				if turn++; turn%4 == 1 {
					bodies = append(bodies, oversizedBodies[turn/4%len(oversizedBodies)])
				}
				for _, b := range bodies {
					h.attack(attack{method: r.Method, path: path, body: h.fill(b)})
				}
			})
		})
	}
}

// hostileWords are hostile values for path segments and query parameters, already URL-encoded.
var hostileWords = []string{
	"x", "-1", "0", "1e3", "99999999999999999999", "9223372036854775807", "9223372036854775808", "2147483648", "%00", "%ff", "%zz", "%", "..", ".", "%2e%2e", "%2f", "a%2fb", "%20", "+", "*", "%25",
	"'%3b%20drop%20table%20port;--", "%27%20or%201%3d1--", "null", "{}", "[]", "true", "%E2%98%83", "%F0%9F%92%A9", "00000000-0000-0000-0000-000000000000", "%7B00000000-0000-0000-0000-000000000000%7D",
	"urn:uuid:00000000-0000-0000-0000-000000000000", "x.json", ".json", "fe80::1%25eth0", "10.0.0.0/33", "10.0.0.1/8", "::ffff:10.0.0.1", "%3A%3A/0", "0001-01-01", "!", "in:", "!in:", "!", "in:,,",
	"a:b", "ip_address=x", "subnet_id=x", "ip_address=", "ip_address_substr=%25", "VCPU:1", "VCPU:99999999999999999999", "%0d%0aX-Evil:1", "z" + strings.Repeat("9", 7900), strings.Repeat("%E2%98%83", 900),
}

// queryKeys maps the prefix of each API to the query parameters that the API knows. The key "" of queryKeys
// maps to query parameters that no API knows.
var queryKeys = map[string][]string{
	"/networking": {
		"limit",
		"marker",
		"page_reverse",
		"sort_key",
		"sort_dir",
		"fields",
		"id",
		"name",
		"project_id",
		"network_id",
		"ip_version",
		"cidr",
		"gateway_ip",
		"enable_dhcp",
		"revision_number",
		"admin_state_up",
		"router:external",
		"mtu",
		"provider:network_type",
		"provider:segmentation_id",
		"status",
		"mac_address",
		"fixed_ips",
		"device_id",
		"binding:host_id",
		"binding:vif_type",
		"security_groups",
		"agent_type",
		"host",
		"alive",
		"ipv6_ra_mode",
		"tags",
	},
	"/placement": {
		"name",
		"uuid",
		"member_of",
		"resources",
		"in_tree",
		"required",
		"associated",
		"project_id",
		"user_id",
		"consumer_type",
	},
	"/reservation": {"lease_id", "reservation_id", "all", "detail"},
	"/journal/v1":  {"state", "type", "object", "after", "order", "limit", "last", "slowest"},
	"":             {"", "%00", "%ff", "%zz", "unheard"},
}

func TestHostilePath_Rejected(t *testing.T) {
	t.Parallel()
	forEachGroup(t, rejectPaths)
}

// rejectPaths sends hostile values in the path and in the query string of each route of a group.
func rejectPaths(h *hostileClient, group func(prefix string) bool) {
	turn, route := 0, 0
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if !group(api.Prefix) || strings.HasSuffix(r.Path, ".json") {
			return
		}
		body := h.fill(validBodies[r.Method+" "+api.Prefix+r.Path])
		before, rest, parameter := strings.Cut(api.Prefix+r.Path, "{")
		_, after, _ := strings.Cut(rest, "}")
		route++
		// yields every second hostile word; the next route gets the other half of the words
		half := func(yield func(string) bool) {
			for i := route % 2; i < len(hostileWords) && yield(hostileWords[i]); i += 2 {
			}
		}
		if parameter {
			for w := range half {
				h.attack(attack{method: r.Method, path: before + w + h.concretePath(after), body: body})
			}
		}
		if first, _, two := strings.Cut(after, "{"); two {
			for w := range half {
				h.attack(attack{
					method: r.Method,
					path:   h.concretePath(before+"{"+rest[:len(rest)-len(after)]+first) + w,
					body:   body,
				})
			}
		}
		if r.Method != http.MethodGet || parameter {
			return
		}
		for _, k := range append(queryKeys[""], queryKeys[api.Prefix]...) {
			for range 6 { // the list of each route gets other words
				turn++
				h.attack(attack{
					method: r.Method,
					path:   api.Prefix + r.Path + "?" + k + "=" + hostileWords[turn%len(hostileWords)],
				})
			}
		}
		for _, q := range []string{"%27;drop=1", "limit=1&limit=x", "sort_key=name&sort_key=id&sort_dir=asc", "a;b", "&&&", "=", "==", "?", "fields", strings.Repeat("a=1&", 5000)} {
			h.attack(attack{method: r.Method, path: api.Prefix + r.Path + "?" + q})
		}
	})
}

func TestHostileHeaderAndMethod_Rejected(t *testing.T) {
	t.Parallel()
	forEachGroup(t, rejectHeadersAndMethods)
}

// rejectHeadersAndMethods sends hostile headers to each route of a group, and methods that the route lacks.
func rejectHeadersAndMethods(h *hostileClient, group func(prefix string) bool) {
	odd := []string{
		"",
		" ",
		"x",
		"\xff",
		"*/*;q=x",
		"application/json;",
		"application/json; charset=utf-16",
		"text/html",
		",,,;;;==",
		"placement 1.99",
		"placement 1.-1",
		"placement 1." + strings.Repeat("9", 30),
		"placement latest",
		"reservation 1.1",
		"reservation",
		"-1",
		"revision_number=x",
		"revision_number=99999999999999999999",
		"revision_number=1, revision_number=2",
		strings.Repeat("z", 8000),
		"admin:\xff",
		":",
		"::",
		"a:",
	}
	turn := 0
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if !group(api.Prefix) || strings.HasSuffix(r.Path, ".json") {
			return
		}
		path := h.concretePath(api.Prefix + r.Path)
		body := h.fill(validBodies[r.Method+" "+api.Prefix+r.Path])
		for _, m := range []string{"HEAD", "OPTIONS", "TRACE", "PATCH", "BREW", "get"} {
			if m != r.Method {
				h.attack(attack{method: m, path: path, body: body})
			}
		}
		h.attack(attack{method: r.Method, path: path + "/", body: "{"})
		h.attack(attack{method: r.Method, path: path + "//x", body: body})
		if r.Method == http.MethodDelete {
			return // this request would delete objects that later requests need
		}
		for i, name := range []string{"Content-Type", "Openstack-Api-Version", "If-Match", "X-Auth-Token", "X-Roles", "X-Project-Id", "Content-Encoding"} {
			for j := range 3 { // each route gets different values
				turn += 3
				h.attack(attack{
					method: r.Method,
					path:   path,
					body:   body,
					header: http.Header{name: {odd[(turn+i+j)%len(odd)]}},
				})
			}
		}
		h.attack(attack{
			method: r.Method,
			path:   path,
			body:   body,
			header: http.Header{"Accept": {"application/json;q=0.1, */*;q=x"}},
		})
	})
}
