package operator

import (
	"net/http"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/store"
)

// consumers goes through the consumers that have no record.
type consumers struct {
	store *store.Store
	owner inventory.Owner // of those consumers
}

// maxBatch is how many consumers one request migrates at most.
const maxBatch = 10000

// migrate records a batch of {"limit": n} consumers. Whoever asks until nothing remains has migrated them all, and
// may stop and go on at any time.
func (c consumers) migrate(r *http.Request) (int, any, error) {
	body := struct {
		Limit int `json:"limit"`
	}{Limit: 1000}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if body.Limit < 1 || body.Limit > maxBatch {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The limit is not between 1 and %d.", maxBatch)
	}
	migrated, remaining, err := c.store.RecordConsumers(r.Context(), c.owner, body.Limit)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]int64{"migrated": migrated, "remaining": remaining}, nil
}
