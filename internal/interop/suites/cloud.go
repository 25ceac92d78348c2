package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/network"
)

// password is the password of Keystone's administrator.
const password = "secret"

// agents are the agents of the cloud. They send only heartbeats, so that berth schedules networks to the DHCP
// agents and binds ports.
var agents = []object{
	{
		"agent_type":        "DHCP agent",
		"binary":            "neutron-dhcp-agent",
		"topic":             "dhcp_agent",
		"host":              "net-1",
		"availability_zone": "nova",
	},
	{
		"agent_type":        "DHCP agent",
		"binary":            "neutron-dhcp-agent",
		"topic":             "dhcp_agent",
		"host":              "net-2",
		"availability_zone": "nova",
	},
	{
		"agent_type": "Open vSwitch agent",
		"binary":     "neutron-openvswitch-agent",
		"topic":      "N/A",
		"host":       "cmp-1",
	},
	{
		"agent_type": "Open vSwitch agent",
		"binary":     "neutron-openvswitch-agent",
		"topic":      "N/A",
		"host":       "cmp-2",
	},
}

// cloud is Keystone, berth with its servers, and the agents.
type cloud struct {
	ctx        context.Context // ends when a server ends by itself
	fail       context.CancelCauseFunc
	running    sync.WaitGroup
	dir        string
	pythons    map[string]python // by the name of the file in tools
	keystone   string            // the URL of Keystone
	berth      string            // the URL of berth
	proxy      string            // the URL of the proxy between the suites and berth
	token      string
	external   string // the ID of the external network
	extensions []string
}

// startCloud starts the servers in the folder dir. The caller stops the cloud, also if startCloud returns an
// error.
func startCloud(ctx context.Context, dir string) (*cloud, error) {
	c := &cloud{dir: dir, pythons: map[string]python{}}
	c.ctx, c.fail = context.WithCancelCause(ctx)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"find the Python packages", c.findPythons},
		{"start Keystone", c.startKeystone},
		{"start berth", c.startBerth},
		{"create the external network", c.createExternalNetwork},
		{"list the extensions", c.listExtensions},
		{"send the agents' heartbeats", c.sendHeartbeats},
		{"create the projects of the functional tests", c.createProjects},
		{"start the openstack client", c.startClient},
	} {
		progress("%s", step.name)
		if err := step.do(); err != nil {
			return c, fmt.Errorf("%s: %w", step.name, errors.Join(err, context.Cause(c.ctx)))
		}
	}
	return c, nil
}

