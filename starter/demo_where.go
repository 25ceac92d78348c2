package main

import (
	"context"
	"fmt"
	"net/url"

	"berth/internal/contract"
)

// playWhere tells how to look at all of this again.
func (d *stage) playWhere(context.Context) error {
	workflows := []struct{ what, id string }{{"the port", contract.PortID(d.port.id)}, {"the lease", contract.LeaseID(d.lease)}}
	for _, seq := range d.entries {
		workflows = append(workflows, struct{ what, id string }{"journal entry " + seq, contract.JournalID(seq)})
	}
	if ui := d.env.get("TEMPORAL_UI"); ui != "" {
		fmt.Fprintf(d.w, "  Temporal's UI:\n")
		for _, w := range workflows {
			fmt.Fprintf(d.w, "    %-17s %s/namespaces/%s/workflows/%s\n", w.what, ui, d.namespace, url.PathEscape(w.id))
		}
	}
	fmt.Fprintf(d.w, "  The stock temporal command line (--address %s):\n", d.address)
	d.commands([][2]string{
		{fmt.Sprintf(`temporal workflow list -q '%s="DHCP"'`, contract.AttributeWaitingFor), "whoever waits for a DHCP agent now"},
		{fmt.Sprintf(`temporal workflow query -w %s --type %s`, contract.PortID(d.port.id), contract.QueryWhy), "why the port is what it is"},
		{fmt.Sprintf(`temporal workflow show -w %s`, contract.PortID(d.port.id)), "what happened to it"},
	})
	fmt.Fprintf(d.w, "  starter:\n")
	d.commands([][2]string{
		{"starter why port/" + d.port.name, "the same, by its name"},
		{"starter lease show " + d.name("lease"), "the lease, its reservation and its events"},
		{"starter journal list", "what was mirrored to the controller"},
		{"starter port list --watch", "every change of a port as it happens"},
	})
	return nil
}

func (d *stage) commands(lines [][2]string) {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(d.w, "    %-*s  # %s\n", width, l[0], l[1])
	}
}
