package policy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ruleFile is the content of an operator's file.
type ruleFile struct {
	path  string
	rules map[string]string
	lines map[string]int // the line of each rule's name
	info  os.FileInfo    // nil without a file
}

// load reads an operator's file in YAML or JSON. If the path is empty, load returns no rules.
func load(path string) (f ruleFile, err error) {
	if path == "" {
		return f, nil
	}
	f.path = path
	if f.info, err = os.Stat(path); err != nil { // before reading the file, so that a later change is noticed
		return f, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := f.decode(raw); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *ruleFile) decode(raw []byte) error {
	var content map[string]any
	var document yaml.Node
	if err := errors.Join(yaml.Unmarshal(raw, &content), yaml.Unmarshal(raw, &document)); err != nil {
		return err
	}
	f.rules, f.lines = map[string]string{}, map[string]int{}
	for _, mapping := range document.Content {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			f.lines[mapping.Content[i].Value] = mapping.Content[i].Line
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(content)) {
		switch v := content[name].(type) {
		case string:
			f.rules[name] = v
		case []any:
			errs = append(errs, fmt.Errorf("line %d: %s: a rule must be a string; lists of lists are not supported: write 'or' and 'and' instead", f.lines[name], name))
		default:
			errs = append(errs, fmt.Errorf("line %d: %s: a rule must be a quoted string, not %v", f.lines[name], name, v))
		}
	}
	return errors.Join(errs...)
}

// place says where the rule is: in the file with its line, or in the defaults.
func (f ruleFile) place(name string) string {
	if line, ok := f.lines[name]; ok {
		return fmt.Sprintf("%s: line %d: %s", f.path, line, name)
	}
	return "policy: " + name
}
