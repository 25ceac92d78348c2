package portstore_test

import (
	"crypto/md5"
	"testing"

	"github.com/google/uuid"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// The agents read the members of the remote groups of their ports in this way. Most ports are in one large
// group.
func TestPlan_MembersOfASecurityGroupReadNoOtherPorts(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `
		set local session_replication_role = replica;
		insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security, security_groups)
		select gen_random_uuid(), gen_random_uuid(), 'p', '', '', true, 'fa:16:3e:00:00:00', '', '', 'DOWN', '', 'normal', '{}', 'unbound', true,
			array[md5(case when n <= 10 then 'web' else 'default' end)::uuid]
		from generate_series(1, 20000) n`)
	storetest.FixPlans(t, url)
	members := db.OneOfIDs("security_group", []uuid.UUID{md5.Sum([]byte("web")), uuid.New()})
	storetest.ExpectFewReads(t, storetest.Connect(t, url), "members of a security group", []string{"port"}, func() {
		s := storetest.Open(t, url)
		defer s.Close()
		for range storetest.PlanRepeats {
			ids, err := s.Network.PortIDs(t.Context(), db.Listing{Where: []db.Condition{members}})
			if err != nil || len(ids) != 10 {
				t.Fatalf("IDs of the members of a security group: got %d, error %v; want 10", len(ids), err)
			}
		}
	})
}
