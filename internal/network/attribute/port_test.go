package attribute_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/network/attribute"
)

var update = flag.Bool("update", false, "write the golden files in testdata instead of comparing with them")

// TestPort_ViewsEqualGoldenFiles compares, byte by byte, the four views of each sample port with the golden
// files in testdata. A change of a golden file means that the format that clients, agents or OpenDaylight
// read has changed.
func TestPort_ViewsEqualGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]func(network.Port) map[string]any{
		"rest_admin":     func(p network.Port) map[string]any { return attribute.PortView(p, func(string) bool { return true }) },
		"rest_member":    func(p network.Port) map[string]any { return attribute.PortView(p, func(string) bool { return false }) },
		"rpc":            attribute.PortRPC,
		"versioned_1_7":  func(p network.Port) map[string]any { return attribute.PortVersioned(p, sampleNetwork(), "1.7") },
		"versioned_1_10": func(p network.Port) map[string]any { return attribute.PortVersioned(p, sampleNetwork(), "1.10") },
		"controller":     attribute.PortController,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			views := map[string]map[string]any{}
			for kind, p := range samplePorts() {
				views[kind] = view(p)
			}
			compareWithGolden(t, "port_"+name+".json", views)
		})
	}
}

func compareWithGolden(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPort_AttributesAreDefinedOnceAndWhole(t *testing.T) {
	t.Parallel()
	seen := []string{}
	for _, d := range attribute.Ports {
		t.Run(d.Name, func(t *testing.T) {
			if slices.Contains(seen, d.Name) {
				t.Error("the table defines the attribute twice, want one definition")
			}
			if (d.SettableOn == 0) != (d.Set == nil) {
				t.Errorf(
					"SettableOn is %d and (Set == nil) is %t; want Set if and only if the attribute is settable",
					d.SettableOn,
					d.Set == nil,
				)
			}
			if d.Sortable && d.FilterField == "" {
				t.Error("the attribute is sortable but has no FilterField to sort by, want one")
			}
			if d.AdminOnlyWrite && d.SettableOn == 0 {
				t.Error(
					"AdminOnlyWrite is true, but no request may set the attribute; want false or a settable attribute",
				)
			}
			if d.ObjectName != "" && d.Views.Versioned == nil {
				t.Error("ObjectName is set, but Views.Versioned is nil; want Views.Versioned set too")
			}
		})
		seen = append(seen, d.Name)
	}
}
