package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	results = "../../bench/testdata/results.json"
	folder  = "../../docs/images"
)

// TestCharts_AreThoseOfTheMeasuredResults fails when a picture in docs/images differs from the measured
// results. To draw the pictures again, run `make charts`.
func TestCharts_AreThoseOfTheMeasuredResults(t *testing.T) {
	t.Parallel()
	want, err := drawAll(results)
	if err != nil {
		t.Fatal(err)
	}
	present, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range present {
		present[i] = filepath.Base(present[i])
	}
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(names, present) {
		t.Errorf("pictures: got %v, want %v", present, names)
	}
	for name, svg := range want {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, svg) {
			t.Errorf("picture %s differs from the results, error %v; to draw it again, run make charts", name, err)
		}
	}
	var pages string
	for _, page := range []string{"benchmarks", "scaling"} {
		raw, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		pages += string(raw)
	}
	for name := range want {
		if !strings.Contains(pages, "](images/"+name+")") {
			t.Errorf("no page shows the picture %s", name)
		}
	}
}

func TestCharts_SameResultsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	first, err := drawAll("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := drawAll("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 3 {
		t.Errorf("got %d pictures, want one for each of the 2 groups, and one of the failover", len(first))
	}
	for name, svg := range first {
		if !bytes.Equal(svg, again[name]) {
			t.Errorf("picture %s: got other bytes when it was drawn again", name)
		}
	}
}

func TestCharts_HaveAPlotForEachCurve(t *testing.T) {
	t.Parallel()
	pictures, err := drawAll("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"growth-routes.svg": {
			"GET /ports/{id}, ms (×1.10, bound ×1.5)", "p50", "p99", "1 k", "10 k", "1 M",
			"GET /leases/{id}, ms (×0.00, bound ×1.5)", // not measured
		},
		"growth-storage.svg": {"size of the database, MiB (×1000.00)", "100000"},
		"failover.svg": {
			"seconds since the first request", "answers per second", "acknowledged", "503, try again", "other failures",
			"the primary is killed", "the standby is promoted",
		},
	} {
		text := textOf(t, pictures[name])
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("picture %s: want the text %q, got %q", name, part, text)
			}
		}
	}
}

// textOf returns the words of an SVG, with a space between the lines. It fails if the SVG is no XML.
func textOf(t *testing.T, svg []byte) string {
	t.Helper()
	var words []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(words, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			words = append(words, strings.Fields(string(data))...)
		}
	}
}
