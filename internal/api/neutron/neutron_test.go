package neutron_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"berth/internal/api/neutron"
	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/journalstore"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// cloud is a client that sends requests with a token to the API on a test server.
type cloud struct {
	t     testing.TB
	url   string
	token string
	store *store.Store
}

type object = map[string]any

func open(t testing.TB) cloud { return openWith(t, networkstore.Config{}) }

// openWith starts the Networking API on a store with the settings in `config`, and returns a client of this
// API.
func openWith(t testing.TB, config networkstore.Config) cloud {
	return openOn(t, storetest.URL(t), config)
}

// openOn does the same as openWith with the database at a URL.
func openOn(t testing.TB, url string, config networkstore.Config) cloud {
	s := storetest.Open(t, url)
	s.Network = portstore.New(s.DB, portstore.Config{Network: config})
	c := cloud{
		t:     t,
		url:   serveAPI(t, neutron.New(s.Network, identity.Noauth{})) + "/networking",
		token: "admin",
		store: s,
	}
	c.heartbeat(network.OVSAgent, "cmp-1")
	c.heartbeat(network.DHCPAgent, "net-1")
	return c
}

// serveAPI serves the API until the test ends, and returns the URL of the server.
func serveAPI(t testing.TB, api *osapi.API) string {
	t.Helper()
	server := httptest.NewServer(openapitest.API(t, neutron.Description(), api))
	t.Cleanup(server.Close)
	return server.URL
}

func (c cloud) heartbeat(kind, host string) {
	c.t.Helper()
	if _, err := c.store.Network.ReportState(c.t.Context(), network.AgentState{Type: kind, Host: host, Configurations: json.RawMessage(`{}`)}); err != nil {
		c.t.Fatal(err)
	}
}

// in returns a copy of the client that reports failures to the given subtest.
func (c cloud) in(t testing.TB) cloud {
	c.t = t
	return c
}

func (c cloud) as(token string) cloud {
	c.token = token
	return c
}

// raw sends a request. The parameter `header` is a list of header fields: each name is followed by its value.
func (c cloud) raw(method, path, body string, header ...string) (int, object, http.Header) {
	c.t.Helper()
	url := c.url + path
	if strings.HasPrefix(path, "http") {
		url = path
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		r.Header.Set("X-Auth-Token", c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var o object
	if len(bytes.TrimSpace(text)) > 0 {
		if err := json.Unmarshal(text, &o); err != nil {
			c.t.Fatalf("%s %s: got status %d and a body that is not JSON, want a JSON body: %q",
				method, path, answer.StatusCode, text)
		}
	}
	return answer.StatusCode, o, answer.Header
}

// must sends a request and fails the test unless the response has the given status.
func (c cloud) must(status int, method, path, body string, header ...string) object {
	c.t.Helper()
	got, o, _ := c.raw(method, path, body, header...)
	if got != status {
		c.t.Fatalf("%s %s with the body %s: want status %d, got %d %v", method, path, body, status, got, o)
	}
	return o
}

// fault sends a request that must fail, and returns the status and the type of the error.
func (c cloud) fault(method, path, body string, header ...string) string {
	c.t.Helper()
	fault, _, _ := strings.Cut(c.faultMessage(method, path, body, header...), ": ")
	return fault
}

// faultMessage does the same as fault, and also returns the message of the error after a colon.
func (c cloud) faultMessage(method, path, body string, header ...string) string {
	c.t.Helper()
	status, o, _ := c.raw(method, path, body, header...)
	e, _ := o["NeutronError"].(object)
	if e == nil {
		return fmt.Sprintf("%d %v", status, o)
	}
	message, _ := e["message"].(string)
	if message == "" || e["detail"] != "" {
		c.t.Errorf("%s %s: got the error %v, want an error with a message and an empty detail",
			method, path, e)
	}
	return fmt.Sprintf("%d %s: %s", status, e["type"], message)
}

// createNetwork creates a network and a subnet with the given CIDR, and returns their IDs.
func (c cloud) createNetwork(cidr string) (net, subnet string) {
	c.t.Helper()
	n := c.must(201, "POST", "/v2.0/networks", `{"network":{"name":"blue"}}`)["network"].(object)
	net = n["id"].(string)
	s := c.must(201, "POST", "/v2.0/subnets",
		fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":%q}}`, net, cidr))
	return net, s["subnet"].(object)["id"].(string)
}

func (c cloud) port(net, more string) object {
	c.t.Helper()
	return c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q%s}}`, net, more))["port"].(object)
}

// journaledChanges returns the changes for the controller that the journal contains, in their order.
func (c cloud) journaledChanges() (changes []string) {
	c.t.Helper()
	all, err := c.store.Journal.JournalEntries(c.t.Context(), journalstore.EntryFilter{Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range all {
		changes = append(changes, string(e.Operation)+" "+e.Object.Type)
	}
	return changes
}

func ids(o object, collection string) []string {
	list := []string{}
	for _, v := range o[collection].([]any) {
		list = append(list, v.(object)["id"].(string))
	}
	return list
}
