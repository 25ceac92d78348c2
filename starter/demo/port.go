package demo

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/diagnosis"
	"berth/starter/resource"
)

const (
	dhcpHost    = "net-1"
	computeHost = "cmp-1"
)

func (d *demonstration) runPort(ctx context.Context) error {
	for _, agent := range []struct{ kind, host string }{{"DHCP agent", dhcpHost}, {"Open vSwitch agent", computeHost}} {
		if _, err := resource.SendHeartbeat(ctx, d.Session, agent.kind, agent.host); err != nil {
			return err
		}
		d.printStep("POST /agent/v1/state", "the %s on %s sends a heartbeat", agent.kind, agent.host)
		if err := d.checkAgentEnabled(ctx, agent.host); err != nil {
			return err
		}
	}
	if err := d.injectFaults(ctx); err != nil {
		return err
	}
	if err := d.createPort(ctx); err != nil {
		return err
	}
	if err := d.checkBlockedBy(ctx, "DHCP", "L2"); err != nil {
		return err
	}
	if err := d.signalComplete(ctx, "L2", computeHost); err != nil {
		return err
	}
	if err := d.checkBlockedBy(ctx, "DHCP"); err != nil {
		return err
	}
	if err := d.signalComplete(ctx, "DHCP", dhcpHost); err != nil {
		return err
	}
	signalled := time.Now()
	if err := d.waitUntil(ctx, waitLimit, "the port becomes ACTIVE", func(ctx context.Context) (bool, error) {
		o, err := resource.Ports.Get(ctx, d.Session, d.port.id)
		return o["status"] == "ACTIVE", err
	}); err != nil {
		return err
	}
	d.printStep(
		"last block removed",
		"port %s is ACTIVE, %d ms after the last signal and %.3f s after the demo began",
		d.port.name, time.Since(signalled).Milliseconds(), time.Since(d.started).Seconds(),
	)
	return d.checkNovaEvent(ctx)
}

// checkAgentEnabled checks that the agent is enabled. The DHCP scheduler does not assign networks to disabled
// agents.
func (d *demonstration) checkAgentEnabled(ctx context.Context, host string) error {
	all, err := resource.Agents.List(ctx, d.Session, url.Values{"host": {host}})
	if err != nil {
		return err
	}
	for _, a := range all {
		if a["admin_state_up"] != true {
			return cli.Errorf(
				cli.ExitOther, "Enable it: starter agent set "+fmt.Sprint(a["id"])+" --admin-up true",
				"the %v on %s is disabled, and the demo needs it",
				a["agent_type"], host,
			)
		}
	}
	return nil
}

// createPort creates a network, a subnet with DHCP and a bound port.
func (d *demonstration) createPort(ctx context.Context) error {
	network, err := resource.Networks.Create(ctx, d.Session, cli.Object{"name": d.uniqueName("net")})
	if err != nil {
		return err
	}
	d.network = fmt.Sprint(network["id"])
	d.printStep("POST /networking/v2.0/networks", "network %s is created", network["name"])
	subnet, err := resource.Subnets.Create(ctx, d.Session, cli.Object{
		"name":        d.uniqueName("subnet"),
		"network_id":  d.network,
		"ip_version":  4,
		"cidr":        "10.20.0.0/24",
		"enable_dhcp": true,
	})
	if err != nil {
		return err
	}
	d.subnet = fmt.Sprint(subnet["id"])
	d.printStep("POST /networking/v2.0/subnets", "subnet %s with DHCP is created", subnet["name"])
	d.port.server = uuid.NewString()
	port, err := resource.Ports.Create(ctx, d.Session, cli.Object{
		"name":            d.uniqueName("web"),
		"network_id":      d.network,
		"binding:host_id": computeHost,
		"device_owner":    "compute:nova",
		"device_id":       d.port.server,
	})
	if err != nil {
		return err
	}
	d.port.id, d.port.name = fmt.Sprint(port["id"]), fmt.Sprint(port["name"])
	if port["status"] != "DOWN" {
		return checkFailed("a new port should be DOWN, but its status is %v", port["status"])
	}
	if port["binding:vif_type"] != "ovs" {
		return checkFailed("the port is not bound on %s: its vif_type is %v",
			computeHost, port["binding:vif_type"])
	}
	d.printStep("POST /networking/v2.0/ports",
		"port %s is created, bound to %s, and DOWN", d.port.name, computeHost)
	return nil
}

