package main

import (
	"fmt"
	"io"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// publicDomain is the name that the licence classifier gives to a text that puts sources into the public
// domain. SPDX has no such name.
const publicDomain = "XZ"

// writeBOM writes a software bill of materials in the CycloneDX format. The output for the same modules is
// always the same.
func writeBOM(modules []module, w io.Writer) error {
	bom := cdx.NewBOM()
	var components []cdx.Component
	for _, m := range modules {
		c, err := component(m)
		if err != nil {
			return fmt.Errorf("component %s: %w", m.Path, err)
		}
		if m.Main {
			c.Type = cdx.ComponentTypeApplication
			bom.Metadata = &cdx.Metadata{Component: &c}
			continue
		}
		components = append(components, c)
	}
	bom.Components = &components
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(m module) (cdx.Component, error) {
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	c.PackageURL = "pkg:golang/" + m.Path
	if m.NPM {
		c.PackageURL = "pkg:npm/" + strings.ReplaceAll(m.Path, "@", "%40")
		hash, err := hashOf(m.Sum)
		if err != nil {
			return c, err
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hash}}
	}
	if m.Version != "" {
		c.PackageURL += "@" + m.Version
	}
	c.BOMRef = c.PackageURL
	if m.Sum != "" && !m.NPM {
		c.Properties = &[]cdx.Property{{Name: "cdx:go:module:sum", Value: m.Sum}}
	}
	var licenses cdx.Licenses
	for _, name := range m.Licenses {
		license := cdx.License{ID: name}
		if name == publicDomain {
			license = cdx.License{Name: "public domain"}
		}
		licenses = append(licenses, cdx.LicenseChoice{License: &license})
	}
	if len(licenses) > 0 {
		c.Licenses = &licenses
	}
	return c, nil
}
