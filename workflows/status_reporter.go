package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

// statusReporter shows a workflow's status in the query "why", in the current details and in the search
// attributes.
type statusReporter struct {
	why contract.Why // what the workflow has reported
	// the wait for the database; nil if the workflow does not wait for the database
	database *contract.Waiting
	failure  string // error of the last failed work of the database
}

// stateUnknown is the state of a workflow that has not read its row yet.
const stateUnknown = "unknown"

// newStatusReporter registers the query handler, so that the query has an answer from the first workflow task
// on.
func newStatusReporter(ctx workflow.Context, object string) (*statusReporter, error) {
	s := &statusReporter{
		why: contract.Why{
			Object:   object,
			State:    stateUnknown,
			Sentence: "The workflow has not read its row yet.",
			Waiting:  []contract.Waiting{},
		},
	}
	err := workflow.SetQueryHandlerWithOptions(
		ctx,
		contract.QueryWhy,
		func() (contract.Why, error) { return s.shown(), nil },
		workflow.QueryHandlerOptions{
			Description: "The state, what the workflow waits for, since when and until when, and the next attempt",
		},
	)
	return s, err
}

// report publishes a status, and the project, host and resource of the object if `object` is not nil. report
// writes only the search attributes that differ, and writes them together, because each update of search
// attributes adds an event to the history.
func (s *statusReporter) report(ctx workflow.Context, why contract.Why, object *contract.Attributes) error {
	why.Object = s.why.Object
	if why.Waiting == nil {
		why.Waiting = []contract.Waiting{}
	}
	s.why = why
	return s.publish(ctx, object)
}

// shown returns what the workflow has reported. While the workflow waits for the database, the result also
// names the database and its error.
func (s *statusReporter) shown() contract.Why {
	why := s.why
	if s.database != nil {
		why.Sentence = fmt.Sprintf("The database is unavailable since %s: %s. Before: %s",
			s.database.Since.UTC().Format(time.RFC3339), s.failure, why.Sentence)
		why.Waiting = append([]contract.Waiting{*s.database}, why.Waiting...)
		why.LastError = s.failure
	}
	return why
}

// waitForDatabase publishes that the workflow waits for the database.
func (s *statusReporter) waitForDatabase(ctx workflow.Context, failed error) error {
	since := workflow.Now(ctx)
	s.database, s.failure = &contract.Waiting{For: "database", Since: &since}, errorMessage(failed)
	return s.publish(ctx, nil)
}

// databaseReturned publishes that the workflow no longer waits for the database.
func (s *statusReporter) databaseReturned(ctx workflow.Context) error {
	s.database, s.failure = nil, ""
	return s.publish(ctx, nil)
}

// publish writes the status, except that publish does not replace a known status with stateUnknown.
func (s *statusReporter) publish(ctx workflow.Context, object *contract.Attributes) error {
	why := s.shown()
	workflow.SetCurrentDetails(ctx, why.Sentence)
	names := shownNames(waitingNames(why.Waiting))
	current := workflow.GetTypedSearchAttributes(ctx)
	status, _ := current.GetKeyword(statusAttribute)
	waiting, _ := current.GetKeywordList(waitingForAttribute)
	var updates []temporal.SearchAttributeUpdate
	if status != why.State && why.State != stateUnknown {
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

// maxWaitingFor is the maximum size of the search attribute BerthWaitingFor, in bytes of JSON. Temporal
// terminates a workflow that writes a larger search attribute.
const maxWaitingFor = 2048

// shownNames returns as many of the first names as fit into the search attribute BerthWaitingFor.
func shownNames(names []string) []string {
	size := len("[]")
	for i, name := range names {
		size += len(`"",`) + maxEncodedSize(name)
		if size > maxWaitingFor {
			return names[:i]
		}
	}
	return names
}

// maxEncodedSize returns an upper bound of the size of a text in JSON, in bytes: some ASCII characters, such
// as quotes, are escaped with up to six bytes, and so are bytes that are not UTF-8.
func maxEncodedSize(text string) int {
	const escaped = len(`\u0000`)
	size := 0
	for _, r := range text {
		switch {
		case r < ' ' || strings.ContainsRune("\"\\<>&", r) || r >= utf8.RuneSelf:
			size += escaped
		default:
			size++
		}
	}
	return size
}

// objectUpdates returns the updates that set the workflow's search attributes to the project, the host and
// the resource of its object. If the object lacks one of these, the update removes the search attribute.
func objectUpdates(
	current temporal.SearchAttributes,
	object *contract.Attributes,
) (updates []temporal.SearchAttributeUpdate) {
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

// setStep sets the answer of the query to the step that the workflow performs now. setStep writes no history
// event.
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
