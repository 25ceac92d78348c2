package neutron_test

import (
	"fmt"
	"testing"

	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// A network that becomes private must have no ports of other projects, so berth refuses the ports for which
// it has read the network before.
func TestNetwork_PrivateOneGetsNoPortOfAnotherProject(t *testing.T) {
	t.Parallel()
	for _, attribute := range []string{"shared", "router:external"} {
		t.Run(attribute, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			c := openOn(t, url, networkstore.Config{})
			id := c.must(201, "POST", "/v2.0/networks", fmt.Sprintf(`{"network":{%q:true}}`, attribute))["network"].(object)["id"].(string)
			body := fmt.Sprintf(`{"port":{"network_id":%q}}`, id)
			got := ""

			err := storetest.NewRival(t, url).RunAgainst(
				func() error { got = c.as("eve:other").fault("POST", "/v2.0/ports", body); return nil },
				`update network set shared = false, external = false where id = '`+id+`'`,
			)

			if err != nil || got != "404 NetworkNotFound" {
				t.Errorf("create a port while the network becomes private: got %s, error %v; want 404 NetworkNotFound", got, err)
			}
		})
	}
}
