package operator

import (
	"net/http"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
)

// consumers handles the requests that migrate consumers without a project and a user.
type consumers struct {
	store *inventorystore.Store
	owner inventory.Owner // the project and user that migrated consumers get
}

// maxBatch is the maximum number of consumers that one request migrates.
const maxBatch = 10000

// migrationBody is the JSON format of a request that migrates consumers.
type migrationBody struct {
	Limit int `json:"limit"`
}

// migrate sets the project and the user of consumers that have no project and user, at most n consumers for
// the body {"limit": n}. migrate returns how many consumers without a project and user remain. A client
// repeats the request until migrate returns that no consumer remains. A client may also stop earlier, because
// each request is complete in itself.
func (c consumers) migrate(r *http.Request) (int, any, error) {
	body := migrationBody{Limit: 1000}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if body.Limit < 1 || body.Limit > maxBatch {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'limit' must be between 1 and %d.", maxBatch)
	}
	migrated, remaining, err := c.store.RecordConsumers(r.Context(), c.owner, body.Limit)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]int64{"migrated": migrated, "remaining": remaining}, nil
}
