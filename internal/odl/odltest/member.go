package odltest

import (
	"net/http"
)

// hasMember reports whether the pool of the path exists and has the member.
func (c *Controller) hasMember(seen Request) bool {
	o := c.object("member", seen.ID)
	return o != nil && o["pool_id"] == seen.ParentID && c.object("pool", seen.ParentID) != nil
}

// putUnknownMember answers as if it had changed the member, as the real controller does.
func (c *Controller) putUnknownMember(r resource, seen Request, o map[string]any) reply {
	if c.object("pool", seen.ParentID) == nil {
		return errorReply(http.StatusNotFound, "pool UUID does not exist.")
	}
	return reply{status: http.StatusOK, body: map[string]any{r.objectType: o}}
}

// dropMembers drops the members of a pool. Like the real controller, the stub drops them at every write of a
// pool, even if the request contains members.
func (c *Controller) dropMembers(pool string) error {
	for k, rec := range c.records {
		if rec.Type != "member" || rec.Object == nil || rec.Object["pool_id"] != pool {
			continue
		}
		rec.Object = nil
		delete(c.views, k)
		if err := c.appendToFile(rec); err != nil {
			return err
		}
	}
	return nil
}
