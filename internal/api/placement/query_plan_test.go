package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store/storetest"
)

// cloud fills the tables whose size depends on the size of a cloud. The SQL in `cloud`
// creates 1,000 trees of two providers each, and consumers with allocations of three resource classes. Only
// one provider in a hundred has the rare traits, resource classes and aggregates.
const cloud = `
	insert into trait (name) values ('CUSTOM_RARE');
	insert into resource_class (name) values ('CUSTOM_RARE');
	insert into provider (id, uuid, name, root_id) select n, gen_random_uuid(), 'root' || n, n from generate_series(1, 1000) n;
	insert into provider (id, uuid, name, parent_id, root_id) select 1000 + n, gen_random_uuid(), 'child' || n, n, n from generate_series(1, 1000) n;
	select setval('provider_id', 2000);
	insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
	select p.id, c.id, 1000, 0, 1, 1000, 1, 1
	from provider p, resource_class c
	where c.id < 3 or c.name = 'CUSTOM_RARE' and p.id % 100 = 0;
	insert into provider_aggregate (provider_id, aggregate)
	select id, 'aaaaaaaa-0000-4000-8000-' || lpad((id % 100)::text, 12, '0') from provider;
	insert into provider_trait (provider_id, trait_id)
	select p.id, t.id from provider p, trait t where t.id < 4 or t.name = 'CUSTOM_RARE' and p.id % 100 = 0;
	insert into consumer (uuid, project, user_id, type, generation)
	select gen_random_uuid(), 'p' || n % 500, 'u', 'T' || n % 3, 1 from generate_series(1, 5000) n;
	insert into allocation (consumer_id, provider_id, class_id, amount)
	select k.id, 1 + k.id % 2000, c, 1 from consumer k, generate_series(0, 2) c;
	insert into generation_change (actor, cause, consumer, consumer_to, provider, provider_from, provider_to)
	select 'a', 'allocations', k.uuid, 1, p.uuid, 100 + k.id, 101 + k.id
	from consumer k
	join provider p on p.id = 1 + k.id % 2000`

// large lists the tables that no request may read in full.
var large = []string{
	"provider",
	"inventory",
	"provider_aggregate",
	"provider_trait",
	"consumer",
	"allocation",
	"generation_change",
}

// routeCaller calls the API's routes. The SQL in the constant `cloud` has filled the database of the API.
// Each field of routeCaller, except the client, is the ID or the name of an object that the calls use.
type routeCaller struct {
	*client
	provider, aggregate, consumer string
	own                           string // a new provider with VCPUs, at generation 1
	class, trait                  string // names of a resource class and a trait that the calls create
}

// allocated returns the request body for a new consumer with an allocation from the provider w.own.
func (w routeCaller) allocated(generation string) string {
	return fmt.Sprintf(
		`{%s,"project_id":"p","user_id":"u","consumer_generation":%s,"consumer_type":"T"}`,
		vcpus(w.own, 1),
		generation,
	)
}

