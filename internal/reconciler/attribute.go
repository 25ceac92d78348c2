package reconciler

import (
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
)

// deletedPort is the status of a deleted port whose events for Nova are not delivered yet.
const deletedPort = "DELETED"

// differs reports whether the search attributes of an execution differ from those of the row.
//
// Only the rows of ports and leases have a status. The workflows of other types keep the search attributes
// with which they started, so berth could not repair a difference. The row of a deleted port has neither
// project nor host, but the port's workflow keeps both attributes.
//
// BerthWaitingFor is not compared: the value is not in the row, but follows from the blocks of a port, or
// from the events and reservations of a lease and the time. A workflow writes BerthWaitingFor in the same
// update as the other attributes.
func differs(row contract.Attributes, execution *common.SearchAttributes) bool {
	if row.Status == "" {
		return false
	}
	found := contract.Attributes{
		Status:   keyword(execution, contract.AttributeStatus),
		Project:  keyword(execution, contract.AttributeProject),
		Host:     keyword(execution, contract.AttributeHost),
		Resource: keyword(execution, contract.AttributeResource),
	}
	if row.Status == deletedPort {
		row.Project, row.Host = found.Project, found.Host
	}
	return found.Status != row.Status || found.Project != row.Project || found.Host != row.Host ||
		found.Resource != row.Resource
}

// keyword returns the value of a search attribute; "" if the execution does not have the search attribute.
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
