package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/starter/cli"
)

// apiStub is a stub of berth's API that keeps its objects in memory. apiStub has those parts of the real API
// that the command line needs: names, envelopes, generations, revisions and error formats.
type apiStub struct {
	mu          sync.Mutex
	collections map[string]map[string]cli.Object // collection → ID → object
	consumers   map[string]cli.Object
	unrecorded  int                   // number of consumers without a consumer record
	namespace   cli.Object            // Temporal namespace to which the database is bound; nil: none
	requests    []string              // method, path and OpenStack-API-Version of each request
	onRequest   func(r *http.Request) // called before each request; may be nil
	sweepAge    time.Duration         // time since the last completion of the sweep
}

var envelopes = map[string]string{
	"networks":           "network",
	"subnets":            "subnet",
	"ports":              "port",
	"trunks":             "trunk",
	"agents":             "agent",
	"leases":             "lease",
	"os-hosts":           "host",
	"entries":            "entry",
	"resource_providers": "",
}

func newAPIStub(t testing.TB) (*apiStub, string) {
	s := &apiStub{
		collections: map[string]map[string]cli.Object{},
		consumers:   map[string]cli.Object{},
		unrecorded:  5,
	}
	s.collections["runs"], s.collections["uses"] = map[string]cli.Object{}, map[string]cli.Object{}
	for c := range envelopes {
		s.collections[c] = map[string]cli.Object{}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func (s *apiStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	onRequest := s.onRequest
	s.mu.Unlock()
	if onRequest != nil {
		onRequest(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("X-Openstack-Request-Id", "req-1")
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("OpenStack-API-Version"))
	var body cli.Object
	if raw, err := io.ReadAll(r.Body); err == nil {
		_ = cli.Decode(raw, &body)
	}
	status, answer := s.answer(r, body)
	w.WriteHeader(status)
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// answer returns the status and the body of the answer to a request. For some tokens and paths, answer
// returns an error that a test needs.
func (s *apiStub) answer(r *http.Request, body cli.Object) (int, any) {
	switch r.Header.Get("X-Auth-Token") {
	case "":
		return 401, cli.Object{"error": cli.Object{"code": 401, "message": "Authentication required"}}
	case "stranger:p":
		return 403, cli.Object{"error_code": 403, "error_message": "Policy doesn't allow it"}
	case "unavailable":
		return 503, nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/readyz" && r.Header.Get("X-Auth-Token") == "not-ready":
		return 503, cli.Object{
			"status":        "not ready",
			"checks":        cli.Object{"database": "ok", "temporal": "unavailable", "notes": "late"},
			"informational": []string{"notes"},
		}
	case r.URL.Path == "/readyz":
		return 200, cli.Object{
			"status":        "ready",
			"checks":        cli.Object{"database": "ok", "notes": "ok"},
			"informational": []string{"notes"},
		}
	case r.URL.Path == "/healthz":
		return 200, cli.Object{}
	case parts[0] == "journal" && parts[2] == "analysis":
		return 200, cli.Object{
			"analysis": cli.Object{
				"entries": 5,
				"p50":     0.25,
				"slowest": []cli.Object{{"seq": 7, "seconds": 1.5}},
			},
		}
	case parts[0] == "journal" && slices.Contains([]string{"pause", "resume"}, parts[2]):
		return s.pause(r, parts[2], body)
	case parts[0] == "journal" && parts[2] == "runs":
		return s.run(r, parts[3:], body)
	case parts[len(parts)-1] == "plans":
		return 200, cli.Object{
			"plan": cli.Object{
				"name":       body["name"],
				"start_date": body["start_date"],
				"end_date":   body["end_date"],
				"reservations": []cli.Object{
					{"hosts": []string{"cmp-1", "cmp-2"}, "latest": body["latest_start"]},
				},
			},
		}
	case strings.HasSuffix(r.URL.Path, "/os-hosts/allocations"):
		return 200, cli.Object{"allocations": s.named(s.collections["uses"], "")}
	case parts[0] == "networking" || parts[0] == "reservation" || parts[0] == "journal":
		return s.rest(r, parts[2], parts[3:], body)
	case parts[0] == "operator" && parts[len(parts)-1] == "history":
		return s.history(parts[2], parts[3])
	case parts[0] == "operator" && parts[2] == "projections":
		return 200, cli.Object{
			"namespace": s.namespace,
			"projections": []cli.Object{
				{"name": "executions", "compared_at": time.Now()},
				{"name": "search attributes", "compared_at": time.Now()},
				{"name": "usage", "compared_at": time.Now()},
			},
			"maintenance": []cli.Object{{"part": "sweep", "completed_at": time.Now().Add(-s.sweepAge)}},
		}
	case parts[0] == "operator" && parts[2] == "overdue":
		return 200, cli.Object{"overdue": []cli.Object{}}
	case parts[0] == "operator" && parts[2] == "audit":
		return 200, cli.Object{"audit_records": []cli.Object{}, "head": cli.Object{"sequence": 7}, "waiting": 0}
	case parts[0] == "operator" && parts[2] == "waiting":
		return s.waiting(parts[3:])
	case parts[0] == "operator" && parts[2] == "candidates":
		return s.explanation(r)
	case parts[0] == "operator":
		return s.migrate(int(cli.Integer(body["limit"])))
	case parts[0] == "placement" && parts[1] == "allocations":
		return s.allocation(r, parts[2], body)
	case parts[0] == "placement" && len(parts) > 3:
		return s.inventory(r, parts[2], parts[3], body)
	case parts[0] == "placement":
		return s.rest(r, parts[1], parts[2:], body)
	}
	return 404, nil
}

// explanation answers requests for the explanation of a query for allocation candidates. The answer contains
// a limit if the query has one.
func (s *apiStub) explanation(r *http.Request) (int, any) {
	filter := func(name string, removed int, reason string) cli.Object {
		return cli.Object{
			"filter":    name,
			"providers": removed,
			"trees":     removed,
			"examples":  []cli.Object{{"uuid": "1", "name": "cmp-1", "reason": reason}}[:min(removed, 1)],
		}
	}
	candidates := cli.Object{
		"trees":    2,
		"returned": 2,
		"limit":    nil,
		"cut":      false,
	}
	if r.URL.Query().Get("limit") != "" {
		candidates = cli.Object{
			"trees":    2,
			"returned": 1,
			"limit":    1,
			"cut":      true,
		}
	}
	return 200, cli.Object{
		"examined":   cli.Object{"trees": 5, "providers": 6, "cut": candidates["cut"]},
		"candidates": candidates,
		"groups": []cli.Object{
			{
				"suffix":         "_A",
				"resources":      cli.Object{"VCPU": 4, "DISK_GB": 1},
				"providers_left": 3,
				"trees_left":     2,
				"filters": []cli.Object{
					filter("in_tree", 0, ""),
					filter("capacity", 3, "has 2 of 8 VCPU free, and 4 is requested"),
				},
			},
		},
		"trees": []cli.Object{
			filter("root_required", 0, ""),
			filter("groups", 3, "no provider of the tree is left for DISK_GB,VCPU of group _A"),
		},
	}
}

// waiting answers requests for what waits: each port that is DOWN waits for L2 on cmp-1.
func (s *apiStub) waiting(party []string) (int, any) {
	var objects []cli.Object
	for _, o := range s.named(s.collections["ports"], "") {
		if o["status"] == "DOWN" {
			objects = append(objects, cli.Object{
				"object": fmt.Sprintf("port/%v", o["id"]),
				"name":   o["name"],
				"status": "DOWN",
				"since":  time.Now().Add(-9 * time.Minute),
			})
		}
	}
	if len(party) > 0 {
		return 200, cli.Object{"objects": objects, "next": nil}
	}
	return 200, cli.Object{"waiting": []cli.Object{{
		"party":   "agent",
		"name":    "L2",
		"host":    "cmp-1",
		"label":   "L2 on cmp-1",
		"objects": "port",
		"count":   len(objects),
		"since":   time.Now().Add(-9 * time.Minute),
		"longest": objects[0]["object"],
		"listed":  true,
	}}}
}

// pause answers requests for the pause of the journal.
func (s *apiStub) pause(r *http.Request, action string, body cli.Object) (int, any) {
	if r.Method == "POST" {
		s.collections["pause"] = map[string]cli.Object{
			"now": {
				"paused":    action == "pause",
				"paused_at": "2030-01-01T00:00:00Z",
				"actor":     "ann",
				"reason":    body["reason"],
			},
		}
	}
	now := s.collections["pause"]["now"]
	if now == nil {
		now = cli.Object{"paused": false}
	}
	return 200, cli.Object{"pause": now}
}

// run answers requests for runs: full syncs, recoveries, audits and repairs. When a client reads a run for
// the second time, the answer of the stub says that the run is done, unless its reason is `stalled`. Every
// audit of the stub has two findings.
func (s *apiStub) run(r *http.Request, rest []string, body cli.Object) (int, any) {
	all := s.collections["runs"]
	switch {
	case len(rest) == 0 && r.Method == "POST":
		id := fmt.Sprint(len(all) + 1)
		all[id] = cli.Object{
			"id":       len(all) + 1,
			"kind":     body["kind"],
			"plan":     body["plan"],
			"reason":   body["reason"],
			"state":    "running",
			"sentence": fmt.Sprintf("The %v %s is running.", body["kind"], id),
		}
		return 202, cli.Object{"run": maps.Clone(all[id])}
	case len(rest) == 0:
		return 200, cli.Object{"runs": runPage(s.named(all, ""), r.URL.Query().Get("before"))}
	case all[rest[0]] == nil:
		return missing(rest[0])
	case len(rest) == 1:
		if all[rest[0]]["reason"] != "stalled" {
			all[rest[0]]["state"] = "done"
		}
		return 200, cli.Object{"run": all[rest[0]]}
	case r.URL.Query().Get("after") == "":
		return 200, cli.Object{
			"findings": []cli.Object{
				{
					"object_type": "network",
					"object_id":   "n1",
					"kind":        "missing",
					"operation":   "create",
					"outcome":     "",
				},
			},
		}
	case r.URL.Query().Get("after") == "network/n1":
		return 200, cli.Object{
			"findings": []cli.Object{
				{
					"object_type": "port",
					"object_id":   "p1",
					"kind":        "extra",
					"operation":   "delete",
					"outcome":     "recorded",
				},
			},
		}
	}
	return 200, cli.Object{"findings": []cli.Object{}}
}

// runPage returns the page of two runs, newest first, that follows the run with the number `before`.
func runPage(all []cli.Object, before string) []cli.Object {
	slices.Reverse(all)
	if i := slices.IndexFunc(all, func(o cli.Object) bool { return fmt.Sprint(o["id"]) == before }); i >= 0 {
		all = all[i+1:]
	}
	return all[:min(2, len(all))]
}

// missing returns Neutron's answer for an object that does not exist.
func missing(id string) (int, any) {
	return 404, cli.Object{
		"NeutronError": cli.Object{"type": "NotFound", "message": id + " could not be found", "detail": ""},
	}
}

// rest answers the list, show, create, update and delete requests for a collection.
func (s *apiStub) rest(r *http.Request, collection string, rest []string, body cli.Object) (int, any) {
	all, one := s.collections[collection], envelopes[collection]
	if inner, ok := body[one].(cli.Object); ok {
		body = inner
	}
	if unknown := r.URL.Query().Get("stauts"); unknown != "" && collection == "networks" {
		return 400, cli.Object{
			"NeutronError": cli.Object{
				"type":    "HTTPBadRequest",
				"message": "['stauts'] is invalid attribute for filtering",
				"detail":  "",
			},
		}
	}
	if len(rest) == 0 && r.Method == "GET" {
		return 200, cli.Object{collectionKey(collection): s.named(all, r.URL.Query().Get("name"))}
	}
	if len(rest) == 0 {
		return 201, wrapped(one, s.add(collection, body))
	}
	o, ok := all[rest[0]]
	if ok && len(rest) == 2 {
		o["state"], o["last_error"] = map[string]string{"retry": "pending", "skip": "completed"}[rest[1]], body["reason"]
		return 200, wrapped(one, o)
	}
	if !ok {
		return missing(rest[0])
	}
	if m := r.Header.Get("If-Match"); m != "" &&
		m != fmt.Sprintf("revision_number=%v", o["revision_number"]) {
		return 412, cli.Object{
			"NeutronError": cli.Object{
				"type":    "RevisionNumberConstraintFailed",
				"message": "Constrained to another revision",
			},
		}
	}
	if r.Method == "DELETE" && o["status"] == "ACTIVE" {
		o["status"] = "DELETING"
		return 202, wrapped(one, o)
	}
	switch r.Method {
	case "PUT":
		maps.Copy(o, body)
		o["revision_number"] = integerOf(o["revision_number"]) + 1
	case "DELETE":
		delete(all, rest[0])
		return 204, nil
	}
	return 200, wrapped(one, o)
}

// integerOf returns v as an int, or 0 if v is not an int.
func integerOf(v any) int {
	n, _ := v.(int)
	return n
}

func collectionKey(c string) string {
	if c == "os-hosts" {
		return "hosts"
	}
	return c
}

func wrapped(one string, o cli.Object) any {
	if one == "" {
		return o
	}
	return cli.Object{one: o}
}

// named returns the objects with the given name, or all objects if the name is empty, sorted by ID.
func (s *apiStub) named(all map[string]cli.Object, name string) []cli.Object {
	found := []cli.Object{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if name == "" || all[id]["name"] == name {
			found = append(found, all[id])
		}
	}
	return found
}

// create stores a new object for a program that may already send requests.
func (s *apiStub) create(collection string, body cli.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(collection, body)
}

// add stores a new object. It also sets those attributes of the new object that the real API sets itself,
// for example the ID.
func (s *apiStub) add(collection string, body cli.Object) cli.Object {
	id := uuid.NewString()
	if given, ok := body["id"].(string); ok {
		id = given
	}
	o := maps.Clone(body)
	switch collection {
	case "resource_providers":
		o["uuid"], o["generation"] = id, 0
	case "os-hosts":
		id = fmt.Sprint(len(s.collections[collection]) + 1)
		o["id"], o["hypervisor_hostname"] = id, body["name"]
	case "entries":
		id = fmt.Sprint(o["seq"])
	case "uses":
	default:
		o["id"], o["status"], o["revision_number"] = id, "DOWN", 1
	}
	s.collections[collection][id] = o
	return o
}
