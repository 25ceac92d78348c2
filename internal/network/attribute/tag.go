package attribute

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Limits of an object's tags, equal to the limits of Neutron's tag extension.
const (
	maxTags      = 50
	maxTagLength = 255 // characters
)

// Tags reads a list of tags and drops duplicates.
func Tags(raw json.RawMessage) ([]string, error) {
	list, err := List(Tag)(raw)
	if err != nil {
		return nil, err
	}
	return AddTags([]string{}, list...)
}

// Tag reads one tag.
func Tag(raw json.RawMessage) (string, error) { return NotEmpty(Text(maxTagLength))(raw) }

// AddTags adds tags to a list, except those that the list already contains. AddTags refuses more tags than an object may have.
func AddTags(tags []string, more ...string) ([]string, error) {
	all := slices.Clone(tags)
	for _, tag := range more {
		if !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	if len(all) > maxTags {
		return nil, CompleteError(fmt.Sprintf("An object has at most %d tags", maxTags))
	}
	return all, nil
}
