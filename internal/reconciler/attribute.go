package reconciler

import (
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
)

// differs reports whether the search attributes of an execution differ from those of the row. The rows of some workflow types have no
// status.
func differs(row contract.Attributes, execution *common.SearchAttributes) bool {
	return row.Status != "" && keyword(execution, contract.AttributeStatus) != row.Status
}

// keyword returns the value of a search attribute; "" if the execution does not have it.
func keyword(a *common.SearchAttributes, name string) string {
	payload, ok := a.GetIndexedFields()[name]
	if !ok {
		return ""
	}
	var value string
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &value); err != nil {
		return ""
	}
	return value
}
