package journalstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// foreign parses a change of an object that berth has no API for: foreign("create trunk t", `"port_id":"p"`).
func foreign(t *testing.T, what, attributes string) journal.Change {
	t.Helper()
	c := change(t, what)
	c.Data = nil
	if c.Operation != journal.Delete {
		c.Data = json.RawMessage(`{"id":"` + c.Object.ID + `"` + strings.TrimRight(","+attributes, ",") + `}`)
	}
	return c
}

func keep(t *testing.T, s *store.Store, changes ...journal.Change) []journal.Entry {
	t.Helper()
	entries, err := s.Journal.RecordChanges(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// In each case, the entry of the step `first` is open when the entry of the step `second` is recorded, and
// the entries of the steps `before` are completed.
func TestRecordChanges_BlockersOfAllTypes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	seq := int64(0)
	for _, tt := range []struct {
		name, before, first, second string
		blocks                      bool
	}{
		{"group, then rule", "", "create security_group G", `create security_group_rule R "security_group_id":"G"`, true},
		{"changed group, then rule", "create security_group G", "update security_group G", `create security_group_rule R "security_group_id":"G"`, true},
		{"remote group, then rule", "", "create security_group G", `create security_group_rule R "security_group_id":"H","remote_group_id":"G"`, true},
		{"group, then deleted rule", `create security_group_rule R "security_group_id":"G"`, "create security_group G", "delete security_group_rule R", false},
		{"rule, then changed group", "create security_group G", `create security_group_rule R "security_group_id":"G"`, "update security_group G", false},
		{"deleted rule, then deleted group", `create security_group G;create security_group_rule R "security_group_id":"G"`, "delete security_group_rule R", "delete security_group G", true},
		{"port, then trunk", "", `create port P`, `create trunk T "port_id":"P"`, true},
		{"subport, then changed trunk", "create trunk T", `create port P`, `update trunk T "port_id":"Q","sub_ports":[{"port_id":"P"}]`, true},
		{"port, then deleted trunk", `create trunk T "port_id":"P"`, `create port P`, `delete trunk T`, false},
		{"deleted trunk, then deleted port", `create port P;create trunk T "port_id":"P"`, "delete trunk T", "delete port P", true},
		{"trunk that lets go, then deleted port", `create port P;create trunk T "port_id":"P"`, `update trunk T "port_id":"Q"`, "delete port P", true},
		{"floating IP that lets go, then deleted port", `create port P;create floatingip F "port_id":"P"`, `update floatingip F "port_id":null`, "delete port P", true},
		{"router that lets go, then deleted gateway port", `create port P;create router R "gw_port_id":"P"`, `update router R "gw_port_id":null`, "delete port P", true},
		{"gateway port, then router", "", "create port P", `create router R "gw_port_id":"P"`, true},
		{"router, then its port", "", "create router R", `create port P "device_id":"R","device_owner":"network:router_interface"`, false},
		{"deleted router port, then deleted router", `create router R;create port P "device_id":"R","device_owner":"network:router_interface"`, "delete port P", "delete router R", true},
		{"deleted floating IP, then deleted router", `create router R;create floatingip F "router_id":"R"`, "delete floatingip F", "delete router R", true},
		{"deleted floating IP, then deleted network", `create network N;create floatingip F "floating_network_id":"N"`, "delete floatingip F", "delete network N", true},
		{"deleted router, then deleted network", `create network N;create router R "external_gateway_info":{"network_id":"N"}`, "delete router R", "delete network N", true},
		{"gateway, then connection", "", "create l2_gateway G", `create l2gateway_connection C "l2_gateway_id":"G"`, true},
		{"network, then connection", "", "create network N", `create l2gateway_connection C "network_id":"N"`, true},
		{"deleted connection, then deleted gateway", `create l2_gateway G;create l2gateway_connection C "gateway_id":"G"`, "delete l2gateway_connection C", "delete l2_gateway G", true},
		{"deleted connection, then deleted network", `create network N;create l2gateway_connection C "network_id":"N"`, "delete l2gateway_connection C", "delete network N", true},
		{"network, then VPN that does not name it", "", "create network N", `create bgpvpn B "networks":[],"routers":[]`, false},
		{"network, then VPN that names it", "create bgpvpn B", "create network N", `update bgpvpn B "networks":["N"]`, true},
		{"router, then VPN that names it", "create bgpvpn B", "create router R", `update bgpvpn B "routers":["R"]`, true},
		{"network, then deleted VPN", `create bgpvpn B "networks":["N"]`, "create network N", `delete bgpvpn B`, false},
		{"VPN that no longer names its network, then deleted network", `create network N;create bgpvpn B "networks":["N"]`, `update bgpvpn B "networks":[]`, "delete network N", true},
		{"pair, then group of pairs", "", "create portpair P", `create portpairgroup G "port_pairs":["P"]`, true},
		{"deleted group of pairs, then deleted pair", `create portpair P;create portpairgroup G "port_pairs":["P"]`, "delete portpairgroup G", "delete portpair P", true},
		{"classifier, then chain", "", "create flowclassifier F", `create portchain C "flow_classifiers":["F"]`, true},
		{"deleted chain, then deleted group", `create portpairgroup G;create portchain C "port_pair_groups":["G"]`, "delete portchain C", "delete portpairgroup G", true},
		{"network that drops its policy, then deleted policy", `create policy Q;create network N "qos_policy_id":"Q"`, `update network N "qos_policy_id":null`, "delete policy Q", true},
		{"pool, then member", "", "create pool P", `create member M "pool_id":"P"`, true},
		{"changed member, then changed pool", `create pool P;create member M "pool_id":"P"`, `update member M "pool_id":"P"`, "update pool P", true},
		{"deleted member, then changed pool", `create pool P;create member M "pool_id":"P"`, "delete member M", "update pool P", true},
		{"changed pool, then deleted member", `create pool P;create member M "pool_id":"P"`, "update pool P", "delete member M", true},
		{"deleted member, then deleted pool", `create pool P;create member M "pool_id":"P"`, "delete member M", "delete pool P", true},
		{"deleted listener, then deleted default pool", `create pool P;create listener L "default_pool_id":"P"`, "delete listener L", "delete pool P", true},
		{"deleted, then made again", "create router R", "delete router R", "create router R", true},
		{"two routers", "", "create router R", "create router S", false},
	} {
		// Every case appends its own suffix to the object IDs, so that the cases share no objects.
		mine := func(step string) journal.Change {
			words := strings.SplitN(step, " ", 4)
			attributes := ""
			if len(words) > 3 {
				attributes = words[3]
				for _, letter := range "ABCFGHLMNPQRST" {
					attributes = strings.ReplaceAll(attributes, fmt.Sprintf("%q", string(letter)),
						fmt.Sprintf(`"%c%s"`, letter, tt.name))
				}
			}
			c := journal.Change{
				Operation: journal.Operation(words[0]),
				Object:    journal.Ref{Type: words[1], ID: words[2] + tt.name},
			}
			if c.Operation != journal.Delete {
				c.Data = json.RawMessage(
					`{` + strings.TrimRight(`"id":"`+c.Object.ID+`",`+attributes, ",") + `}`,
				)
			}
			return c
		}
		for step := range strings.SplitSeq(tt.before, ";") {
			if step != "" {
				seq = keep(t, s, mine(step))[0].Seq
				settle(t, s, seq, journal.OutcomeDone)
			}
		}
		first := keep(t, s, mine(tt.first))[0].Seq
		all := keep(t, s, mine(tt.second))
		second := all[len(all)-1].Seq

		if got := slices.Contains(waitsFor(t, s, second), first); got != tt.blocks {
			t.Errorf("%s: does the first entry block the second one: got %t, want %t",
				tt.name, got, tt.blocks)
		}
	}
}

func TestRecordChanges_AllOrNone(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keep(t, s, foreign(t, "create router r", `"name":"a"`))
	for name, tt := range map[string]struct {
		changes []journal.Change
		want    error
	}{
		"made twice":        {[]journal.Change{foreign(t, "create router q", ""), foreign(t, "create router r", "")}, db.ErrConflict},
		"changed, missing":  {[]journal.Change{foreign(t, "create router q", ""), foreign(t, "update router p", "")}, db.ErrNotFound},
		"deleted, missing":  {[]journal.Change{foreign(t, "delete trunk r", "")}, db.ErrNotFound},
		"deleted twice":     {[]journal.Change{foreign(t, "delete router r", ""), foreign(t, "delete router r", "")}, db.ErrNotFound},
		"changed, made new": {[]journal.Change{foreign(t, "update router q", ""), foreign(t, "create router q", "")}, db.ErrNotFound},
	} {
		if _, err := s.Journal.RecordChanges(t.Context(), tt.changes); !errors.Is(err, tt.want) {
			t.Errorf("record changes, %s: got error %v, want %v", name, err, tt.want)
		}
	}
	entries, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 10})
	if err != nil || len(entries) != 1 {
		t.Errorf("entries after the rejected changes: got %d, error %v; want only the first one",
			len(entries), err)
	}
}

