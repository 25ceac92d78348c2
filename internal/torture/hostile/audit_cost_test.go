package hostile

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"berth/internal/store/storetest"
)

// TestAudit_CostsOneStatementAndNoRoundTrip compares the statements and the round trips of the most frequent
// writes with and without the audit log.
func TestAudit_CostsOneStatementAndNoRoundTrip(t *testing.T) {
	t.Parallel()
	cost := func(setting string) map[string][2]int64 {
		q := storetest.NewQueryCounter(t, storetest.URL(t))
		h := newHostileClientOn(t, q.URL, "api", setting)
		least := map[string][2]int64{}
		for range 3 { // the first port of a project has additional statements
			router := uuid.NewString()
			for name, a := range map[string]attack{
				"POST /ports": {method: http.MethodPost, path: "/networking/v2.0/ports", body: h.fill(`{"port":{"network_id":"{network}"}}`)},
				"PUT /allocations": {method: http.MethodPut, path: "/placement/allocations/" + uuid.NewString(), body: h.fill(
					`{"allocations":{"{provider}":{"resources":{"VCPU":1}}},"project_id":"demo","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}`)},
				"PUT /networks": {method: http.MethodPut, path: h.fill("/networking/v2.0/networks/{network}"), body: `{"network":{"name":"` + uuid.NewString() + `"}}`},
				"POST /journal/v1/entries": {method: http.MethodPost, path: "/journal/v1/entries", body: `{"entries":[{"operation":"create","object_type":"router","object_id":"` +
					router + `","name":"r","project_id":"demo","data":{"id":"` + router + `","name":"r","project_id":"demo","tenant_id":"demo"}}]}`},
			} {
				statements, trips := q.Statements(), q.RoundTrips()
				h.must(a)
				statements, trips = q.Statements()-statements, q.RoundTrips()-trips
				if before, ok := least[name]; ok {
					statements, trips = min(statements, before[0]), min(trips, before[1])
				}
				least[name] = [2]int64{statements, trips}
			}
		}
		return least
	}
	without, with := cost("BERTH_AUDIT=off"), cost("BERTH_AUDIT=on")
	for name, got := range with {
		t.Logf("%s: %d statements in %d round trips without the audit log, %d in %d with it",
			name, without[name][0], without[name][1], got[0], got[1])
		if want := [2]int64{without[name][0] + 1, without[name][1]}; got != want {
			t.Errorf("%s with the audit log: got %d statements in %d round trips, want %d in %d",
				name, got[0], got[1], want[0], want[1])
		}
	}
}
