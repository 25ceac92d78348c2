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
	for _, line := range []string{
		fmt.Sprintf(`temporal workflow list -q '%s="%s"'`, contract.AttributeWaitingFor, "DHCP"),
		fmt.Sprintf(`temporal workflow query -w %s --type %s`, contract.PortID(d.port.id), contract.QueryWhy),
		fmt.Sprintf(`temporal workflow show -w %s`, contract.PortID(d.port.id)),
	} {
		fmt.Fprintf(d.w, "    %s\n", line)
	}
	fmt.Fprintf(d.w, "  starter:\n")
	for _, line := range []string{
		"starter why port/" + d.port.name,
		"starter port show " + d.port.name,
		"starter lease show " + d.name("lease"),
		"starter journal list",
		"starter port list --watch",
	} {
		fmt.Fprintf(d.w, "    %s\n", line)
	}
	return nil
}
