package blazar

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// Blazar refuses a new lease that breaks a rule of its operator, such as the maximum duration, with 403.
func TestLease_BeyondTheQuotaIsRefusedLikeOneThatIsTooLong(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	s.store.Lease = leasestore.New(s.store.DB, leasestore.Config{Limits: lease.Limits{MaxDuration: time.Hour},
		Quota: lease.Quota{Limits: map[string]int64{lease.QuotaLeases: 1}}})
	s.serve(2 * time.Minute)
	path := "/v1/leases/" + s.lease("alice:red", "gold", 1, 2)["id"].(string)
	for _, c := range []struct{ body, message string }{
		{leaseBody("long", 3, 5), "Lease duration of 7200 seconds must be less than or equal to the maximum lease duration of 3600 seconds."},
		{leaseBody("second", 3, 4), "Quota exceeded for leases of the project that have not ended: the limit is 1."},
	} {
		want := map[string]any{"error_code": 403.0, "error_name": 403.0, "error_message": c.message}
		for _, route := range []string{"/v1/leases", "/v1/plans"} {
			a := s.as("alice:red", "POST", route, c.body)
			if d := cmp.Diff(want, a.body); d != "" || a.status != 403 {
				t.Errorf("POST %s: got status %d, want 403 with another body (-want +got):\n%s",
					route, a.status, d)
			}
		}
	}
	if a := s.as("alice:red", "PUT", path, `{"name":"new","start_date":"`+in(2)+`","end_date":"`+in(3)+`"}`); a.status != 200 {
		t.Errorf("change the only lease of a project whose quota is one lease: got %d %s, want 200",
			a.status, a.raw)
	}
	s.lease("bob:blue", "other", 3, 4)
	if a := s.as("alice:red", "DELETE", path, ""); a.status != 204 {
		t.Errorf("delete the only lease of a project: got %d %s, want 204", a.status, a.raw)
	}
	s.lease("alice:red", "next", 1, 2)
}
