package interop

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// TestLease_NetworkAtBerthsOwnNetworkingAPI reserves a VLAN while berth's own Networking API takes the place
// of Neutron. The network of the lease must belong to the project of the lease, and no other network may get
// the reserved VLAN. After the end of the lease, berth must delete the network as soon as no server uses it.
func TestLease_NetworkAtBerthsOwnNetworkingAPI(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_NETWORK_VLAN_RANGES=physnet1:200:200")
	api := s.StartWorker("api")
	s.Settings = append(s.Settings, "BERTH_NEUTRON_URL="+api.URL+"/networking", "BERTH_NOVA_TOKEN=admin")
	s.StartWorker("relay,temporal")
	segment := api.Must("POST", "/reservation/v1/networks", servertest.Object{"network_type": "vlan", "physical_network": "physnet1", "segment_id": 100})["network"].(servertest.Object)

	user := *api
	user.Token = "alice:red"
	made := user.Must("POST", "/reservation/v1/leases", servertest.Object{
		"name":       "lab",
		"start_date": "now",
		"end_date":   "2040-01-01 10:00",
		"reservations": []servertest.Object{
			{
				"resource_type":       "network",
				"network_name":        "lab",
				"network_description": "VSwitchName=lab",
				"network_properties":  "",
				"resource_properties": `["==","$physical_network","physnet1"]`,
			}},
	})["lease"].(servertest.Object)
	path := fmt.Sprint("/reservation/v1/leases/", made["id"])
	s.Await("the lease is ACTIVE", func() string {
		l := user.Must("GET", path, nil)["lease"].(servertest.Object)
		if l["status"] != "ACTIVE" {
			return fmt.Sprint(l["status"], l["berth:why"])
		}
		return ""
	})
	reservation := user.Must("GET", path, nil)["lease"].(servertest.Object)["reservations"].([]any)[0].(servertest.Object)
	networkPath := fmt.Sprint("/networking/v2.0/networks/", reservation["network_id"])
	network := api.Must("GET", networkPath, nil)["network"].(servertest.Object)
	got := servertest.Object{}
	for _, key := range []string{"name", "description", "project_id", "provider:network_type", "provider:physical_network", "provider:segmentation_id", "tags"} {
		got[key] = network[key]
	}
	if d := cmp.Diff(servertest.Object{
		"name":                      "lab",
		"description":               "VSwitchName=lab",
		"project_id":                "red",
		"provider:network_type":     "vlan",
		"provider:physical_network": "physnet1",
		"provider:segmentation_id":  100.0,
		"tags":                      []any{"blazar", fmt.Sprint("reservation:", reservation["id"])},
	}, got); d != "" {
		t.Errorf("the network of the lease differs (-want +got):\n%s", d)
	}
	other := api.Must("POST", "/networking/v2.0/networks", servertest.Object{
		"network": servertest.Object{
			"provider:network_type":     "vlan",
			"provider:physical_network": "physnet1",
		},
	})
	if vlan := other["network"].(servertest.Object)["provider:segmentation_id"]; vlan != 200.0 {
		t.Errorf(
			"create a network without a VLAN ID: got the VLAN ID %v, want the VLAN ID 200 from BERTH_NETWORK_VLAN_RANGES",
			vlan,
		)
	}

	user.Must("PUT", path, servertest.Object{"end_date": "2041-01-01 10:00"})
	s.Await("the longer lease keeps its network", func() string {
		l := user.Must("GET", path, nil)["lease"].(servertest.Object)
		why, _ := l["berth:why"].(servertest.Object)
		if id := l["reservations"].([]any)[0].(servertest.Object)["network_id"]; id != network["id"] ||
			!strings.Contains(fmt.Sprint(why["sentence"]), "end_lease is next") {
			return fmt.Sprint(id, why)
		}
		return ""
	})

	subnet := user.Create("subnet",
		servertest.Object{"network_id": network["id"], "ip_version": 4, "cidr": "10.30.0.0/24"})
	user.Create("port", servertest.Object{"network_id": network["id"]})
	instance := s.Nova.AddServer(notifytest.Server{Name: "web"}).ID
	server := api.Create("port", servertest.Object{
		"network_id":   network["id"],
		"device_owner": "compute:nova",
		"device_id":    instance,
	})
	if code, _, _ := user.Do("DELETE", path, nil); code != http.StatusNoContent &&
		code != http.StatusAccepted {
		t.Errorf("delete the lease: got %d, want 204 or 202", code)
	}
	s.Await("the lease waits for the server", func() string {
		// the server is of another project, so only an administrator sees it
		why, _ := api.Must("GET", path, nil)["lease"].(servertest.Object)["berth:why"].(servertest.Object)
		sentence := fmt.Sprint(why["sentence"])
		if !strings.Contains(sentence, "server "+instance+" has port "+server) {
			return sentence
		}
		return ""
	})
	api.Must("DELETE", "/networking/v2.0/ports/"+server, nil)
	s.AwaitNone("the lease is deleted", `select name from lease`)
	for _, gone := range []string{networkPath, "/networking/v2.0/subnets/" + subnet} {
		if code, _, err := api.Do("GET", gone, nil); code != http.StatusNotFound {
			t.Errorf("GET %s after the end of the lease: got %d, error %v; want 404", gone, code, err)
		}
	}
	api.Must("DELETE", fmt.Sprint("/reservation/v1/networks/", segment["id"]), nil)
}
