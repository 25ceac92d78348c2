package neutron

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
)

// tagAccess reads and changes the tags of one kind of object.
type tagAccess[N, C any] struct {
	read  func(N) []string
	write func(*C, *[]string)
}

// tagRoutes returns the routes of an object's tags.
func (res resource[N, C]) tagRoutes() []osapi.Route {
	all := res.path() + "/{id}/tags"
	return []osapi.Route{
		{Method: http.MethodGet, Path: all, Handle: res.listTags},
		{Method: http.MethodPost, Path: all, Handle: res.addTags},
		{Method: http.MethodPut, Path: all, Handle: res.replaceTags},
		{Method: http.MethodDelete, Path: all, Handle: res.clearTags},
		{Method: http.MethodGet, Path: all + "/{tag}", Handle: res.hasTag},
		{Method: http.MethodPut, Path: all + "/{tag}", Handle: res.addTag},
		{Method: http.MethodDelete, Path: all + "/{tag}", Handle: res.removeTag},
	}
}

func (res resource[N, C]) listTags(r *http.Request) (int, any, error) {
	n, _, err := res.findTagged(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"tags": res.tags.read(n)}, nil
}

// findTagged finds the object in the path. If the object does not exist, findTagged returns the error type of
// Neutron's tag extension (TagResourceNotFound).
func (res resource[N, C]) findTagged(r *http.Request) (N, uuid.UUID, error) {
	n, id, err := res.find(r, pathValue(r, "id"))
	var refused *osapi.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		err = osapi.Fault(http.StatusNotFound, "TagResourceNotFound",
			"Resource %s %s could not be found.", res.singular, excerpt(pathValue(r, "id")))
	}
	return n, id, err
}

func (res resource[N, C]) replaceTags(r *http.Request) (int, any, error) {
	tags, err := decodeTags(r)
	if err != nil {
		return 0, nil, err
	}
	n, err := res.updateTags(r, func([]string) ([]string, error) { return tags, nil })
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"tags": res.tags.read(n)}, nil
}

func (res resource[N, C]) addTags(r *http.Request) (int, any, error) {
	more, err := decodeTags(r)
	if err != nil {
		return 0, nil, err
	}
	n, err := res.updateTags(r,
		func(tags []string) ([]string, error) { return attribute.AddTags(tags, more...) })
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, object{"tags": res.tags.read(n)}, nil
}

// decodeTags reads {"tags": […]}.
func decodeTags(r *http.Request) ([]string, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, err
	}
	raw, ok := envelope["tags"]
	if !ok || len(envelope) != 1 {
		return nil, badRequest("Invalid tags body")
	}
	tags, err := attribute.Tags(raw)
	if err != nil {
		return nil, invalid("tags", err)
	}
	return tags, nil
}

func (res resource[N, C]) clearTags(r *http.Request) (int, any, error) {
	_, err := res.updateTags(r, func([]string) ([]string, error) { return []string{}, nil })
	return http.StatusNoContent, nil, err
}

func (res resource[N, C]) hasTag(r *http.Request) (int, any, error) {
	n, _, err := res.findTagged(r)
	if err == nil && !slices.Contains(res.tags.read(n), r.PathValue("tag")) {
		err = tagNotFound(r)
	}
	return http.StatusNoContent, nil, err
}

func tagNotFound(r *http.Request) error {
	return osapi.Fault(http.StatusNotFound, "TagNotFound", "Tag %s could not be found.",
		excerpt(r.PathValue("tag")))
}

func (res resource[N, C]) addTag(r *http.Request) (int, any, error) {
	raw, err := json.Marshal(r.PathValue("tag"))
	if err != nil {
		return 0, nil, err
	}
	tag, err := attribute.Tag(raw)
	if err != nil {
		return 0, nil, invalid("tag", err)
	}
	_, err = res.updateTags(r, func(tags []string) ([]string, error) { return attribute.AddTags(tags, tag) })
	return http.StatusCreated, nil, err
}

func (res resource[N, C]) removeTag(r *http.Request) (int, any, error) {
	_, err := res.updateTags(r, func(tags []string) ([]string, error) {
		at := slices.Index(tags, r.PathValue("tag"))
		if at < 0 {
			return nil, tagNotFound(r)
		}
		return slices.Delete(slices.Clone(tags), at, at+1), nil
	})
	return http.StatusNoContent, nil, err
}

// updateTags replaces the tags of the object in the path by the result of the function `change`.
func (res resource[N, C]) updateTags(
	r *http.Request,
	change func(tags []string) ([]string, error),
) (N, error) {
	return res.changeFound(r, res.findTagged, func(n N, c *C) error {
		tags, err := change(res.tags.read(n))
		res.tags.write(c, &tags)
		return err
	})
}

// tagFilters maps the query key of a tag filter to the field name in the store's condition. The value of a
// tag filter is a list of tags, separated by commas.
var tagFilters = map[string]string{
	"tags":         "tags",
	"tags-any":     "tags_any",
	"not-tags":     "not_tags",
	"not-tags-any": "not_tags_any",
}

// maxFilterTags is the maximum number of different tags in one tag filter. PostgreSQL compares each of them
// with the tags of each object that the caller sees.
const maxFilterTags = 50

// tagCondition converts a tag filter to a condition of the store. The parameter `name` is a key of
// tagFilters; the parameter `values` contains the values of the query key. tagCondition omits tags that occur
// again, and refuses more than maxFilterTags tags.
func tagCondition(name string, values []string) ([]db.Condition, error) {
	c := db.Condition{Field: tagFilters[name], In: []string{}}
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			if slices.Contains(c.In, tag) {
				continue
			}
			if len(c.In) == maxFilterTags {
				return nil, invalid(name, fmt.Errorf("the filter has more than %d tags", maxFilterTags))
			}
			c.In = append(c.In, tag)
		}
	}
	return []db.Condition{c}, nil
}
