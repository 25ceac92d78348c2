// Package resultfile writes the results of measurements to a JSON file.
package resultfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Default is the path of the file into which the programs write, unless they get another one.
const Default = "results.json"

// WriteSection replaces the value of one key in the JSON object that the file contains, and keeps all other
// keys. Several programs can thus write their results to one file, one after the other. If the file does not
// exist, WriteSection creates it; an empty path writes nothing. An error means that the file is unchanged.
func WriteSection(file, key string, value any) error {
	if file == "" {
		return nil
	}
	sections := map[string]json.RawMessage{}
	raw, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(raw, &sections); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if sections[key], err = json.Marshal(value); err != nil {
		return err
	}
	return write(file, sections)
}

// write replaces the content of the file by the value in JSON. The replacement of the file is atomic, so a
// reader never sees an incomplete value.
func write(file string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	partial := file + ".part"
	if err := os.WriteFile(partial, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(partial, file)
}
