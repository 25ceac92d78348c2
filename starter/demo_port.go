package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/contract"
)

const (
	demoDHCPHost = "net-1"
	demoHost     = "cmp-1"
)

func (d *stage) playPort(ctx context.Context) error {
	for _, agent := range []struct{ kind, host string }{{"DHCP agent", demoDHCPHost}, {"Open vSwitch agent", demoHost}} {
		if _, err := heartbeat(ctx, d.session, agent.kind, agent.host); err != nil {
			return err
		}
		d.step("POST /agent/v1/state", "the %s on %s reports in", agent.kind, agent.host)
		if err := d.enabled(ctx, agent.host); err != nil {
			return err
		}
	}
	if err := d.disturb(ctx); err != nil {
		return err
	}
	if err := d.plug(ctx); err != nil {
		return err
	}
	if err := d.blockedBy(ctx, "DHCP", "L2"); err != nil {
		return err
	}
	if err := d.complete(ctx, "L2", demoHost); err != nil {
		return err
	}
	if err := d.blockedBy(ctx, "DHCP"); err != nil {
		return err
	}
	if err := d.complete(ctx, "DHCP", demoDHCPHost); err != nil {
		return err
	}
	signalled := time.Now()
	if err := d.until(ctx, patience, "the port becomes ACTIVE", func(ctx context.Context) (bool, error) {
		o, err := ports.get(ctx, d.session, d.port.id)
		return o["status"] == "ACTIVE", err
	}); err != nil {
		return err
	}
	d.step("the last block went", "port %s is ACTIVE, %d ms after the last signal and %.3f s after the demo began", d.port.name,
		time.Since(signalled).Milliseconds(), time.Since(d.began).Seconds())
	return d.plugged(ctx)
}

// enabled checks that nobody took an agent out of service: then nothing is scheduled to it.
func (d *stage) enabled(ctx context.Context, host string) error {
	all, err := agents.all(ctx, d.session, url.Values{"host": {host}})
	if err != nil {
		return err
	}
	for _, a := range all {
		if a["admin_state_up"] != true {
			return fail(exitOther, "Put it back: starter agent set "+fmt.Sprint(a["id"])+" --admin-up true",
				"somebody took the %v on %s out of service, and the demo needs it", a["agent_type"], host)
		}
	}
	return nil
}

// plug makes a network, a subnet with DHCP and a bound port.
func (d *stage) plug(ctx context.Context) error {
	network, err := networks.create(ctx, d.session, object{"name": d.name("net")})
	if err != nil {
		return err
	}
	d.network = fmt.Sprint(network["id"])
	d.step("POST /networking/v2.0/networks", "network %s is created", network["name"])
	subnet, err := subnets.create(ctx, d.session, object{"name": d.name("subnet"), "network_id": d.network, "ip_version": 4,
		"cidr": "10.20.0.0/24", "enable_dhcp": true})
	if err != nil {
		return err
	}
	d.subnet = fmt.Sprint(subnet["id"])
	d.step("POST /networking/v2.0/subnets", "subnet %s with DHCP is created", subnet["name"])
	d.port.server = uuid.NewString()
	port, err := ports.create(ctx, d.session, object{"name": d.name("web"), "network_id": d.network, "binding:host_id": demoHost,
		"device_owner": "compute:nova", "device_id": d.port.server})
	if err != nil {
		return err
	}
	d.port.id, d.port.name = fmt.Sprint(port["id"]), fmt.Sprint(port["name"])
	if port["status"] != "DOWN" {
		return broken("a new port waits for its agents, but its status is %v", port["status"])
	}
	if port["binding:vif_type"] != "ovs" {
		return broken("the port is not bound on %s: its vif_type is %v", demoHost, port["binding:vif_type"])
	}
	d.step("POST /networking/v2.0/ports", "port %s is created, bound to %s, and DOWN", d.port.name, demoHost)
	return nil
}

// blockedBy waits until the port's workflow says that it waits for exactly these, and checks that it is DOWN.
func (d *stage) blockedBy(ctx context.Context, entities ...string) error {
	var w contract.Why
	workflow := contract.PortID(d.port.id)
	err := d.until(ctx, patience, workflow+" waits for "+strings.Join(entities, " and "), func(ctx context.Context) (bool, error) {
		var err error
		if w, err = ask(ctx, d.session, workflow); err != nil {
			if exitCode(err) == exitNotFound {
				return false, nil // the note is still on its way
			}
			return false, err
		}
		var parties []string
		for _, p := range w.Waiting {
			parties = append(parties, p.For)
		}
		slices.Sort(parties)
		return slices.Equal(parties, entities), nil
	})
	if exitCode(err) == exitWait && w.Sentence != "" {
		return broken("the port should wait for %s, but it says: %s", strings.Join(entities, " and "), w.Sentence)
	}
	if err != nil {
		return err
	}
	o, err := ports.get(ctx, d.session, d.port.id)
	if err != nil {
		return err
	}
	if o["status"] != "DOWN" {
		return broken("the port waits for %s but is %v", strings.Join(entities, " and "), o["status"])
	}
	d.step("query why", "its workflow says: %s", w.Sentence)
	return nil
}

func (d *stage) complete(ctx context.Context, entity, host string) error {
	if err := tell(ctx, d.session, contract.PortID(d.port.id), contract.Report{Entity: entity, Host: host}); err != nil {
		return err
	}
	d.step("signal "+contract.SignalProvisioningComplete, "%s on %s is done", entity, host)
	return nil
}

// plugged checks that Nova was told, once.
func (d *stage) plugged(ctx context.Context) error {
	if d.Nova.URL == "" {
		d.step("", "BERTH_NOVA_URL is not set here: whether Nova was told is not checked")
		return nil
	}
	found := 0
	err := d.until(ctx, patience, "Nova is told that the port is plugged", func(ctx context.Context) (bool, error) {
		raw, ok, err := control(ctx, root(d.Nova.URL)+"/_control/events")
		if err != nil || !ok {
			found = -1
			return true, err
		}
		found = 0
		for _, event := range records(raw, "events") {
			if event["name"] == "network-vif-plugged" && event["tag"] == d.port.id && event["server_uuid"] == d.port.server {
				found++
			}
		}
		return found > 0, nil
	})
	switch {
	case err != nil:
		return err
	case found < 0:
		d.step("", "Nova at %s is no stand-in: whether it was told is not checked", d.Nova.URL)
	case found > 1:
		return broken("Nova was told %d times that the port is plugged", found)
	default:
		d.step("POST /os-server-external-events", "Nova is told: network-vif-plugged for server %s", d.port.server)
	}
	return nil
}

// control asks a stand-in for what it recorded; ok is false where something real answers.
func control(ctx context.Context, url string) (raw any, ok bool, err error) {
	a := &api{base: url, http: &http.Client{Timeout: patience}}
	err = a.do(ctx, "GET", "", nil, &raw)
	var r *refusal
	switch {
	case errors.As(err, &r):
		return nil, false, nil
	case err != nil && exitCode(err) == exitUnavailable:
		return nil, false, away("the neighbour at "+url, "", errors.Unwrap(err))
	case err != nil:
		return nil, false, nil // not JSON: not ours
	}
	return raw, true, nil
}

// records reads a bare list, or the list under a key.
func records(raw any, key string) []object {
	if o, ok := raw.(object); ok {
		raw = o[key]
	}
	all, _ := objects(raw)
	return all
}
