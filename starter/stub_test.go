package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// stub is an API with memory and just enough manners for the command line: names, envelopes, generations,
// revisions and refusals in the shapes of the real one.
type stub struct {
	mu          sync.Mutex
	collections map[string]map[string]object // collection → ID → object
	consumers   map[string]object
	unrecorded  int      // consumers without a record
	requests    []string // method, path and the headers of interest
}

var envelopes = map[string]string{"networks": "network", "subnets": "subnet", "ports": "port", "agents": "agent",
	"leases": "lease", "os-hosts": "host", "entries": "entry", "resource_providers": ""}

func newStub(t testing.TB) (*stub, string) {
	s := &stub{collections: map[string]map[string]object{}, consumers: map[string]object{}, unrecorded: 5}
	s.collections["runs"], s.collections["uses"] = map[string]object{}, map[string]object{}
	for c := range envelopes {
		s.collections[c] = map[string]object{}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("X-Openstack-Request-Id", "req-1")
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("OpenStack-API-Version"))
	var body object
	if r.Body != nil {
		_ = decode(readAll(r), &body)
	}
	status, answer := s.answer(r, body)
	w.WriteHeader(status)
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func readAll(r *http.Request) []byte {
	var b strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			return []byte(b.String())
		}
	}
}

func (s *stub) answer(r *http.Request, body object) (int, any) {
	switch r.Header.Get("X-Auth-Token") {
	case "":
		return 401, object{"error": object{"code": 401, "message": "Authentication required"}}
	case "stranger:p":
		return 403, object{"error_code": 403, "error_message": "Policy doesn't allow it"}
	case "tired":
		return 503, nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/readyz" && r.Header.Get("X-Auth-Token") == "early":
		return 503, object{"status": "not ready", "checks": object{"database": "ok", "temporal": "is away"}}
	case r.URL.Path == "/readyz" || r.URL.Path == "/healthz":
		return 200, object{}
	case parts[0] == "journal" && parts[2] == "analysis":
		return 200, object{"analysis": object{"entries": 5, "p50": 0.25, "slowest": []object{{"seq": 7, "seconds": 1.5}}}}
	case parts[0] == "journal" && parts[2] == "runs":
		return s.run(r, parts[3:], body)
	case parts[len(parts)-1] == "plans":
		return 200, object{"plan": object{"name": body["name"], "start_date": body["start_date"], "end_date": body["end_date"],
			"reservations": []object{{"hosts": []string{"cmp-1", "cmp-2"}, "latest": body["latest_start"]}}}}
	case strings.HasSuffix(r.URL.Path, "/os-hosts/allocations"):
		return 200, object{"allocations": s.named(s.collections["uses"], "")}
	case parts[0] == "networking" || parts[0] == "reservation" || parts[0] == "journal":
		return s.rest(r, parts[2], parts[3:], body)
	case parts[0] == "operator" && parts[len(parts)-1] == "history":
		return s.history(parts[2], parts[3])
	case parts[0] == "operator":
		return s.migrate(int(integer(body["limit"])))
	case parts[0] == "placement" && parts[1] == "allocations":
		return s.allocation(r, parts[2], body)
	case parts[0] == "placement" && len(parts) > 3:
		return s.inventory(r, parts[2], parts[3], body)
	case parts[0] == "placement":
		return s.rest(r, parts[1], parts[2:], body)
	}
	return 404, nil
}

// run is a controller's run: each is done at the second look, and an audit has found two things.
func (s *stub) run(r *http.Request, rest []string, body object) (int, any) {
	all := s.collections["runs"]
	switch {
	case len(rest) == 0 && r.Method == "POST":
		id := fmt.Sprint(len(all) + 1)
		all[id] = object{"id": len(all) + 1, "kind": body["kind"], "plan": body["plan"], "state": "running", "sentence": fmt.Sprintf("The %v %s is running.", body["kind"], id)}
		return 202, object{"run": maps.Clone(all[id])}
	case len(rest) == 0:
		return 200, object{"runs": s.named(all, "")}
	case all[rest[0]] == nil:
		return missing(rest[0])
	case len(rest) == 1:
		all[rest[0]]["state"] = "done"
		return 200, object{"run": all[rest[0]]}
	case r.URL.Query().Get("after") == "":
		return 200, object{"findings": []object{{"object_type": "network", "object_id": "n1", "kind": "missing", "operation": "create", "outcome": ""}}}
	case r.URL.Query().Get("after") == "network/n1":
		return 200, object{"findings": []object{{"object_type": "port", "object_id": "p1", "kind": "extra", "operation": "delete", "outcome": "recorded"}}}
	}
	return 200, object{"findings": []object{}}
}

