package odltest

import (
	"fmt"
	"strings"
)

// checkWriteOrder records a violation if a parent of the written object is missing, or if the object had a
// newer revision before. A write in a wrong order is executed anyway, as in a real controller.
func (c *Controller) checkWriteOrder(r resource, id string, o map[string]any) {
	for attribute, typ := range r.parents {
		for _, parent := range references(o, attribute) {
			if c.object(typ, parent) == nil {
				c.addViolation("%s %s was written before its %s %s", r.objectType, id, typ, parent)
			}
		}
	}
	if rec, ok := c.records[key(r.objectType, id)]; ok && revisionOf(o) != 0 &&
		revisionOf(o) < rec.HighestRevision {
		c.addViolation("%s %s was written with revision %d after revision %d",
			r.objectType, id, revisionOf(o), rec.HighestRevision)
	}
}

// checkDeleteOrder records a violation if the deleted object still has children.
func (c *Controller) checkDeleteOrder(r resource, id string) {
	for _, rec := range c.records {
		child, ok := resourceOf(rec.Type)
		if !ok || rec.Object == nil {
			continue
		}
		for attribute, typ := range child.parents {
			for _, parent := range references(rec.Object, attribute) {
				if typ == r.objectType && parent == id {
					c.addViolation("%s %s was deleted before its %s %s", r.objectType, id, rec.Type, rec.ID)
				}
			}
		}
	}
}

func (c *Controller) addViolation(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// references returns the IDs in an attribute of an object. The name "fixed_ips.subnet_id" means the attribute
// subnet_id inside fixed_ips, which may be an object or a list of objects.
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
