package cloud

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/safeurl"
)

// migration is the resize of a server. Until the resize is confirmed or reverted, the server has its new
// flavor, and the migration is the consumer of its allocations from the old host.
type migration struct {
	UUID   string `json:"uuid"`
	Server string `json:"instance_uuid"`
	Status string `json:"status"`
}

// confirming is the status of a migration whose allocations Nova is about to delete.
const confirming = "confirming"

// unfinished are the statuses in which a server has its new flavor while the migration still has allocations,
// in the order in which a migration gets them, so that a migration whose status changes meanwhile is on one
// of the lists.
var unfinished = []string{"post-migrating", "finished", "reverting", confirming}

// microversionOfUUIDs is Nova's first microversion whose list of migrations contains their UUIDs.
const microversionOfUUIDs = "2.59"

// deleteConsumers deletes the servers that have slots of a reservation without its flavor, and returns
// ErrServersRemain while such a server still has its slot. An unconfirmed resize, which Nova keeps for ever
// by default, makes such a server. A server whose resize is being confirmed is not deleted: Nova is about to
// release its slot. deleteConsumers ignores consumers that are neither a server nor an unfinished migration.
func (i instances) deleteConsumers(ctx context.Context, reservation uuid.UUID) error {
	if i.cloud.consumers == nil {
		return nil
	}
	consumers, err := i.cloud.consumers(ctx, reservation)
	if err != nil || len(consumers) == 0 {
		return err
	}
	resizes, err := i.unfinishedResizes(ctx)
	if err != nil {
		return err
	}
	// a resize may have been confirmed before its migration was read
	if consumers, err = i.cloud.consumers(ctx, reservation); err != nil {
		return err
	}
	var known []string
	for _, consumer := range consumers {
		is, err := i.deleteConsumer(ctx, consumer, resizes)
		if err != nil {
			return err
		}
		if is {
			known = append(known, consumer)
		}
	}
	if len(known) == 0 {
		return nil
	}
	left, err := i.cloud.consumers(ctx, reservation)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(consumer string) bool { return !slices.Contains(known, consumer) })
	if len(left) > 0 {
		return fmt.Errorf("%w: %d servers have slots of the reservation without its flavor, such as the server or migration %s",
			ErrServersRemain, len(left), left[0])
	}
	return nil
}

// deleteConsumer requests the deletion of the server to which a consumer belongs. The result is false if the
// consumer is neither a server nor an unfinished migration of a server.
func (i instances) deleteConsumer(ctx context.Context, consumer string, resizes map[string]migration) (is bool, err error) {
	server := consumer
	if m, is := resizes[consumer]; is {
		if m.Status == confirming {
			return true, nil
		}
		server = m.Server
	}
	err = servers.ForceDelete(ctx, i.client, safeurl.Segment(server)).ExtractErr()
	if ignoreNotFound(err) != nil {
		return false, fmt.Errorf("delete server %s: %w", server, err)
	}
	return err == nil, nil
}

// unfinishedResizes returns the unfinished resizes of all servers by the UUID of the migration.
func (n nova) unfinishedResizes(ctx context.Context) (map[string]migration, error) {
	client := *n.client
	client.Microversion = microversionOfUUIDs
	resizes := map[string]migration{}
	for _, status := range unfinished {
		query := url.Values{"migration_type": {"resize"}, "status": {status}}
		list := pagination.NewPager(&client, client.ServiceURL("os-migrations")+"?"+query.Encode(),
			func(r pagination.PageResult) pagination.Page {
				return migrationPage{pagination.LinkedPageBase{PageResult: r}}
			})
		all, err := listAll(ctx, &client, list, extractMigrations)
		if err != nil {
			return nil, fmt.Errorf("list migrations: %w", err)
		}
		for _, m := range all {
			if m.Status == status {
				resizes[m.UUID] = m
			}
		}
	}
	return resizes, nil
}

// migrationPage is a page of Nova's list of migrations. It replaces gophercloud's own type, which does not
// follow the links to further pages.
type migrationPage struct{ pagination.LinkedPageBase }

// NextPageURL returns the link to the next page, or "" on the last page.
func (p migrationPage) NextPageURL() (string, error) {
	var page struct {
		Links []gophercloud.Link `json:"migrations_links"`
	}
	if err := p.ExtractInto(&page); err != nil {
		return "", err
	}
	return gophercloud.ExtractNextURL(page.Links)
}

// IsEmpty reports whether the page contains no migrations.
func (p migrationPage) IsEmpty() (bool, error) {
	all, err := extractMigrations(p)
	return len(all) == 0, err
}

func extractMigrations(page pagination.Page) (all []migration, err error) {
	err = page.(migrationPage).ExtractIntoSlicePtr(&all, "migrations")
	return all, err
}
