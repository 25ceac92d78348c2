package journal_test

import (
	"encoding/json"
	"fmt"

	"berth/internal/journal"
)

// The controller already has an object with the ID of a create. The attempt reads the controller's object,
// sees that it differs, and replaces it.
func ExampleAttempt() {
	entry := journal.Entry{
		Seq:       1,
		Operation: journal.Create,
		Object:    journal.Ref{Type: "network", ID: "n1"},
		Data:      json.RawMessage(`{"id":"n1","name":"blue"}`),
	}
	controller := []journal.Response{
		{Status: 409},
		{Status: 200, Body: []byte(`{"network":{"id":"n1","name":"red"}}`)},
		{Status: 200},
	}

	attempt := journal.BeginAttempt(journal.ClaimResult{Entry: entry}, journal.DefaultMaxFailures)
	for request, more := attempt.NextRequest(); more; request, more = attempt.NextRequest() {
		response := controller[0]
		controller = controller[1:]
		fmt.Println(request.Method, request.Path, "->", response.Status)
		attempt.HandleResponse(response)
	}
	outcome := attempt.Outcome()
	fmt.Println(outcome.Kind, outcome.State())
	// Output:
	// POST /networks -> 409
	// GET /networks/n1 -> 200
	// PUT /networks/n1 -> 200
	// done completed
}

// An entry is retried without limit while the controller is overloaded (503). An entry that the controller
// rejects fails after five unexpected responses.
func Example_outcomeOfAResponse() {
	entry := journal.Entry{
		Operation: journal.Create,
		Object:    journal.Ref{Type: "port", ID: "p1"},
		Failures:  4,
	}
	for _, status := range []int{201, 503, 400} {
		outcome := journal.Evaluate(entry, journal.Response{Status: status}, journal.DefaultMaxFailures)
		fmt.Println(status, outcome.Kind, outcome.State())
	}
	// Output:
	// 201 done completed
	// 503 again pending
	// 400 given-up failed
}
