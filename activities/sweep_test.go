package activities

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// More rows than one batch can become old between two sweeps.
func TestSweep_DeletesBatchesUntilNoneIsLeft(t *testing.T) {
	t.Parallel()
	a := &Activities{Options: Options{Timeouts: Timeouts{Trim: time.Hour}}}
	left, calls := int64(2*trimBatch+1), 0
	deleted, err := a.trimBatches(func() (int64, error) {
		calls++
		n := min(left, trimBatch)
		left -= n
		return n, nil
	})
	if err != nil || deleted != 2*trimBatch+1 || calls != 3 {
		t.Errorf("delete rows of two batches and one more: got %d deleted in %d calls, error %v", deleted, calls, err)
	}
}

// endedWorkflows are the times at which workflows have ended, by workflow ID. Like Temporal, endedWorkflows
// lists the latest first, in pages.
type endedWorkflows map[string]time.Time

var closeTime = regexp.MustCompile(`CloseTime (>|<=) '([^']+)'`)

// find returns the IDs of the workflows that a query finds, the latest first.
func (e endedWorkflows) find(query string) []string {
	var after, until time.Time
	for _, m := range closeTime.FindAllStringSubmatch(query, -1) {
		if at, err := time.Parse(time.RFC3339, m[2]); err == nil && m[1] == ">" {
			after = at
		} else if err == nil {
			until = at
		}
	}
	var ids []string
	for id, at := range e {
		if at.After(after) && (until.IsZero() || !at.After(until)) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(e[b].Compare(e[a]), cmp.Compare(a, b)) })
	return ids
}

func (e endedWorkflows) CountWorkflow(
	_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(len(e.find(r.GetQuery())))}, nil
}

func (e endedWorkflows) ListWorkflow(
	_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	var begin int
	_, _ = fmt.Sscan(string(r.GetNextPageToken()), &begin)
	ids := e.find(r.GetQuery())
	end := min(begin+1000, len(ids))
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range ids[begin:end] {
		answer.Executions = append(answer.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id},
		})
	}
	if end < len(ids) {
		answer.NextPageToken = fmt.Append(nil, end)
	}
	return answer, nil
}

// A person can terminate all workflows of a large installation at once.
func TestSweep_RestartsManyEndedWorkflowsInSeveralRounds(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-6 * time.Hour)
	ended := endedWorkflows{}
	for i := range 7000 { // 100 per second, later one per second
		ended[fmt.Sprintf("port/%d", i)] = begin.Add(
			time.Duration(min(i, 5000))*10*time.Millisecond + time.Duration(max(i-5000, 0))*time.Second)
	}
	seen, rounds := map[string]bool{}, 0
	var last time.Time // when the latest workflow of the rounds before has ended
	for since := begin.Add(-time.Second); !since.IsZero() && rounds < 10; rounds++ {
		ids, unsearched, err := findEnded(t.Context(), ended, since)
		if err != nil || len(ids) > maxEnded {
			t.Fatalf("round %d: got %d workflows, error %v; want at most %d", rounds, len(ids), err, maxEnded)
		}
		for _, id := range ids {
			if ended[id].Before(last) {
				t.Errorf("round %d: got a workflow that has ended at %v, before the %v of the rounds before; want the first ones first",
					rounds, ended[id], last)
			}
			seen[id] = true
		}
		if len(ids) > 0 {
			last = ended[ids[0]]
		}
		since = unsearched
	}
	if len(seen) != len(ended) {
		t.Errorf("search for %d ended workflows: got %d in %d rounds, want all of them", len(ended), len(seen), rounds)
	}
}

// Rounds that find too many workflows within one second must not find the same ones for ever.
func TestSweep_ContinuesAfterManyWorkflowsThatEndedAtOnce(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-time.Minute)
	ended := endedWorkflows{}
	for i := range maxEnded + 1 {
		ended[fmt.Sprintf("port/%d", i)] = at
	}
	ended["port/later"] = at.Add(10 * time.Second)
	seen := map[string]bool{}
	rounds := 0
	for since := at.Add(-time.Hour); !since.IsZero() && rounds < 10; rounds++ {
		ids, unsearched, err := findEnded(t.Context(), ended, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			seen[id] = true
		}
		since = unsearched
	}
	if len(seen) != len(ended) {
		t.Errorf("search for %d ended workflows: got %d in %d rounds, want all of them", len(ended), len(seen), rounds)
	}
}

// Temporal lists an ended workflow some time after its end. A search that ends at a time that has just passed
// must not make the next one begin there.
func TestSweep_SearchesTheLastTimeAgainWhenItLeavesWorkflows(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ended := endedWorkflows{}
	for i := range maxEnded + 1 {
		ended[fmt.Sprintf("port/%d", i)] = now.Add(-6 * time.Second)
	}
	ids, unsearched, err := findEnded(t.Context(), ended, now.Add(-time.Hour))
	if err != nil || len(ids) != maxEnded+1 || unsearched.IsZero() {
		t.Fatalf("search for %d workflows: got %d, the next search from %v and error %v; want all of them and a time",
			len(ended), len(ids), unsearched, err)
	}
	ended["port/late"] = now.Add(-10 * time.Second) // listed only now

	ids, _, err = findEnded(t.Context(), ended, unsearched)
	if err != nil || !slices.Contains(ids, "port/late") {
		t.Errorf("search from %v at %v: got error %v, want the workflow that was listed late, which ended at %v",
			unsearched, now, err, ended["port/late"])
	}
}