func missing(id string) (int, any) {
	return 404, object{"NeutronError": object{"type": "NotFound", "message": id + " could not be found", "detail": ""}}
}

func (s *stub) rest(r *http.Request, collection string, rest []string, body object) (int, any) {
	all, one := s.collections[collection], envelopes[collection]
	if inner, ok := body[one].(object); ok {
		body = inner
	}
	if len(rest) == 0 && r.Method == "GET" {
		return 200, object{collectionKey(collection): s.named(all, r.URL.Query().Get("name"))}
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
	if m := r.Header.Get("If-Match"); m != "" && m != fmt.Sprintf("revision_number=%v", o["revision_number"]) {
		return 412, object{"NeutronError": object{"type": "RevisionNumberConstraintFailed", "message": "Constrained to another revision"}}
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

func wrapped(one string, o object) any {
	if one == "" {
		return o
	}
	return object{one: o}
}

func (s *stub) named(all map[string]object, name string) []object {
	found := []object{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if name == "" || all[id]["name"] == name {
			found = append(found, all[id])
		}
	}
	return found
}

func (s *stub) add(collection string, body object) object {
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

func conflicting() (int, any) {
	return 409, object{"errors": []object{{"status": 409, "title": "Conflict", "code": "placement.concurrent_update",
		"detail": "There was a conflict when trying to complete your request.\n\n generation moved  "}}}
}

func (s *stub) allocation(r *http.Request, consumer string, body object) (int, any) {
	now := s.consumers[consumer]
	switch {
	case r.Method == "GET" && now == nil:
		return 200, object{"allocations": object{}}
	case r.Method == "GET":
		return 200, now
	case fmt.Sprint(body["consumer_generation"]) != fmt.Sprint(now["consumer_generation"]):
		return conflicting()
	case len(body["allocations"].(object)) == 0:
		delete(s.consumers, consumer)
		return 204, nil
	}
	body["consumer_generation"] = integerOf(now["consumer_generation"]) + 1
	s.consumers[consumer] = body
	return 204, nil
}

// migrate records consumers; the third time somebody writes the next one.
func (s *stub) migrate(limit int) (int, any) {
	n := min(limit, s.unrecorded)
	if s.unrecorded == 1 {
		n, s.unrecorded = 0, 0
		return 200, object{"migrated": 0, "remaining": 1}
	}
	s.unrecorded -= n
	return 200, object{"migrated": n, "remaining": s.unrecorded}
}

// history is that of something which was created and then written once.
func (s *stub) history(collection, id string) (int, any) {
	one, other := "consumer", "provider"
	if collection == "providers" {
		one, other = other, one
	}
	change := func(n int, from any, to int) object {
		return object{"id": n, "at": "2030-01-31T10:00:00Z", "actor": "ann/demo", "cause": "allocations",
			one: id, one + "_from": from, one + "_to": to, other: "x", other + "_from": 7, other + "_to": 8}
	}
	return 200, object{"changes": []object{change(2, 1, 2), change(1, nil, 1)}}
}

func (s *stub) inventory(r *http.Request, id, part string, body object) (int, any) {
	o, ok := s.collections["resource_providers"][id]
	if !ok {
		return missing(id)
	}
	if r.Method == "PUT" {
		if fmt.Sprint(body["resource_provider_generation"]) != fmt.Sprint(o["generation"]) {
			return conflicting()
		}
		o["generation"], o["_"+part] = o["generation"].(int)+1, body[part]
	}
	return 200, object{part: o["_"+part], "resource_provider_generation": o["generation"]}
}

// set changes an object behind the API's back.
func (s *stub) set(collection, name, key string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.collections[collection] {
		if o["name"] == name {
			o[key] = value
			return nil
		}
	}
	return fmt.Errorf("no %s is named %q", collection, name)
}
