package neutron_test

import (
	"testing"
)

func TestDiscovery_VersionsExtensionsAndLinks(t *testing.T) {
	t.Parallel()
	c := open(t)
	stranger := c.as("")
	for _, path := range []string{"", "/", "/v2.0"} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t)
			v := stranger.must(200, "GET", path, "")["versions"].([]any)[0].(object)
			href := v["links"].([]any)[0].(object)["href"]
			if href != c.url+"/v2.0/" || v["status"] != "CURRENT" {
				t.Errorf("GET %q: got version %v, want status CURRENT and a link to /v2.0/", path, v)
			}
		})
	}
	stranger.must(200, "GET", "/v2.0/", "")
	if e := c.must(200, "GET", "/v2.0/extensions.json", "")["extensions"].([]any); len(e) < 5 {
		t.Errorf("list of extensions: got %v, want at least five", e)
	}
	net, _ := c.createNetwork("10.0.0.0/24")
	c.must(200, "GET", "/v2.0/networks/"+net+".json", "")
	c.must(200, "GET", "/v2.0/networks.json?name=blue", "")
}
