package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// CalendarHost is a reservable host with the leases that hold or will hold it in a window of time.
type CalendarHost struct {
	ID       int64
	Hostname string
	Provider uuid.UUID
	Zone     string // availability zone
	Enabled  bool   // new leases may get the host
	VCPUs    int64
	MemoryMB int64
	DiskGB   int64
	Bookings []Booking
	More     bool // the host has more than MaxBookings bookings in the window
}

// Booking is the allocation of a host to one lease.
type Booking struct {
	Lease      uuid.UUID
	Name       string
	Status     lease.Status
	Type       string // resource type of the reservation
	Start, End time.Time
}

// MaxBookings is the maximum number of bookings of one host that the calendar lists.
const MaxBookings = 50

// Calendar selects hosts and a window of time.
type Calendar struct {
	Host     int64 // ID of the only host; 0: all
	After    int64 // ID of the last host of the previous page
	Limit    int   // maximum number of hosts
	From, To time.Time
}

const calendarSQL = `
	select h.id, h.hostname, h.provider, h.availability_zone, h.reservable, h.vcpus, h.memory_mb, h.local_gb,
		b.id, b.name, b.status, b.resource_type, b.starts, b.ends
	from (select * from host where id > $1 and ($2::bigint = 0 or id = $2) order by id limit $3) h
	left join lateral (
		select l.id, l.name, l.status, r.resource_type, lower(a.during) as starts, upper(a.during) as ends
		from (
			select reservation_id, during
			from host_allocation
			where host_id = h.id and during && tstzrange($4, $5)
			order by during
			limit $6) a
		join reservation r on r.id = a.reservation_id
		join lease l on l.id = r.lease_id) b on true
	order by h.id, b.starts, b.id`

// HostCalendar returns a page of hosts, sorted by ID, with their first bookings in a window of time, sorted
// by start.
func (s *Store) HostCalendar(ctx context.Context, c Calendar) ([]CalendarHost, error) {
	var all []CalendarHost
	var h CalendarHost
	var id *uuid.UUID
	var name, status, typ *string
	var start, end *time.Time
	rows, err := s.db.Query(ctx, calendarSQL, c.After, c.Host, c.Limit, c.From, c.To, MaxBookings+1)
	if err == nil {
		_, err = pgx.ForEachRow(
			rows,
			[]any{&h.ID, &h.Hostname, &h.Provider, &h.Zone, &h.Enabled, &h.VCPUs, &h.MemoryMB, &h.DiskGB,
				&id, &name, &status, &typ, &start, &end},
			func() error {
				if len(all) == 0 || all[len(all)-1].ID != h.ID {
					all = append(all, h)
				}
				last := &all[len(all)-1]
				switch {
				case id == nil:
				case len(last.Bookings) == MaxBookings:
					last.More = true
				default:
					last.Bookings = append(last.Bookings,
						Booking{*id, *name, lease.Status(*status), *typ, *start, *end})
				}
				return nil
			},
		)
	}
	if err != nil {
		return nil, fmt.Errorf("read the calendar of hosts: %w", err)
	}
	return all, nil
}

// HostNames returns the host names of the reservable hosts with the given IDs.
func (s *Store) HostNames(ctx context.Context, ids []int64) (map[int64]string, error) {
	names := map[int64]string{}
	var id int64
	var name string
	rows, err := s.db.Query(ctx, `select id, hostname from host where id = any($1)`, ids)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			names[id] = name
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the names of hosts: %w", err)
	}
	return names, nil
}

// HostByName returns the ID of the reservable host with the given host name, or 0 if no reservable host has
// the name.
func (s *Store) HostByName(ctx context.Context, hostname string) (int64, error) {
	id, err := db.QueryOne(ctx, s.db, pgx.RowTo[int64], nil,
		`select id from host where hostname = $1`, hostname)
	if err != nil {
		return 0, fmt.Errorf("read the host %s: %w", hostname, err)
	}
	return id, nil
}