// findPythons installs the Python packages of the workspaces, unless they are installed.
func (c *cloud) findPythons() (err error) {
	for _, w := range workspaces {
		if c.pythons[w.packages] == "" {
			if c.pythons[w.packages], err = findPython(c.ctx, w.packages); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cloud) stop() {
	c.fail(nil)
	c.running.Wait()
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" suites: "+format+"\n", args...)
}

// startServer starts a program that runs until the cloud stops. Its output goes to the file NAME.log.
func (c *cloud) startServer(name string, cmd *exec.Cmd) error {
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	c.running.Go(func() {
		err := devstack.Run(c.ctx, cmd)
		_ = log.Close()
		if c.ctx.Err() == nil {
			said, _ := os.ReadFile(log.Name())
			c.fail(fmt.Errorf("%s ended by itself: %w\n%s", name, err, said))
		}
	})
	return nil
}

// await calls the function ready until it returns true, or until the cloud has failed.
func (c *cloud) await(ready func() bool) error {
	for !ready() {
		select {
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// startBerth builds and starts `worker --dev`, which starts PostgreSQL, Temporal and a stub of OpenDaylight.
// Then startBerth registers berth's APIs in Keystone.
func (c *cloud) startBerth() error {
	programs, err := devstack.Programs(c.ctx, c.dir)
	if err != nil {
		return err
	}
	port, err := devstack.Port(0)
	if err != nil {
		return err
	}
	data := filepath.Join(c.dir, "berth")
	worker := exec.Command(filepath.Join(programs, "worker"), "--dev")
	worker.Env = append(
		os.Environ(),
		"BERTH_DATA="+data,
		fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", port),
		"BERTH_DEV_DATABASE_PORT=0",
		"BERTH_DEV_TEMPORAL_PORT=0",
		"BERTH_DEV_UI_PORT=0",
		"BERTH_DEV_ODL_PORT=0",
		"BERTH_DEMO=off",
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL="+c.keystone+"/v3",
		"OS_USERNAME=admin",
		"OS_PASSWORD="+password,
		"OS_PROJECT_NAME=admin",
	)
	if err := c.startServer("worker", worker); err != nil {
		return err
	}
	if err := c.await(func() bool {
		addresses, err := config.ReadAddresses(data)
		c.berth = addresses["BERTH_URL"]
		return err == nil && c.berth != ""
	}); err != nil {
		return err
	}
	if c.proxy, err = c.startProxy(); err != nil {
		return err
	}
	return errors.Join(
		c.registerService("network", c.proxy+"/networking"),
		c.registerService("compute", c.proxy+"/compute"),
		c.registerService("placement", c.proxy+"/placement"),
		c.registerService("reservation", c.proxy+"/reservation/v1"),
		c.call("POST", c.berth+"/placement/resource_providers", object{"name": "cmp-1"}, nil),
	)
}

// stubs are the answers to the requests that the suites send to other services. A class of tests of Tempest
// deletes the routers of its project before each test. Another class looks for the host to which it binds
// ports, and the tests of Blazar look for the host that they register.
var stubs = map[string]string{
	"GET /networking/v2.0/routers":     `{"routers": []}`,
	"GET /compute/os-hypervisors":      hypervisors,
	"GET /compute/v2.1/os-hypervisors": hypervisors,
}

const hypervisors = `{"hypervisors": [{"id": 1, "hypervisor_hostname": "cmp-1", "state": "up", "status": "enabled"}]}`

// startProxy starts a proxy between the suites and berth, and returns its URL. The proxy itself answers the
// requests that the variable stubs lists.
func (c *cloud) startProxy() (url string, err error) {
	target, err := neturl.Parse(c.berth)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(target))
	for request, answer := range stubs {
		mux.HandleFunc(request, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
	}
	proxy, err := devstack.Serve(0, mux)
	if err != nil {
		return "", err
	}
	context.AfterFunc(c.ctx, proxy.Stop)
	return proxy.URL, nil
}

func (c *cloud) createExternalNetwork() error {
	var made struct{ Network struct{ ID string } }
	if err := c.call("POST", c.berth+"/networking/v2.0/networks", object{"network": object{"name": "public", "router:external": true}}, &made); err != nil {
		return err
	}
	c.external = made.Network.ID
	return c.call("POST", c.berth+"/networking/v2.0/subnets", object{"subnet": object{
		"network_id":       c.external,
		"ip_version":       4,
		"cidr":             "172.24.4.0/24",
		"enable_dhcp":      false,
		"allocation_pools": []object{{"start": "172.24.4.10", "end": "172.24.4.254"}},
	}}, nil)
}

func (c *cloud) listExtensions() error {
	var listed struct{ Extensions []struct{ Alias string } }
	err := c.call("GET", c.berth+"/networking/v2.0/extensions", nil, &listed)
	for _, e := range listed.Extensions {
		c.extensions = append(c.extensions, e.Alias)
	}
	return err
}

// sendHeartbeats sends the first heartbeat of every agent, and then sends further heartbeats so often that
// berth always regards the agents as alive.
func (c *cloud) sendHeartbeats() error {
	send := func() error {
		for _, agent := range agents {
			if err := c.call("POST", c.berth+"/agent/v1/state", agent, nil); err != nil {
				return err
			}
		}
		return nil
	}
	c.running.Go(func() {
		tick := time.NewTicker(network.AgentDownTime / 5)
		defer tick.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-tick.C:
				if err := send(); err != nil && c.ctx.Err() == nil {
					progress("heartbeat: %v", err)
				}
			}
		}
	})
	return send()
}
