package rpc_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// The notifications tell each host the IDs of all security groups.
func TestSender_RefusedReadReadsNoObjects(t *testing.T) {
	f := newSenderFixture(t)
	groups, err := f.Network.CreateSecurityGroups(t.Context(),
		[]network.SecurityGroupChange{{Name: new("foreign"), Project: new("p2")}})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, f.database, `
		insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min, port_max, remote_ip, remote_group)
		select gen_random_uuid(), $1, 'p2', repeat('x', 255), 'ingress', 'IPv4', 'tcp', n, n, '', null
		from generate_series(1, 50000) n`, groups[0].ID)
	for kind, filter := range map[string]string{"SecurityGroup": "id", "SecurityGroupRule": "security_group_id"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, exception := f.call(t, "bulk_pull", fmt.Sprintf(
			`{"resource_type":%q,"version":"1.0","filter_kwargs":{%q:[%q,%q]}}`, kind, filter, groups[0].ID, uuid.New()))
		runtime.ReadMemStats(&after)
		if exception != "NotAuthorized" {
			t.Errorf("bulk_pull of a foreign %s: got the exception %q, want NotAuthorized", kind, exception)
		}
		const most = 32 << 20
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
			t.Errorf("memory allocated for the refused bulk_pull of a foreign %s: got %d MiB, want at most %d MiB",
				kind, allocated>>20, most>>20)
		}
	}
}
