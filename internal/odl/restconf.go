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
	"time"
)

// Paths of the controller's operational data, below the root of its URL.
const (
	operationalPath = "/restconf/operational/neutron:neutron"
	featuresPath    = operationalPath + "/neutron:features/"
	portsPath       = operationalPath + "/ports"
	// HostConfigsPath is the default path of the host configurations.
	HostConfigsPath = operationalPath + "/hostconfigs"
)

// Limits for the lists that the controller returns and that the client keeps in memory.
const (
	maxFeatures      = 1000
	maxFeaturesBytes = 1 << 20
	maxHosts         = 100_000
	maxHostsBytes    = 64 << 20
)

// operationalTimeout is the maximum duration of the read of a list of operational data. A controller that
// never ends a list must not stop the reads of the others.
const operationalTimeout = 15 * time.Minute

// FeaturePortStatus is the name of the feature that a controller has if it reports the operational status of
// ports.
const FeaturePortStatus = "operational-port-status"

// ErrNotFound means that the controller does not have the requested resource.
var ErrNotFound = errors.New("not found on the controller")

// HostConfig is the configuration of one of the hosts on which the controller binds ports.
type HostConfig struct {
	ID     string          // the host's name
	Type   string          // ODL L2 or ODL L3
	Config json.RawMessage // a JSON object
}

// Features reads the controller's features. Features returns the configuration of each feature by the
// feature's name, without the prefix that names the YANG model. Features returns an empty map if the
// controller has no features resource.
func (c *Client) Features(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := c.listKept(ctx, featuresPath, "features/feature", maxFeaturesBytes, func(raw json.RawMessage) error {
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
		if all[name] = f.Config; len(all) > maxFeatures {
			return fmt.Errorf("%w: more than %d features", ErrUnexpectedBody, maxFeatures)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return map[string]string{}, nil
	}
	return all, err
}

// HostConfigs reads the host configurations at a path. HostConfigs skips host configurations that cannot be
// decoded.
func (c *Client) HostConfigs(ctx context.Context, path string) ([]HostConfig, error) {
	var all []HostConfig
	err := c.listKept(ctx, path, "hostconfigs/hostconfig", maxHostsBytes, func(raw json.RawMessage) error {
		var h struct {
			ID     string `json:"host-id"`
			Type   string `json:"host-type"`
			Config string `json:"config"`
		}
		if json.Unmarshal(raw, &h) == nil && h.ID != "" && h.Type != "" {
			all = append(all, HostConfig{ID: h.ID, Type: h.Type, Config: json.RawMessage(h.Config)})
		}
		if len(all) > maxHosts {
			return fmt.Errorf("%w: more than %d hosts", ErrUnexpectedBody, maxHosts)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return all, err
}

// PortStatuses calls the function `each` with the ID and the status of every port that the controller has
// bound or failed to bind.
func (c *Client) PortStatuses(ctx context.Context, each func(id, status string) error) error {
	err := c.listOperational(ctx, portsPath, "ports/port", func(raw json.RawMessage) error {
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

// PortStatus reads the status of one port. PortStatus returns an empty string if the controller has no status
// for the port.
func (c *Client) PortStatus(ctx context.Context, id string) (string, error) {
	status := ""
	err := c.listOperational(
		ctx,
		portsPath+"/port/"+url.PathEscape(id),
		"port",
		func(raw json.RawMessage) error {
			var p portStatus
			if err := json.Unmarshal(raw, &p); err != nil {
				return fmt.Errorf("%w: %w", ErrUnexpectedBody, err)
			}
			status = p.Status
			return nil
		},
	)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return status, err
}

// listOperational reads a list of operational data. listOperational returns an error for any response that is
// not this list.
func (c *Client) listOperational(
	ctx context.Context,
	path, key string,
	each func(json.RawMessage) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operationalTimeout)
	defer cancel()
	a, err := c.list(ctx, c.root+path, key, each)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return statusError("GET", path, a)
}

// listKept does the same as listOperational, but returns an error if the objects together have more bytes
// than maxBytes, because the caller keeps them.
func (c *Client) listKept(
	ctx context.Context,
	path, key string,
	maxBytes int,
	each func(json.RawMessage) error,
) error {
	size := 0
	return c.listOperational(ctx, path, key, func(raw json.RawMessage) error {
		if size += len(raw); size > maxBytes {
			return fmt.Errorf("%w: the list has more than %d bytes", ErrUnexpectedBody, maxBytes)
		}
		return each(raw)
	})
}

// statusError returns nil if the response has status 200, and otherwise an error.
func statusError(method, path string, a Response) error {
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

// ParseFeatures parses the features that berth's configuration lists: either names separated by commas, or
// the JSON that a controller returns.
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
		return nil, errors.New(
			"must be the names of features separated by commas, or a JSON document with the features as the controller returns it",
		)
	}
	for _, f := range given.Features.Feature {
		all[f.Type[strings.Index(f.Type, ":")+1:]] = f.Config
	}
	return all, nil
}
