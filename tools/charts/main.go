// Charts draws what the measurements have found: the growth curves of bench/growth, one SVG for each group of
// curves with one small plot for each curve, and the answers during the failover of bench/failover. The same
// results always give the same bytes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	results := flag.String("results", "bench/testdata/results.json", "JSON `file` of the results")
	folder := flag.String("out", "docs/images", "`folder` of the pictures")
	flag.Parse()
	if err := run(*results, *folder); err != nil {
		fmt.Fprintf(os.Stderr, "charts: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pictures of the results into the folder.
func run(results, folder string) error {
	pictures, err := drawAll(results)
	if err != nil {
		return err
	}
	for name, svg := range pictures {
		if err := os.WriteFile(filepath.Join(folder, name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// report has what the pictures need of the results of bench/growth.
type report struct {
	Sizes []struct {
		Size int `json:"size"`
	} `json:"sizes"`
	Curves []curve `json:"curves"`
}

// curve is a measured value by size; for a route the median, with the 99th percentile. A value that was not
// measured is nil.
type curve struct {
	Title  string     `json:"title"`
	Group  string     `json:"group"`
	Unit   string     `json:"unit"`
	Values []*float64 `json:"values"`
	P99    []*float64 `json:"p99"`
	Ratio  float64    `json:"ratio"`
	Bound  float64    `json:"bound"`
}

// drawAll returns the pictures of the results by file name.
func drawAll(file string) (map[string][]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var results struct {
		Growth   report   `json:"growth"`
		Failover failover `json:"failover"`
	}
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	pictures, err := drawGrowth(results.Growth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if pictures["failover.svg"], err = drawFailover(results.Failover); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return pictures, nil
}

// drawGrowth returns the pictures of the growth curves by file name.
func drawGrowth(r report) (map[string][]byte, error) {
	sizes := make([]float64, len(r.Sizes))
	for i, s := range r.Sizes {
		sizes[i] = float64(s.Size)
	}
	groups := map[string][]curve{}
	for _, c := range r.Curves {
		if c.Group == "" {
			continue // only the tables have it
		}
		groups[c.Group] = append(groups[c.Group], c)
	}
	pictures := map[string][]byte{}
	for group, curves := range groups {
		svg, err := drawGroup(sizes, curves)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", group, err)
		}
		pictures["growth-"+group+".svg"] = svg
	}
	return pictures, nil
}
