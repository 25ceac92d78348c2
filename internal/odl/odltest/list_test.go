package odltest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl/odltest"
)

func TestList_FiltersFieldsAndPages(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	for i := range 5 {
		body := fmt.Sprintf(`{"network":{"id":"n%d","name":"net-%d","shared":%v,"tenant_id":""}}`,
			i, i, i%2 == 0)
		if status, answer := sendRequest(t, c, "POST", odltest.BasePath+"/networks", body); status != http.StatusCreated {
			t.Fatalf("create a network: got status %d, body %s; want 201", status, answer)
		}
	}
	next := func(marker, rest string) []any {
		return []any{
			map[string]any{
				"rel":  "next",
				"href": odltest.BasePath + "/networks?fields=id&limit=2&marker=" + marker + rest,
			},
		}
	}
	ids := func(all ...string) []any {
		list := []any{}
		for _, id := range all {
			list = append(list, map[string]any{"id": id})
		}
		return list
	}
	for query, want := range map[string]map[string]any{
		"fields=id":                                  {"networks": ids("n0", "n1", "n2", "n3", "n4")},
		"fields=id&shared=true":                      {"networks": ids("n0", "n2", "n4")},
		"fields=id&name=net-1&name=net-2":            {"networks": ids("n1", "n2")},
		"fields=id&name=net-1&shared=true":           {"networks": ids()},
		"fields=name&id=n3":                          {"networks": []any{map[string]any{"name": "net-3"}}},
		"fields=id&limit=2":                          {"networks": ids("n0", "n1"), "networks_links": next("n1", "")},
		"fields=id&limit=2&marker=n1":                {"networks": ids("n2", "n3"), "networks_links": next("n3", "")},
		"fields=id&limit=2&marker=n3":                {"networks": ids("n4"), "networks_links": []any{}},
		"fields=id&limit=2&marker=n0&shared=true":    {"networks": ids("n2", "n4"), "networks_links": []any{}},
		"fields=id&limit=2&shared=true&page_reverse": {"networks": ids("n0", "n2"), "networks_links": next("n2", "&page_reverse=&shared=true")},
	} {
		t.Run(query, func(t *testing.T) {
			status, answer := sendRequest(t, c, "GET", odltest.BasePath+"/networks?"+query, "")
			var got map[string]any
			if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK {
				t.Fatalf("list networks with the query %s: got status %d, body %s; want 200",
					query, status, answer)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("list networks with the query %s: body differs (-want +got):\n%s", query, d)
			}
		})
	}
	for query, want := range map[string]int{
		"limit=0":             500,
		"limit=x":             500,
		"limit=1&marker=gone": 404,
		"a=%zz":               400,
	} {
		t.Run(query, func(t *testing.T) {
			if status, _ := sendRequest(t, c, "GET", odltest.BasePath+"/networks?"+query, ""); status != want {
				t.Errorf("list networks with the query %s: got status %d, want %d", query, status, want)
			}
		})
	}
	status, answer := sendRequest(t, c, "GET", odltest.BasePath+"/networks/n1?fields=name", "")
	if status != http.StatusOK || answer != "{\"network\":{\"name\":\"net-1\"}}\n" {
		t.Errorf(
			"show a network with the query fields=name: got status %d, body %s; want 200 and only the name",
			status,
			answer,
		)
	}
}
