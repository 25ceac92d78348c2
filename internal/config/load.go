package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/internal/safeurl"
)

// File is the variable whose value is the path of the optional YAML file. The keys of the YAML file are the
// names of the other variables, in lower case and without the prefix BERTH_. If a setting is in both the
// environment and the YAML file, berth uses the value from the environment.
const File = "BERTH_CONFIG"

const (
	prefix     = "BERTH_"
	fileSuffix = "_FILE"       // a variable with this suffix names a file with the value of a secret setting
	testPrefix = "BERTH_TEST_" // variables of the tests; Load ignores them
	// temporalCLI is the variable whose value is the path of the temporal binary. Package devstack reads this
	// variable itself, because tests use devstack without a Config. The YAML file cannot set this variable.
	temporalCLI = "BERTH_TEMPORAL_CLI"
)

// Load reads the settings from an environment in the form of os.Environ and from the file that BERTH_CONFIG
// names. The error that Load returns lists every wrong setting. The Config that Load returns contains the
// settings that have no error.
func Load(environ []string) (Config, error) {
	var c Config
	values := map[string]string{}
	known := settingsByName()
	for name, s := range known {
		values[name] = s.Default
	}
	env, errs := fromEnvironment(environ)
	file, err := fromFile(env[File])
	errs = append(errs, err)
	maps.Copy(values, file)
	maps.Copy(values, env)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if s := known[name]; s.set != nil {
			if err := s.set(&c, values[name]); err != nil {
				errs = append(errs,
					fmt.Errorf("%s=%s: %s", name, s.redact(values[name]), safeurl.Redact(err.Error())))
			}
		}
	}
	errs = append(errs, c.check())
	return c, errors.Join(errs...)
}

// fromEnvironment returns the values of berth's variables. A variable whose value is empty counts as not set.
func fromEnvironment(environ []string) (map[string]string, []error) {
	values := map[string]string{}
	settings := settingsByName()
	files := map[string]string{} // paths by secret setting
	var errs []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if _, known := settings[name]; known {
			if value != "" {
				values[name] = value
			}
			continue
		}
		if secret, ok := strings.CutSuffix(name, fileSuffix); ok && settings[secret].Secret {
			if value != "" {
				files[secret] = value
			}
			continue
		}
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, testPrefix) {
			errs = append(errs,
				fmt.Errorf("unknown variable %s: did you mean %s?", name, nearest(name, Variables())))
		}
	}
	return values, append(errs, addSecrets(values, files))
}

// addSecrets adds the secret settings whose values are in the given files. The line break at the end of a
// file is not part of the value.
func addSecrets(values, files map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		raw, err := os.ReadFile(files[name])
		value := strings.TrimRight(string(raw), "\r\n")
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s%s: %w", name, fileSuffix, err))
		case value == "":
			errs = append(errs, fmt.Errorf("%s%s: the file %s is empty", name, fileSuffix, files[name]))
		case values[name] != "":
			errs = append(errs,
				fmt.Errorf("%s and %[1]s%s are both set; unset one of them", name, fileSuffix))
		default:
			values[name] = value
		}
	}
	return errors.Join(errs...)
}

// SecretFileVariables returns the names of the variables that name a file with the value of a secret setting.
func SecretFileVariables() []string {
	var names []string
	for name, s := range settingsByName() {
		if s.Secret {
			names = append(names, name+fileSuffix)
		}
	}
	slices.Sort(names)
	return names
}

// SecretFiles returns the files that the variables in environ name and that have, or can have, secret
// settings.
func SecretFiles(environ []string) []string {
	var files []string
	variables := append(SecretFileVariables(), File)
	for _, pair := range environ {
		if name, path, _ := strings.Cut(pair, "="); path != "" && slices.Contains(variables, name) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files
}

// fromFile returns the values of the keys of a YAML file; the keys of the result are the names of the
// corresponding variables.
func fromFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal(raw, &keys); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", File, path, err)
	}
	known := map[string]string{} // key → variable
	for _, name := range Variables() {
		if name != File && name != temporalCLI {
			known[strings.ToLower(strings.TrimPrefix(name, prefix))] = name
		}
	}
	values := map[string]string{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name, ok := known[key]
		if !ok {
			errs = append(errs, fmt.Errorf(
				"%s: unknown key %q: did you mean %q?",
				path, key, nearest(key, slices.Sorted(maps.Keys(known))),
			))
			continue
		}
		value, err := scalarText(keys[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, key, err))
			continue
		}
		values[name] = value
	}
	return values, errors.Join(errs...)
}

// scalarText converts a YAML value to the form of an environment variable: a list with commas, a boolean as
// on or off.
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case map[string]any:
		return "", errors.New("must be one value, not a map")
	case bool:
		if v {
			return "on", nil
		}
		return "off", nil
	case []any:
		var parts []string
		for _, item := range v {
			part, err := scalarText(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}
