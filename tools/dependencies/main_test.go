package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"
)

// The names of the licence classifier's files that contain the texts of licences.
const (
	mit    = "MIT/pristine.txt"
	apache = "Apache-2.0/pristine.txt"
	agpl   = "AGPL-3.0/license.txt"
	gpl    = "GPL-2.0/license.txt"
	public = "XZ/license.txt"
)

// program returns the folder of a program that imports a module with the text of a licence.
func program(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(
		t, dir, "go.mod",
		"module example.org/program\n\ngo 1.26.0\n\nrequire example.org/library v1.2.3\n\nreplace example.org/library => ./library\n",
	)
	write(t, dir, "main.go", "package main\n\nimport _ \"example.org/library\"\n\nfunc main() {}\n")
	write(t, dir, "LICENSE", licenseText(t, mit))
	write(t, dir, "library/go.mod", "module example.org/library\n\ngo 1.26.0\n")
	write(t, dir, "library/library.go", "package library\n")
	if text != "" {
		write(t, dir, "library/LICENSE.txt", text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func licenseText(t *testing.T, name string) string {
	t.Helper()
	raw, err := assets.ReadLicenseFile("License/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestLicenses_OnlyAllowedOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, fails string }{
		"allowed":       {licenseText(t, apache), ""},
		"not allowed":   {licenseText(t, agpl), "has the licence AGPL-3.0"},
		"no file":       {"", "no file"},
		"unknown text":  {"Do what you think is right.", "no file"},
		"second text":   {licenseText(t, mit) + "\n\n" + licenseText(t, gpl), "has the licence GPL-2.0"},
		"public domain": {licenseText(t, public), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run([]string{"-C", program(t, c.text), "licenses", "."}, &bytes.Buffer{})
			switch {
			case c.fails == "" && err != nil:
				t.Errorf("licences: %v, want none refused", err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), "example.org/library") || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("licences: got error %v, want one that names the library and contains %q",
					err, c.fails)
			}
		})
	}
}

func TestBOM_ListsCompiledModules(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"-C", program(t, licenseText(t, mit)), "sbom", "."}, &out); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(out.Bytes(), &bom); err != nil {
		t.Fatal(err)
	}
	if got := bom.Metadata.Component.Name; got != "example.org/program" {
		t.Errorf("component of the metadata: got %q, want example.org/program", got)
	}
	if n := len(*bom.Components); n != 1 {
		t.Fatalf("got %d components, want 1: %s", n, out.String())
	}
	c := (*bom.Components)[0]
	if c.PackageURL != "pkg:golang/example.org/library@v1.2.3" || (*c.Licenses)[0].License.ID != "MIT" {
		t.Errorf(
			"component %s with licences %v, want version 1.2.3 of the library with the licence MIT",
			c.PackageURL,
			*c.Licenses,
		)
	}
}

// npmList returns the path of a list with one package in the program and one in its tests.
func npmList(t *testing.T, license string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "vendor.txt", "# comment\n"+
		"@scope/page@1.0.1 "+license+" sha512-AAEC a.js internal/page/a.js\n@scope/page@1.0.1 "+license+" sha512-AAEC b.js internal/page/b.js\n"+
		"checker@2.0.0 MPL-2.0 sha512-AAEC c.js internal/page/testdata/c.js\n")
	return filepath.Join(dir, "vendor.txt")
}

func TestNPM_PackagesOfTheProgramAreInTheBOM(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"-C", program(t, licenseText(t, mit)), "-npm", npmList(t, "0BSD"), "sbom", "."}, &out); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(out.Bytes(), &bom); err != nil {
		t.Fatal(err)
	}
	if n := len(*bom.Components); n != 2 {
		t.Fatalf("got %d components, want the library and the package of the program once: %s",
			n, out.String())
	}
	c := (*bom.Components)[1]
	if c.PackageURL != "pkg:npm/%40scope/page@1.0.1" || (*c.Licenses)[0].License.ID != "0BSD" ||
		(*c.Hashes)[0].Value != "000102" {
		t.Errorf(
			"component %s with licences %v and hashes %v, want version 1.0.1 of the package with the licence 0BSD and its hash",
			c.PackageURL, *c.Licenses, *c.Hashes,
		)
	}
}

func TestNPM_OnlyAllowedLicences(t *testing.T) {
	t.Parallel()
	for license, fails := range map[string]bool{"0BSD": false, "MIT": false, "GPL-3.0": true} {
		err := run(
			[]string{"-C", program(t, licenseText(t, mit)), "-npm", npmList(t, license), "licenses", "."},
			&bytes.Buffer{},
		)
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "@scope/page") {
			t.Errorf(
				"npm package with the licence %s: got error %v, want one that names the package: %v",
				license, err, fails,
			)
		}
	}
}
