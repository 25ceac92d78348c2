package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

var (
	statusAttribute     = temporal.NewSearchAttributeKeyKeyword(contract.AttributeStatus)
	projectAttribute    = temporal.NewSearchAttributeKeyKeyword(contract.AttributeProject)
	hostAttribute       = temporal.NewSearchAttributeKeyKeyword(contract.AttributeHost)
	resourceAttribute   = temporal.NewSearchAttributeKeyKeyword(contract.AttributeResource)
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

// report publishes a status, and the project, host and resource of the object if `object` is not nil. report writes only
// the search attributes that differ, and writes them together, because each update of search attributes adds an event to
// the history.
func (s *statusReporter) report(ctx workflow.Context, why contract.Why, object *contract.Attributes) error {
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
	updates = append(updates, objectUpdates(current, object)...)
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// objectUpdates returns the updates that give the workflow the project, the host and the resource of its object. The
// update of an attribute that the object does not have removes the search attribute.
func objectUpdates(current temporal.SearchAttributes, object *contract.Attributes) (updates []temporal.SearchAttributeUpdate) {
	if object == nil {
		return nil
	}
	for _, a := range []struct {
		key   temporal.SearchAttributeKeyKeyword
		value string
	}{{projectAttribute, object.Project}, {hostAttribute, object.Host}, {resourceAttribute, object.Resource}} {
		switch value, _ := current.GetKeyword(a.key); {
		case value == a.value:
		case a.value == "":
			updates = append(updates, a.key.ValueUnset())
		default:
			updates = append(updates, a.key.ValueSet(a.value))
		}
	}
	return updates
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
