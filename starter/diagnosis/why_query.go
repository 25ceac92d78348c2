package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/resource"
)

var errWorkflowClosed = errors.New("the workflow is closed")

// QueryWhy sends the query why to an open workflow. It returns errWorkflowClosed if the workflow is closed.
func QueryWhy(ctx context.Context, s *cli.Session, workflow string) (contract.Why, error) {
	var w contract.Why
	c, err := s.Temporal(ctx)
	if err != nil {
		return w, err
	}
	ctx, cancel := s.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	answer, err := c.QueryWorkflowWithOptions(
		ctx,
		&client.QueryWorkflowWithOptionsRequest{WorkflowID: workflow,
			QueryType: contract.QueryWhy, QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN},
	)
	switch {
	case err != nil:
		return w, cli.TemporalError(s.Settings, workflow, err)
	case answer.QueryRejected != nil:
		return w, errWorkflowClosed
	}
	return w, answer.QueryResult.Get(&w)
}

// whyFromObject converts the API's explanation of an object to a contract.Why.
func whyFromObject(r *cli.Resource, id string, o cli.Object) contract.Why {
	state, _ := o["status"].(string)
	if state == "" {
		state, _ = o["state"].(string)
	}
	w := contract.Why{Object: r.Name + "/" + id, State: state, Sentence: resource.Sentence(o)}
	if w.Sentence == "" {
		w.Sentence = fmt.Sprintf("%s %s is %s", r.Name, r.DisplayName(o), state)
	}
	if r == resource.JournalEntries {
		w.Sentence = fmt.Sprintf("Entry %v (%v %v %v) is %s: %s.",
			o["seq"], o["operation"], o["object_type"], o["name"], state, w.Sentence)
	}
	w.LastError, _ = o["last_error"].(string)
	w.NextAttempt = parseTime(o["retry_at"])
	reason, _ := o["berth:why"].(cli.Object)
	if failed, _ := cli.Objects(reason["failed_calls"]); len(failed) > 0 {
		w.LastError, _ = failed[0]["error"].(string)
		w.NextAttempt = parseTime(failed[0]["next_attempt"])
	}
	all, _ := cli.Objects(reason["waiting"])
	for _, p := range all {
		party, _ := p["for"].(string)
		w.Waiting = append(
			w.Waiting,
			contract.Waiting{For: party, Since: parseTime(p["since"]), Deadline: parseTime(p["deadline"])},
		)
	}
	return w
}

// parseTime parses a time in the API's format. It returns nil if the value is not such a time.
func parseTime(v any) *time.Time {
	word, _ := v.(string)
	t, err := time.Parse(time.RFC3339, word)
	if err != nil {
		return nil
	}
	return &t
}
