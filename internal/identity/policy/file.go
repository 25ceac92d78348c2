package policy

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"maps"

	"go.yaml.in/yaml/v3"
)

// load reads an operator's file in YAML or JSON. If the path is empty, load returns no rules.
func load(path string) (map[string]string, os.FileInfo, error) {
	if path == "" {
		return nil, nil, nil
	}
	info, err := os.Stat(path) // before reading the file, so that a later change is noticed
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
			errs = append(errs, fmt.Errorf("%s: a rule must be a string; lists of lists are not supported: write 'or' and 'and' instead", name))
		default:
			errs = append(errs, fmt.Errorf("%s: a rule must be a quoted string, not %v", name, v))
		}
	}
	return rules, errors.Join(errs...)
}
