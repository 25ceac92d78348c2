package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/store/db"
)

// consumerPattern matches the IDs of consumers. Placement stores some of them as the client has written them.
var consumerPattern = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)

// consumer reads the page of a consumer, for example an instance: its allocations, and the history of its
// generation. The page of a consumer without allocations has only the history.
func (c *handler) consumer(ctx context.Context, q query) (any, error) {
	id := q.path("id")
	if err := c.findConsumer(ctx, id); err != nil {
		return nil, err
	}
	found, err := c.Inventory.Allocations(ctx, id)
	if err != nil {
		return nil, err
	}
	names, err := c.Inventory.ProviderNames(ctx, found.Allocations.Providers())
	if err != nil {
		return nil, err
	}
	v := consumerView(id, found, names)
	if err := c.addConsumer(ctx, &v, id); err != nil {
		return nil, err
	}
	v.newestFirst(time.Now())
	return v, nil
}

// findConsumer returns an error that wraps db.ErrNotFound if no consumer has the ID, and the history of the
// generations does not contain one.
func (c *handler) findConsumer(ctx context.Context, id string) error {
	if !consumerPattern.MatchString(id) {
		return osapi.Fault(http.StatusNotFound, "", "There is no consumer %s.", id)
	}
	found, err := c.Inventory.ConsumersAmong(ctx, []string{id})
	if err != nil || found[id] {
		return err
	}
	changes, err := c.Inventory.ConsumerHistory(ctx, id, 0, 1)
	if err == nil && len(changes) == 0 {
		err = fmt.Errorf("%w: no consumer %s", db.ErrNotFound, id)
	}
	return err
}

// consumerView returns the page of a consumer without its timeline. The map has the names of the providers.
func consumerView(id string, found inventory.ConsumerAllocations, names map[string]string) objectView {
	v := objectView{
		Kind:    "Consumer",
		Name:    id,
		Status:  "no allocations",
		Good:    true,
		Why:     "The consumer has no allocations. The timeline shows the earlier ones.",
		Command: "starter allocation show " + id,
		Facts:   []fact{{Name: "ID", Value: id}},
	}
	t := table{
		Title:   "Allocations",
		Columns: []string{"Resource provider", "Resource class", "Amount", "Provider generation"},
	}
	keys := found.Order
	if len(keys) == 0 {
		v.Tables = []table{t}
		return v
	}
	kind := "unknown"
	if found.Type != nil {
		kind = *found.Type
	}
	v.Status = fmt.Sprintf("generation %d", found.Generation)
	v.Why = fmt.Sprintf("The consumer has %s from %s.",
		counted(len(keys), "allocation"), counted(len(found.Allocations), "resource provider"))
	v.Facts = append(v.Facts,
		fact{Name: "Generation", Value: fmt.Sprint(found.Generation)},
		fact{Name: "Project", Value: found.Project},
		fact{Name: "User", Value: found.User},
		fact{Name: "Consumer type", Value: kind},
		fact{Name: "Last changed", Value: utc(found.ChangedAt)},
	)
	if len(keys) > maxParts {
		keys, t.Title = keys[:maxParts], fmt.Sprintf("Allocations (the first %d)", maxParts)
	}
	for _, key := range keys {
		t.Rows = append(t.Rows, []fact{
			{Value: named(names[key.Provider], key.Provider), Path: "/providers/" + key.Provider},
			{Value: key.Class},
			{Value: fmt.Sprint(found.Allocations[key.Provider][key.Class])},
			{Value: fmt.Sprint(found.ProviderGenerations[key.Provider])},
		})
	}
	v.Tables = []table{t}
	return v
}

// addDevice adds the history of the allocations of a port's device, such as an instance, to the timeline, and
// lets the device lead to its allocations.
func (c *handler) addDevice(ctx context.Context, v *objectView, device string) error {
	if _, ok := osapi.UUID(device); !ok {
		return nil
	}
	before := len(v.Timeline)
	if err := c.addConsumer(ctx, v, device); err != nil {
		return err
	}
	known := len(v.Timeline) > before
	if !known { // the retention of the history may have deleted all changes
		found, err := c.Inventory.ConsumersAmong(ctx, []string{device})
		if err != nil {
			return err
		}
		known = found[device]
	}
	if known {
		v.link("Device", "/consumers/"+device)
	}
	return nil
}

// addConsumer adds the history of a consumer's generation to the timeline.
func (c *handler) addConsumer(ctx context.Context, v *objectView, consumer string) error {
	changes, err := c.Inventory.ConsumerHistory(ctx, consumer, 0, maxMoments+1)
	if err != nil {
		return err
	}
	v.addChanges(changes, func(g inventory.GenerationChange) (text, path string) {
		if g.Provider != nil {
			path = "/providers/" + g.Provider.UUID
		}
		return "consumer generation " + shift(g.Consumer), path
	})
	return nil
}

// addChanges adds changes of generations to the timeline, at most maxMoments. The function `describe` returns
// the text of a change, without its cause and actor, and the path of the page of the other object that
// changed, or an empty path.
func (v *objectView) addChanges(
	changes []inventory.GenerationChange,
	describe func(inventory.GenerationChange) (text, path string),
) {
	if len(changes) > maxMoments {
		changes, v.Omitted = changes[:maxMoments], true
	}
	for _, g := range changes {
		text, path := describe(g)
		v.Timeline = append(v.Timeline, moment{
			At:   g.At,
			Part: "allocation",
			Text: fmt.Sprintf("%s by %s: %s", g.Cause, g.Actor, text),
			Path: path,
		})
	}
}
