package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"berth/internal/lease"
)

// hypervisor holds the attributes of a hypervisor that berth reads. The type of the ID and of the CPU
// information depends on Nova's microversion.
type hypervisor struct {
	ID       json.RawMessage `json:"id"`
	Hostname string          `json:"hypervisor_hostname"`
	State    string          `json:"state"`
	Status   string          `json:"status"`
	Type     string          `json:"hypervisor_type"`
	Version  int             `json:"hypervisor_version"`
	CPUInfo  json.RawMessage `json:"cpu_info"`
	Service  struct {
		Host string `json:"host"`
	} `json:"service"`
}

// Hypervisors lists Nova's hypervisors with the compute services that serve them. Hypervisors omits the
// availability zones that exist only for a reservation. If Nova is not used, Hypervisors returns no
// hypervisors.
func (c *Cloud) Hypervisors(ctx context.Context) ([]lease.Hypervisor, error) {
	if c == nil || c.nova == nil {
		return nil, nil
	}
	var list struct{ Hypervisors []hypervisor }
	if _, err := c.nova.Get(ctx, c.nova.ServiceURL("os-hypervisors", "detail"), &list, nil); err != nil {
		return nil, fmt.Errorf("list hypervisors: %w", err)
	}
	zones, err := c.availabilityZones(ctx)
	if err != nil {
		return nil, fmt.Errorf("list availability zones: %w", err)
	}
	all := make([]lease.Hypervisor, len(list.Hypervisors))
	for i, h := range list.Hypervisors {
		all[i] = lease.Hypervisor{
			ID:               plainText(h.ID),
			Hostname:         h.Hostname,
			Service:          h.Service.Host,
			Type:             h.Type,
			Version:          h.Version,
			CPUInfo:          plainText(h.CPUInfo),
			AvailabilityZone: zones[h.Service.Host],
			Up:               h.State == "up" && h.Status == "enabled",
			Silent:           h.State != "up" && h.Status == "enabled",
		}
	}
	return all, nil
}

// availabilityZones returns the availability zone of each compute service. If
// Nova refuses the request, the result is empty, because the zones are not known.
func (c *Cloud) availabilityZones(ctx context.Context) (map[string]string, error) {
	var list struct {
		Zones []struct {
			Name  string                                `json:"zoneName"`
			Hosts map[string]map[string]json.RawMessage `json:"hosts"`
		} `json:"availabilityZoneInfo"`
	}
	_, err := c.nova.Get(ctx, c.nova.ServiceURL("os-availability-zone", "detail"), &list, nil)
	if gophercloud.ResponseCodeIs(err, http.StatusForbidden) ||
		gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	zones := map[string]string{}
	for _, zone := range list.Zones {
		for host, services := range zone.Hosts {
			if _, computes := services["nova-compute"]; computes &&
				!strings.HasPrefix(zone.Name, lease.ReservationZonePrefix) {
				zones[host] = zone.Name
			}
		}
	}
	return zones, err
}

// plainText returns a JSON string without its quotes, and any other JSON value as compact JSON; null is "".
func plainText(raw json.RawMessage) string {
	var s *string
	if err := json.Unmarshal(raw, &s); err == nil && s != nil {
		return *s
	}
	var compact bytes.Buffer
	if string(raw) == "null" || json.Compact(&compact, raw) != nil {
		return ""
	}
	return compact.String()
}
