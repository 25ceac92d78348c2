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
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/lease"
	"berth/internal/safeurl"
	"berth/internal/text"
)

// The metadata of an image that berth creates before the end of a lease. Releases of Nova remove the
// letters of "property-" from the beginning of a key in a filter, so the key of the filter begins with
// another letter.
const (
	imageReservation = "berth_reservation" // ID of the reservation
	imageServer      = "berth_server"      // ID of the server; Nova itself stores it only for some servers
	imageBeforeEnd   = "berth_before_end"  // due time of the before_end event
)

// maxImages is the maximum number of images of a server that berth keeps for a reservation. As in Blazar, the
// before_end event runs again after each change of its date, as often as a user changes it.
const maxImages = 5

// maxImageName is the maximum length of the name of an image in Glance, in characters. The name of a server
// can be as long.
const maxImageName = 255

// image is an image of a server.
type image struct {
	Metadata struct {
		Reservation string `json:"berth_reservation"`
		Server      string `json:"berth_server"`
		BeforeEnd   string `json:"berth_before_end"`
	} `json:"metadata"`
}

// imagePage is a page of a list of images.
type imagePage struct{ pagination.LinkedPageBase }

// NextPageURL returns the link to the next page, or "".
func (p imagePage) NextPageURL() (string, error) {
	var page struct {
		Links []gophercloud.Link `json:"images_links"`
	}
	if err := p.ExtractInto(&page); err != nil {
		return "", err
	}
	return gophercloud.ExtractNextURL(page.Links)
}

// IsEmpty reports whether the page has no image.
func (p imagePage) IsEmpty() (bool, error) {
	all, err := extractImages(p)
	return len(all) == 0, err
}

func extractImages(p pagination.Page) ([]image, error) {
	var page struct{ Images []image }
	err := p.(imagePage).ExtractInto(&page)
	return page.Images, err
}

// images lists the images that berth has created for a reservation.
func (n nova) images(ctx context.Context, c lease.CloudReservation) ([]image, error) {
	query := url.Values{"property-" + imageReservation: {c.ID.String()}}
	list := pagination.NewPager(n.client, n.client.ServiceURL("images", "detail")+"?"+query.Encode(),
		func(r pagination.PageResult) pagination.Page {
			return imagePage{pagination.LinkedPageBase{PageResult: r}}
		})
	matches := func(i image) bool { return i.Metadata.Reservation == c.ID.String() }
	all, err := listMatching(ctx, n.client, list, extractImages, matches)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return all, nil
}

// beforeEnd creates an image of each server, if the reservation asks for snapshots. beforeEnd continues after
// a failure and returns the first error. A repeated call creates only the images that do not exist.
func (h hosts) beforeEnd(ctx context.Context, c lease.CloudReservation) error {
	if c.BeforeEnd != "snapshot" {
		return nil
	}
	var all []servers.Server
	for _, at := range c.ComputeHosts {
		onHost, err := h.servers(ctx, serverFilter{Host: at.Service})
		if err != nil {
			return err
		}
		all = append(all, onHost...)
	}
	if len(all) == 0 {
		return nil
	}
	images, err := h.images(ctx, c)
	if err != nil {
		return err
	}
	var first error
	for _, s := range all {
		first = cmp.Or(first, h.createImage(ctx, c, s, images))
	}
	return first
}

// createImage creates an image of a server, unless one of the given images is of the server and the same
// event, or maxImages of them are of the server. A server that does not exist, or of which Nova makes no
// image in its present state, gets none.
func (h hosts) createImage(
	ctx context.Context,
	c lease.CloudReservation,
	s servers.Server,
	images []image,
) error {
	event := c.BeforeEndAt.UTC().Format(time.RFC3339)
	images = slices.DeleteFunc(slices.Clone(images), func(i image) bool { return i.Metadata.Server != s.ID })
	if slices.ContainsFunc(images, func(i image) bool { return i.Metadata.BeforeEnd == event }) {
		return nil
	}
	if len(images) >= maxImages {
		slog.WarnContext(ctx, "a server gets no further image before the end of its lease",
			"reservation", c.ID, "server", s.ID, "images", len(images))
		return nil
	}
	err := servers.CreateImage(ctx, h.client, safeurl.Segment(s.ID), servers.CreateImageOpts{
		Name: text.Excerpt("reserved_"+s.Name, maxImageName),
		Metadata: map[string]string{
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
