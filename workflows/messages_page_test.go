package workflows_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdkpb "go.temporal.io/api/sdk/v1"

	"berth/internal/contract"
	"berth/internal/docpage"
)

// A workflow tells Temporal which signals, updates and queries it handles. The page has exactly these
// messages, for each workflow type.
func TestMessagesPage_NamesEachMessageOfEachWorkflow(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, workflowType := range slices.Concat(contract.EntityWorkflows, []string{contract.Maintenance}) {
		want[workflowType] = handledMessages(t, workflowType)
	}
	got := docpage.Table(t, docpage.Messages, "## Workflows")
	for _, messages := range slices.Collect(maps.Values(got)) {
		slices.Sort(messages)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf(
			"the table of workflows in %s has other messages than the workflows handle (-code +page):\n%s",
			docpage.Messages,
			d,
		)
	}
}

// handledMessages returns the messages that a workflow handles, sorted. The workflow has no activities, so it
// fails after it has registered its handlers.
func handledMessages(t *testing.T, workflowType string) []string {
	t.Helper()
	env := newTestEnvironment()
	env.ExecuteWorkflow(workflowType, contract.Input{Key: portID})
	answer, err := env.QueryWorkflow("__temporal_workflow_metadata")
	if err != nil {
		t.Fatalf("ask the workflow %s for its metadata: %v", workflowType, err)
	}
	var metadata sdkpb.WorkflowMetadata
	if err := answer.Get(&metadata); err != nil {
		t.Fatalf("decode the metadata of the workflow %s: %v", workflowType, err)
	}
	messages := []string{}
	for kind, definitions := range map[string][]*sdkpb.WorkflowInteractionDefinition{"signal": metadata.GetDefinition().GetSignalDefinitions(),
		"update": metadata.GetDefinition().GetUpdateDefinitions(), "query": metadata.GetDefinition().GetQueryDefinitions()} {
		for _, d := range definitions {
			if !strings.HasPrefix(d.GetName(), "__") {
				messages = append(messages, kind+" "+d.GetName())
			}
		}
	}
	slices.Sort(messages)
	return messages
}

func TestMessagesPage_HasTheFieldsOfEachPayload(t *testing.T) {
	t.Parallel()
	docpage.CompareFields[contract.Report](t, docpage.Messages, "#### Report")
	docpage.CompareFields[contract.ReportResult](t, docpage.Messages, "#### Result of a report")
	docpage.CompareFields[contract.Why](t, docpage.Messages, "### The query `why`")
	docpage.CompareFields[contract.Waiting](t, docpage.Messages, "#### An element of waiting")
}

func TestMessagesPage_HasTheSearchAttributes(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, a := range contract.SearchAttributes {
		want[a.Name] = []string{a.Type}
	}
	if d := cmp.Diff(want, docpage.Table(t, docpage.Messages, "### Search attributes")); d != "" {
		t.Errorf("the search attributes in %s differ from package contract (-code +page):\n%s",
			docpage.Messages, d)
	}
}

var applicationError = regexp.MustCompile(`temporal\.New\w*ApplicationError\(.*, "(\w+)"`)

func TestMessagesPage_NamesTheErrorsOfTheUpdate(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("port_report.go")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(contract.ReportErrors)
	for _, m := range applicationError.FindAllSubmatch(source, -1) {
		want = append(want, string(m[1]))
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(docpage.Table(t, docpage.Messages, "#### Errors of the update")))
	if d := cmp.Diff(slices.Compact(want), got); d != "" {
		t.Errorf("the errors in %s differ from workflows/port_report.go and package contract (-code +page):\n%s",
			docpage.Messages, d)
	}
}
