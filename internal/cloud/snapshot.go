package cloud

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/lease"
	"berth/internal/safeurl"
	"berth/internal/text"
)

// The metadata of an image that berth creates before the end of a lease. Releases of Nova remove the
// letters of "property-" from the beginning of a key in a filter, so the key of the filter begins with
// another letter. Every user can give an image any metadata, and berth's token lists the images of all
// projects. So berth recognises its images by the ID of the lease, which other projects do not know.
const (
	imageLease       = "berth_lease"       // ID of the lease
	imageReservation = "berth_reservation" // ID of the reservation
	imageServer      = "berth_server"      // ID of the server; Nova itself stores it only for some servers
	imageBeforeEnd   = "berth_before_end"  // due time of the before_end event
)

// maxImageRuns is how often the before_end event of a lease creates images. As in Blazar, the event runs
// again after each change of its date, as often as a user changes it, and the servers can be others each
// time.
const maxImageRuns = 5

// maxImageName is the maximum length of the name of an image in Glance, in characters. The name of a server
// can be as long.
const maxImageName = 255

// image is an image of a server.
type image struct {
	Metadata struct {
		Lease       string `json:"berth_lease"`
		Reservation string `json:"berth_reservation"`
		Server      string `json:"berth_server"`
		BeforeEnd   string `json:"berth_before_end"`
	} `json:"metadata"`
}

// images lists the images of a server that berth has created for a reservation.
func (n nova) images(ctx context.Context, c lease.CloudReservation, server string) ([]image, error) {
	query := url.Values{
		"property-" + imageLease:       {c.Lease.String()},
		"property-" + imageReservation: {c.ID.String()},
		"property-" + imageServer:      {server},
	}
	list := linkedList(n.client, n.client.ServiceURL("images", "detail")+"?"+query.Encode(), "images")
	matches := func(i image) bool {
		m := i.Metadata
		return m.Lease == c.Lease.String() && m.Reservation == c.ID.String() && m.Server == server
	}
	all, err := listMatching(ctx, n.client, list, extractLinked[image], matches)
	if err != nil {
		return nil, fmt.Errorf("list images of server %s: %w", server, err)
	}
	return all, nil
}

// beforeEnd creates an image of each server, also on former hosts, if the reservation asks for snapshots and
// the event has not begun more often than maxImageRuns. beforeEnd continues after a failure and returns the
// first error. A repeated call creates only the images that do not exist.
func (h hosts) beforeEnd(ctx context.Context, c lease.CloudReservation) error {
	if c.BeforeEnd != "snapshot" {
		return nil
	}
	if c.BeforeEndRuns > maxImageRuns {
		slog.WarnContext(ctx, "the servers of a reservation get no further images before the end of its lease",
			"reservation", c.ID, "runs", c.BeforeEndRuns)
		return nil
	}
	var first error
	for _, at := range c.ComputeHosts {
		onHost, err := h.servers(ctx, serverFilter{Host: at.Service})
		first = cmp.Or(first, err)
		for _, s := range onHost {
			first = cmp.Or(first, h.createImage(ctx, c, s))
		}
	}
	former, err := h.formerServers(ctx, c)
	first = cmp.Or(first, err)
	for _, s := range former {
		first = cmp.Or(first, h.createImage(ctx, c, s))
	}
	return first
}

// createImage creates an image of a server, unless the server has an image of the same event. A server that
// does not exist, or of which Nova makes no image in its present state, gets none.
func (h hosts) createImage(ctx context.Context, c lease.CloudReservation, s servers.Server) error {
	images, err := h.images(ctx, c, s.ID)
	if err != nil {
		return err
	}
	event := c.BeforeEndAt.UTC().Format(time.RFC3339)
	if slices.ContainsFunc(images, func(i image) bool { return i.Metadata.BeforeEnd == event }) {
		return nil
	}
	err = servers.CreateImage(ctx, h.client, safeurl.Segment(s.ID), servers.CreateImageOpts{
		Name: text.Excerpt("reserved_"+s.Name, maxImageName),
		Metadata: map[string]string{
			imageLease:       c.Lease.String(),
			imageReservation: c.ID.String(),
			imageServer:      s.ID,
			imageBeforeEnd:   event,
		},
	}).Err
	for _, refusal := range []int{http.StatusNotFound, http.StatusConflict} {
		if gophercloud.ResponseCodeIs(err, refusal) {
			slog.WarnContext(ctx, "Nova refuses to create an image of a server before the end of its lease",
				"reservation", c.ID, "server", s.ID, "status", refusal)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create an image of server %s: %w", s.ID, err)
	}
	return nil
}
