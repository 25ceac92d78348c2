package network

import "slices"

// IsStale reports whether a report of an L2 agent is about an earlier binding of the port, so that it can
// never change the port: the port has no binding to the report's host, or the report names a revision before
// the present binding.
func (p Port) IsStale(r Report) bool {
	switch {
	case r.Entity != L2 || r.Host == "" || p.Distributed() || r.Event == ReportBlock || r.Event == ReportUnblock:
		return false
	case r.Host == p.Host:
		return r.Revision != 0 && r.Revision < p.BindingRevision
	default:
		return p.bindingAt(r.Host) < 0
	}
}

// StaleReports says, for each of the reports that ApplyReports did not accept, whether the report is stale.
// StaleReports returns nil if none is.
func (p Port) StaleReports(reports []Report, accepted []bool) []bool {
	stale := make([]bool, len(reports))
	for i, r := range reports {
		stale[i] = !accepted[i] && p.IsStale(r)
	}
	if !slices.Contains(stale, true) {
		return nil
	}
	return stale
}
