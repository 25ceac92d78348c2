package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
)

// npmModules returns the npm packages of which the program contains files. The parameter `path` is a file in
// the format of tools/vendor.txt. Files below a folder testdata are not in the program.
func npmModules(path string) ([]module, error) {
	list, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	var modules []module
	for lines := bufio.NewScanner(list); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Fields(line)
		if len(columns) != 5 {
			return nil, fmt.Errorf("%s: %q has %d columns, want 5", path, line, len(columns))
		}
		at := strings.LastIndex(columns[0], "@")
		if at < 1 {
			return nil, fmt.Errorf("%s: %q has no version", path, columns[0])
		}
		m := module{
			Path:     columns[0][:at],
			Version:  columns[0][at+1:],
			Licenses: []string{columns[1]},
			Sum:      columns[2],
			NPM:      true,
		}
		same := func(other module) bool { return other.Path == m.Path }
		if !strings.Contains(columns[4], "/testdata/") && !slices.ContainsFunc(modules, same) {
			modules = append(modules, m)
		}
	}
	return modules, nil
}

// hashOf returns the hexadecimal form of an integrity hash of npm, which is base64 after "sha512-".
func hashOf(integrity string) (string, error) {
	encoded, ok := strings.CutPrefix(integrity, "sha512-")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return "", fmt.Errorf("%q is no SHA-512 hash of npm", integrity)
	}
	return hex.EncodeToString(raw), nil
}
