package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"berth/internal/devstack"
	"berth/internal/store/storetest"
)

func TestWritesOutlastATemporalThatIsAway(t *testing.T) {
	t.Parallel()
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: filepath.Dir(devFolder(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Kill)
	dialled, err := client.DialContext(t.Context(), client.Options{HostPort: temporal.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	unswept(t, dialled)
	s := newSite(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address)
	c := s.start("api,relay,temporal")
	s.until("berth is ready", func() string {
		_, o, err := c.do("GET", "/readyz", nil)
		if err == nil && o["status"] == "ready" {
			return ""
		}
		return fmt.Sprint(o, err)
	})
	c.agents()
	var ports []string
	plug := func(n int) {
		for range n {
			network := c.network("blue")
			c.subnet(network)
			ports = append(ports, c.create("port", portOf(network)))
		}
	}

	plug(10)
	temporal.Kill() // while their notes and entries are under way
	plug(10)
	for _, p := range ports {
		c.must("POST", "/agent/v1/reports", reportsOn(p))
	}

	s.until("readyz says that Temporal alone is away", func() string {
		code, o, err := c.do("GET", "/readyz", nil)
		checks, _ := o["checks"].(object)
		if err == nil && code == http.StatusServiceUnavailable && checks["temporal"] != "ok" && checks["database"] == "ok" {
			return ""
		}
		return fmt.Sprint(code, o, err)
	})
	s.none("a relay has tried in vain", `select workflow_id from note where not exists (select from note where last_error <> '')`)
	if err := temporal.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mirrored()
	s.active(c, ports)
	s.none("Nova is told of everything", `select name || ' ' || port_id from nova_event`)
	told := s.told("network-vif-plugged")
	for _, p := range ports {
		if told[p] != 1 {
			t.Errorf("Nova was told %d times that port %s is plugged", told[p], p)
		}
	}
	s.none("no note is left", `select workflow_id from note`)
}

// active waits until the ports are.
func (s *site) active(c *child, ports []string) {
	s.Helper()
	for _, p := range ports {
		s.until("port "+p+" is ACTIVE", func() string {
			_, o, err := c.do("GET", "/networking/v2.0/ports/"+p, nil)
			if shown, _ := o["port"].(object); shown["status"] == "ACTIVE" {
				return ""
			}
			return fmt.Sprint(o, err)
		})
	}
}

// told counts by port how often Nova took the event of that name.
func (s *site) told(event string) map[string]int {
	n := map[string]int{}
	for _, e := range s.nova.Events() {
		if e.Name == event {
			n[e.Tag]++
		}
	}
	return n
}
