package policy

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"maps"

	"go.yaml.in/yaml/v3"
)

// load reads an operator's file, which YAML and JSON may be written in. Without a path there is nothing to read.
func load(path string) (map[string]string, os.FileInfo, error) {
	if path == "" {
		return nil, nil, nil
	}
	info, err := os.Stat(path) // before it is read: what changes meanwhile is read again
	if err != nil {
		return nil, nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	rules, err := decode(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, info, nil
}

func decode(raw []byte) (map[string]string, error) {
	var file map[string]any
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	rules := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(file)) {
		switch v := file[name].(type) {
		case string:
			rules[name] = v
		case []any:
			errs = append(errs, fmt.Errorf("%s: a rule is a text; lists of lists are no longer read: write them with \"or\" and \"and\"", name))
		default:
			errs = append(errs, fmt.Errorf("%s: a rule is a text in quotes, and not %v", name, v))
		}
	}
	return rules, errors.Join(errs...)
}
