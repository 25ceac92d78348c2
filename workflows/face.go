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

// face is how a workflow shows itself: query, current details and search attributes say the same.
type face struct {
	why contract.Why
}

// newFace answers the query from the first task on.
func newFace(ctx workflow.Context, object string) (*face, error) {
	f := &face{why: contract.Why{Object: object, State: "unknown", Sentence: "Not looked at yet.", Waiting: []contract.Waiting{}}}
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryWhy, func() (contract.Why, error) { return f.why, nil },
		workflow.QueryHandlerOptions{Description: "State, waiting for whom, since when, until when, and what is next"})
	return f, err
}

// show makes why what the workflow shows. Search attributes cost an event each, so only changes are written.
func (f *face) show(ctx workflow.Context, why contract.Why) error {
	why.Object = f.why.Object
	if why.Waiting == nil {
		why.Waiting = []contract.Waiting{}
	}
	f.why = why
	workflow.SetCurrentDetails(ctx, why.Sentence)
	names := entities(why.Waiting)
	shown := workflow.GetTypedSearchAttributes(ctx)
	status, _ := shown.GetKeyword(statusAttribute)
	waiting, _ := shown.GetKeywordList(waitingForAttribute)
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

// entities are the names of those that are waited for.
func entities(waiting []contract.Waiting) []string {
	names := make([]string, len(waiting))
	for i, w := range waiting {
		names[i] = w.For
	}
	return names
}