func TestRecordChanges_GroupDeleteDeletesItsRulesFirst(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keep(
		t,
		s,
		foreign(t, "create security_group g", ""),
		foreign(t, "create security_group_rule a", `"security_group_id":"g"`),
		foreign(t, "create security_group_rule b", `"security_group_id":"g"`),
		foreign(t, "create security_group_rule c", `"security_group_id":"h"`),
	)

	var got []string
	for _, e := range keep(t, s, foreign(t, "delete security_group g", "")) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Operation, e.Object.Type, e.Object.ID))
	}

	if d := cmp.Diff([]string{"delete security_group_rule a", "delete security_group_rule b", "delete security_group g"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int64{1, 5, 6}, waitsFor(t, s, 7)); d != "" {
		t.Error(d)
	}
}

func TestRecordChanges_RevisionGrowsAcrossDeletion(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var revisions []int64
	for _, c := range []journal.Change{foreign(t, "create router r", ""), foreign(t, "update router r", ""), foreign(t, "delete router r", ""), foreign(t, "create router r", "")} {
		var data struct {
			Revision int64 `json:"revision_number"`
		}
		if err := json.Unmarshal(keep(t, s, c)[0].Data, &data); err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, data.Revision)
	}
	if !slices.IsSorted(revisions) || revisions[0] == revisions[1] || revisions[2] == revisions[3] {
		t.Errorf(
			"revision numbers of create, update, delete and second create: got %v, want them to grow",
			revisions,
		)
	}
	own := keep(t, s, foreign(t, "create router q", `"revision_number":7`))[0]
	if !strings.Contains(string(own.Data), `"revision_number": 7`) {
		t.Errorf("data of a create with revision_number 7: got %s, want that revision_number", own.Data)
	}
}

// After concurrent creates, updates and deletes of one object, the entries in the journal are in an order in
// which a single writer could have recorded them.
func TestRecordChanges_ConcurrentWritersAreSerialized(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			what := []string{"create", "update", "delete"}[i%3] + " router r"
			change := foreign(t, what, fmt.Sprintf(`"name":"%d"`, i))
			_, err := s.Journal.RecordChanges(t.Context(), []journal.Change{change})
			if err != nil && !errors.Is(err, db.ErrConflict) && !errors.Is(err, db.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	wait.Wait()

	entries, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	exists := false
	for _, e := range entries {
		if (e.Operation == journal.Create) == exists {
			t.Fatalf(
				"entry %d has the operation %s, and the object exists before it: %t; want a create if and only if the object does not exist",
				e.Seq, e.Operation, exists,
			)
		}
		exists = e.Operation != journal.Delete
	}
	if len(entries) == 0 {
		t.Error("concurrent writers recorded no entry, want some")
	}
}
