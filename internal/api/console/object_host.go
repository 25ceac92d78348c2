package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

// host reads the page of a reservable host: its agents, its ports, its leases, and the history of its
// resource provider.
func (c *handler) host(ctx context.Context, q query) (any, error) {
	id, err := strconv.ParseInt(q.path("id"), 10, 64)
	now := time.Now()
	var found []leasestore.CalendarHost
	if err == nil && id > 0 {
		found, err = c.Lease.HostCalendar(ctx, leasestore.Calendar{
			Host:  id,
			Limit: 1,
			From:  now.Add(-leaseWindow),
			To:    now.Add(leaseWindow),
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, osapi.Fault(http.StatusNotFound, "", "There is no host %s.", q.path("id"))
	}
	h := found[0]
	v := objectView{
		Kind:    "Host",
		Command: "starter host show " + q.path("id"),
		Name:    h.Hostname,
		Status:  "disabled",
		Good:    h.Enabled,
		Omitted: h.More,
		Facts: []fact{
			{
				Name:  "ID",
				Value: q.path("id"),
			}, {Name: "Availability zone", Value: h.Zone}, {Name: "VCPUs", Value: fmt.Sprint(h.VCPUs)},
			{
				Name:  "Memory",
				Value: fmt.Sprintf("%d MB", h.MemoryMB),
			}, {Name: "Disk", Value: fmt.Sprintf("%d GB", h.DiskGB)},
			{
				Name:  "Resource provider",
				Value: h.Provider.String(),
				Path:  "/providers/" + h.Provider.String(),
			}},
	}
	sentence, onTime := hostSentence(h, now)
	v.Why, v.Good = sentence, v.Good && onTime
	if h.Enabled {
		v.Status = "enabled"
	}
	if err := c.addAgents(ctx, &v, h.Hostname); err != nil {
		return nil, err
	}
	if err := c.addWaitingFor(ctx, &v, h.Hostname, now); err != nil {
		return nil, err
	}
	if err := c.addPorts(ctx, &v, h.Hostname); err != nil {
		return nil, err
	}
	v.Timeline = bookingMoments(h.Bookings, now)
	if err := c.addProvider(ctx, &v, h.Provider.String()); err != nil {
		return nil, err
	}
	v.newestFirst(now)
	return v, nil
}

// hostSentence says which lease holds a host now, and when the next lease gets it. The result `onTime` is
// false if a lease still has the host although its end has passed, or has not got it although its start has
// passed.
func hostSentence(h leasestore.CalendarHost, now time.Time) (sentence string, onTime bool) {
	overdue := ""
	for _, b := range h.Bookings {
		switch {
		case isOverdueHolder(b, now):
			overdue += fmt.Sprintf("Lease %s should have left the host at %s, and still has it. ", b.Name, utc(b.End))
		case b.End.Before(now):
		case b.Start.After(now) && overdue != "":
			return fmt.Sprintf("%sLease %s gets it next: it starts late if the host is not free at %s.",
				overdue, b.Name, utc(b.Start)), false
		case b.Start.After(now):
			return fmt.Sprintf("The host is free. Lease %s gets it at %s.", b.Name, utc(b.Start)), true
		case b.Status == lease.Pending && now.Sub(b.Start) > lease.OverdueAfter:
			return fmt.Sprintf("%sLease %s should have got it at %s.", overdue, b.Name, utc(b.Start)), false
		default:
			return fmt.Sprintf("%sLease %s holds the host until %s.", overdue, b.Name, utc(b.End)), overdue == ""
		}
	}
	if overdue != "" {
		return overdue + "No other lease gets it in the next 14 days.", false
	}
	return "The host is free, and no lease gets it in the next 14 days.", true
}

// addWaitingFor adds a table of what waits for parties on a host, and a sentence with the number of the
// objects.
func (c *handler) addWaitingFor(ctx context.Context, v *objectView, host string, now time.Time) error {
	groups, err := c.Report.Waiting(ctx)
	if err != nil {
		return err
	}
	t := table{Title: "Waiting for this host", Columns: []string{"Waits for", "Waiting", "Longest", "First to wait"}}
	numbers := map[string]int{} // by kind of object
	total := 0
	for _, g := range groups {
		if g.Host != host {
			continue
		}
		w := groupView(g, now)
		numbers[g.Objects] += int(g.Count)
		total += int(g.Count)
		t.Rows = append(t.Rows, []fact{
			{Value: w.Label, Path: w.Path},
			{Value: counted(int(g.Count), g.Objects)},
			{Value: w.Age},
			w.First,
		})
	}
	if total == 0 {
		return nil
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, counted(numbers[kind], kind))
	}
	verb := "wait"
	if total == 1 {
		verb = "waits"
	}
	v.Why += fmt.Sprintf(" %s %s for this host.", strings.Join(parts, " and "), verb)
	v.Tables = append([]table{t}, v.Tables...)
	return nil
}

func (c *handler) addAgents(ctx context.Context, v *objectView, host string) error {
	agents, err := c.Network.Agents(ctx, db.Listing{
		Where:  []db.Condition{{Field: "host", In: []string{host}}},
		Limit:  maxParts,
		Fields: []string{"host"},
	})
	if err != nil {
		return err
	}
	t := table{Title: "Agents", Columns: []string{"Agent", "Alive", "Enabled", "Last report"}}
	for _, a := range agents {
		if a.AdminUp && !a.Alive {
			v.Why += fmt.Sprintf(" The %s is silent: its last report was at %s.", a.Type, utc(a.HeartbeatAt))
			v.Good = false
		}
		t.Rows = append(t.Rows, []fact{
			{Value: a.Type},
			{Value: yesNo(a.Alive)},
			{Value: yesNo(a.AdminUp)},
			{Value: a.HeartbeatAt.UTC().Format("2006-01-02 15:04") + " UTC"},
		})
	}
	v.Tables = append(v.Tables, t)
	return nil
}

func (c *handler) addPorts(ctx context.Context, v *objectView, host string) error {
	ports, err := c.Network.Ports(ctx,
		db.Listing{Where: []db.Condition{{Field: "host", In: []string{host}}}, Limit: maxParts + 1})
	if err != nil {
		return err
	}
	t := table{Title: "Ports", Columns: []string{"Port", "Status", "Why"}}
	if len(ports) > maxParts {
		ports, t.Title = ports[:maxParts], fmt.Sprintf("Ports (the first %d)", maxParts)
	}
	for _, p := range ports {
		t.Rows = append(t.Rows, []fact{
			{Value: named(p.Name, p.ID.String()), Path: "/ports/" + p.ID.String()},
			{Value: p.Status},
			{Value: portWhy(p.WithAgentHosts(), time.Now())},
		})
	}
	v.Tables = append(v.Tables, t)
	return nil
}

// portWhy says why a port is not ACTIVE.
func portWhy(p network.Port, now time.Time) string {
	if p.Status == network.Active {
		return ""
	}
	return strings.TrimPrefix(p.StatusViewAt(now).Sentence(), p.Status+": ")
}

// provider reads the page of a resource provider: its inventories with their use, and the history of its
// generation.
func (c *handler) provider(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "resource provider")
	if err != nil {
		return nil, err
	}
	p, err := c.Inventory.Provider(ctx, id.String())
	if err != nil {
		return nil, err
	}
	v := objectView{
		Kind:    "Resource provider",
		Command: "starter provider show " + p.UUID,
		Name:    p.Name,
		Status:  fmt.Sprintf("generation %d", p.Generation),
		Good:    true,
		Facts:   []fact{{Name: "ID", Value: p.UUID}, {Name: "Generation", Value: fmt.Sprint(p.Generation)}},
	}
	if p.Parent != "" {
		v.Facts = append(
			v.Facts,
			fact{Name: "Parent", Value: p.Parent, Path: "/providers/" + p.Parent},
			fact{Name: "Root", Value: p.Root, Path: "/providers/" + p.Root},
		)
	}
	inventories, err := c.Inventory.ProviderInventories(ctx, p.UUID)
	if err != nil {
		return nil, err
	}
	usage, err := c.Inventory.ProviderUsage(ctx, p.UUID)
	if err != nil {
		return nil, err
	}
	v.Tables = append(v.Tables, inventoryTable(inventories, usage))
	if err := c.addProvider(ctx, &v, p.UUID); err != nil {
		return nil, err
	}
	v.newestFirst(time.Now())
	return v, nil
}

