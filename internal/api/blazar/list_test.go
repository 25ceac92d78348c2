package blazar

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// lists has, by path of a list, the key of its items in the answer and the attribute that a marker names.
var lists = map[string]struct{ key, id string }{
	"/v1/leases":               {"leases", "id"},
	"/v1/os-hosts":             {"hosts", "id"},
	"/v1/os-hosts/allocations": {"allocations", "resource_id"},
	"/v1/floatingips":          {"floatingips", "id"},
	"/v1/networks":             {"networks", "id"},
	"/v1/networks/allocations": {"allocations", "resource_id"},
	"/v1/devices":              {"devices", "id"},
	"/v1/devices/allocations":  {"allocations", "resource_id"},
}

// items returns the items of a list, and the ID of the last item.
func (s *service) items(path, query string) (items []any, last string) {
	s.Helper()
	of := lists[path]
	items = s.expect(200, "GET", path+"?"+query, "").body[of.key].([]any)
	if len(items) > 0 {
		last = items[len(items)-1].(map[string]any)[of.id].(string)
	}
	return items, last
}

func TestList_PagesHaveEachItemOnce(t *testing.T) {
	t.Parallel()
	const n = 5
	s := newService(t, "cmp-1", "cmp-2", "cmp-3", "cmp-4", "cmp-5")
	s.externalNetwork(n)
	for i := range n {
		s.expect(201, "POST", "/v1/networks", strings.Replace(segmentBody, `"100"`, fmt.Sprint(100+i), 1))
		s.expect(201, "POST", "/v1/devices", strings.Replace(deviceBody, "iot-1", fmt.Sprint("iot-", i), 1))
		lease := reserving(
			`{"resource_type":"network","network_name":"lab"}`,
			`{"resource_type":"device","min":1,"max":1}`,
			`{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}`,
		)
		s.expect(201, "POST", "/v1/leases", strings.Replace(lease, "gold", fmt.Sprint("gold-", i), 1))
	}
	for path := range lists {
		t.Run(path, func(t *testing.T) {
			all, last := s.items(path, "")
			if len(all) != n {
				t.Fatalf("list without a limit: got %d items, want all %d", len(all), n)
			}
			for limit := range n + 2 {
				query := ""
				if limit > 0 {
					query = fmt.Sprint("limit=", limit)
				}
				var paged []any
				for page, marker := s.items(path, query); len(page) > 0; page, marker = s.items(path, query+"&marker="+marker) {
					if limit > 0 && len(page) > limit {
						t.Errorf("page with the limit %d: got %d items", limit, len(page))
					}
					paged = append(paged, page...)
				}
				if d := cmp.Diff(all, paged); d != "" {
					t.Errorf(
						"items of all pages with the limit %d, compared with the whole list (-want +got):\n%s",
						limit,
						d,
					)
				}
			}
			if after, _ := s.items(path, "marker="+last); len(after) != 0 {
				t.Errorf("list after its last item: got %v, want no items", after)
			}
		})
	}
}

func TestList_WrongLimitsAndMarkersAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for path := range lists {
		for _, query := range []string{"limit=0", "limit=-1", "limit=many", "limit=1.5", "limit=99999999999999999999", "limit=" + strings.Repeat("9", 10000),
			"marker=x", "marker=-1", "marker=999", "marker=99999999999999999999", "marker=" + uuid.NewString(), "marker=" + uuid.Nil.String(),
			"limit=1&marker=" + strings.Repeat("x", 10000)} {
			a := s.expect(400, "GET", path+"?"+query, "")
			message, _ := a.body["error_message"].(string)
			want := map[string]any{"error_code": 400.0, "error_name": 400.0, "error_message": message}
			if d := cmp.Diff(want, a.body); d != "" || len(message) > 200 ||
				!strings.Contains(message, "limit") && !strings.Contains(message, "marker") {
				t.Errorf(
					"GET %s?%.50s: got the error %.300s, want one in Blazar's format that names the parameter",
					path, query, a.raw,
				)
			}
		}
		if items, _ := s.items(path, "limit=&marker=&sort=name"); len(items) != 0 {
			t.Errorf("GET %s with empty parameters: got %v, want no items", path, items)
		}
	}
}
