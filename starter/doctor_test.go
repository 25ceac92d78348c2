package main

import (
	"strings"
	"testing"

	"berth/internal/store/storetest"
	"berth/starter/cli"
)

func TestDoctor_NamesEachMissingServiceWithAdvice(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.environ = append(h.environ, "BERTH_DATABASE_URL="+storetest.URL(t))

	code, output := h.run(t, "doctor")
	if code != 0 || strings.Contains(output, "FAIL") || strings.Count(output, "ok  ") != 7 {
		t.Errorf("doctor with all services: got exit code %d and the output below, want 0, seven checks and no FAIL:\n%s", code, output)
	}

	h.environ = append(h.environ, "TEMPORAL_NAMESPACE=temporal-system", "BERTH_ODL_URL=http://127.0.0.1:1", "BERTH_DATABASE_URL=postgres://u@127.0.0.1:1/d")
	code, output = h.run(t, "doctor")
	for _, wanted := range []string{
		"no worker polls ports", "Start a worker with the role temporal",
		"temporal operator search-attribute create --namespace temporal-system", "--name BerthWaitingFor --type KeywordList",
		"cannot reach OpenDaylight at http://127.0.0.1:1", "cannot reach the database",
	} {
		if !strings.Contains(output, wanted) {
			t.Errorf("doctor with failing services: want output with %q, got\n%s", wanted, output)
		}
	}
	if code != cli.ExitUnavailable {
		t.Errorf("doctor with failing services: got exit code %d, want ExitUnavailable", code)
	}
}