func inventoryTable(inventories inventory.ProviderInventories, usage inventory.ProviderUsage) table {
	t := table{
		Title:   "Inventories",
		Columns: []string{"Resource class", "Total", "Reserved", "Allocation ratio", "Used"},
	}
	var classes []string
	for class := range inventories.Classes {
		classes = append(classes, class)
	}
	slices.Sort(classes)
	for _, class := range classes[:min(len(classes), maxParts)] {
		i := inventories.Classes[class]
		t.Rows = append(t.Rows, []fact{
			{Value: class},
			{Value: fmt.Sprint(i.Total)},
			{Value: fmt.Sprint(i.Reserved)},
			{Value: fmt.Sprint(i.AllocationRatio)},
			{Value: fmt.Sprint(usage.Used[class])},
		})
	}
	return t
}

// addProvider adds the history of a resource provider's generation to the timeline.
func (c *handler) addProvider(ctx context.Context, v *objectView, provider string) error {
	changes, err := c.Inventory.ProviderHistory(ctx, provider, 0, maxMoments+1)
	if err != nil {
		return err
	}
	v.addChanges(changes, func(g inventory.GenerationChange) (text, path string) {
		text = "provider generation " + shift(g.Provider)
		if g.Consumer != nil {
			text += ", consumer " + g.Consumer.UUID
			path = "/consumers/" + g.Consumer.UUID
		}
		return text, path
	})
	return nil
}

// shift returns the text of a change of a generation.
func shift(s *inventory.GenerationShift) string {
	part := func(g *int64) string {
		if g == nil {
			return "none"
		}
		return strconv.FormatInt(*g, 10)
	}
	if s == nil {
		return "unchanged"
	}
	return part(s.From) + " → " + part(s.To)
}
