package cloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
)

// hostileValues are values that would lead a request to another path, if a client put them into a path as
// they are.
var hostileValues = []string{
	"../servers/detail?all_tenants=1",
	"../../../identity/v3/users",
	"..",
	".",
	"a/../../b",
	"a?b=c",
	"a#b",
	"a%2F..%2Fb",
	`..\..\b`,
	"a\r\nX-Auth-Token: b",
	"a;b",
	"é",
	"a b",
	"%2e%2e",
}

// echoServices is a transport that answers as Nova and Neutron would. The answers contain `value` as each ID
// that the client uses in paths. echoServices records the path and the query of each request.
type echoServices struct {
	value string
	// JSON members of the answers, by the collection in the path; nil: each answer is {}
	answers  map[string]string
	mu       sync.Mutex
	requests []string
	refusals int // of requests to remove a router interface or to delete a port
}

// refuses reports whether Neutron refuses to remove a router interface or to delete a port. It refuses the
// first request for a port, which is then repeated, and two requests for the interface.
func (e *echoServices) refuses(r *http.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "/remove_router_interface") &&
		(r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/ports/")) {
		return false
	}
	e.refusals++
	return e.refusals == 1 || e.refusals == 3 || e.refusals == 4
}

// collectionAnswers contains the JSON members of the answer for each collection: first of the list, then of
// one object.
var collectionAnswers = map[string]string{
	"os-aggregates": `"aggregates":[{"id":7,"name":"RESERVATION","hosts":["cmp"],"metadata":{"blazar:owner":"red"}},{"id":8,"name":"freepool","hosts":[]}]
		"aggregate":{"id":7,"name":"freepool","hosts":[],"metadata":{}}`,
	"servers":              `"servers":[{"id":VALUE,"name":"s","OS-EXT-SRV-ATTR:host":HOST}],"server":{"id":VALUE,"status":"ACTIVE"}`,
	"flavors":              `"flavor":{"id":VALUE,"name":"f","vcpus":1,"ram":1,"disk":1},"extra_specs":{},"flavor_access":[]`,
	"os-server-groups":     `"server_groups":[{"id":VALUE,"name":"reservation:RESERVATION"}]`,
	"os-migrations":        `"migrations":[{"uuid":"resize","instance_uuid":VALUE,"source_compute":"cmp","migration_type":"resize","status":"finished"}]`,
	"os-hypervisors":       `"hypervisors":[]`,
	"os-availability-zone": `"availabilityZoneInfo":[]`,
	"floatingips": `"floatingips":[{"id":VALUE,"port_id":VALUE,"floating_ip_address":"172.24.4.10","project_id":"red","description":"reservation:RESERVATION"},` +
		`{"id":VALUE,"router_id":"RESERVATION"}]
		"floatingip":{"id":VALUE},"tags":[],"port_forwardings":[{"id":VALUE,"internal_port_id":VALUE}]`,
	"networks": `"networks":[{"id":VALUE,"project_id":"red","name":"reservation:RESERVATION"}]
		"network":{"id":VALUE},"tags":[]`,
	"ports": `"ports":[{"id":VALUE,"network_id":VALUE,"device_id":VALUE,"device_owner":"network:router_interface"},` +
		`{"id":VALUE,"network_id":VALUE,"device_id":"RESERVATION","device_owner":"network:router_interface"},{"id":VALUE,"network_id":VALUE,"device_owner":"other"}]`,
	"subnets": `"subnets":[{"id":VALUE,"network_id":VALUE,"cidr":"10.0.0.0/24"}]`,
	"routers": `"router":{"id":VALUE,"routes":[{"nexthop":"10.0.0.7"}]}`,
	"trunks":  `"trunks":[{"id":VALUE,"sub_ports":[{"port_id":VALUE}]},{"id":VALUE,"port_id":VALUE}]`,
}

// RoundTrip implements http.RoundTripper.
func (e *echoServices) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.requests = append(e.requests, r.URL.RequestURI())
	e.mu.Unlock()
	collection := strings.Split(r.URL.EscapedPath(), "/")[3]
	list, one, _ := strings.Cut(e.answers[collection], "\n")
	members := list
	if one != "" && (r.Method != http.MethodGet || strings.Contains(r.URL.Path, collection+"/")) {
		members = one
	}
	if r.URL.Query().Has("flavor") {
		members = `"servers":[]` // otherwise the servers of the flavor would never be deleted
	}
	value, _ := json.Marshal(e.value)
	host, _ := json.Marshal(r.URL.Query().Get("host"))
	values := strings.NewReplacer("VALUE", string(value), "HOST", string(host), "RESERVATION", echoReservation)
	answer := "{" + values.Replace(members) + "}"
	status := http.StatusOK
	switch {
	case e.refuses(r):
		status = http.StatusConflict
	case r.Method == http.MethodPost && collection == "floatingips":
		status = http.StatusCreated
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/action") && collection == "servers":
		status = http.StatusAccepted
	case r.Method == http.MethodDelete && collection == "flavors":
		status = http.StatusAccepted
	case r.Method == http.MethodDelete && collection != "os-aggregates":
		status = http.StatusNoContent
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Request:    r,
		Body:       io.NopCloser(strings.NewReader(answer)),
	}, nil
}

const echoReservation = "0d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e2222"

