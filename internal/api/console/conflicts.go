package console

import (
	"context"
	"time"

	"berth/internal/store/inventorystore"
)

// conflictsView is the content of the page of the conflicts of generations.
type conflictsView struct{ Conflicts []inventorystore.Conflicts }

// conflicts reads the providers with the most conflicts of generations.
func (c *handler) conflicts(ctx context.Context, _ query) (any, error) {
	found, err := c.Inventory.Conflicts(ctx, pageSize)
	for i := range found {
		found[i].LastAt = found[i].LastAt.Truncate(time.Second)
	}
	return conflictsView{found}, err
}
