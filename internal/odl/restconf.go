package odl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Paths of what the controller tells of itself, below its root.
const (
	operational  = "/restconf/operational/neutron:neutron"
	featuresPath = operational + "/neutron:features/"
	portsPath    = operational + "/ports"
	// HostsPath is where host configurations usually are.
	HostConfigsPath = operational + "/hostconfigs"
)

// What no controller has more of.
const (
	mostFeatures = 1000
	mostHosts    = 100_000
)

// ReportsPortStatus is the feature of a controller that tells which ports it has wired.
const FeaturePortStatus = "operational-port-status"

// ErrAbsent means that the controller has no such thing.
var ErrNotFound = errors.New("the controller has no such thing")

// Host is what the controller says about one of the hosts that it wires ports on.
type HostConfig struct {
	ID     string          // the host's name
	Type   string          // ODL L2, ODL L3
	Config json.RawMessage // a JSON object
}

// Features asks what the controller can do: names, without their model's prefix, and what is configured for each. One that
// knows of no features has none.
func (c *Client) Features(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := c.tells(ctx, featuresPath, "features/feature", func(raw json.RawMessage) error {
		var f struct {
			Type   string `json:"service-provider-feature"`
			Config string `json:"configuration"`
		}
		if err := json.Unmarshal(raw, &f); err != nil || f.Type == "" {
			return fmt.Errorf("%w: a feature without a name", ErrUnexpectedBody)
		}
		_, name, prefixed := strings.Cut(f.Type, ":")
		if !prefixed {
			name = f.Type
		}
		if all[name] = f.Config; len(all) > mostFeatures {
			return fmt.Errorf("%w: more than %d features", ErrUnexpectedBody, mostFeatures)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return map[string]string{}, nil
	}
	return all, err
}

// Hosts asks for the host configurations at that path. One that cannot be read is left out.
func (c *Client) HostConfigs(ctx context.Context, path string) ([]HostConfig, error) {
	var all []HostConfig
	err := c.tells(ctx, path, "hostconfigs/hostconfig", func(raw json.RawMessage) error {
		var h struct {
			ID     string `json:"host-id"`
			Type   string `json:"host-type"`
			Config string `json:"config"`
		}
		if json.Unmarshal(raw, &h) == nil && h.ID != "" && h.Type != "" {
			all = append(all, HostConfig{ID: h.ID, Type: h.Type, Config: json.RawMessage(h.Config)})
		}
		if len(all) > mostHosts {
			return fmt.Errorf("%w: more than %d hosts", ErrUnexpectedBody, mostHosts)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return all, err
}

// Statuses hands the ID and the status of every port that the controller has wired, or tried to, to each.
func (c *Client) PortStatuses(ctx context.Context, each func(id, status string) error) error {
	err := c.tells(ctx, portsPath, "ports/port", func(raw json.RawMessage) error {
		var p portStatus
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		return each(p.UUID, p.Status)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

type portStatus struct {
	UUID   string `json:"uuid"`
	Status string `json:"status"`
}

// Status asks for the status of one port; empty if the controller tells none.
func (c *Client) PortStatus(ctx context.Context, id string) (string, error) {
	status := ""
	err := c.tells(ctx, portsPath+"/port/"+url.PathEscape(id), "port", func(raw json.RawMessage) error {
		var p portStatus
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("%w: %w", ErrUnexpectedBody, err)
		}
		status = p.Status
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return status, err
}

// tells reads a list of what the controller tells of itself. Whatever is not that list is an error.
func (c *Client) tells(ctx context.Context, path, key string, each func(json.RawMessage) error) error {
	a, err := c.list(ctx, c.root+path, key, each)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return failure("GET", path, a)
}

// failure is nil for an answer 200.
func failure(method, path string, a Response) error {
	switch {
	case a.Failure != "":
		return fmt.Errorf("%s %s: %s: %s", method, path, a.Failure, a.Detail)
	case a.Status == http.StatusNotFound || a.Status == http.StatusBadRequest:
		return fmt.Errorf("%s %s: %w (%d)", method, path, ErrNotFound, a.Status)
	case a.Status != http.StatusOK:
		return fmt.Errorf("%s %s: the controller answered %d", method, path, a.Status)
	default:
		return nil
	}
}

// ParseFeatures reads features that are given and not asked for: names with commas, or JSON as the controller has it.
func ParseFeatures(s string) (map[string]string, error) {
	all := map[string]string{}
	if !strings.HasPrefix(strings.TrimSpace(s), "{") {
		for name := range strings.SplitSeq(s, ",") {
			if name = strings.TrimSpace(name); name != "" {
				all[name] = ""
			}
		}
		return all, nil
	}
	var given struct {
		Features struct {
			Feature []struct {
				Type   string `json:"service-provider-feature"`
				Config string `json:"configuration"`
			} `json:"feature"`
		} `json:"features"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	if err := d.Decode(&given); err != nil {
		return nil, errors.New("must be names with commas, or a controller's JSON")
	}
	for _, f := range given.Features.Feature {
		all[f.Type[strings.Index(f.Type, ":")+1:]] = f.Config
	}
	return all, nil
}
