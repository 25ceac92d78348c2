package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/google/uuid"
)

// api is a client of berth's HTTP APIs. If startBerth has started the berth process, api also holds the
// functions that stop, kill and restart this process.
type api struct {
	base    string
	token   string // empty: the token of an administrator
	http    *http.Client
	roles   string // roles of berth's process
	brokers string // RabbitMQ URL of the process; empty: none
	command func() *exec.Cmd
	stop    func() // ends the process gracefully
	kill    func() // ends the process by SIGKILL
	log     string // path of the log file
}

func newAPI(base string) *api {
	return &api{
		base: base,
		http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
}

// post sends a POST request and decodes the answer into `into`, unless `into` is nil.
func (a *api) post(ctx context.Context, path string, body, into any) error {
	return a.send(ctx, http.MethodPost, path, body, into)
}

// get sends a GET request and ignores the body of the answer.
func (a *api) get(ctx context.Context, path string) error {
	return a.send(ctx, http.MethodGet, path, nil, nil)
}

// send sends a request with a JSON body. send returns an error if the status of the answer is not 2xx.
func (a *api) send(ctx context.Context, method, path string, body, into any) error {
	var raw []byte
	var err error
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Auth-Token", cmp.Or(a.token, "admin"))
	r.Header.Set("OpenStack-API-Version", "placement latest")
	answer, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if raw, err = io.ReadAll(answer.Body); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(raw))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// attributes are the attributes of an API object.
type attributes map[string]any

// create creates a network, subnet or port and returns the ID of the new object.
func (a *api) create(ctx context.Context, kind string, with attributes) (id string, err error) {
	var created map[string]struct{ ID string }
	if err := a.post(ctx, "/networking/v2.0/"+kind+"s", map[string]attributes{kind: with}, &created); err != nil {
		return "", err
	}
	if id = created[kind].ID; id == "" {
		return "", fmt.Errorf("the answer to the creation of a %s has no ID", kind)
	}
	return id, nil
}

// createDHCPNetwork creates a network and a subnet with DHCP. The new subnet is a /12, which has addresses
// for a million ports.
func (a *api) createDHCPNetwork(ctx context.Context, name string) (network, subnet string, err error) {
	if network, err = a.create(ctx, "network", attributes{"name": name}); err != nil {
		return "", "", err
	}
	subnet, err = a.create(ctx, "subnet",
		attributes{"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/12"})
	return network, subnet, err
}

// awaitActive polls a port until the port is ACTIVE.
func (a *api) awaitActive(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTimeout)
	defer cancel()
	for {
		var answer struct{ Port struct{ Status string } }
		err := a.send(ctx, http.MethodGet, "/networking/v2.0/ports/"+port+"?fields=status", nil, &answer)
		if err != nil || answer.Port.Status == "ACTIVE" {
			return err
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// createProviders creates n resource providers with an inventory that does not run out.
func (a *api) createProviders(ctx context.Context, n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		all[i] = uuid.NewString()
		err := a.post(ctx, "/placement/resource_providers",
			attributes{"uuid": all[i], "name": "bench-" + all[i]}, nil)
		if err != nil {
			return nil, err
		}
		unlimited := attributes{"total": 1<<31 - 1}
		err = a.send(ctx, http.MethodPut, "/placement/resource_providers/"+all[i]+"/inventories", attributes{
			"resource_provider_generation": 0,
			"inventories": attributes{
				"VCPU":      unlimited,
				"MEMORY_MB": unlimited,
				"DISK_GB":   unlimited,
			}}, nil)
		if err != nil {
			return nil, fmt.Errorf("set the inventory of provider %s: %w", all[i], err)
		}
	}
	return all, nil
}

// createHost creates a resource provider with an inventory and registers this provider as a reservable host.
func (a *api) createHost(ctx context.Context, name string) error {
	var created struct {
		UUID       string
		Generation int
	}
	if err := a.post(ctx, "/placement/resource_providers", attributes{"name": name}, &created); err != nil {
		return err
	}
	if err := a.send(ctx, "PUT", "/placement/resource_providers/"+created.UUID+"/inventories", attributes{
		"resource_provider_generation": created.Generation,
		"inventories":                  attributes{"VCPU": attributes{"total": 64}, "MEMORY_MB": attributes{"total": 262144}, "DISK_GB": attributes{"total": 2000}},
	}, nil); err != nil {
		return err
	}
	return a.post(ctx, "/reservation/v1/os-hosts", attributes{"name": name}, nil)
}

// createLease creates a lease with the given reservations and returns the ID of the lease.
func (a *api) createLease(
	ctx context.Context,
	start, end time.Time,
	reservations ...attributes,
) (id string, err error) {
	var created struct{ Lease struct{ ID string } }
	err = a.post(ctx, "/reservation/v1/leases", attributes{
		"name":         "bench",
		"start_date":   start.UTC().Format(time.RFC3339Nano),
		"end_date":     end.UTC().Format(time.RFC3339Nano),
		"events":       []any{},
		"reservations": append([]attributes{}, reservations...),
	}, &created)
	if err == nil && created.Lease.ID == "" {
		err = errors.New("the answer to the creation of a lease has no ID")
	}
	return created.Lease.ID, err
}
