package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/notify/notifytest"
)

// TestStockClientWorksOnLeases tells its story to the plug-in of the openstack client and, where the package has it, to the blazar
// program, over a whole berth: what is due happens, and Nova is told.
func TestStockClientWorksOnLeases(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	s.nova.AddFlavor(notifytest.Flavor{ID: "gold", Name: "gold", VCPUs: 2, RAM: 1024, Disk: 5})
	api := s.start("api,relay,temporal")
	for _, host := range []string{"node-1", "node-2", "node-3"} {
		provider := api.must("POST", "/placement/resource_providers", object{"name": host})
		api.must("PUT", "/placement/resource_providers/"+provider["uuid"].(string)+"/inventories", object{"resource_provider_generation": 0,
			"inventories": object{"VCPU": object{"total": 8}, "MEMORY_MB": object{"total": 16384}, "DISK_GB": object{"total": 100}}})
	}
	sea := api.network("sea")
	api.create("subnet", object{"network_id": sea, "ip_version": 4, "cidr": "10.20.0.0/24",
		"allocation_pools": []object{{"start": "10.20.0.100", "end": "10.20.0.200"}}})
	n := leaseTelling{site: s, sea: sea}
	c := newStockClient(t, api.url+"/reservation/v1")

	commands := c.commands("openstack.reservation.v1")
	for _, command := range commands {
		if !unloadable[command] && !slices.ContainsFunc(storyOfLeases, func(s said) bool { return commandOf(s.line, commands) == command }) {
			t.Errorf("%q is not in the story", command)
		}
	}
	c.session("", func(run func(string) (int, string, string)) {
		for _, said := range storyOfLeases {
			newer := slices.Contains(flavorsTold, said) && !slices.Contains(commands, "reservation allocation list")
			if commandOf(said.line, commands) != "" && !newer {
				n.tell(said, run)
			}
		}
	})
	if left := s.rows(`select name from lease union all select hostname from host union all select address::text from floatingip`); len(left) > 0 {
		t.Errorf("at its end the story leaves %v", left)
	}
	left := s.nova.ComputeState()
	left.Aggregates = slices.DeleteFunc(left.Aggregates, func(a notifytest.Aggregate) bool { return a.Name == "freepool" })
	if len(left.Aggregates)+len(left.ServerGroups) > 0 || len(left.Flavors) > 1 {
		t.Errorf("at its end the story leaves %+v at Nova", left)
	}

	var programs []string
	c.ask("programs", &programs)
	if !slices.Contains(programs, "blazar") {
		return
	}
	c.program("blazar", "--os-auth-type none --os-endpoint "+api.url+"/reservation/v1", func(run func(string) (int, string, string)) {
		for _, said := range storyOfBlazar {
			n.tell(said, run)
		}
	})
}

// unloadable are commands of newer clients that no service can help: "reservation host unset" asks for a class that is not there.
var unloadable = map[string]bool{"reservation host unset": true}

// leaseTelling fills in what only the rows know.
type leaseTelling struct {
	*site
	sea string
}

var placeholder = regexp.MustCompile(`\{(\w+)(?: ([^}]*))?\}`)

// fill puts IDs where the story has {sea}, {lease NAME}, {reservation LEASE} or {address IP}.
func (n leaseTelling) fill(line string) string {
	return placeholder.ReplaceAllStringFunc(line, func(hole string) string {
		parts := placeholder.FindStringSubmatch(hole)
		queries := map[string]string{"lease": `select id::text from lease where name = $1`, "address": `select id::text from floatingip where address = $1::inet`,
			"reservation": `select r.id::text from reservation r join lease l on l.id = r.lease_id where l.name = $1 order by r.position`}
		if parts[1] == "sea" {
			return n.sea
		}
		ids := n.rows(queries[parts[1]], parts[2])
		if len(ids) == 0 {
			n.Fatalf("%s: there is no %s", line, hole)
		}
		return ids[0]
	})
}

// tell runs a command; "until: " introduces what its answer becomes.
func (n leaseTelling) tell(s said, run func(string) (int, string, string)) {
	n.Helper()
	line := n.fill(s.line)
	if want, waits := strings.CutPrefix(s.want, "until: "); waits {
		n.until(s.line, func() string { return said{s.line, want}.differs(run(line)) })
		return
	}
	if problem := s.differs(run(line)); problem != "" {
		n.Errorf("%s: %s", s.line, problem)
	}
}
