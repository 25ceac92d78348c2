package neutron

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// PageItems is the value of pageItems in the tests.
const PageItems = 3

// Small values, so that the lists of the tests need several batches and pages.
func init() { maxBatch, pageItems = 2, PageItems }

var defaultRules = policy.MustOpen(Policy...)

// decodeObject reads one object of a request of the caller, with the default policy rules.
func (res resource[N, C]) decodeObject(
	raw json.RawMessage,
	verb attribute.Operations,
	requester identity.Caller,
) (C, error) {
	return res.decodeItem(raw, verb, newAccess(defaultRules, requester))
}

// ReadPorts lists the IDs of all ports as an administrator, and calls `between` after each page.
func ReadPorts(ctx context.Context, s *portstore.Store, between func()) (ids []string, err error) {
	admin := newAccess(defaultRules, identity.Caller{User: "admin", Roles: []string{"admin"}})
	ctx = context.WithValue(ctx, accessKey{}, admin)
	pages, err := ports(s).readList(
		httptest.NewRequestWithContext(ctx, http.MethodGet, "/networking/v2.0/ports", nil),
		db.Listing{},
	)
	if err != nil {
		return nil, err
	}
	for last := false; !last; between() {
		var items []any
		if items, last, err = pages.next(ctx); err != nil {
			return nil, err
		}
		for _, item := range items {
			ids = append(ids, item.(object)["id"].(uuid.UUID).String())
		}
	}
	return ids, nil
}
