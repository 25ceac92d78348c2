package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/store/storetest"
)

// longList is the number of items in a list that no API accepts.
const longList = 10_000

// maxRefusalQueries is the maximum number of SQL statements of a request that berth refuses because of a long
// list. Some routes read the object in their path first: a lease with its reservations needs the most
// statements.
const maxRefusalQueries = 10

var (
	lengthError = regexp.MustCompile(`(more than|at most|1 to) [0-9]+`)
	// resource class, UUID or group suffix
	dynamicKey = regexp.MustCompile(`^([A-Z_][A-Z0-9_]+|[0-9a-f-]{36})$`)
)

// longListBody is a request body with one list that is too long.
type longListBody struct {
	name string // key of the list
	body string
}

// longListBodies returns copies of a JSON document. In each copy, one array has longList items, or one object
// whose keys are names of resource classes or UUIDs has longList keys. The items are short, so that the body
// is not too large.
func longListBodies(t *testing.T, document string) (all []longListBody) {
	// Placement checks nothing below the suffix ""
	document = strings.Replace(document, `"mappings":{"":`, `"mappings":{"_1":`, 1)
	var root any
	if err := json.Unmarshal([]byte(document), &root); err != nil {
		t.Fatalf("parse %s: %v", document, err)
	}
	emit := func(name string) {
		raw, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, longListBody{name, string(raw)})
	}
	var walk func(name string, v any, replace func(any))
	walk = func(name string, v any, replace func(any)) {
		switch v := v.(type) {
		case []any:
			item := any("x")
			if len(v) > 0 {
				item = shortened(v[0])
				walk(name, v[0], func(o any) { v[0] = o })
			}
			replace(slices.Repeat([]any{item}, longList))
			emit(name)
			replace(v)
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				inner := key
				if dynamicKey.MatchString(key) {
					inner = name
				}
				walk(inner, v[key], func(o any) { v[key] = o })
			}
			if dynamic := slices.ContainsFunc(slices.Collect(maps.Keys(v)), dynamicKey.MatchString); dynamic {
				replace(manyKeys(v))
				emit(name)
				replace(v)
			}
		}
	}
	walk("", root, func(o any) { root = o })
	return all
}

// shortened returns an empty object for an object, and every other value itself.
func shortened(v any) any {
	if _, ok := v.(map[string]any); ok {
		return map[string]any{}
	}
	return v
}

// manyKeys returns an object with longList keys of the same kind as a key of the given object.
func manyKeys(like map[string]any) map[string]any {
	many := map[string]any{}
	for key, v := range like {
		for i := range longList {
			name := fmt.Sprintf("CUSTOM_%d", i)
			if _, err := uuid.Parse(key); err == nil {
				name = fmt.Sprintf("5a000000-0000-4000-8000-%012d", i)
			}
			many[name] = shortened(v)
		}
		return many
	}
	return many
}

// refuseLongList sends a request with a long list, and checks that berth refuses it because of the length,
// with few SQL statements.
func (h *hostileClient) refuseLongList(q *storetest.QueryCounter, a attack, name string) {
	h.t.Helper()
	a.body = h.fillGenerations(a.body)
	before := q.Statements()
	status, body, header, err := h.send(h.t.Context(), a)
	queries := q.Statements() - before
	switch {
	case err != nil:
		h.t.Errorf("send the request %s: got no answer: %v", a, err)
	case status != http.StatusBadRequest || !strings.Contains(string(body), name) || !lengthError.Match(body):
		h.t.Errorf(
			"send the request %s: got status %d, body %.300s; want 400 with the name %q and the maximum length",
			a, status, body, name,
		)
	case queries > maxRefusalQueries:
		h.t.Errorf("send the request %s: berth executed %d SQL statements, want at most %d",
			a, queries, maxRefusalQueries)
	}
	if err := checkErrorBody(a.path, status, header, body); err != nil {
		h.t.Errorf(
			"send the request %s: got the body %.300s; want an error in the format of the API: %v",
			a, body, err,
		)
	}
}

