package odltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// operational is where the controller tells of itself.
const operational = "/restconf/operational/neutron:neutron/"

// Host is a host that the controller wires ports on.
type HostConfig struct {
	ID     string `json:"host-id"`
	Type   string `json:"host-type"` // ODL L2, ODL L3
	Config string `json:"config"`    // JSON
}

// told is what the controller tells of itself. Every change of it is told to those who listen.
type told struct {
	features map[string]string
	hosts    []HostConfig
	statuses map[string]string // by port
	wires    bool
	streams  map[*stream]bool
	names    map[string]string // of streams → path
}

// Offer makes these the controller's features, by name; nil: it knows of none.
func (c *Controller) SetFeatures(features map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told.features = maps.Clone(features)
}

// Manage makes these the hosts that the controller wires ports on.
func (c *Controller) SetHostConfigs(hosts ...HostConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.told.hosts
	c.told.hosts = slices.Clone(hosts)
	for _, h := range before {
		if !slices.Contains(hosts, h) {
			c.tell(hostsPath, hostPath(h), "deleted", "")
		}
	}
	for _, h := range hosts {
		if !slices.Contains(before, h) {
			c.tell(hostsPath, hostPath(h), "created", "")
		}
	}
}

// SetStatus says what became of the wiring of a port: ACTIVE or DOWN; empty: nothing is known of it.
func (c *Controller) SetPortStatus(port, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setStatus(port, status)
}

func (c *Controller) setStatus(port, status string) {
	if c.told.statuses == nil {
		c.told.statuses = map[string]string{}
	}
	operation := "updated"
	switch {
	case c.told.statuses[port] == status:
		return
	case status == "":
		operation = "deleted"
		delete(c.told.statuses, port)
	default:
		c.told.statuses[port] = status
	}
	c.tell(portsPath, fmt.Sprintf("%s/neutron:port[neutron:uuid='%s']/neutron:status", portsPath, port), operation, status)
}

// Wire lets the controller wire every port as soon as it is bound to one of its hosts.
func (c *Controller) SetAutoWire(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told.wires = on
}

// wired is what the controller does for a port that was written.
func (c *Controller) wired(rec *Record) {
	if rec.Type != "port" {
		return
	}
	if rec.Object == nil {
		c.setStatus(rec.ID, "")
		return
	}
	host, _ := rec.Object["binding:host_id"].(string)
	if c.told.wires && slices.ContainsFunc(c.told.hosts, func(h HostConfig) bool { return h.ID == host }) {
		c.setStatus(rec.ID, "ACTIVE")
	}
}

// place finds what a path below /restconf is about.
func place(method, path string) (typ, id string) {
	switch key := method + " " + path; {
	case key == "GET "+operational+"neutron:features/":
		return "features", ""
	case key == "GET "+operational+"hostconfigs":
		return "hostconfigs", ""
	case key == "GET "+operational+"ports":
		return "statuses", ""
	case strings.HasPrefix(key, "GET "+operational+"ports/port/"):
		return "status", strings.TrimPrefix(path, operational+"ports/port/")
	case key == "POST "+subscriptions:
		return "subscription", ""
	case strings.HasPrefix(key, "GET "+streams):
		return "stream", strings.TrimPrefix(path, streams)
	}
	return "", ""
}

// restconf answers what lies beside the northbound.
func (c *Controller) restconf(seen Request, body []byte, host string) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.says(seen, body, host)
	c.noteLocked(seen, a)
	return a
}

func (c *Controller) says(seen Request, body []byte, host string) reply {
	none := refuse(http.StatusNotFound, "Request could not be completed because the relevant data model content does not exist")
	list := func(outer, inner string, items []any) reply {
		if len(items) == 0 {
			return none
		}
		return reply{status: http.StatusOK, body: map[string]any{outer: map[string]any{inner: items}}}
	}
	var items []any
	switch seen.Type {
	case "features":
		for _, name := range slices.Sorted(maps.Keys(c.told.features)) {
			items = append(items, map[string]any{"service-provider-feature": "neutron-extensions:" + name, "configuration": c.told.features[name]})
		}
		return list("features", "feature", items)
	case "hostconfigs":
		for _, h := range c.told.hosts {
			items = append(items, h)
		}
		return list("hostconfigs", "hostconfig", items)
	case "statuses":
		for _, id := range slices.Sorted(maps.Keys(c.told.statuses)) {
			items = append(items, portOf(id, c.told.statuses[id]))
		}
		return list("ports", "port", items)
	case "status":
		if status, ok := c.told.statuses[seen.ID]; ok {
			return reply{status: http.StatusOK, body: map[string]any{"port": []any{portOf(seen.ID, status)}}}
		}
	case "subscription":
		return c.subscribe(body)
	case "stream":
		if _, ok := c.told.names[seen.ID]; ok {
			return reply{status: http.StatusOK, body: map[string]any{}, location: "ws://" + host + sockets + seen.ID}
		}
	}
	return none
}

func portOf(id, status string) any { return map[string]string{"uuid": id, "status": status} }

func hostPath(h HostConfig) string {
	id, _ := json.Marshal(h.ID)
	return fmt.Sprintf("%s/neutron:hostconfig[neutron:host-type='%s'][neutron:host-id='%s']", hostsPath, h.Type, strings.Trim(string(id), `"`))
}
