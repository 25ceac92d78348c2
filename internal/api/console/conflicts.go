package console

import (
	"context"
	"time"

	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
)

// conflictsView is the content of the page of the conflicts of generations.
type conflictsView struct {
	Conflicts []generationConflict
	Most      int // the maximum number of objects on the page
	Seconds   int // between two times at which a process adds its counts
}

// generationConflict is an object that other writers have changed first.
type generationConflict struct {
	inventorystore.Conflicts
	Kind string // resource provider or consumer
	Text string
	Path string // page of the object, below the path of the console; empty: none
}

// conflicts reads the providers and consumers with the most conflicts of generations.
func (c *handler) conflicts(ctx context.Context, _ query) (any, error) {
	v := conflictsView{Most: pageSize, Seconds: int(inventorystore.ConflictInterval / time.Second)}
	found, err := c.Inventory.Conflicts(ctx, pageSize)
	for _, f := range found {
		f.LastAt = f.LastAt.Truncate(time.Second)
		v.Conflicts = append(v.Conflicts, conflictView(f))
	}
	return v, err
}

func conflictView(f inventorystore.Conflicts) generationConflict {
	c := generationConflict{Conflicts: f, Kind: "Consumer", Text: f.UUID}
	path := "/consumers/"
	if f.Type == inventory.ProviderObject {
		c.Kind, path = "Resource provider", "/providers/"
	}
	if f.Name != "" {
		c.Text = f.Name
	}
	if f.Known {
		c.Path = path + f.UUID
	}
	return c
}
