package activities

import (
	"context"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/portstore"
)

// ApplyPortReports applies agents' reports to the port's row and returns the resulting status. If the list of
// reports is empty, ApplyPortReports only reads the status. If the option RequireSignatures is set,
// ApplyPortReports refuses each report that no key of the report's host has signed; a refused report changes
// nothing, and the row counts it as ignored.
func (a *Activities) ApplyPortReports(
	ctx context.Context,
	key string,
	reports []contract.Report,
) (contract.PortStatus, error) {
	id, err := parseUUID(key)
	if err != nil {
		return contract.PortStatus{}, err
	}
	refused, err := a.verifyReports(ctx, contract.PortID(key), reports)
	if err != nil {
		return contract.PortStatus{}, classify(err)
	}
	in := make([]network.Report, len(reports))
	for i, r := range reports {
		if refused != nil && refused[i] != "" {
			continue // the row counts an empty report as ignored
		}
		in[i] = network.Report{
			Entity:         r.Entity,
			Host:           r.Host,
			Event:          r.Event,
			Revision:       r.Revision,
			Owner:          r.Owner,
			TimeoutSeconds: r.TimeoutSeconds,
			Fatal:          r.Fatal,
			HostOnly:       a.RequireSignatures,
		}
	}
	s, err := a.Store.Network.UpdatePortStatus(ctx, id, in)
	if err != nil {
		return contract.PortStatus{}, classify(err)
	}
	status := portstore.WorkflowPortStatus(key, s)
	if a.HideProjects {
		status = status.WithoutProject()
	}
	status.Refused, status.Stale = refused, s.Stale
	return status, nil
}
