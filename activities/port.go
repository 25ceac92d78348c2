package activities

import (
	"context"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// ApplyPortReports applies agents' reports to the port's row and returns the resulting status. If the list of reports is empty,
// ApplyPortReports only reads the status.
func (a *Activities) ApplyPortReports(ctx context.Context, key string, reports []contract.Report) (contract.PortStatus, error) {
	id, err := parseUUID(key)
	if err != nil {
		return contract.PortStatus{}, err
	}
	in := make([]network.Report, len(reports))
	for i, r := range reports {
		in[i] = network.Report{Entity: r.Entity, Host: r.Host, Event: r.Event, Revision: r.Revision,
			Owner: r.Owner, TimeoutSeconds: r.TimeoutSeconds, Fatal: r.Fatal}
	}
	s, err := a.Store.Network.UpdatePortStatus(ctx, id, in)
	if err != nil {
		return contract.PortStatus{}, classify(err)
	}
	return networkstore.WorkflowPortStatus(key, s), nil
}
