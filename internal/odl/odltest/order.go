package odltest

import (
	"fmt"
	"strings"
)

// judge notes a child that comes before its parent and a revision that goes backwards. The write is done all
// the same, as the real controller does it.
func (c *Controller) judge(r resource, id string, o map[string]any) {
	for attribute, typ := range r.parents {
		for _, parent := range references(o, attribute) {
			if c.object(typ, parent) == nil {
				c.violate("%s %s came before its %s %s", r.typ, id, typ, parent)
			}
		}
	}
	if rec, ok := c.records[key(r.typ, id)]; ok && revision(o) != 0 && revision(o) < rec.HighestRevision {
		c.violate("%s %s came with revision %d after %d", r.typ, id, revision(o), rec.HighestRevision)
	}
}

// judgeRemoval notes a parent that goes before its children.
func (c *Controller) judgeRemoval(r resource, id string) {
	for _, rec := range c.records {
		child, ok := resourceOf(rec.Type)
		if !ok || rec.Object == nil {
			continue
		}
		for attribute, typ := range child.parents {
			for _, parent := range references(rec.Object, attribute) {
				if typ == r.typ && parent == id {
					c.violate("%s %s went before its %s %s", r.typ, id, rec.Type, rec.ID)
				}
			}
		}
	}
}

func (c *Controller) violate(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// references are the IDs in an attribute, or in an attribute of an object or of a list's objects: "fixed_ips.subnet_id".
func references(o map[string]any, attribute string) []string {
	list, inner, nested := strings.Cut(attribute, ".")
	if !nested {
		var ids []string
		items, ok := o[attribute].([]any)
		if !ok {
			items = []any{o[attribute]}
		}
		for _, item := range items {
			if id, ok := item.(string); ok && id != "" {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if member, ok := o[list].(map[string]any); ok {
		return references(member, inner)
	}
	items, _ := o[list].([]any)
	var ids []string
	for _, item := range items {
		if member, ok := item.(map[string]any); ok {
			ids = append(ids, references(member, inner)...)
		}
	}
	return ids
}
