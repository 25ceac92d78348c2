package neutron

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/store/db"
)

func TestList_LimitOfARequestDoesNotDecideHowMuchIsReadAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`"get_network": "role:auditor and rule:owner"`), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Open(policy.Options{File: file}, Policy...)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]network.Network, 4*PageItems)
	for i := range all {
		all[i] = network.Network{ID: uuid.UUID{15: byte(i + 1)}, Project: "demo"}
	}
	most := 0
	res := resource[network.Network, networkChange]{
		singular: "network",
		id:       func(n network.Network) uuid.UUID { return n.ID },
		target:   targetRule[network.Network]{of: targetOfNetwork},
		list: func(_ context.Context, l db.Listing) ([]network.Network, error) {
			from := int(l.Marker[15]) // the ID of a network is its position
			found := all[from:min(from+l.Limit, len(all))]
			most = max(most, len(found))
			return found, nil
		},
		ids: func(context.Context, db.Listing) ([]uuid.UUID, error) { return nil, nil },
	}
	caller := identity.Caller{User: "ann", Project: "demo", Roles: []string{"auditor"}}
	ctx := context.WithValue(t.Context(), accessKey{}, newAccess(rules, caller))
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/networking/v2.0/networks", nil)

	pages, err := res.readList(r, db.Listing{Limit: 1_000_000_000})

	if err != nil || len(pages.all) != len(all) {
		t.Fatalf("list with a large limit: got %d networks, error %v; want %d", len(pages.all), err, len(all))
	}
	if most > PageItems+1 {
		t.Errorf("list with a large limit: got %d objects in memory at once, want at most %d", most, PageItems+1)
	}
}
