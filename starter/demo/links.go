package demo

import (
	"context"
	"fmt"
	"net/url"

	"berth/internal/contract"
)

// runLinks prints commands and links with which the user can look at the objects that this run of the demo
// has created.
func (d *demonstration) runLinks(context.Context) error {
	workflows := []struct{ what, id string }{
		{"the port", contract.PortID(d.port.id)},
		{"the lease", contract.LeaseID(d.lease)},
	}
	for _, seq := range d.entries {
		workflows = append(workflows,
			struct{ what, id string }{"journal entry " + seq, contract.JournalID(seq)})
	}
	if ui := d.Env.Get("TEMPORAL_UI"); ui != "" {
		fmt.Fprintf(d.writer, "  Temporal's UI:\n")
		for _, w := range workflows {
			fmt.Fprintf(d.writer, "    # %s\n    %s/namespaces/%s/workflows/%s\n",
				w.what, ui, d.TemporalNamespace, url.PathEscape(w.id))
		}
	}
	fmt.Fprintf(d.writer, "  The temporal CLI (--address %s):\n", d.TemporalAddress)
	d.printCommands([][2]string{
		{
			fmt.Sprintf(`temporal workflow list -q '%s="DHCP"'`, contract.AttributeWaitingFor),
			"all objects that wait for a DHCP agent",
		},
		{
			fmt.Sprintf(
				`temporal workflow query -w %s --type %s`,
				contract.PortID(d.port.id),
				contract.QueryWhy,
			),
			"why the port has its status",
		},
		{fmt.Sprintf(`temporal workflow show -w %s`, contract.PortID(d.port.id)), "its history"},
	})
	fmt.Fprintf(d.writer, "  starter:\n")
	d.printCommands([][2]string{
		{"starter why port/" + d.port.name, "the same, with the port's name"},
		{"starter lease show " + d.uniqueName("lease"), "the lease, its reservation and its events"},
		{"starter journal list", "changes sent to the controller"},
		{"starter port list --watch", "every change of a port"},
	})
	return nil
}

// printCommands prints commands with their explanations, each explanation above its command: a command that a
// user copies has no line break.
func (d *demonstration) printCommands(lines [][2]string) {
	for _, l := range lines {
		fmt.Fprintf(d.writer, "    # %s\n    %s\n", l[1], l[0])
	}
}
