package neutron

import (
	"encoding/json"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network/attribute"
)

func init() { minBatch = 2 } // so that a page of the tests needs several batches

var defaultRules = policy.MustOpen(Policy...)

// decodeObject reads one object of a request of the caller, with the default policy rules.
func (res resource[N, C]) decodeObject(
	raw json.RawMessage,
	verb attribute.Operations,
	requester identity.Caller,
) (C, error) {
	return res.decodeItem(raw, verb, newAccess(defaultRules, requester))
}