// routeCalls contains a call to every route. Each call in routeCalls finds or
// changes only a few rows, so PostgreSQL should not read a large table in full.
var routeCalls = map[string]func(routeCaller){
	"GET /": func(w routeCaller) { w.get("/") },

	"GET /resource_providers": func(w routeCaller) {
		for _, filter := range []string{"name=root7", "uuid=" + w.provider, "in_tree=" + w.provider, "member_of=" + w.aggregate,
			"resources=CUSTOM_RARE:1", "required=CUSTOM_RARE", "resources=CUSTOM_RARE:1&required=HW_CPU_X86_AVX,CUSTOM_RARE&member_of=!" + w.aggregate} {
			w.get("/resource_providers?" + filter)
		}
	},
	"POST /resource_providers": func(w routeCaller) {
		id := uuid.NewString()
		w.do(200, "POST", "/resource_providers",
			fmt.Sprintf(`{"name":%q,"uuid":%q,"parent_provider_uuid":%q}`, id, id, w.provider))
	},
	"GET /resource_providers/{uuid}": func(w routeCaller) { w.get("/resource_providers/" + w.provider) },
	"PUT /resource_providers/{uuid}": func(w routeCaller) {
		w.do(200, "PUT", "/resource_providers/"+w.own,
			fmt.Sprintf(`{"name":%q,"parent_provider_uuid":%q}`, "renamed"+w.own, w.provider))
		w.do(200, "PUT", "/resource_providers/"+w.own,
			fmt.Sprintf(`{"name":%q,"parent_provider_uuid":null}`, "renamed"+w.own))
	},
	"DELETE /resource_providers/{uuid}": func(w routeCaller) { w.do(204, "DELETE", "/resource_providers/"+w.own, "") },

	"GET /resource_providers/{uuid}/inventories": func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/inventories") },
	"POST /resource_providers/{uuid}/inventories": func(w routeCaller) {
		w.do(201, "POST",
			"/resource_providers/"+w.own+"/inventories", `{"resource_class":"DISK_GB","total":5}`)
	},
	"PUT /resource_providers/{uuid}/inventories": func(w routeCaller) {
		w.do(200, "PUT", "/resource_providers/"+w.own+"/inventories",
			`{"resource_provider_generation":1,"inventories":{"DISK_GB":{"total":5}}}`)
	},
	"DELETE /resource_providers/{uuid}/inventories": func(w routeCaller) {
		w.do(204, "DELETE", "/resource_providers/"+w.own+"/inventories", "")
	},
	"GET /resource_providers/{uuid}/inventories/{class}": func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/inventories/VCPU") },
	"PUT /resource_providers/{uuid}/inventories/{class}": func(w routeCaller) {
		w.do(200, "PUT", "/resource_providers/"+w.own+"/inventories/VCPU",
			`{"resource_provider_generation":1,"total":5}`)
	},
	"DELETE /resource_providers/{uuid}/inventories/{class}": func(w routeCaller) {
		w.do(204, "DELETE", "/resource_providers/"+w.own+"/inventories/VCPU", "")
	},

	"GET /resource_providers/{uuid}/usages":      func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/usages") },
	"GET /resource_providers/{uuid}/allocations": func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/allocations") },
	"GET /resource_providers/{uuid}/aggregates":  func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/aggregates") },
	"PUT /resource_providers/{uuid}/aggregates": func(w routeCaller) {
		w.do(200, "PUT", "/resource_providers/"+w.own+"/aggregates",
			fmt.Sprintf(`{"resource_provider_generation":1,"aggregates":[%q]}`, w.aggregate))
	},
	"GET /resource_providers/{uuid}/traits": func(w routeCaller) { w.get("/resource_providers/" + w.provider + "/traits") },
	"PUT /resource_providers/{uuid}/traits": func(w routeCaller) {
		w.do(200, "PUT", "/resource_providers/"+w.own+"/traits",
			`{"resource_provider_generation":1,"traits":["CUSTOM_RARE"]}`)
	},
	"DELETE /resource_providers/{uuid}/traits": func(w routeCaller) { w.do(204, "DELETE", "/resource_providers/"+w.own+"/traits", "") },

	"POST /allocations": func(w routeCaller) {
		w.do(204, "POST", "/allocations", fmt.Sprintf(
			`{%q:%s,%q:%s}`,
			uuid.NewString(), w.allocated("null"), uuid.NewString(), w.allocated("null"),
		))
	},
	"GET /allocations/{consumer}": func(w routeCaller) { w.get("/allocations/" + w.consumer) },
	"PUT /allocations/{consumer}": func(w routeCaller) {
		path := "/allocations/" + uuid.NewString()
		w.do(204, "PUT", path, w.allocated("null"))
		w.do(204, "PUT", path, w.allocated("1"))
		w.do(
			204, "PUT", path,
			`{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":2,"consumer_type":"T"}`,
		)
	},
	"DELETE /allocations/{consumer}": func(w routeCaller) {
		path := "/allocations/" + uuid.NewString()
		w.do(204, "PUT", path, w.allocated("null"))
		w.do(204, "DELETE", path, "")
	},
	"GET /allocation_candidates": func(w routeCaller) {
		for _, question := range []string{"resources=CUSTOM_RARE:1&limit=10", "resources=VCPU:1&required=CUSTOM_RARE", "resources=VCPU:1&in_tree=" + w.provider,
			"resources=VCPU:1,DISK_GB:1&member_of=" + w.aggregate} {
			w.get("/allocation_candidates?" + question)
		}
	},
	"POST /reshaper": func(w routeCaller) {
		w.do(204, "POST", "/reshaper", fmt.Sprintf(
			`{"inventories":{%q:{"resource_provider_generation":1,"inventories":{"VCPU":{"total":9}}}},"allocations":{%q:%s}}`,
			w.own, uuid.NewString(), w.allocated("null"),
		))
	},

	"GET /resource_classes":        func(w routeCaller) { w.get("/resource_classes") },
	"POST /resource_classes":       func(w routeCaller) { w.do(201, "POST", "/resource_classes", fmt.Sprintf(`{"name":%q}`, w.class)) },
	"GET /resource_classes/{name}": func(w routeCaller) { w.get("/resource_classes/VCPU") },
	"PUT /resource_classes/{name}": func(w routeCaller) { w.do(201, "PUT", "/resource_classes/"+w.class, "") },
	"DELETE /resource_classes/{name}": func(w routeCaller) {
		w.do(201, "PUT", "/resource_classes/"+w.class, "")
		w.do(204, "DELETE", "/resource_classes/"+w.class, "")
	},
	"GET /traits": func(w routeCaller) {
		w.get("/traits?name=startswith:CUSTOM_")
		w.get("/traits?associated=true&name=in:CUSTOM_RARE")
	},
	"GET /traits/{name}": func(w routeCaller) { w.do(204, "GET", "/traits/CUSTOM_RARE", "") },
	"PUT /traits/{name}": func(w routeCaller) { w.do(201, "PUT", "/traits/"+w.trait, "") },
	"DELETE /traits/{name}": func(w routeCaller) {
		w.do(201, "PUT", "/traits/"+w.trait, "")
		w.do(204, "DELETE", "/traits/"+w.trait, "")
	},

	"GET /usages": func(w routeCaller) {
		w.get("/usages?project_id=p7")
		w.get("/usages?project_id=p7&user_id=u&consumer_type=T1")
	},
}