// outgoingPaths are all forms of paths and queries that package cloud sends.
var outgoingPaths = regexp.MustCompile(
	`^/(compute/v2\.1/(servers/detail\?[a-z_]+=[^?#/]*|servers/SEGMENT(/action)?|flavors|flavors/SEGMENT(/os-extra_specs|/os-flavor-access|/action)?|` +
		`images/detail\?property-berth_lease=[0-9a-f-]+&property-berth_reservation=[0-9a-f-]+&property-berth_server=[^?#/&]*|` +
		`os-aggregates(/\d+(/action)?)?|os-migrations\?status=[a-z-]+|os-server-groups|os-server-groups/SEGMENT|os-hypervisors/detail|os-availability-zone/detail)` +
		`|network/v2\.0/((networks|ports|subnets|floatingips)(\?[^/?#]*)?|(networks|floatingips)/SEGMENT/tags|floatingips/SEGMENT/port_forwardings(/SEGMENT)?|` +
		`(networks|ports|subnets|floatingips)/SEGMENT|routers/SEGMENT(/remove_router_interface)?|trunks(\?port_id=[^/?#]*)?|trunks/SEGMENT(/remove_subports)?))$`,
)

// withSegments replaces each escaped occurrence of the value in a request by the word SEGMENT.
func withSegments(request, value string) string {
	for _, id := range []string{url.PathEscape(value), echoReservation} {
		request = regexp.MustCompile(`/`+regexp.QuoteMeta(id)+`(/|$)`).ReplaceAllString(request, "/SEGMENT$1")
	}
	return request
}

// callAll calls each method of Cloud with the value as flavor ID, as a consumer in Placement, and as the ID
// of every object that Nova and Neutron name.
func callAll(ctx context.Context, c *cloud.Cloud, value string) error {
	_, err := c.Flavor(ctx, "red", value)
	all := []error{err, c.AddToFreepool(ctx, "cmp"), c.RemoveFromFreepool(ctx, "cmp")}
	_, err = c.Hypervisors(ctx)
	all = append(all, err)
	reads := 0
	c.ReadConsumers(func(context.Context, uuid.UUID) ([]string, error) {
		if reads++; reads%3 == 0 {
			return nil, nil // otherwise the servers with slots would never be deleted
		}
		return []string{value, "resize"}, nil
	})
	for _, typ := range c.ResourceTypes() {
		claim := lease.CloudReservation{
			Project: "red",
			Reservation: lease.Reservation{ID: uuid.MustParse(echoReservation), NetworkID: value,
				ReservationDraft: lease.ReservationDraft{
					Type:        typ,
					Affinity:    lease.AffinitySameHost,
					NetworkName: value,
					BeforeEnd:   "snapshot",
					Flavor:      &lease.Flavor{ID: value},
				}},
			ComputeHosts: []lease.ReservedHost{{Service: value}, {Service: "cmp"}},
			FloatingIPs:  []lease.ReservableFloatingIP{{IP: netip.MustParseAddr("172.24.4.10")}},
		}
		_, err := c.Provision(ctx, claim)
		all = append(all, err, c.BeforeEnd(ctx, claim), c.Deprovision(ctx, claim))
	}
	return errors.Join(all...)
}

// newEchoCloud returns a Cloud whose requests the returned transport answers.
func newEchoCloud(t *testing.T, value string, answers map[string]string) (*cloud.Cloud, *echoServices) {
	t.Helper()
	echo := &echoServices{value: value, answers: answers}
	c, err := cloud.New(cloud.Config{
		Nova:    "http://cloud.test/compute/v2.1",
		Neutron: "http://cloud.test/network",
		Wrap:    func(http.RoundTripper) http.RoundTripper { return echo },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, echo
}

func TestRequests_HostileIDsStayBelowTheirCollection(t *testing.T) {
	t.Parallel()
	for _, value := range append([]string{"harmless"}, hostileValues...) {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			c, echo := newEchoCloud(t, value, collectionAnswers)
			err := callAll(t.Context(), c, value)
			forms := map[string]bool{}
			for _, uri := range echo.requests {
				form := withSegments(uri, value)
				if forms[form] = true; !outgoingPaths.MatchString(form) {
					t.Errorf(
						"request with the ID %q: got %s, want a path below its collection and no other query",
						value,
						uri,
					)
				}
			}
			if value != "harmless" {
				return
			}
			for _, end := range []string{"servers/SEGMENT", "servers/SEGMENT/action", "flavors/SEGMENT", "flavors/SEGMENT/os-extra_specs", "flavors/SEGMENT/os-flavor-access",
				"flavors/SEGMENT/action", "os-server-groups/SEGMENT", "networks/SEGMENT", "networks/SEGMENT/tags", "ports/SEGMENT",
				"subnets/SEGMENT", "routers/SEGMENT/remove_router_interface", "routers/SEGMENT", "trunks/SEGMENT", "trunks/SEGMENT/remove_subports", "floatingips/SEGMENT", "floatingips/SEGMENT/tags", "floatingips/SEGMENT/port_forwardings/SEGMENT"} {
				ofEnd := func(form string) bool { return strings.HasSuffix(form, "/"+end) }
				if !slices.ContainsFunc(slices.Collect(maps.Keys(forms)), ofEnd) {
					t.Errorf(
						"requests with the ID %q: none is for %s, want each form of a path; error %v",
						value, end, err,
					)
				}
			}
		})
	}
}

func TestRequests_AnswerWithoutAnObjectIsAnError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"aggregates", "none"} {
		answers := map[string]string{}
		if name == "aggregates" {
			answers["os-aggregates"], answers["os-server-groups"] = `"aggregates":[]`, `"server_groups":[]`
			answers["floatingips"], answers["networks"] = `"floatingips":[]`, `"networks":[]`
		}
		c, _ := newEchoCloud(t, "m1", answers)
		if err := callAll(t.Context(), c, "m1"); err == nil {
			t.Errorf("answers %s without an object: got no error, want one", name)
		}
		if _, err := c.Flavor(t.Context(), "red", "m1"); err == nil {
			t.Error("answer without a flavor: got no error, want one")
		}
	}
}