// checkBlockedBy waits until the port's workflow waits for exactly the given provisioning entities (DHCP,
// L2), and checks that the port is DOWN.
func (d *demonstration) checkBlockedBy(ctx context.Context, entities ...string) error {
	var w contract.Why
	workflow := contract.PortID(d.port.id)
	err := d.waitUntil(
		ctx,
		waitLimit,
		workflow+" waits for "+strings.Join(entities, " and "),
		func(ctx context.Context) (bool, error) {
			var err error
			if w, err = diagnosis.QueryWhy(ctx, d.Session, workflow); err != nil {
				if cli.ExitCode(err) == cli.ExitNotFound {
					return false, nil // the relay has not started the workflow yet
				}
				return false, err
			}
			var parties []string
			for _, p := range w.Waiting {
				parties = append(parties, p.For)
			}
			slices.Sort(parties)
			return slices.Equal(parties, entities), nil
		},
	)
	if cli.ExitCode(err) == cli.ExitWait && w.Sentence != "" {
		return checkFailed("the port should wait for %s, but the workflow answers: %s",
			strings.Join(entities, " and "), w.Sentence)
	}
	if err != nil {
		return err
	}
	o, err := resource.Ports.Get(ctx, d.Session, d.port.id)
	if err != nil {
		return err
	}
	if o["status"] != "DOWN" {
		return checkFailed("the port waits for %s but is %v", strings.Join(entities, " and "), o["status"])
	}
	d.printStep("query why", "the workflow answers: %s", w.Sentence)
	return nil
}

func (d *demonstration) signalComplete(ctx context.Context, entity, host string) error {
	err := d.waitUntil(
		ctx,
		waitLimit,
		"Temporal accepts the signal",
		func(ctx context.Context) (bool, error) {
			err := resource.SignalReport(ctx, d.Session, contract.PortID(d.port.id),
				contract.Report{Entity: entity, Host: host})
			return err == nil, err
		},
	)
	if err != nil {
		return err
	}
	d.printStep("signal "+contract.SignalProvisioningComplete, "%s on %s is provisioned", entity, host)
	return nil
}

// checkNovaEvent checks that Nova got one network-vif-plugged event.
func (d *demonstration) checkNovaEvent(ctx context.Context) error {
	if d.Nova.URL == "" {
		d.printStep("", "BERTH_NOVA_URL is not set: the demo does not check the event for Nova")
		return nil
	}
	found := 0
	err := d.waitUntil(
		ctx,
		waitLimit,
		"Nova gets the network-vif-plugged event",
		func(ctx context.Context) (bool, error) {
			raw, ok, err := queryStandIn(ctx, baseURL(d.Nova.URL)+"/_control/events")
			if err != nil || !ok {
				found = -1
				return true, err
			}
			found = 0
			for _, event := range listUnder(raw, "events") {
				if event["name"] == "network-vif-plugged" && event["tag"] == d.port.id &&
					event["server_uuid"] == d.port.server {
					found++
				}
			}
			return found > 0, nil
		},
	)
	switch {
	case err != nil:
		return err
	case found < 0:
		d.printStep("", "Nova at %s is not the stub of Nova: the demo does not check its events", d.Nova.URL)
	case found > 1:
		return checkFailed("Nova got %d network-vif-plugged events instead of one", found)
	default:
		d.printStep("POST /os-server-external-events",
			"Nova gets network-vif-plugged for server %s", d.port.server)
	}
	return nil
}
