package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// api is a client of berth's HTTP APIs as an administrator.
type api struct {
	base    string
	http    *http.Client
	roles   string // of its process, and the brokers that this speaks with
	brokers string
	command func() *exec.Cmd // runs it, where it is a process of its own
	stop    func()           // ends that in good order
	kill    func()           // ends it at once
	log     string           // file
}

func newAPI(base string) *api {
	return &api{base: base, http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
}

// post sends a body and reads the answer into it, unless it is nil.
func (a *api) post(ctx context.Context, path string, body, into any) error {
	return a.send(ctx, http.MethodPost, path, body, into)
}

// get asks and looks at no more than whether there is an answer.
func (a *api) get(ctx context.Context, path string) error {
	return a.send(ctx, http.MethodGet, path, nil, nil)
}

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
	r.Header.Set("X-Auth-Token", "admin")
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

// attributes are those of an object.
type attributes map[string]any

// create makes an object of the Networking API: a network, subnet or port.
func (a *api) create(ctx context.Context, kind string, with attributes) (id string, err error) {
	var made map[string]struct{ ID string }
	if err := a.post(ctx, "/networking/v2.0/"+kind+"s", map[string]attributes{kind: with}, &made); err != nil {
		return "", err
	}
	if id = made[kind].ID; id == "" {
		return "", fmt.Errorf("the answer to the creation of a %s has no ID", kind)
	}
	return id, nil
}

// awaitActive asks for a port until it is ACTIVE.
func (a *api) awaitActive(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	for {
		var shown struct{ Port struct{ Status string } }
		err := a.send(ctx, http.MethodGet, "/networking/v2.0/ports/"+port+"?fields=status", nil, &shown)
		if err != nil || shown.Port.Status == "ACTIVE" {
			return err
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// heartbeat is an agent's: it exists from the first one on.
func (a *api) heartbeat(ctx context.Context, kind, host string) error {
	return a.post(ctx, "/agent/v1/state", map[string]any{
		"agent_type": kind, "host": host, "binary": "bench", "topic": "N/A", "configurations": attributes{}}, nil)
}

// startPatience is how long berth may take to be ready.
const startPatience = time.Minute

// awaitReady waits until everything that berth needs is there, or until it has ended.
func (a *api) awaitReady(ctx context.Context, ended <-chan error, log string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("never asked")
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("berth is not ready: %w", last)
		case err := <-ended:
			said, _ := os.ReadFile(log)
			return fmt.Errorf("berth ended while starting: %w: %s", err, bytes.TrimSpace(said))
		case <-tick.C:
		}
		if last = a.ready(ctx); last == nil {
			return nil
		}
	}
}

func (a *api) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(said))
	}
	return err
}
