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

// TestOpenDaylight_SimulatedControllerAnswersAlike sends the same requests to a real controller and to the simulated one. They answer with the
// same status, and reads with the same objects, except for the requests in knownDifferences.
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
				difference = fmt.Sprintf("status %d, want %d as the real controller; its body: %s", gotStatus, wantStatus, want)
			case r.method == "GET" && wantStatus < 300:
				if d := cmp.Diff(normalize(want), normalize(got)); d != "" {
					difference = "body (-real controller +simulated):\n" + d
				}
			}
			reason, known := knownDifferences[r.name]
			used[r.name] = true
			switch {
			case difference != "" && !known:
				t.Errorf("%s %s %s: %s", r.method, r.path, r.body, difference)
			case difference == "" && known:
				t.Errorf("the answers agree; remove the reason %q from knownDifferences", reason)
			}
		})
	}
	for name := range knownDifferences {
		if !used[name] {
			t.Errorf("knownDifferences has a reason for %q, but no request has this name", name)
		}
	}
}

// knownDifferences has the reason for each request that the simulated controller answers differently.
var knownDifferences = map[string]string{}

// normalize decodes a body and sorts its lists: the real controller returns them in no particular order.
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
