package harness

import (
	"fmt"
	"net/http"
	"time"

	"berth/internal/server/servertest"
)

// CreateLeaseOf registers a host and creates a lease that reserves the host. CreateLeaseOf returns the path
// of the lease.
func CreateLeaseOf(c *servertest.Worker, host string, start, end time.Duration) string {
	c.T.Helper()
	return "/reservation/v1/leases/" + reserveHost(c, host, "lease of "+host, start, end)["id"].(string)
}

// CreateHostLease registers the host node-1 and creates a lease that reserves this host.
func CreateHostLease(c *servertest.Worker, start, end time.Duration) servertest.Object {
	c.T.Helper()
	return reserveHost(c, "node-1", "gold", start, end)
}

// reserveHost registers a host and creates a lease with the given name that reserves the host.
func reserveHost(c *servertest.Worker, host, name string, start, end time.Duration) servertest.Object {
	c.T.Helper()
	provider := c.Must("POST", "/placement/resource_providers", servertest.Object{"name": host})
	c.Must(
		"PUT",
		fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"),
		servertest.Object{
			"resource_provider_generation": provider["generation"], "inventories": servertest.Object{"VCPU": servertest.Object{"total": 8}}},
	)
	c.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": host})
	return c.Must("POST", "/reservation/v1/leases", servertest.Object{
		"name":       name,
		"start_date": TimeIn(start),
		"end_date":   TimeIn(end),
		"events":     []servertest.Object{},
		"reservations": []servertest.Object{{
			"resource_type":         "physical:host",
			"min":                   1,
			"max":                   1,
			"resource_properties":   "",
			"hypervisor_properties": "",
		}},
	})["lease"].(servertest.Object)
}

// LeaseStatusIs returns a check for Await. The check of LeaseStatusIs succeeds when the lease at the given
// URL path has the status `want`.
func LeaseStatusIs(api *servertest.Worker, path, want string) func() string {
	return func() string {
		if got := api.Must("GET", path, nil)["lease"].(servertest.Object)["status"]; got != want {
			return fmt.Sprint("its status is ", got)
		}
		return ""
	}
}

// SetDateToNow sets a date of the lease with the given URL path to now. The API refuses dates of earlier
// minutes, so SetDateToNow repeats a request that the API received only in the next minute.
func SetDateToNow(c *servertest.Worker, path, field string) {
	c.T.Helper()
	for {
		now := TimeIn(0)
		code, answer, err := c.Do("PUT", path, servertest.Object{field: now})
		if err == nil && code < http.StatusMultipleChoices {
			return
		}
		const minute = len("2006-01-02T15:04")
		if TimeIn(0)[:minute] == now[:minute] {
			c.T.Fatalf("set the %s of %s to %s: got %d %v, error %v; want a success",
				field, path, now, code, answer, err)
		}
	}
}

// TimeIn returns the time when the duration `d` has passed from now, without fractions of a second, in the
// format that the lease API reads.
func TimeIn(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
