package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"
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
