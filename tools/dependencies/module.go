package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// module is a Go module.
type module struct {
	Path     string
	Version  string // empty for the main module
	Dir      string // folder with its source
	Sum      string // checksum of the source, as in go.sum
	Main     bool
	NPM      bool // a package of npm, with its integrity hash in Sum
	Replace  *module
	Licenses []string // SPDX names
}

// listModules returns the modules of which at least one package is compiled into the given packages. The main
// module comes first.
func listModules(folder string, packages []string) ([]module, error) {
	cmd := exec.Command(
		"go",
		append([]string{"-C", folder, "list", "-deps", "-json=ImportPath,Module"}, packages...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	byPath := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode the list of packages: %w", err)
		}
		if m := p.Module; m != nil {
			if m.Replace != nil && m.Replace.Version != "" { // without a version, the replacement is a folder
				m = m.Replace
			}
			byPath[m.Path] = *m
		}
	}
	return classify(byPath)
}

// knownLicenses loads the texts of all licences that the classifier knows.
var knownLicenses = sync.OnceValues(assets.DefaultClassifier)

// classify adds the licences to the modules, and sorts the modules.
func classify(byPath map[string]module) ([]module, error) {
	known, err := knownLicenses()
	if err != nil {
		return nil, fmt.Errorf("load the known licences: %w", err)
	}
	var modules []module
	for _, m := range byPath {
		if m.Licenses, err = licenses(known, m.Dir); err != nil {
			return nil, fmt.Errorf("read the licence of the module %s: %w", m.Path, err)
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int {
		if a.Main != b.Main {
			return map[bool]int{true: -1, false: 1}[a.Main]
		}
		return strings.Compare(a.Path, b.Path)
	})
	return modules, nil
}

// licenseFile matches the names of files with a licence.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-.].*)?$`)

// licenses returns the sorted names of the licences that the files in the folder contain.
func licenses(known *classifier.Classifier, folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, match := range known.Match(text).Matches {
			if match.MatchType == "License" {
				names = append(names, match.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
