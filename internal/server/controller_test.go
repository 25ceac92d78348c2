package server_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestController_TLSAndPortStatus connects to a controller with TLS and a password: the controller receives
// all changes, and a port on one of the controller's hosts becomes ACTIVE when the controller reports the
// port's status.
func TestController_TLSAndPortStatus(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	c.User, c.Password = "berth", "secret"
	c.SetFeatures(map[string]string{"operational-port-status": ""})
	c.SetHostConfigs(
		odltest.HostConfig{ID: "cmp-odl", Type: "ODL L2", Config: `{"allowed_network_types":["local","vxlan"],
		"supported_vnic_types":[{"vnic_type":"normal","vif_type":"ovs","vif_details":{}}]}`},
	)
	c.SetAutoWire(true)
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	_, settings := servertest.NewNamespace(t)
	s := servertest.NewDeployment(t, storetest.URL(t), settings...)
	s.Controller = c
	s.Settings = append(
		s.Settings, "BERTH_ODL_URL="+server.URL+odltest.BasePath,
		"BERTH_ODL_USERNAME=berth", "BERTH_ODL_PASSWORD=secret", "BERTH_ODL_CA_FILE="+ca,
	)
	api := s.StartWorker("api,relay,temporal")
	s.Await("the controller's host is an agent", func() string {
		if len(s.Rows(`select host from agent where host = 'cmp-odl'`)) == 0 {
			return "it is not registered"
		}
		return ""
	})
	network := api.CreateNetwork("blue")
	port := api.Create("port", servertest.Object{
		"network_id":      network,
		"binding:host_id": "cmp-odl",
		"device_owner":    "compute:nova",
		"device_id":       "d",
	})

	s.AwaitActive(api, []string{port})

	shown := api.Must("GET", "/networking/v2.0/ports/"+port, nil)["port"].(servertest.Object)
	if got := fmt.Sprint(shown["binding:vif_type"], shown["binding:vif_details"]); got != "ovsmap[bound_drivers:map[0:opendaylight]]" {
		t.Error(got)
	}
	s.AwaitMirroredAndAudited(api)
}
