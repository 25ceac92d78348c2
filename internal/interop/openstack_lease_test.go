package interop

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// TestOpenStackClient_Leases runs leaseCommands with the openstack client, and runs blazarCommands if the
// program blazar is installed. The test starts berth with all roles, so that leases start and end.
func TestOpenStackClient_Leases(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	s.Nova.AddFlavor(notifytest.Flavor{
		ID:    "gold",
		Name:  "gold",
		VCPUs: 2,
		RAM:   1024,
		Disk:  5,
	})
	api := s.StartWorker("api,relay,temporal")
	for _, host := range []string{"node-1", "node-2", "node-3"} {
		provider := api.Must("POST", "/placement/resource_providers", servertest.Object{"name": host})
		path := "/placement/resource_providers/" + provider["uuid"].(string) + "/inventories"
		api.Must("PUT", path, servertest.Object{
			"resource_provider_generation": 0,
			"inventories": servertest.Object{
				"VCPU":      servertest.Object{"total": 8},
				"MEMORY_MB": servertest.Object{"total": 16384},
				"DISK_GB":   servertest.Object{"total": 100},
			},
		})
	}
	sea := api.CreateNetwork("sea")
	api.Create("subnet", servertest.Object{
		"network_id":       sea,
		"ip_version":       4,
		"cidr":             "10.20.0.0/24",
		"allocation_pools": []servertest.Object{{"start": "10.20.0.100", "end": "10.20.0.200"}},
	})
	api.Must("POST", "/reservation/v1/networks",
		servertest.Object{"network_type": "vlan", "physical_network": "physnet1", "segment_id": 100})
	api.Must("POST", "/reservation/v1/devices",
		servertest.Object{"name": "iot-1", "device_type": "container", "device_driver": "zun"})
	api.Must("POST", "/reservation/v1/leases", servertest.Object{
		"name":       "lab",
		"start_date": "2040-01-01 10:00",
		"end_date":   "2040-01-01 12:00",
		"reservations": []servertest.Object{
			{
				"resource_type":      "network",
				"network_name":       "lab",
				"network_properties": `["=","$physical_network","physnet1"]`,
			}, {"resource_type": "device", "min": 1, "max": 1}},
	})
	n := leaseClient{Deployment: s, sea: sea}
	c := newStockClient(t, api.URL+"/reservation/v1")

	commands := c.commands("openstack.reservation.v1")
	for _, command := range commands {
		uses := func(s commandCase) bool { return commandOf(s.line, commands) == command }
		if !unloadable[command] && !slices.ContainsFunc(leaseCommands, uses) {
			t.Errorf(
				"the table leaseCommands does not use the client's command %q, want every command used",
				command,
			)
		}
	}
	c.session("", func(run func(string) (int, string, string)) {
		for _, said := range leaseCommands {
			newer := slices.Contains(flavorCommands, said) &&
				!slices.Contains(commands, "reservation allocation list")
			if commandOf(said.line, commands) != "" && !newer {
				n.runCommand(said, run)
			}
		}
	})
	rows := s.Rows(`select name from lease
		union all select hostname from host
		union all select address::text from floatingip`)
	if len(rows) > 0 {
		t.Errorf(
			"run leaseCommands, which delete the objects that they create: got the remaining objects %v in the database, want none",
			rows,
		)
	}
	left := s.Nova.ComputeState()
	left.Aggregates = slices.DeleteFunc(left.Aggregates,
		func(a notifytest.Aggregate) bool { return a.Name == "freepool" })
	if len(left.Aggregates)+len(left.ServerGroups) > 0 || len(left.Flavors) > 1 {
		t.Errorf(
			"run leaseCommands, which delete the objects that they create: got the remaining objects %+v in Nova, want only the freepool and the flavor gold",
			left,
		)
	}

	var programs []string
	c.ask("programs", &programs)
	if !slices.Contains(programs, "blazar") {
		return
	}
	c.program(
		"blazar",
		"--os-auth-type none --os-endpoint "+api.URL+"/reservation/v1",
		func(run func(string) (int, string, string)) {
			for _, said := range blazarCommands {
				n.runCommand(said, run)
			}
		},
	)
}

// unloadable lists commands that fail in newer clients before they send a request: "reservation host unset"
// imports a Python class that does not exist.
var unloadable = map[string]bool{"reservation host unset": true}

// leaseClient runs commands of the client. leaseClient replaces placeholders in the commands by values from
// the database.
type leaseClient struct {
	*servertest.Deployment
	sea string
}

var placeholder = regexp.MustCompile(`\{(\w+)(?: ([^}]*))?\}`)

// fill replaces the placeholders in a command by IDs: {sea} by the ID of the network sea, and {lease NAME},
// {reservation LEASE} and {address IP} by IDs that fill reads from the database.
func (n leaseClient) fill(line string) string {
	return placeholder.ReplaceAllStringFunc(line, func(hole string) string {
		parts := placeholder.FindStringSubmatch(hole)
		queries := map[string]string{
			"lease":       `select id::text from lease where name = $1`,
			"address":     `select id::text from floatingip where address = $1::inet`,
			"reservation": `select r.id::text from reservation r join lease l on l.id = r.lease_id where l.name = $1 order by r.position`,
		}
		if parts[1] == "sea" {
			return n.sea
		}
		ids := n.Rows(queries[parts[1]], parts[2])
		if len(ids) == 0 {
			n.Fatalf(
				"fill the placeholders of the command %s: the database has no value for %s, want at least one",
				line,
				hole,
			)
		}
		return ids[0]
	})
}

// runCommand runs a command and compares the output of the command with the expected output. If the expected
// output begins with `until:`, runCommand repeats the command until the output equals the rest of the
// expected output. After the deletion of a lease, runCommand waits until no lease is left that is being
// deleted, because a deletion that takes longer than the API waits for it goes on after the answer.
func (n leaseClient) runCommand(s commandCase, run func(string) (int, string, string)) {
	n.Helper()
	line := n.fill(s.line)
	if want, waits := strings.CutPrefix(s.want, "until: "); waits {
		n.Await(s.line, func() string { return commandCase{s.line, want}.differs(run(line)) })
		return
	}
	if problem := s.differs(run(line)); problem != "" {
		n.Errorf("run the command openstack %s: %s", s.line, problem)
	}
	if strings.HasPrefix(s.want, "Deleted lease") {
		n.Await("the lease of the command "+s.line+" is deleted", func() string {
			return strings.Join(n.Rows(`select name from lease where delete_requested_at is not null`), " ")
		})
	}
}