func (w routeCaller) get(path string) { w.t.Helper(); w.do(200, "GET", path, "") }

func (w routeCaller) do(status int, method, path, body string) {
	w.t.Helper()
	w.want(status, "", "1.39", method, path, body)
}

func TestPlan_NoRouteReadsALargeTableInFull(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := storetest.Connect(t, url)
	for _, sql := range []string{cloud, `select pg_stat_force_next_flush()`} {
		t.Run(sql, func(t *testing.T) { // do not count the scans of the statements that filled the tables
			if _, err := db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		})
	}
	storetest.FixPlans(t, url)
	w := routeCaller{client: &client{t: t}}
	err := db.QueryRow(t.Context(), `
		select (select uuid from provider where id = 700), (select aggregate from provider_aggregate where provider_id = 700),
			(select uuid from consumer where id = 700)`).Scan(&w.provider, &w.aggregate, &w.consumer)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range patterns(t) {
		name := r.Method + " " + r.Path
		way, known := routeCalls[name]
		if !known {
			t.Errorf("want a call to the route %s in routeCalls, got none", name)
			continue
		}
		before := storetest.ReadsOfTables(t, db, large...)
		callRoute(t, url, w, way)
		for table, r := range storetest.ReadsOfTables(t, db, large...) {
			if n := r.Scans - before[table].Scans; n > 0 {
				t.Errorf("route %s scans the whole table %s, %d times; want index scans", name, table, n)
			}
		}
	}
}

// callRoute runs the calls to one route on new connections. When callRoute
// returns, PostgreSQL's statistics include all queries of the new connections.
func callRoute(t *testing.T, url string, w routeCaller, way func(routeCaller)) {
	t.Helper()
	s := storetest.Open(t, url)
	w.client = serveOver(t, s, identity.Noauth{}, policy.Options{})
	for range storetest.PlanRepeats {
		w.own = w.client.provider(uuid.NewString())
		w.stock(w.own, `{"VCPU":{"total":100}}`)
		custom := "CUSTOM_" + strings.ToUpper(strings.ReplaceAll(w.own, "-", "_"))
		w.class, w.trait = custom, custom
		way(w)
	}
	s.Close()
}
