package server_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// description matches the text of a prometheus.Desc, whose fields are not exported.
	description = regexp.MustCompile(
		`^Desc\{fqName: "(berth_\w+)", help: "(.*)", unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constLabel = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

// TestMetricsPage_EqualsTheMetricsOfEveryRole fails when docs/metrics.md has other metrics than the processes
// export. To update docs/metrics.md, run `go test ./internal/server -run MetricsPage -update`.
func TestMetricsPage_EqualsTheMetricsOfEveryRole(t *testing.T) {
	t.Parallel()
	secured, others := startEveryRole(t, newAuthority(t))
	var rows []string
	for _, registry := range []*prometheus.Registry{secured.Registry(), others.Registry()} {
		for _, text := range describe(registry) {
			found := description.FindStringSubmatch(text)
			if found == nil {
				continue // a metric of Go or of Temporal's SDK
			}
			labels := strings.FieldsFunc(constLabel.ReplaceAllString(found[3], "$1")+","+found[4],
				func(r rune) bool { return r == ',' })
			for i, label := range labels {
				labels[i] = "`" + label + "`"
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", found[1], strings.Join(labels, ", "), found[2]))
		}
	}
	slices.Sort(rows)
	want := "\n| Metric | Labels | Meaning |\n|---|---|---|\n" + strings.Join(slices.Compact(rows), "")

	checkGeneratedPage(t, "docs/metrics.md", "MetricsPage", want)
}

// describe returns the descriptions of all metrics that a registry can export.
func describe(registry *prometheus.Registry) (all []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	for d := range descriptions {
		all = append(all, d.String())
	}
	return all
}
