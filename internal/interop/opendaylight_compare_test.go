package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
)

// TestOpenDaylight_SimulatedControllerAnswersAlike sends the same requests to a real controller and to the
// stub. Except for the requests in knownDifferences, both must answer with the same status, and answer a read
// with the same objects.
func TestOpenDaylight_SimulatedControllerAnswersAlike(t *testing.T) {
	t.Parallel()
	actual, simulated := startOpenDaylight(t), servertest.Serve(t, odltest.New())+odltest.BasePath
	used := map[string]bool{}
	for _, r := range northboundRequests() {
		t.Run(r.name, func(t *testing.T) {
			wantStatus, want := sendJSON(t, r.method, actual.url+r.path, r.body)
			gotStatus, got := sendJSON(t, r.method, simulated+r.path, r.body)
			difference := ""
			switch {
			case gotStatus != wantStatus:
				difference = fmt.Sprintf(
					"the stub answered status %d, want %d as from the real controller; body of the real controller: %s",
					gotStatus, wantStatus, want,
				)
			case r.method == "GET" && wantStatus < 300:
				if d := cmp.Diff(normalize(want), normalize(got)); d != "" {
					difference = "body (-real controller +stub):\n" + d
				}
			}
			known, reason := knownDifference(r.name)
			switch {
			case difference != "" && reason == "":
				t.Errorf("%s %s %s: %s", r.method, r.path, r.body, difference)
			case difference != "":
				used[known] = true
			}
		})
	}
	for name := range knownDifferences {
		if !used[name] {
			t.Errorf("knownDifferences has a reason for %q, but the answers agree", name)
		}
	}
}

// knownDifferences has the reason for each request that the stub answers differently than the real
// controller. A key "TYPE: REQUEST" names the request about one type of objects; a key without a colon names
// the request about every type.
var knownDifferences = map[string]string{
	"read an ID that is no UUID":                    anyID,
	"update an ID that is no UUID":                  anyID,
	"create with an ID that is no UUID":             anyID,
	"delete an ID that is no UUID":                  anyID,
	"create for a tenant that is no UUID":           anyID,
	"delete the object of a tenant that is no UUID": anyID,
	`port with "network_id":"nonsense"`:             anyID,
	`read the port with "network_id":"nonsense"`:    anyID,
	`delete the port with "network_id":"nonsense"`:  anyID,
}

const anyID = "the stub accepts any text as an ID, because tests use short IDs and projects such as demo; the real controller answers 500 to an ID that is not a UUID, and 404 to later requests for an object that it refused to create"

// knownDifference returns the reason why the stub answers a request differently, and the key of this reason
// in knownDifferences.
func knownDifference(request string) (name, reason string) {
	if reason, ok := knownDifferences[request]; ok {
		return request, reason
	}
	_, rest, _ := strings.Cut(request, ": ")
	return rest, knownDifferences[rest]
}

// normalize decodes a body by its meaning: a number equals its decimal text, and the order of a list does not
// count, because the real controller returns lists in no particular order.
func normalize(body string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return body
	}
	return sorted(v)
}

func sorted(v any) any {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case map[string]any:
		for name := range v {
			v[name] = sorted(v[name])
		}
	case []any:
		for i := range v {
			v[i] = sorted(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	return v
}

func text(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
