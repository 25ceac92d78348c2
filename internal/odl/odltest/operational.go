package odltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// operationalPath is the path of the controller's operational data.
const operationalPath = "/restconf/operational/neutron:neutron/"

// HostConfig is the configuration of a host on which the controller binds ports.
type HostConfig struct {
	ID     string `json:"host-id"`
	Type   string `json:"host-type"` // ODL L2 or ODL L3
	Config string `json:"config"`    // a JSON object as a string
}

// operationalData is the state that the controller reports below /restconf. Changes of the operational data
// are also sent as events to the open streams.
type operationalData struct {
	features     map[string]string
	hostConfigs  []HostConfig
	portStatuses map[string]string // by port ID
	autoWire     bool
	streams      map[*stream]bool
	streamPaths  map[string]string // path by stream name
}

// SetFeatures sets the controller's features: their names and configurations. If `features` is nil, the
// features resource does not exist.
func (c *Controller) SetFeatures(features map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.features = maps.Clone(features)
}

// SetHostConfigs replaces the controller's host configurations.
func (c *Controller) SetHostConfigs(hosts ...HostConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.data.hostConfigs
	c.data.hostConfigs = slices.Clone(hosts)
	for _, h := range before {
		if !slices.Contains(hosts, h) {
			c.sendEvent(hostsPath, hostPath(h), "deleted", "")
		}
	}
	for _, h := range hosts {
		if !slices.Contains(before, h) {
			c.sendEvent(hostsPath, hostPath(h), "created", "")
		}
	}
}

// SetPortStatus sets the operational status of a port to ACTIVE or DOWN. If `status` is empty, SetPortStatus
// deletes the status.
func (c *Controller) SetPortStatus(port, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setStatus(port, status)
}

func (c *Controller) setStatus(port, status string) {
	if c.data.portStatuses == nil {
		c.data.portStatuses = map[string]string{}
	}
	operation := "updated"
	switch {
	case c.data.portStatuses[port] == status:
		return
	case status == "":
		operation = "deleted"
		delete(c.data.portStatuses, port)
	default:
		c.data.portStatuses[port] = status
	}
	c.sendEvent(
		portsPath, fmt.Sprintf("%s/neutron:port[neutron:uuid='%s']/neutron:status", portsPath, port),
		operation, status,
	)
}

// SetAutoWire sets whether the controller sets each port to ACTIVE that is bound to one of its hosts.
func (c *Controller) SetAutoWire(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.autoWire = on
}

// updatePortStatus changes the operational status of a port after the port was written.
func (c *Controller) updatePortStatus(rec *Record) {
	if rec.Type != "port" {
		return
	}
	if rec.Object == nil {
		c.setStatus(rec.ID, "")
		return
	}
	host, _ := rec.Object["binding:host_id"].(string)
	if c.data.autoWire &&
		slices.ContainsFunc(c.data.hostConfigs, func(h HostConfig) bool { return h.ID == host }) {
		c.setStatus(rec.ID, "ACTIVE")
	}
}

// parseRestconfPath returns the kind of data that a path below /restconf names, and the ID in the path.
func parseRestconfPath(method, path string) (typ, id string) {
	switch key := method + " " + path; {
	case key == "GET "+operationalPath+"neutron:features/":
		return "features", ""
	case key == "GET "+operationalPath+"hostconfigs":
		return "hostconfigs", ""
	case key == "GET "+operationalPath+"ports":
		return "statuses", ""
	case strings.HasPrefix(key, "GET "+operationalPath+"ports/port/"):
		return "status", strings.TrimPrefix(path, operationalPath+"ports/port/")
	case key == "POST "+subscriptionsPath:
		return "subscription", ""
	case strings.HasPrefix(key, "GET "+streamsPath):
		return "stream", strings.TrimPrefix(path, streamsPath)
	}
	return "", ""
}

// serveRestconf answers requests below /restconf.
func (c *Controller) serveRestconf(seen Request, body []byte, host string) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.restconfReply(seen, body, host)
	c.logRequestLocked(seen, a)
	return a
}

func (c *Controller) restconfReply(seen Request, body []byte, host string) reply {
	none := errorReply(http.StatusNotFound,
		"Request could not be completed because the relevant data model content does not exist")
	list := func(outer, inner string, items []any) reply {
		if len(items) == 0 {
			return none
		}
		return reply{status: http.StatusOK, body: map[string]any{outer: map[string]any{inner: items}}}
	}
	var items []any
	switch seen.Type {
	case "features":
		for _, name := range slices.Sorted(maps.Keys(c.data.features)) {
			items = append(items, map[string]any{
				"service-provider-feature": "neutron-extensions:" + name,
				"configuration":            c.data.features[name],
			})
		}
		return list("features", "feature", items)
	case "hostconfigs":
		for _, h := range c.data.hostConfigs {
			items = append(items, h)
		}
		return list("hostconfigs", "hostconfig", items)
	case "statuses":
		for _, id := range slices.Sorted(maps.Keys(c.data.portStatuses)) {
			items = append(items, portStatus(id, c.data.portStatuses[id]))
		}
		return list("ports", "port", items)
	case "status":
		if status, ok := c.data.portStatuses[seen.ID]; ok {
			return reply{
				status: http.StatusOK,
				body:   map[string]any{"port": []any{portStatus(seen.ID, status)}},
			}
		}
	case "subscription":
		return c.subscribe(body)
	case "stream":
		if _, ok := c.data.streamPaths[seen.ID]; ok {
			return reply{
				status:   http.StatusOK,
				body:     map[string]any{},
				location: "ws://" + host + socketsPath + seen.ID,
			}
		}
	}
	return none
}

func portStatus(id, status string) any { return map[string]string{"uuid": id, "status": status} }

func hostPath(h HostConfig) string {
	id, _ := json.Marshal(h.ID)
	return fmt.Sprintf("%s/neutron:hostconfig[neutron:host-type='%s'][neutron:host-id='%s']",
		hostsPath, h.Type, strings.Trim(string(id), `"`))
}
