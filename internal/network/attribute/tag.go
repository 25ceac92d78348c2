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
func Tag(raw json.RawMessage) (string, error) { return NotEmpty(Line(maxTagLength))(raw) }

// AddTags adds the tags `more` to the list, except tags that the list already contains, and returns the
// sorted list. The list is sorted because Neutron shows tags in the order of a database index. AddTags
// returns an error if the object would have more tags than the maximum.
func AddTags(tags []string, more ...string) ([]string, error) {
	all := append(slices.Clone(tags), more...)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxTags {
		return nil, CompleteError(fmt.Sprintf("An object has at most %d tags", maxTags))
	}
	return all, nil
}
