package delivery_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/delivery"
	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/store/storetest"
)

// pagedNova records the calls to Nova.
type pagedNova struct {
	*fixture
	plugged int // Nova's code for plugged events

	mu    sync.Mutex
	calls []novaCall
}

// novaCall is a call to Nova.
type novaCall struct {
	servers []string // of the events
	left    int      // number of events that were recorded when the call began
}

func (n *pagedNova) Send(ctx context.Context, events []notify.Event) ([]int, error) {
	var call novaCall
	if err := n.DB.QueryRow(ctx, `select count(*) from nova_event`).Scan(&call.left); err != nil {
		return nil, err
	}
	codes := make([]int, len(events))
	for i, e := range events {
		call.servers = append(call.servers, e.Server)
		if codes[i] = 200; e.Name == network.NovaVIFPlugged {
			codes[i] = n.plugged
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
	return codes, nil
}

// newPagedNova returns a Nova that gets the events of a fixture, whose port has the network-changed events of
// 450 servers. No event has the ID 1.
func newPagedNova(t *testing.T) *pagedNova {
	t.Helper()
	n := &pagedNova{fixture: newFixture(t), plugged: 200}
	n.sender.Nova = n
	storetest.Exec(t, n.url, `delete from nova_event`)
	storetest.Exec(t, n.url, `
		insert into nova_event (port_id, server, name, status, tag, created_at)
		select id, lpad(n::text, 3, '0'), 'network-changed', '', id::text, now() - interval '1 minute'
		from generate_series(1, 450) n, port
		order by n`)
	return n
}

// recordStatusEvent records an event of the port with the given ID.
func (n *pagedNova) recordStatusEvent(id int, name string) {
	n.Helper()
	storetest.Exec(n.T, n.url, `
		insert into nova_event (id, port_id, server, name, status, tag)
		overriding system value
		select $1::bigint, id, 's', $2::text, 'completed', id::text from port`, id, name)
}

// left lists the names of the events that are still recorded.
func (n *pagedNova) left() []string {
	n.Helper()
	events, err := n.Notifications.NovaEvents(n.Context(), n.port.ID, 0)
	if err != nil {
		n.Fatal(err)
	}
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	return names
}

func TestNovaEvents_ManyAreSentInSeveralCallsAndEachDeletedAfterItsCall(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(n *pagedNova){
		"by the activity": func(n *pagedNova) {
			if err := n.sender.NovaEvents(n.Context(), n.port.ID); err != nil {
				n.Fatal(err)
			}
		},
		"without Temporal": func(n *pagedNova) {
			n.run()
			n.eventually("all events are sent", func() bool { return len(n.left()) == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newPagedNova(t)

			send(n)

			n.mu.Lock()
			defer n.mu.Unlock()
			var sizes, left []int
			var servers []string
			for _, c := range n.calls {
				sizes, left = append(sizes, len(c.servers)), append(left, c.left)
				servers = append(servers, c.servers...)
			}
			if d := cmp.Diff([]int{200, 200, 50}, sizes); d != "" {
				t.Errorf("number of events in each call (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]int{450, 250, 50}, left); d != "" {
				t.Errorf("number of recorded events at the begin of each call (-want +got):\n%s", d)
			}
			if !slices.IsSorted(servers) {
				t.Errorf("servers of the sent events: got %v, want them in the order of the events", servers)
			}
		})
	}
}

func TestNovaEvents_LaterCallDecidesWhichEventIsSentAgain(t *testing.T) {
	t.Parallel()
	t.Run("plugged", func(t *testing.T) {
		t.Parallel()
		n := newPagedNova(t)
		n.plugged = 404
		n.recordStatusEvent(1, network.NovaVIFPlugged) // in the first call

		err := n.sender.NovaEvents(t.Context(), n.port.ID)

		var unknown *delivery.UnknownServerError
		if !errors.As(err, &unknown) || unknown.Server != "s" {
			t.Errorf("send an event of a server that Nova does not know: got error %v, want an UnknownServerError", err)
		}
		if d := cmp.Diff([]string{network.NovaVIFPlugged}, n.left()); d != "" {
			t.Errorf("events that are left (-want +got):\n%s", d)
		}
	})
	t.Run("plugged and unplugged", func(t *testing.T) {
		t.Parallel()
		n := newPagedNova(t)
		n.plugged = 404
		n.recordStatusEvent(1, network.NovaVIFPlugged)
		n.recordStatusEvent(1_000_000, network.NovaVIFUnplugged) // in the last call

		if err := n.sender.NovaEvents(t.Context(), n.port.ID); err != nil {
			t.Errorf("send a plugged event that an unplugged event follows: got error %v, want none", err)
		}
		if left := n.left(); len(left) > 0 {
			t.Errorf("events that are left: got %v, want none", left)
		}
	})
}
