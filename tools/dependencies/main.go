// Dependencies lists the modules that are compiled into berth's programs. `dependencies licenses` fails if a
// module has no licence, or has a licence that allowed_licenses.txt does not contain. `dependencies sbom`
// prints a software bill of materials in the CycloneDX format. Both commands read the packages of the module
// in the folder that the option -C names, and the npm packages in the list that the option -npm names.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed allowed_licenses.txt
var allowedLicenses string

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dependencies:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("dependencies", flag.ContinueOnError)
	folder := flags.String("C", ".", "folder of the module")
	npm := flags.String("npm", "",
		"list of the npm packages whose files the programs contain, in the format of tools/vendor.txt")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("usage: dependencies [-C folder] [-npm list] licenses|sbom package ...")
	}
	modules, err := listModules(*folder, flags.Args()[1:])
	if err != nil {
		return err
	}
	if *npm != "" {
		packages, err := npmModules(*npm)
		if err != nil {
			return fmt.Errorf("list the npm packages: %w", err)
		}
		modules = append(modules, packages...)
	}
	switch command := flags.Arg(0); command {
	case "licenses":
		return checkLicenses(modules, allowed(allowedLicenses), w)
	case "sbom":
		return writeBOM(modules, w)
	default:
		return fmt.Errorf("command %q is unknown: use licenses or sbom", command)
	}
}

// allowed returns the lines of a list without its comments.
func allowed(list string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names[line] = true
		}
	}
	return names
}

// checkLicenses returns an error that names each module whose licences are unknown or not allowed.
func checkLicenses(modules []module, allowed map[string]bool, w io.Writer) error {
	var errs []error
	for _, m := range modules {
		if len(m.Licenses) == 0 && !allowed[m.Path] {
			errs = append(
				errs,
				fmt.Errorf("module %s %s: no file in %s contains a known licence", m.Path, m.Version, m.Dir),
			)
		}
		for _, license := range m.Licenses {
			if !allowed[license] {
				errs = append(errs, fmt.Errorf(
					"module %s %s has the licence %s, which allowed_licenses.txt does not contain",
					m.Path, m.Version, license,
				))
			}
		}
	}
	if len(errs) == 0 {
		fmt.Fprintf(w, "the licences of %d modules are allowed\n", len(modules))
	}
	return errors.Join(errs...)
}
