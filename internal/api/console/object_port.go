package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
)

// port reads the page of a port. Its timeline has the port, its journal entries, the allocations of its
// device and the leases of its host.
func (c *handler) port(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "port")
	if err != nil {
		return nil, err
	}
	p, err := c.Network.Port(ctx, id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := portView(p.WithAgentHosts(), now)
	v.Temporal = c.temporalURL(contract.PortID(p.ID.String()))
	v.Facts = append(v.Facts, fact{Name: "Host", Value: p.Host}, fact{Name: "Binding", Value: p.VIF})
	if err := c.addJournal(ctx, &v, p.ID.String()); err != nil {
		return nil, err
	}
	trunk, err := c.Network.TrunkOfPort(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	v.addTrunk(trunk)
	if err := c.addDevice(ctx, &v, p.DeviceID); err != nil {
		return nil, err
	}
	if err := c.addHostLeases(ctx, &v, p.Host, now); err != nil {
		return nil, err
	}
	v.newestFirst(now)
	return v, nil
}

// namedPortsView is the content of the page of the ports with one name.
type namedPortsView struct {
	Name  string
	Ports []namedPort
	Cut   bool // more ports have the name
}

func (v namedPortsView) title() string { return "Ports with the name " + v.Name }

type namedPort struct {
	network.Port
	Why string
}

// namedPorts reads the first ports with the name in the query.
func (c *handler) namedPorts(ctx context.Context, q query) (any, error) {
	v := namedPortsView{Name: q.values.Get("name")}
	ports, err := c.portsNamed(ctx, v.Name, pageSize+1)
	if err != nil {
		return nil, err
	}
	if v.Cut = len(ports) > pageSize; v.Cut {
		ports = ports[:pageSize]
	}
	for _, p := range ports {
		v.Ports = append(v.Ports, namedPort{p, portWhy(p.WithAgentHosts(), time.Now())})
	}
	return v, nil
}

// portsNamed lists at most `most` ports with a name.
func (c *handler) portsNamed(ctx context.Context, name string, most int) ([]network.Port, error) {
	if name == "" {
		return nil, nil
	}
	return c.Network.Ports(ctx, db.Listing{
		Where: []db.Condition{{Field: "name", In: []string{name}}},
		Limit: most,
	})
}

// portView returns what the page of a port shows to administrators and to the project of the port.
func portView(p network.Port, now time.Time) objectView {
	s := p.StatusViewAt(now)
	v := objectView{
		Kind:    "Port",
		Name:    named(p.Name, p.ID.String()),
		Status:  p.Status,
		Good:    p.Status == network.Active,
		Why:     s.Sentence(),
		Command: "starter why port/" + p.ID.String(),
		Facts:   portFacts(p),
	}
	v.addWaiting("port", s.Waiting)
	v.Timeline = append(v.Timeline, moment{At: p.CreatedAt, Part: "port", Text: "created"},
		moment{At: p.UpdatedAt, Part: "port", Text: fmt.Sprintf("last changed, revision %d", p.Revision)})
	return v
}

func portFacts(p network.Port) []fact {
	facts := []fact{
		{Name: "ID", Value: p.ID.String()},
		{Name: "Project", Value: p.Project},
		{Name: "Network", Value: p.Network.String()},
		{Name: "MAC address", Value: p.MAC},
	}
	var addresses []string
	for _, a := range p.Addresses {
		addresses = append(addresses, a.IP.String())
	}
	return append(
		facts, fact{Name: "Addresses", Value: strings.Join(addresses, ", ")},
		fact{Name: "Device owner", Value: p.DeviceOwner}, fact{Name: "Device", Value: p.DeviceID},
	)
}

// addJournal adds the newest journal entries of an object to the timeline.
func (c *handler) addJournal(ctx context.Context, v *objectView, object string) error {
	entries, err := c.Journal.JournalEntries(ctx,
		journalstore.EntryFilter{Object: object, Newest: true, Limit: maxMoments + 1})
	if err != nil {
		return err
	}
	if len(entries) > maxMoments {
		entries, v.Omitted = entries[:maxMoments], true
	}
	for _, e := range entries {
		path := fmt.Sprintf("/entries/%d", e.Seq)
		name := fmt.Sprintf("entry %d: %s %s", e.Seq, e.Operation, e.Object.Type)
		v.Timeline = append(v.Timeline, moment{
			At:   e.CreatedAt,
			Part: "journal",
			Text: name + " recorded",
			Path: path,
		})
		switch {
		case e.FinishedAt != nil:
			v.Timeline = append(v.Timeline, moment{
				At:   *e.FinishedAt,
				Part: "journal",
				Text: name + " completed",
				Path: path,
			})
		case e.State == journal.Failed && e.TakenAt != nil:
			v.Timeline = append(v.Timeline, moment{
				At:   *e.TakenAt,
				Part: "journal",
				Text: name + " failed: " + e.LastError,
				Path: path,
			})
		}
	}
	return nil
}

// leaseWindow is the time before and after now in which the page of a host or a port shows leases.
const leaseWindow = 14 * 24 * time.Hour

// addHostLeases adds the leases of a reservable host to the timeline of a port on this host.
func (c *handler) addHostLeases(ctx context.Context, v *objectView, hostname string, now time.Time) error {
	if hostname == "" {
		return nil
	}
	id, err := c.Lease.HostByName(ctx, hostname)
	if err != nil || id == 0 {
		return err
	}
	page := fmt.Sprintf("/hosts/%d", id)
	for i := range v.Waits {
		if strings.HasSuffix(v.Waits[i].For, " on "+hostname) {
			v.Waits[i].Path = page
		}
	}
	hosts, err := c.Lease.HostCalendar(ctx, leasestore.Calendar{
		Host:  id,
		Limit: 1,
		From:  now.Add(-leaseWindow),
		To:    now.Add(leaseWindow),
	})
	if err != nil {
		return err
	}
	v.link("Host", page)
	for _, h := range hosts {
		v.Omitted = v.Omitted || h.More
		v.Timeline = append(v.Timeline, bookingMoments(h.Bookings, now)...)
	}
	return nil
}

func bookingMoments(bookings []leasestore.Booking, now time.Time) (all []moment) {
	for _, b := range bookings {
		leaves := "leaves"
		if isOverdueHolder(b, now) {
			leaves = "should leave"
		}
		path := "/leases/" + b.Lease.String()
		all = append(
			all,
			moment{
				At:   b.Start,
				Part: "lease",
				Text: fmt.Sprintf("lease %s gets the host", b.Name),
				Path: path,
			},
			moment{
				At:   b.End,
				Part: "lease",
				Text: fmt.Sprintf("lease %s %s the host", b.Name, leaves),
				Path: path,
			},
		)
	}
	return all
}

// idOf returns the UUID in the path of a page.
func idOf(q query, kind string) (uuid.UUID, error) {
	id, ok := osapi.UUID(q.path("id"))
	if !ok {
		return id, osapi.Fault(http.StatusNotFound, "", "There is no %s %s.", kind, q.path("id"))
	}
	return id, nil
}
