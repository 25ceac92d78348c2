package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"

	"berth/internal/server/servertest"
)

// TestAudit_ReportsExactlyThePlantedDifferences plants 100 differences in the controller: missing, changed
// and additional objects of all types. `starter odl audit` must list exactly these differences, `starter odl
// repair` must repair them, and another audit must find nothing.
func TestAudit_ReportsExactlyThePlantedDifferences(t *testing.T) {
	t.Parallel()
	const differences = 100
	s, _ := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_QUOTA=off")
	api := s.StartWorker("api,relay,temporal")
	createObjectsOfAllTypes(api)
	s.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
	s.CheckAudit(api, "the creation of the objects")

	want := plantDifferences(s, differences)

	s.Same("planted differences and the output of `starter odl audit`", want, auditWithStarter(api))
	api.Starter("odl", "repair", "--yes")
	s.AwaitNone("all journal entries of the repair are completed", servertest.UnfinishedEntries)
	s.Same("output of `starter odl audit` after the repair", []string{}, auditWithStarter(api))
}

// createObjectsOfAllTypes creates networks with subnets, ports and security groups, and records journal
// entries for objects of the types that berth has no API for.
func createObjectsOfAllTypes(api *servertest.Worker) {
	api.T.Helper()
	for i := range 10 {
		network := api.CreateNetwork(fmt.Sprint("net-", i))
		api.CreateSubnet(network)
		group := api.Must("POST", "/networking/v2.0/security-groups", servertest.Object{"security_group": servertest.Object{"name": fmt.Sprint("group-", i)}})["security_group"].(servertest.Object)["id"]
		for j := range 3 {
			api.Create("port", servertest.Object{
				"network_id":      network,
				"name":            fmt.Sprint("port-", j),
				"security_groups": []any{group},
			})
		}
	}
	api.Must("POST", "/journal/v1/entries", servertest.Object{
		"entries": recordedEntries("create", func(c collection) string { return c.attributes }),
	})
}

// plantDifferences changes the controller's data so that n objects differ from berth's rows, and returns the
// expected lines of an audit.
func plantDifferences(s *servertest.Deployment, n int) []string {
	s.Helper()
	alter := func(typ, id string, o map[string]any) {
		s.Helper()
		if err := s.Controller.Alter(typ, id, o); err != nil {
			s.Fatal(err)
		}
	}
	planted := []string{}
	var kept []map[string]any
	var types []string
	seen := map[string]int{}
	for _, r := range s.Controller.Records() {
		if r.Object == nil || r.ID == servertest.Canary {
			continue
		}
		seen[r.Type]++
		attribute, changed := changedObject(r.Type, r.Object)
		switch kind := (seen[r.Type] + len(types)) % 3; {
		case kind == 0 && r.Type != "pool": // without its pool, a member is missing, too
			alter(r.Type, r.ID, nil)
			planted = append(planted, fmt.Sprintf("missing %s %s []", r.Type, r.ID))
		case kind == 1 && attribute != "":
			alter(r.Type, r.ID, changed)
			planted = append(planted, fmt.Sprintf("different %s %s [%s]", r.Type, r.ID, attribute))
		default:
			kept, types = append(kept, r.Object), append(types, r.Type)
		}
	}
	for i := 0; len(planted) < n; i = (i + 1) % len(kept) {
		extra := maps.Clone(kept[i])
		extra["id"] = uuid.NewString()
		alter(types[i], extra["id"].(string), extra)
		planted = append(planted, fmt.Sprintf("extra %s %s []", types[i], extra["id"]))
	}
	slices.Sort(planted)
	return planted
}

// changedObject returns a copy of an object with another value of one attribute, and the name of this
// attribute. The name is empty if berth cannot update objects of the type.
func changedObject(typ string, o map[string]any) (attribute string, changed map[string]any) {
	if typ == typeWithoutUpdate {
		return "", nil
	}
	changed = maps.Clone(o)
	for _, name := range []string{"name", "floating_ip_address", "protocol", "url_path", "weight"} {
		switch changed[name].(type) {
		case string:
			changed[name] = map[string]string{
				"name":                "changed",
				"floating_ip_address": "10.0.0.99",
				"protocol":            "udp",
				"url_path":            "/changed",
				"weight":              "99",
			}[name]
			return name, changed
		case float64, json.Number:
			changed[name] = 99.0
			return name, changed
		}
	}
	return "", nil
}

// auditWithStarter runs `starter odl audit`, and returns a line for each difference.
func auditWithStarter(api *servertest.Worker) []string {
	api.T.Helper()
	var found []struct {
		Type       string   `json:"object_type"`
		ID         string   `json:"object_id"`
		Kind       string   `json:"kind"`
		Attributes []string `json:"attributes"`
	}
	out := api.Starter("odl", "audit", "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		api.T.Fatalf("decode the output %q of `starter odl audit`: %v", out, err)
	}
	lines := []string{}
	for _, f := range found {
		lines = append(lines, fmt.Sprintf("%s %s %s %v", f.Kind, f.Type, f.ID, f.Attributes))
	}
	slices.Sort(lines)
	return lines
}
