package harness

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

// API is a client of berth's HTTP APIs. If StartBerth has started the berth process, API also holds the
// functions that stop, kill and restart this process.
type API struct {
	Base    string
	Token   string // empty: the token of an administrator
	HTTP    *http.Client
	roles   string // roles of berth's process
	brokers string // RabbitMQ URL of the process; empty: none
	command func() *exec.Cmd
	Stop    func() // ends the process gracefully
	Kill    func() // ends the process by SIGKILL
	log     string // path of the log file
}

// NewAPI returns a client of the API at the URL `base`.
func NewAPI(base string) *API {
	return &API{
		Base: base,
		HTTP: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
}

// Post sends a POST request and decodes the answer into `into`, unless `into` is nil.
func (a *API) Post(ctx context.Context, path string, body, into any) error {
	return a.Send(ctx, http.MethodPost, path, body, into)
}

// Get sends a GET request and ignores the body of the answer.
func (a *API) Get(ctx context.Context, path string) error {
	return a.Send(ctx, http.MethodGet, path, nil, nil)
}

// Send sends a request with a JSON body. Send returns an error if the status of the answer is not 2xx.
func (a *API) Send(ctx context.Context, method, path string, body, into any) error {
	var raw []byte
	var err error
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, a.Base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Auth-Token", cmp.Or(a.Token, "admin"))
	r.Header.Set("OpenStack-API-Version", "placement latest")
	answer, err := a.HTTP.Do(r)
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

// Attributes are the attributes of an API object.
type Attributes map[string]any

// Create creates a network, subnet or port and returns the ID of the new object.
func (a *API) Create(ctx context.Context, kind string, with Attributes) (id string, err error) {
	var created map[string]struct{ ID string }
	if err := a.Post(ctx, "/networking/v2.0/"+kind+"s", map[string]Attributes{kind: with}, &created); err != nil {
		return "", err
	}
	if id = created[kind].ID; id == "" {
		return "", fmt.Errorf("the answer to the creation of a %s has no ID", kind)
	}
	return id, nil
}

// CreateDHCPNetwork creates a network and a subnet with DHCP. The new subnet is a /12, which has addresses
// for a million ports.
func (a *API) CreateDHCPNetwork(ctx context.Context, name string) (network, subnet string, err error) {
	if network, err = a.Create(ctx, "network", Attributes{"name": name}); err != nil {
		return "", "", err
	}
	subnet, err = a.Create(ctx, "subnet",
		Attributes{"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/12"})
	return network, subnet, err
}

// AwaitActive polls a port until the port is ACTIVE.
func (a *API) AwaitActive(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, WaitTimeout, ErrTimeout)
	defer cancel()
	for {
		var answer struct{ Port struct{ Status string } }
		err := a.Send(ctx, http.MethodGet, "/networking/v2.0/ports/"+port+"?fields=status", nil, &answer)
		if err != nil || answer.Port.Status == "ACTIVE" {
			return err
		}
		Pause(ctx, 2*time.Millisecond)
	}
}

// CreateProviders creates n resource providers with an inventory that does not run out.
func (a *API) CreateProviders(ctx context.Context, n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		all[i] = uuid.NewString()
		err := a.Post(ctx, "/placement/resource_providers",
			Attributes{"uuid": all[i], "name": "bench-" + all[i]}, nil)
		if err != nil {
			return nil, err
		}
		unlimited := Attributes{"total": 1<<31 - 1}
		err = a.Send(ctx, http.MethodPut, "/placement/resource_providers/"+all[i]+"/inventories", Attributes{
			"resource_provider_generation": 0,
			"inventories": Attributes{
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

// CreateHost creates a resource provider with an inventory and registers this provider as a reservable host.
func (a *API) CreateHost(ctx context.Context, name string) error {
	var created struct {
		UUID       string
		Generation int
	}
	if err := a.Post(ctx, "/placement/resource_providers", Attributes{"name": name}, &created); err != nil {
		return err
	}
	if err := a.Send(ctx, "PUT", "/placement/resource_providers/"+created.UUID+"/inventories", Attributes{
		"resource_provider_generation": created.Generation,
		"inventories":                  Attributes{"VCPU": Attributes{"total": 64}, "MEMORY_MB": Attributes{"total": 262144}, "DISK_GB": Attributes{"total": 2000}},
	}, nil); err != nil {
		return err
	}
	return a.Post(ctx, "/reservation/v1/os-hosts", Attributes{"name": name}, nil)
}

// CreateLease creates a lease with the given reservations and returns the ID of the lease.
func (a *API) CreateLease(
	ctx context.Context,
	start, end time.Time,
	reservations ...Attributes,
) (id string, err error) {
	var created struct{ Lease struct{ ID string } }
	err = a.Post(ctx, "/reservation/v1/leases", Attributes{
		"name":         "bench",
		"start_date":   start.UTC().Format(time.RFC3339Nano),
		"end_date":     end.UTC().Format(time.RFC3339Nano),
		"events":       []any{},
		"reservations": append([]Attributes{}, reservations...),
	}, &created)
	if err == nil && created.Lease.ID == "" {
		err = errors.New("the answer to the creation of a lease has no ID")
	}
	return created.Lease.ID, err
}
