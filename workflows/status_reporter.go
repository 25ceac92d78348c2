package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

var (
	statusAttribute     = temporal.NewSearchAttributeKeyKeyword(contract.AttributeStatus)
	waitingForAttribute = temporal.NewSearchAttributeKeyKeywordList(contract.AttributeWaitingFor)
)

// statusReporter shows a workflow's status in the query "why", in the current details and in the search attributes.
type statusReporter struct {
	why contract.Why
}

// newStatusReporter registers the query handler, so that the query has an answer from the first workflow task on.
func newStatusReporter(ctx workflow.Context, object string) (*statusReporter, error) {
	s := &statusReporter{why: contract.Why{Object: object, State: "unknown", Sentence: "The workflow has not read its row yet.", Waiting: []contract.Waiting{}}}
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryWhy, func() (contract.Why, error) { return s.why, nil },
		workflow.QueryHandlerOptions{Description: "The state, what the workflow waits for, since when and until when, and the next attempt"})
	return s, err
}

// report publishes a status. report does not write unchanged search attributes, because each update of search
// attributes adds an event to the history.
func (s *statusReporter) report(ctx workflow.Context, why contract.Why) error {
	why.Object = s.why.Object
	if why.Waiting == nil {
		why.Waiting = []contract.Waiting{}
	}
	s.why = why
	workflow.SetCurrentDetails(ctx, why.Sentence)
	names := waitingNames(why.Waiting)
	current := workflow.GetTypedSearchAttributes(ctx)
	status, _ := current.GetKeyword(statusAttribute)
	waiting, _ := current.GetKeywordList(waitingForAttribute)
	var updates []temporal.SearchAttributeUpdate
	if status != why.State {
		updates = append(updates, statusAttribute.ValueSet(why.State))
	}
	if !slices.Equal(waiting, names) {
		updates = append(updates, waitingForAttribute.ValueSet(names))
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// setStep sets the answer of the query to the step that the workflow performs now. setStep writes no history event.
func (s *statusReporter) setStep(sentence string) {
	s.why.State, s.why.Sentence = "running", sentence
}

// waitingNames returns the field For of each element: the names of the entities that the workflow waits for.
func waitingNames(waiting []contract.Waiting) []string {
	names := make([]string, len(waiting))
	for i, w := range waiting {
		names[i] = w.For
	}
	return names
}
