package activities

import (
	"context"
	"log/slog"
	"time"

	"berth/internal/contract"
)

// verifyReports returns, for each report, why berth refuses the report; the result is nil if no report is
// refused. The log names the workflow and not the sender, because Temporal shows the identity of a signal's
// sender only in the history of the workflow.
func (a *Activities) verifyReports(
	ctx context.Context,
	workflowID string,
	reports []contract.Report,
) ([]contract.Refusal, error) {
	if !a.RequireSignatures || len(reports) == 0 {
		return nil, nil
	}
	now, hosts := time.Now(), []string{}
	for _, r := range reports {
		// Only a report without another fault needs keys. In particular, the database cannot store the host
		// of a malformed report.
		if r.Verify(workflowID, nil, now) == contract.RefusedSignature {
			hosts = append(hosts, r.Host)
		}
	}
	keys, err := a.Store.Agents.PublicKeys(ctx, hosts)
	if err != nil {
		return nil, err
	}
	refused, count, last := make([]contract.Refusal, len(reports)), 0, 0
	for i, r := range reports {
		if refused[i] = r.Verify(workflowID, keys[r.Host], now); refused[i] == "" {
			continue
		}
		count, last = count+1, i
		if a.OnRefusal != nil {
			a.OnRefusal(refused[i])
		}
	}
	if count == 0 {
		return nil, nil
	}
	r := reports[last]
	slog.WarnContext(
		ctx,
		"Reports refused; the history of the workflow names their senders",
		"workflow_id", workflowID, "count", count, "reason", string(refused[last]), "host", r.Host,
		"entity", r.Entity, "event", r.Event,
	)
	return refused, nil
}
