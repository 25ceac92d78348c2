package odltest

import (
	"maps"
	"net/http"
)

// hasMember reports whether the pool of the path exists and has the member.
func (c *Controller) hasMember(seen Request) bool {
	o := c.object("member", seen.ID)
	return o != nil && o["pool_id"] == seen.ParentID && c.object("pool", seen.ParentID) != nil
}

// putUnknownMember creates the member, as the real controller does, although other types answer 404.
func (c *Controller) putUnknownMember(r resource, seen Request, o map[string]any) reply {
	if c.object("pool", seen.ParentID) == nil {
		return errorReply(http.StatusNotFound, "pool UUID does not exist.")
	}
	a := c.createObject(r, seen.ParentID, o, nil)
	if a.status == http.StatusCreated {
		a.status, a.body = http.StatusOK, map[string]any{r.objectType: c.view(r.objectType, seen.ID)}
	}
	return a
}

// replaceMembers replaces the members of a pool by those in its new value; nil for a deleted pool.
func (c *Controller) replaceMembers(pool string, o map[string]any) {
	for k, rec := range c.records {
		if rec.Type == "member" && rec.Object != nil && rec.Object["pool_id"] == pool {
			rec.Object = nil
			delete(c.views, k)
		}
	}
	list, _ := o["members"].([]any)
	for _, item := range list {
		member, ok := item.(map[string]any)
		id, _ := member["id"].(string)
		if !ok || id == "" {
			continue
		}
		rec := c.recordOf("member", id)
		rec.Object = maps.Clone(member)
		rec.Object["pool_id"] = pool
		c.resetView(rec)
	}
}