func TestHostileLists_RefusedBecauseOfTheirLengthBeforeAnyWork(t *testing.T) {
	t.Parallel()
	q := storetest.NewQueryCounter(t, storetest.URL(t))
	h := newHostileClientOn(t, q.URL, "api")
	lists := map[string]int{}
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if strings.HasSuffix(r.Path, ".json") {
			return
		}
		path := h.concretePath(api.Prefix + r.Path)
		if r.Method == http.MethodGet {
			h.refuseLongList(
				q,
				attack{method: r.Method, path: path + "?many=" + strings.Repeat("a,", longList)},
				"many",
			)
			h.refuseLongList(q,
				attack{method: r.Method, path: path + "?z=" + strings.Repeat("&z=", longList-1)}, "z")
		}
		document := validBodies[r.Method+" "+api.Prefix+r.Path]
		if document == "" {
			return
		}
		bodies := longListBodies(t, h.fill(document))
		if singular, _, bulk := strings.Cut(strings.TrimPrefix(document, `{"`), `":{`); bulk &&
			api.Prefix == "/networking" &&
			r.Method == http.MethodPost &&
			!strings.Contains(r.Path, "{id}") {
			bodies = append(bodies, longListBody{
				singular + "s",
				`{"` + singular + `s":[` + strings.Repeat("{},", longList) + `{}]}`,
			})
		}
		for _, b := range bodies {
			lists[api.Prefix]++
			h.refuseLongList(q, attack{method: r.Method, path: path, body: b.body}, b.name)
		}
	})
	for prefix, least := range map[string]int{
		"/networking":  25,
		"/placement":   15,
		"/reservation": 4,
		"/agent/v1":    1,
		"/journal/v1":  1,
		"/operator/v1": 1,
	} {
		if lists[prefix] < least {
			t.Errorf("lists in the bodies of %s: got %d, want at least %d", prefix, lists[prefix], least)
		}
	}
}

// TestHostileLists_QueriesDoNotGrowWithTheList sends lists that are as long as berth allows, whose items do
// not exist or exceed a quota.
func TestHostileLists_QueriesDoNotGrowWithTheList(t *testing.T) {
	t.Parallel()
	q := storetest.NewQueryCounter(t, storetest.URL(t))
	h := newHostileClientOn(t, q.URL, "api")
	var ids, subports []string
	for i := range 4000 {
		ids = append(ids, fmt.Sprintf(`"5a000000-0000-4000-8000-%012d"`, i))
		subports = append(subports,
			fmt.Sprintf(`{"port_id":%s,"segmentation_type":"vlan","segmentation_id":%d}`, ids[i], i+1))
	}
	groups := strings.Join(ids[:100], ",")
	for name, tc := range map[string]struct {
		attack
		want int
	}{
		"security groups of a new port": {attack{method: "POST", path: "/networking/v2.0/ports", body: `{"port":{"network_id":"{network}","security_groups":[` + groups + `]}}`}, 404},
		"security groups of a port":     {attack{method: "PUT", path: "/networking/v2.0/ports/{lone}", body: `{"port":{"security_groups":[` + groups + `]}}`}, 404},
		"subports of a new trunk":       {attack{method: "POST", path: "/networking/v2.0/trunks", body: `{"trunk":{"port_id":"{lone}","sub_ports":[` + strings.Join(subports, ",") + `]}}`}, 404},
		"new subports of a trunk":       {attack{method: "PUT", path: "/networking/v2.0/trunks/{trunk}/add_subports", body: `{"sub_ports":[` + strings.Join(subports, ",") + `]}`}, 404},
		"ports beyond the quota": {attack{method: "POST", path: "/networking/v2.0/ports",
			body: `{"ports":[` + strings.Repeat(`{"network_id":"{network}"},`, 999) + `{"network_id":"{network}"}]}`}, 409},
		"rules beyond the quota": {attack{method: "POST", path: "/networking/v2.0/security-group-rules",
			body: `{"security_group_rules":[` + strings.Repeat(`{"security_group_id":"{group}","direction":"ingress"},`, 999) + `{"security_group_id":"{group}","direction":"ingress"}]}`}, 409},
	} {
		tc.token, tc.path, tc.body = "ann:demo", h.fill(tc.path), h.fill(tc.body)
		before := q.Statements()
		if got := h.attack(tc.attack); got != tc.want {
			t.Errorf("%s: got status %d, want %d", name, got, tc.want)
		}
		if queries := q.Statements() - before; queries > maxRefusalQueries {
			t.Errorf("%s: berth executed %d SQL statements, want at most %d",
				name, queries, maxRefusalQueries)
		}
	}
}
