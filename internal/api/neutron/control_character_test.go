package neutron_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// lineAttributes are the texts that agents, the controller and Nova may write into a file, an argument or a
// log of one line each. For each collection, `$` stands for the text; the other attributes are those that a
// create request needs.
var lineAttributes = []struct{ collection, singular, required, attribute, onUpdate string }{
	{"ports", "port", `"network_id":"{net}"`, `"extra_dhcp_opts":[{"opt_name":"$","opt_value":"x"}]`, "400"},
	{"ports", "port", `"network_id":"{net}"`, `"extra_dhcp_opts":[{"opt_name":"$","opt_value":null}]`, "400"},
	{
		"ports",
		"port",
		`"network_id":"{net}"`,
		`"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":"1"},{"opt_name":"tftp-server","opt_value":"$","ip_version":6}]`,
		"400",
	},
	{"ports", "port", `"network_id":"{net}"`, `"device_id":"$"`, "400"},
	{"ports", "port", `"network_id":"{net}"`, `"device_owner":"$"`, "400"},
	{"ports", "port", `"network_id":"{net}"`, `"binding:host_id":"$"`, "400"},
	{"ports", "port", `"network_id":"{net}"`, `"tags":["$"]`, ""},
	{"ports", "port", `"network_id":"{net}"`, `"project_id":"$"`, ""},
	{
		"networks",
		"network",
		`"name":"x"`,
		`"provider:network_type":"flat","provider:physical_network":"$"`,
		"",
	},
	{"networks", "network", `"name":"x"`, `"provider:network_type":"$"`, ""},
	{"networks", "network", `"name":"x"`, `"availability_zone_hints":["$"]`, ""},
	{"networks", "network", `"name":"x"`, `"tenant_id":"$"`, ""},
	{
		"subnets",
		"subnet",
		`"network_id":"{net}","ip_version":4,"cidr":"10.9.0.0/24"`,
		`"service_types":["compute:$"]`,
		"400",
	},
	{"subnets", "subnet", `"network_id":"{net}","ip_version":4,"cidr":"10.9.0.0/24"`, `"project_id":"$"`, ""},
	{"security-groups", "security_group", `"name":"x"`, `"project_id":"$"`, ""},
	{"trunks", "trunk", `"port_id":"{port}"`, `"project_id":"$"`, ""},
}

func TestControlCharacters_RefusedInLines(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	port := c.port(net, "")["id"].(string)
	fill := strings.NewReplacer("{net}", net, "{port}", port)
	existing := map[string]string{"ports": port, "subnets": subnet}
	for _, a := range lineAttributes {
		for _, character := range []string{`\n`, `\r`, `\t`, `\u0001`, `\u001b`, `\u007f`, `\u0085`, `\u2028`} {
			t.Run(a.collection+" "+a.attribute+" "+character, func(t *testing.T) {
				c := c.in(t)
				attribute := strings.ReplaceAll(a.attribute, "$", "a"+character+"tag:b")
				object := fill.Replace("{" + a.required + "," + attribute + "}")
				path := "/v2.0/" + a.collection
				plural := strings.ReplaceAll(a.collection, "-", "_")
				requests := [][3]string{
					{"POST", path, fmt.Sprintf(`{%q:%s}`, a.singular, object)},
					{"POST", path, fmt.Sprintf(`{%q:[%s]}`, plural, object)},
				}
				if a.onUpdate != "" {
					requests = append(requests, [3]string{
						"PUT",
						path + "/" + existing[a.collection],
						fmt.Sprintf(`{%q:{%s}}`, a.singular, attribute),
					})
				}
				for _, r := range requests {
					if got := c.fault(r[0], r[1], r[2]); !strings.HasPrefix(got, "400 ") {
						t.Errorf("%s %s with %s: want 400, got %s", r[0], r[1], r[2], got)
					}
				}
			})
		}
	}
	tag := "/v2.0/ports/" + port + "/tags"
	for _, r := range [][3]string{
		{"PUT", tag + "/" + url.PathEscape("a\nb"), ""},
		{"PUT", tag, `{"tags":["a\nb"]}`},
		{"POST", "/v2.0/ports/" + port + "/bindings", `{"binding":{"host":"cmp-1\n"}}`},
	} {
		if got := c.fault(r[0], r[1], r[2]); !strings.HasPrefix(got, "400 ") {
			t.Errorf("%s %s with %s: want 400, got %s", r[0], r[1], r[2], got)
		}
	}
}

// Names and descriptions are free texts, in which Neutron accepts tabs and line ends.
func TestControlCharacters_OnlyTabsAndLineEndsInFreeTexts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	for path, singular := range map[string]string{
		"networks/" + net:                         "network",
		"subnets/" + subnet:                       "subnet",
		"ports/" + c.port(net, "")["id"].(string): "port",
		"security-groups/" + c.group("g"):         "security_group",
	} {
		for _, name := range []string{"name", "description"} {
			t.Run(singular+" "+name, func(t *testing.T) {
				c := c.in(t)
				body := func(text string) string { return fmt.Sprintf(`{%q:{%q:"%s"}}`, singular, name, text) }
				if got := c.must(200, "PUT", "/v2.0/"+path, body(`two\tcolumns\r\nand lines`))[singular].(object)[name]; got != "two\tcolumns\r\nand lines" {
					t.Errorf("%s of several lines: got %q, want the text of the request", name, got)
				}
				for _, character := range []string{`\u0000`, `\u0007`, `\u001b`, `\u007f`, `\u009b`} {
					if got := c.fault("PUT", "/v2.0/"+path, body("a"+character)); got != "400 HTTPBadRequest" {
						t.Errorf("%s with %s: want 400 HTTPBadRequest, got %s", name, character, got)
					}
				}
			})
		}
	}
}
