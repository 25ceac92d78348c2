package figure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectFigures_AddsTheBaselines(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"":                      Names(),
		"entries":               {"entry-workflow", "entries"},
		"latency":               {"latency"},
		"allocations, entries":  {"entry-workflow", "entries", "transactions", "allocations"},
		"noop,reads":            {"noop", "selects", "reads"},
		"allocations-together":  {"allocation-rows-together", "allocations-together"},
		"selects, transactions": {"transactions", "selects"},
	} {
		selected, err := Select(list)
		var names []string
		for _, f := range selected {
			names = append(names, f.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf(
				"selectFigures(%q): names of the figures differ (-want +got): %s; error %v, want none",
				list, diff, err,
			)
		}
	}
}

func TestFigures_BaselineStandsBeforeItsFigures(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"": true}
	for _, f := range figures {
		if !seen[f.Baseline] || seen[f.Name] || f.WindowShare <= 0 {
			t.Errorf(
				"figure %s: want a unique name, a baseline (got %q) that stands before the figure, and a positive window share",
				f.Name,
				f.Baseline,
			)
		}
		seen[f.Name] = true
	}
}
