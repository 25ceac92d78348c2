package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/openapi/openapitest"
)

// Worker is a process of the program worker, with a client for the APIs of that process.
type Worker struct {
	*Process
	T   *testing.T
	URL string // of a proxy that compares each answer with the OpenAPI document of its API
	// URL of the process itself, for answers that are too large for the proxy
	ProcessURL string
	Token      string // token of the requests: an administrator's
}

var serving = regexp.MustCompile(`msg=serving address=(\S+)`)

// StartWorker starts a worker process with the given roles and waits until the process serves HTTP.
// StartWorker kills the process at the end of the test.
func (s *Deployment) StartWorker(roles string) *Worker {
	s.Helper()
	c := &Worker{
		Process: StartProgram(s.T, Program(s.T, "worker"), []string{"-roles", roles}, s.Settings...),
		T:       s.T,
		Token:   "admin",
	}
	s.Cleanup(func() {
		c.Kill()
		if s.Failed() {
			s.Logf("output of the process with the roles %s:\n%s", roles, c.Output())
		}
	})
	s.Await("the process with the roles "+roles+" serves", func() string {
		select {
		case <-c.Done:
			s.Fatalf("the process with the roles %s ended before it served HTTP:\n%s", roles, c.Output())
		default:
		}
		if m := serving.FindStringSubmatch(c.Output()); m != nil {
			c.ProcessURL = "http://" + m[1]
			c.URL = openapitest.Proxy(s.T, c.ProcessURL)
			return ""
		}
		return "its output is " + c.Output()
	})
	return c
}

// AwaitReady waits until /readyz answers 200.
func (c *Worker) AwaitReady() {
	c.T.Helper()
	var code int
	var answer Object
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if code, answer, err = c.Do("GET", "/readyz", nil); code == http.StatusOK {
			return
		}
	}
	c.T.Fatalf("/readyz after %s: want 200, the last answer was %d %v, error %v", patience, code, answer, err)
}

// Kill sends SIGKILL and waits for the end of the process.
func (c *Worker) Kill() {
	_ = c.Cmd.Process.Kill()
	<-c.Done
}

// Object is a JSON object.
type Object = map[string]any

// Do sends a request as an administrator. Do returns an error if no response came or if the body of the
// response was not JSON.
func (c *Worker) Do(method, path string, body any) (int, Object, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Auth-Token", c.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("OpenStack-API-Version", "placement 1.28")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var o Object
	err = json.NewDecoder(answer.Body).Decode(&o)
	if answer.StatusCode == http.StatusNoContent {
		err = nil
	}
	return answer.StatusCode, o, err
}

// Must sends a request and returns the response body. If the request does not succeed, Must fails the test.
func (c *Worker) Must(method, path string, body any) Object {
	c.T.Helper()
	code, o, err := c.Do(method, path, body)
	if err != nil || code >= http.StatusMultipleChoices {
		c.T.Fatalf("%s %s: got %d %v, error %v; want a success", method, path, code, o, err)
	}
	return o
}

// Create creates an object of the Networking API and returns the object's ID.
func (c *Worker) Create(typ string, o Object) string {
	c.T.Helper()
	return c.Must("POST", "/networking/v2.0/"+typ+"s", Object{typ: o})[typ].(Object)["id"].(string)
}

// CreateNetwork creates a network and returns the network's ID.
func (c *Worker) CreateNetwork(name string) string {
	c.T.Helper()
	return c.Create("network", Object{"name": name})
}

// CreateSubnet creates a subnet of the network and returns the subnet's ID.
func (c *Worker) CreateSubnet(network string) string {
	c.T.Helper()
	return c.Create("subnet", SubnetBody(network))
}

// SubnetBody returns the request body that creates an IPv4 subnet.
func SubnetBody(network string) Object {
	return Object{"network_id": network, "ip_version": 4, "cidr": "10.20.0.0/24"}
}

// PortBody returns the request body that creates a server's port on host cmp-1. A port with this body becomes
// ACTIVE only after the reports of the DHCP agent and the L2 agent.
func PortBody(network string) Object {
	return Object{
		"network_id":      network,
		"binding:host_id": "cmp-1",
		"device_owner":    "compute:nova",
		"device_id":       uuid.NewString(),
	}
}

// RegisterAgents sends heartbeats of a DHCP agent on host net-1 and an Open vSwitch agent on host cmp-1.
func (c *Worker) RegisterAgents() {
	c.T.Helper()
	c.Must("POST", "/agent/v1/state", Object{"agent_type": "DHCP agent", "host": "net-1"})
	c.Must("POST", "/agent/v1/state", Object{"agent_type": "Open vSwitch agent", "host": "cmp-1"})
}

// ReportsBody returns the request body with the reports of the DHCP agent and the L2 agent about a port.
func ReportsBody(port string) Object {
	return Object{
		"reports": []Object{
			{"port": port, "entity": "L2", "host": "cmp-1"},
			{"port": port, "entity": "DHCP", "host": "net-1"},
		},
	}
}
