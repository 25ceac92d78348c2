package neutron_test

import (
	"fmt"
	"testing"

	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// On a shared network, the owner of the network takes an attribute away from the port of another project,
// while a request of this project that sets the same value waits for the port. The request was allowed when
// it changed nothing; it must not undo what the owner has done.
func TestPort_UpdateThatWaitsDoesNotUndoWhatItMayNotSet(t *testing.T) {
	t.Parallel()
	for _, attribute := range []struct{ granted, taken string }{
		{
			`"allowed_address_pairs":[{"ip_address":"192.0.2.1","mac_address":"fa:16:3e:00:00:01"}]`,
			`"allowed_address_pairs":[]`,
		},
		{`"port_security_enabled":false,"security_groups":[]`, `"port_security_enabled":true`},
	} {
		t.Run(attribute.granted, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			c := openOn(t, url, networkstore.Config{})
			member := c.as("eve:other")
			network := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"]
			port := member.must(201, "POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q}}`, network))["port"].(object)["id"].(string)
			path := "/v2.0/ports/" + port
			granted := `{"port":{` + attribute.granted + `}}`
			c.must(200, "PUT", path, granted)
			member.must(200, "PUT", path, granted) // it changes nothing
			r := storetest.NewRival(t, url)
			r.Do(`begin`)
			r.Do(`select from port where id = '` + port + `' for update`)
			owner, late := make(chan int, 1), make(chan int, 1)
			put := func(c cloud, body string) int { status, _, _ := c.raw("PUT", path, body); return status }
			go func() { owner <- put(c, `{"port":{`+attribute.taken+`}}`) }()
			r.AwaitWaiters(1, nil)
			go func() { late <- put(member, granted) }()
			r.AwaitWaiters(2, nil)

			r.Do(`commit`)

			if got := <-owner; got != 200 {
				t.Errorf("update of the owner: got status %d, want 200", got)
			}
			if got := <-late; got != 403 {
				t.Errorf("update of the member that waited: got status %d, want 403", got)
			}
			after := c.must(200, "GET", path, "")["port"].(object)
			if got := fmt.Sprint(after["allowed_address_pairs"]); got != "[]" {
				t.Errorf("address pairs after both updates: got %s, want none", got)
			}
			if got := after["port_security_enabled"]; got != true {
				t.Errorf("port security after both updates: got %v, want true", got)
			}
		})
	}
}
